"""The command `infoset`: which histories agree with what a player saw."""

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gdlx.cli import console, loading, shared_options
from gdlx.propnet.common.text import plurals

if TYPE_CHECKING:
    from gdlx.propnet.circuits import propnet
    from gdlx.propnet.observations import information_set, positions

_WHAT = {
    "enumerate": "all were counted, those with the same future together",
    "guided": "sampled among plausible moves, with importance weights",
    "sat": "found by a SAT solver",
    "particles": "sampled by a particle filter",
    "rejection": "sampled by rejection",
}


def infoset(
    context: typer.Context,
    game: shared_options.Game,
    player: Annotated[str, typer.Option(metavar="NAME", help="The player, by name or by number from 1.")],
    moves: Annotated[
        int | None,
        typer.Option(min=0, help="Joint actions of the random match (see --seed); by default half of a match."),
    ] = None,
    way: Annotated[
        Literal["auto", "enumerate", "guided", "sat", "particles", "rejection"],
        typer.Option(help="How to find histories; auto: enumerate, then guided, then sat, the first that is possible."),
    ] = "auto",
    count: Annotated[
        bool, typer.Option("--count", help="List every history, one by one, instead of counting merged ones.")
    ] = False,
    stats: Annotated[bool, typer.Option("--stats", help="Print the sizes of the circuit and its choices.")] = False,
    examples: Annotated[int, typer.Option(min=0, max=1_000, help="Histories to print.")] = 3,
    size: Annotated[int, typer.Option(min=1, max=2**20, help="Histories to sample, where they are sampled.")] = 10_000,
    seconds: Annotated[float, typer.Option(min=0.1, help="Time limit of counting, and of the SAT solver.")] = 30.0,
    *,
    compiling: shared_options.Compiling,
) -> None:
    """Find the histories that agree with what a player saw in a random match."""
    options = console.options(context)
    if count and way not in ("auto", "enumerate"):
        raise typer.BadParameter("--count lists all histories: leave out --way")
    net = loading.load_propnet(options, game, compiling.gdl, compiling.fold_case, compiling.limits)
    from gdlx.propnet.observations import information_set, positions

    number = positions.find_player(net, player)
    position = positions.random_position(net, number, moves, options.seed)
    result: dict[str, Any] = {
        "game": game,
        "player": net.players[number].name,
        "moves": len(position.events),
        "seed": options.seed,
    }
    with console.progress(options, f"finding histories of {game}"):
        if way == "particles" or way == "rejection":
            result |= _sampled(net, position, way, min(size, 2**15), options.seed)
            found = None
        else:
            found = information_set.find_information_set(
                net, position, way, size=size, seconds=seconds, seed=options.seed, examples=examples, listed=count
            )
            result |= _described(net, found)
    if options.json:
        console.emit(result)
        return
    _show(result, None if found is None else found.sizes, position, net, stats=stats)


def _described(net: "propnet.PropNet", found: "information_set.InformationSet") -> dict[str, Any]:
    """What was found, in words and numbers."""
    return {
        "way": found.way,
        "histories": found.histories,
        "distinct": found.distinct,
        "complete": found.complete,
        "biased": found.biased,
        "effective_sample_size": None if math.isnan(found.effective_sample_size) else found.effective_sample_size,
        "likelihood": None if math.isnan(found.likelihood) else found.likelihood,
        "examples": [_words(net, history) for history in found.examples.tolist()],
        "circuit": found.sizes._asdict(),
        "infer_seconds": found.infer_seconds,
        "seconds": found.seconds,
    }


def _words(net: "propnet.PropNet", history: list[list[int]]) -> list[str]:
    """The joint actions of a history, without the waiting of those who had no other move."""
    lines = []
    for joint in history:
        done = [f"{role.name} {role.moves[move]}" for role, move in zip(net.roles, joint, strict=True)]
        active = [text for text in done if not text.endswith(" noop")]
        lines.append(", ".join(active or done))
    return lines


def _sampled(
    net: "propnet.PropNet",
    position: "positions.Position",
    way: Literal["particles", "rejection"],
    size: int,
    seed: int,
) -> dict[str, Any]:
    """The belief of the former samplers, which do not look ahead; it has no examples."""
    import time

    import gdlx
    from gdlx.envs import compilation_cache
    from gdlx.envs.packed import packed_env
    from gdlx.envs.views import history
    from gdlx.solvers.search import beliefs

    compilation_cache.enable()
    environment = gdlx.make(net)
    events = tuple(history.Event(*event) for event in position.events)
    view = history.ActionObservationHistory(environment, position.player, position.first, events)
    begun = time.perf_counter()
    budget = beliefs.BeliefBudget(size=size)
    belief = beliefs.compute_belief(packed_env.PackedEnv(environment), view, method=way, budget=budget, seed=seed)
    report = belief.report
    return {
        "way": way,
        "histories": None,
        "distinct": report.distinct,
        "complete": False,
        "biased": False,
        "effective_sample_size": report.effective_sample_size,
        "likelihood": report.likelihood,
        "examples": [],
        "circuit": None,
        "infer_seconds": 0.0,
        "seconds": time.perf_counter() - begun,
    }


def _show(
    result: dict[str, Any],
    sizes: "information_set.Sizes | None",
    position: "positions.Position",
    net: "propnet.PropNet",
    *,
    stats: bool,
) -> None:
    role = net.players[position.player]
    after = plurals.count(len(position.events), "joint action")
    console.say(f"{result['game']}: what {role.name} knows after {after} of a random match (seed {result['seed']})")
    if result["histories"] is not None:
        console.say(f"  histories    {result['histories']:,} agree, exactly ({_WHAT[result['way']]})")
    else:
        console.say(f"  histories    {result['distinct']:,} different ones that agree ({_WHAT[result['way']]})")
    if result["effective_sample_size"] is not None:
        console.say(f"  sample       worth {result['effective_sample_size']:,.0f} independent ones")
    if result["biased"]:
        console.say("  sample       biased: nothing is known of how the solver selects")
    if result["likelihood"] is not None:
        console.say(f"  probability  {result['likelihood']:.3g} of these observations, if all others play at random")
    console.say(f"  time         {result['infer_seconds'] + result['seconds']:.2f} s")
    if stats and sizes is not None:
        console.say(
            f"  circuit      {sizes.gates:,} gates, {sizes.inputs:,} inputs; left open {sizes.open_gates:,} gates, "
            f"{sizes.clauses:,} clauses",
            f"  moves        {sizes.forced:,} known, {plurals.count(len(sizes.choices), 'choice')} left: "
            f"{' x '.join(map(str, sizes.choices)) or 'none'}",
        )
    for number, lines in enumerate(result["examples"], 1):
        console.say(f"  example {number}    {'; '.join(lines)}")
