"""How a game will be solved, and what that takes: decided from estimates, before anything is unrolled."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from gdlx.envs import game_facts, game_spec
from gdlx.envs.states import state_count
from gdlx.envs.trees import game_tree, state_evaluation
from gdlx.envs.trees.estimates import block_estimate, infoset_estimate, node_limits, size_estimate
from gdlx.envs.trees.factored import symmetry_group
from gdlx.propnet.checks import unplayable
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import limits
from gdlx.propnet.common.text import plurals
from gdlx.propnet.simulate import random_play
from gdlx.solvers import algorithms, size_advice
from gdlx.solvers.mccfr import table_state

Interval = size_estimate.Interval
Method = Literal["states", "tree", "blocks", "cfr-on-states", "sampling"]
METHODS: tuple[Method, ...] = ("states", "tree", "blocks", "cfr-on-states", "sampling")

SAMPLING_SECONDS, BOUND_SECONDS = 60.0, 30.0  # that sampling takes, and then the search for a bound, unless specified
# Measured on one core of an ordinary machine, which another one may exceed by the factor.
_SECONDS_FACTOR, _MEMORY_FACTOR = 4.0, 2.0
_STATE_SECONDS, _STATE_BYTES = 0.3e-6, 8.0  # of a joint action
_STATE_ITERATION_SECONDS = 4e-8  # of a joint action
_HISTORY_SECONDS, _HISTORY_BYTES = 0.4e-6, 100.0  # bytes: of a history of the widest step
_INFOSET_SECONDS, _INFOSET_BYTES = 15e-6, 950.0  # of an information set of a game in blocks
_BLOCK_SECONDS, _BLOCK_BYTES = 24e-6, 600.0  # of a block of the widest step
_ITERATION_SECONDS = 1e-7  # of an information set
_BLOCK_ITERATION_SECONDS = 4e-7  # of a block of the widest step
_BASE_BYTES = 3e8  # of the process itself
_FEW_HISTORIES = 1e5  # of a game that is unrolled in less time than it takes to estimate anything
_MATCHES = (2**9, 2**14)  # that estimate the number of histories: fewer, the more gates there are
_EVALUATED_GATES = 2**24  # in a step of these
_INFOSET_WORK = 2**28  # of all players together
_PLAYED, _STEPS = 256, 300  # random matches that look for states which a game must not have
_PLAYED_GATES = 2**19  # evaluated for one of these, at most


@dataclasses.dataclass(frozen=True)
class Choice:
    """What to do with a game.

    Attributes:
      method: how; None if nothing can be done.
      reason: why, as a clause that begins with "it" or "its".
      fallback: what to do if that turns out too large after all.
      advice: what the user can do instead.
    """

    method: Method | None
    reason: str
    fallback: Method | None = None
    advice: str = ""

    @property
    def algorithm(self) -> str | None:
        """The name of the algorithm that does it."""
        return None if self.method is None else ALGORITHMS[self.method].name


ALGORITHMS: Mapping[Method, algorithms.Algorithm] = {
    "states": algorithms.find(algorithms.STATES),
    "tree": algorithms.find(algorithms.FULL),
    "blocks": algorithms.find(algorithms.FULL),
    "cfr-on-states": algorithms.on_states(algorithms.find(algorithms.FULL)),
    "sampling": algorithms.find(algorithms.SAMPLER),
}
_IN_WORDS: Mapping[Method, str] = {
    "states": "on its graph of states",
    "tree": "on the unrolled game",
    "blocks": "on the game unrolled in blocks",
    "cfr-on-states": "on its graph of states",
    "sampling": "with sampled play and a hash table",
}
_OF_STATES = {"states", "cfr-on-states"}


def describe(choice: Choice, algorithm: str | None = None) -> str:
    """Returns in one line what was chosen and why; `algorithm` is its name, if it is not the default of the method.

    >>> from gdlx.propnet import games
    >>> describe(choose(game_spec.GameSpec("kuhn_poker"), games.compile_game("kuhn_poker")))
    'dcfr on the unrolled game: it has about 58 histories'
    """
    if choice.method is None:
        return f"nothing fits: {choice.reason}"
    return f"{describe_method(choice.method, algorithm)}: {choice.reason}"


def describe_method(method: Method, algorithm: str | None = None) -> str:
    """Returns the algorithm of a method, and what it works on.

    >>> describe_method("tree")
    'dcfr on the unrolled game'
    """
    return f"{algorithm or ALGORITHMS[method].name} {_IN_WORDS[method]}"


def choose(
    game: game_spec.GameSpec,
    propnet: propnet.PropNet,
    *,
    max_nodes: int = limits.NODES,
    allowed: Sequence[Method] = METHODS,
    symmetries: bool = False,
) -> Choice:
    """Decides how to solve a game; cheap where the game is small.

    Args:
      game: the game, as the user specified it.
      propnet: its compiled propnet.
      max_nodes: refuse to unroll games with more joint actions in one step than this.
      allowed: the methods to choose from.
      symmetries: whether symmetric information sets are left out.

    >>> from gdlx.propnet import games
    >>> choose(game_spec.GameSpec("connect_four"), games.compile_game("connect_four"), allowed=("sampling",)).method
    'sampling'
    """
    facts = game_facts.probe(propnet)
    is_endless = size_advice.is_endless(propnet)
    if "states" in allowed and not is_endless:
        states = _choose_states(game, propnet, max_nodes, is_exact=len(allowed) > 1)
        if states is not None:
            return dataclasses.replace(states, fallback="tree" if "tree" in allowed else None)
    if _OF_STATES.issuperset(allowed) and not is_endless:
        return _choose_cfr_on_states(propnet, max_nodes, allowed) or Choice(
            None,
            "some player does not always know its state, or it has too many states",
            advice=f"Solve the tree instead, without states: `gdlx solve {game.spec}`",
        )
    sampling: Method | None = "sampling" if "sampling" in allowed else None
    guess = facts.histories(enough=max_nodes)
    if symmetries and not is_endless:
        return _choose_symmetric(propnet)
    is_small = not guess.is_truncated and max(guess.histories) <= max_nodes
    if "tree" in allowed and is_small and not is_endless:  # random matches may all end although states repeat
        return Choice("tree", f"it has about {guess.total:,.0f} histories", sampling)
    if is_endless:
        error = size_advice.explain(game, propnet, game_tree.TooLargeError(""))
        if sampling and size_advice.can_sample(propnet):
            return Choice(sampling, "its states repeat, so that its tree is infinite", advice=str(error))
        return Choice(None, error.reason, advice=str(error))
    try:
        chosen = _choose_tree(propnet, max_nodes, allowed, sampling)
    except game_tree.TooLargeError as error:
        on_states = _choose_cfr_on_states(propnet, max_nodes, allowed)
        if on_states is not None:
            return dataclasses.replace(on_states, fallback=sampling)
        explained = size_advice.explain(game, propnet, error)
        chosen = Choice(sampling, f"it is too large to unroll: {_shorten(error.reason)}", advice=str(explained))
    return chosen


def _choose_states(
    game: game_spec.GameSpec, propnet: propnet.PropNet, max_nodes: int, *, is_exact: bool
) -> Choice | None:
    """Solving by states if every player always knows the state, and there are not too many; `is_exact` by induction."""
    information, count = state_count.describe(propnet)
    if not information.known or count is None or count.joint_actions > max_nodes:
        return None
    facts = game_facts.probe(propnet)
    is_solvable = facts.payoffs(game.payoff).zero_sum or facts.dynamics.turn_taking
    if is_exact and not (information.proved and is_solvable):
        return None
    return Choice("states", f"its players always know the state, and {_say_states(count)}")


def _choose_cfr_on_states(propnet: propnet.PropNet, max_nodes: int, allowed: Sequence[Method]) -> Choice | None:
    """CFR on the graph of states if every player seems to know the state, and there are not too many."""
    if "cfr-on-states" not in allowed:
        return None
    information, count = state_count.describe(propnet)
    if not information.known or count is None or count.joint_actions > max_nodes:
        return None
    return Choice("cfr-on-states", f"its players always know the state, and {_say_states(count)}")


def _say_states(count: state_count.StateCount) -> str:
    return f"it has {'' if count.exact else 'about '}{plurals.count(round(count.states), 'state')}"


def _choose_symmetric(propnet: propnet.PropNet) -> Choice:
    """Unrolling in blocks without symmetric information sets; as a whole if there are no symmetries."""
    group = symmetry_group.build(propnet)
    if group is None:
        return Choice("tree", "no symmetries of its rules were found, so it is solved as a whole")
    return Choice("blocks", f"{group.order} symmetries of its rules leave about one in {group.order} information sets")


def _choose_tree(
    propnet: propnet.PropNet, max_nodes: int, allowed: Sequence[Method], sampling: Method | None
) -> Choice:
    """Unrolling in blocks or node by node; raises TooLargeError if neither is possible."""
    guess = game_facts.probe(propnet).histories()
    if "blocks" in allowed and game_spec.prefers_blocks(propnet, max_nodes):
        max_blocks = limits.BLOCKS * max_nodes // limits.NODES
        if not guess.is_truncated:
            block_estimate.require_fit(propnet, guess.histories, max_blocks)
            widest = block_estimate.estimate_blocks(propnet, guess.histories).widest
            about = "" if widest.is_exact else "about "
            return Choice(
                "blocks",
                f"its about {guess.total:.0e} histories come in {about}{widest.estimate:,.0f} blocks a step",
                sampling,
            )
    node_limits.require_fit(propnet, max_nodes)
    if "tree" not in allowed:
        raise game_tree.TooLargeError(f"{propnet.name} cannot be unrolled in this way")
    return Choice("tree", f"its about {guess.total:.0e} histories seem to merge enough", sampling)


def _shorten(reason: str) -> str:
    """The part of a message that says why."""
    return reason.split("blocks: ", 1)[-1].split("unroll: ", 1)[-1].split("; allowed", 1)[0]


@dataclasses.dataclass(frozen=True)
class Plan:
    """What `gdlx solve` would do with a game, and what that takes. `make_plan` makes one.

    Attributes:
      game: the game, as the user specified it.
      choice: what will be done, and why.
      sizes: what was estimated: `histories`, `states`, `blocks`, and `information sets of PLAYER`.
      memory: bytes of the process.
      seconds: processor time until the first iteration, or of all.
      iteration: seconds of one iteration; None if there are none, or it is not known.
      algorithm: the name of the algorithm; None if nothing can be done.
      table: base-2 logarithm of the information sets of the hash table, if there is one.
      problem: what makes the game unfit to be solved, with the fix; empty if nothing was found.
    """

    game: str
    choice: Choice
    sizes: Mapping[str, Interval]
    memory: Interval
    seconds: Interval
    algorithm: str | None = None
    iteration: Interval | None = None
    table: int | None = None
    problem: str = ""

    def __repr__(self) -> str:
        return f"Plan({self.game}: {describe(self.choice, self.algorithm)})"

    def to_json(self) -> dict[str, Any]:
        """As values of JSON; numbers that are not known are None."""
        return {
            "game": self.game,
            "method": self.choice.method,
            "algorithm": self.algorithm,
            "reason": self.choice.reason,
            "fallback": self.choice.fallback,
            "sizes": {name: _interval_to_json(interval) for name, interval in self.sizes.items()},
            "memory_bytes": _interval_to_json(self.memory),
            "seconds": _interval_to_json(self.seconds),
            "seconds_per_iteration": None if self.iteration is None else _interval_to_json(self.iteration),
            "table": self.table,
            "problem": self.problem or None,
            "advice": self.choice.advice or None,
        }


def _interval_to_json(interval: Interval) -> dict[str, float | None]:
    return {name: number if math.isfinite(number) else None for name, number in interval._asdict().items()}


def make_plan(
    game: game_spec.GameSpec,
    propnet: propnet.PropNet,
    *,
    max_nodes: int = limits.NODES,
    allowed: Sequence[Method] = METHODS,
    algorithm: str | None = None,
    seed: int = 0,
    symmetries: bool = False,
) -> Plan:
    """Plans how to solve a game, in seconds, however large it is.

    Args:
      game: the game, as the user specified it.
      propnet: its compiled propnet.
      max_nodes: refuse to unroll games with more joint actions in one step than this.
      allowed: the methods to choose from.
      algorithm: the name of the algorithm that the user asked for; None: the default of the method.
      seed: of the random play behind the estimates.
      symmetries: whether symmetric information sets are left out.

    >>> from gdlx.propnet import games
    >>> plan = make_plan(game_spec.GameSpec("kuhn_poker"), games.compile_game("kuhn_poker"))
    >>> plan, round(plan.sizes["information sets of player1"].estimate)
    (Plan(kuhn_poker: dcfr on the unrolled game: it has about 58 histories), 6)
    """
    choice = choose(game, propnet, max_nodes=max_nodes, allowed=allowed, symmetries=symmetries)
    sizes, widest = _sizes(propnet, choice, seed)
    infosets = [interval for name, interval in sizes.items() if name.startswith("information sets")]
    total = _add(*infosets)
    iteration, table = None, None
    seconds = memory = Interval(math.nan, 0.0, math.inf)
    match choice.method:
        case "states" | "cfr-on-states":
            actions = sizes["joint actions of states"]
            seconds, memory = actions.scaled(_STATE_SECONDS), actions.scaled(_STATE_BYTES)
            if choice.method == "cfr-on-states":
                iteration = actions.scaled(_STATE_ITERATION_SECONDS, _SECONDS_FACTOR)
        case "tree":
            seconds, memory = sizes["histories"].scaled(_HISTORY_SECONDS), widest.scaled(_HISTORY_BYTES)
            iteration = total.scaled(_ITERATION_SECONDS, _SECONDS_FACTOR)
        case "blocks":
            group = symmetry_group.build(propnet) if symmetries else None
            blocks = sizes.get("blocks of the widest step", Interval.exact(0))
            total, blocks = (each.scaled(1 if group is None else 1 / group.order) for each in (total, blocks))
            seconds = _add(total.scaled(_INFOSET_SECONDS), blocks.scaled(_BLOCK_SECONDS))
            memory = _add(total.scaled(_INFOSET_BYTES), blocks.scaled(_BLOCK_BYTES))
            iteration = _add(total.scaled(_ITERATION_SECONDS), blocks.scaled(_BLOCK_ITERATION_SECONDS))
            iteration = iteration.scaled(1.0, _SECONDS_FACTOR)
        case "sampling":
            table = size_advice.table_bits(propnet)
            seconds = Interval.exact(SAMPLING_SECONDS + BOUND_SECONDS)
            memory = Interval.exact(float(_table_bytes(propnet, table)))
    if choice.method != "sampling":
        seconds = seconds.scaled(1.0, _SECONDS_FACTOR)
    memory = memory.scaled(1.0, _MEMORY_FACTOR)
    memory = Interval(*(number + _BASE_BYTES for number in memory))
    problem = choice.advice if choice.method is None else find_problem(game, propnet, seed)
    name = None if choice.method is None else algorithm or choice.algorithm
    return Plan(game.spec, choice, sizes, memory, seconds, name, iteration, table, problem)


def _sizes(propnet: propnet.PropNet, choice: Choice, seed: int) -> tuple[dict[str, Interval], Interval]:
    """What there is to count in a game, and the histories of the widest step."""
    fewest, most = _MATCHES
    matches = min(most, max(fewest, _EVALUATED_GATES // max(1, propnet.gates)))
    histories = size_estimate.SizeEstimator(propnet, seed, matches=matches).estimate()
    sizes = {"histories": histories.sum}
    if choice.method in _OF_STATES:
        count = state_count.describe(propnet)[1]
        assert count is not None
        for name, number in (("states", count.states), ("joint actions of states", count.joint_actions)):
            sizes[name] = Interval.exact(number) if count.exact else Interval(number, number, math.inf)
    for number, role in enumerate(propnet.players):
        work = _INFOSET_WORK / max(1, len(propnet.players))
        estimate = infoset_estimate.estimate_infosets(propnet, number, seed, work=work)
        sizes[f"information sets of {role.name}"] = estimate.choices
    guess = game_facts.probe(propnet).histories()
    if game_spec.prefers_blocks(propnet) and not guess.is_truncated:
        sizes["blocks of the widest step"] = block_estimate.estimate_blocks(propnet, guess.histories).widest
    ratio = max(histories.histories) / histories.total
    return sizes, histories.sum.scaled(ratio if math.isfinite(ratio) else 1.0)


def _add(*intervals: Interval) -> Interval:
    return Interval(*(sum(parts) for parts in zip(Interval.exact(0.0), *intervals, strict=True)))


def _table_bytes(propnet: propnet.PropNet, bits: int) -> int:
    actions = max((len(role.moves) for role in propnet.players), default=1)
    batch = algorithms.find(algorithms.SAMPLER).sampling_config.batch
    config = table_state.SamplerConfig(batch, game_facts.probe(propnet).step_capacity)
    players = len(propnet.players)
    visits = table_state.visit_bytes(players, config)
    total: int = table_state.updated_row_bytes(players, actions, config) * 2**bits + visits
    return total


def find_problem(game: game_spec.GameSpec, propnet: propnet.PropNet, seed: int = 0) -> str:
    """Plays random matches, and describes a state that the game must not have; empty if there was none.

    >>> from gdlx.propnet import games
    >>> find_problem(game_spec.GameSpec("kuhn_poker"), games.compile_game("kuhn_poker"))
    ''
    """
    reader = state_evaluation.StateEvaluator(propnet, game.payoff, game.goal_conflict)
    for number, step in enumerate(random_play.random_steps(propnet, _PLAYED, seed)):
        try:
            reader.evaluate(step.state)
        except (game_tree.GoalConflictError, unplayable.UnplayableError) as error:
            return str(error)
        if number >= min(_STEPS, _PLAYED_GATES // max(1, propnet.gates)):
            break
    return ""
