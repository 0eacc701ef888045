"""What `gdlx evaluate --bound` computes and shows."""

from typing import TYPE_CHECKING, Any, NamedTuple

from gdlx.cli import console, networks

if TYPE_CHECKING:
    from gdlx.envs import walk
    from gdlx.solvers import gains, problems, profiles, results, table_policy
    from gdlx.solvers import solve as solving

_RESPONDERS = {"learnt": "learns", "local": "looks a move ahead"}


class Bounded(NamedTuple):
    """The last bound that was found in the time."""

    bound: "gains.Bound"
    interrupted: bool


def of_result(
    given: console.Options,
    task: "solving.Task",
    config: "results.Config",
    policies: "profiles.Policies",
    kept: "table_policy.TablePolicy | None",
    seconds: float | None,
) -> Bounded:
    """`kept` is the whole policy of a game that is not unrolled."""
    from gdlx.solvers import problems, table_policy, table_process

    if isinstance(task, problems.TableProblem):
        assert kept is not None
        assert config.algorithm.sampling is not None
        steps = config.algorithm.sampling.max_steps or table_process.room_for_steps(task.env.net, given.seed)
        return _searched(given, task, task.walk, kept, seconds, steps)
    game = _walk_of(given, task)
    frozen = table_policy.of_policies(policies, game.env, task.tree)
    return _searched(given, task, game, frozen, seconds, len(task.tree.counts.nodes) - 1)


def _walk_of(given: console.Options, task: "problems.Problem") -> "walk.Walk":
    """An unrolled game as it is played."""
    from gdlx.envs import env, payoffs, walk
    from gdlx.propnet import limits

    net = networks.network_of(given, task.game.spec, task.game.gdl, task.game.fold_case, limits.Limits())
    return walk.Walk(env.Env(net, payoffs.Payoffs(task.tree.offset, task.tree.zero_sum, True)))


def _searched(
    given: console.Options,
    task: "solving.Task",
    game: "walk.Walk",
    policy: "table_policy.TablePolicy",
    seconds: float | None,
    steps: int,
) -> Bounded:
    import jax

    from gdlx.solvers import bounds

    found, interrupted = None, False
    spent = bounds.DEFAULT_SECONDS if seconds is None else seconds
    with console.progress(given, f"bound of {task.game.spec}") as advance:
        plan = bounds.plan(game, steps)
        try:
            for found in bounds.search(game, policy, jax.random.key(given.seed), seconds=spent, plan=plan):
                advance(_progress(found))
        except KeyboardInterrupt:
            interrupted = True
    if found is None:
        raise KeyboardInterrupt
    return Bounded(found, interrupted)


def _progress(found: "gains.Bound") -> str:
    if found.exploitability is not None:
        return f"bound on exploitability {found.exploitability:.3g} ± {found.standard_error:.2g}"
    return ", ".join(f"bound on the gain of {own.player} {own.gain:.3g}" for own in found.gains)


def as_json(bounded: Bounded) -> dict[str, Any]:
    """What `--bound` adds to the result of `evaluate`."""
    found = bounded.bound
    return {
        "exploitability_bound": found.exploitability,
        "exploitability_bound_interval": None if found.interval is None else list(found.interval),
        "bound": {
            "seconds": found.seconds,
            "interrupted": bounded.interrupted,
            "players": {own.player: _gain_as_json(own) for own in found.gains},
        },
    }


def _gain_as_json(own: "gains.Gain") -> dict[str, Any]:
    return {
        "gain": own.gain,
        "gain_interval": list(own.interval),
        "response": None if own.chosen is None else own.chosen.method,
        "value": own.value,
        "responses": {
            response.method: {
                "payoff": response.payoff,
                "standard_error": response.standard_error,
                "matches": response.matches,
            }
            for response in own.responses
        },
        "batches": own.batches,
        "information_sets": own.sets,
    }


def show(bounded: Bounded) -> None:
    import rich.table

    found = bounded.bound
    table = rich.table.Table(box=None, pad_edge=False)
    table.add_column("player")
    for column in ("payoff", *(f"if it {does}" for does in _RESPONDERS.values()), "bound on its gain"):
        table.add_column(column, justify="right")
    for own in found.gains:
        told = {response.method: f"{response.payoff:.4g} ± {response.standard_error:.2g}" for response in own.responses}
        low, high = own.interval
        table.add_row(
            own.player,
            f"{own.value:.4g}",
            *(told.get(method, "not known") for method in _RESPONDERS),
            f"{own.gain:.4g}" if own.chosen is None else f"{own.gain:.4g} ({low:.4g} to {high:.4g})",
        )
    console.say("")
    console.show(table)
    if found.exploitability is not None and found.interval is not None:
        low, high = found.interval
        console.say(
            f"lower bound on exploitability {found.exploitability:.4g} (95 %: {low:.4g} to {high:.4g}); "
            f"so it is {max(low, 0.0):.4g} or more, but for bad luck"
        )
    end = ", then interrupted" if bounded.interrupted else ""
    console.say(
        "payoffs are means of matches with standard errors, gains have 95 % intervals; "
        f"{found.seconds:.3g} s of playing{end}"
    )
