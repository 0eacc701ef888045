"""How many states a game has: counted where that is quick, estimated from random play elsewhere."""

import dataclasses
import itertools

import numpy as np

from gdlx.envs.states import state_information, transitions
from gdlx.envs.trees import unique_rows
from gdlx.propnet.circuits import memo, propnet
from gdlx.propnet.common import limits
from gdlx.propnet.simulate import joint_actions, machine, random_play

COUNTED_JOINT_ACTIONS = 400_000  # a fraction of a second
_MATCHES = 8_192


@dataclasses.dataclass(frozen=True)
class StateCount:
    """The size of a graph of states. A state that is reached after different numbers of steps counts once for each.

    Attributes:
      states: distinct states, step by step.
      joint_actions: in all of these; building a graph takes time and memory in proportion.
      steps: joint actions of the longest match.
      exact: whether all states were counted; otherwise the numbers are estimates, mostly from below.
    """

    states: float
    joint_actions: float
    steps: int
    exact: bool


def describe(game: propnet.PropNet) -> tuple[state_information.StateInformation, StateCount | None]:
    """Whether a game is one of states, and if so, how many it has; both are cached.

    >>> from gdlx.propnet import games
    >>> information, count = describe(games.compile_game("repeated_rps:rounds=9"))
    >>> information.known, count
    (True, StateCount(states=100, joint_actions=729, steps=9, exact=True))
    """
    information = state_information.infer_state_information(game)
    return information, count_states(game) if information.known else None


@memo.per_propnet
def count_states(game: propnet.PropNet, budget: int = COUNTED_JOINT_ACTIONS, seed: int = 0) -> StateCount:
    """Counts the states of a game, until they have more than `budget` joint actions; then estimates them.

    The estimate plays random matches and applies the estimator of Chao (1984) to the states that were visited once and
    twice at every step: it is approximately a lower bound on their number.

    >>> from gdlx.propnet import games
    >>> count_states(games.compile_game("tictactoe"))
    StateCount(states=5478, joint_actions=16167, steps=9, exact=True)
    """
    counted, pairs, complete = _count(game, budget)
    if complete:
        return StateCount(sum(counted), int(sum(pairs)), len(counted) - 1, True)
    estimated, estimated_pairs, steps = _estimate(game, seed)
    for step, (states, actions) in enumerate(zip(counted, pairs, strict=True)):
        if step < len(estimated):
            estimated[step], estimated_pairs[step] = float(states), float(actions)
    return StateCount(sum(estimated), sum(estimated_pairs), steps, False)


def _count(game: propnet.PropNet, budget: int) -> tuple[list[int], list[float], bool]:
    """The states and joint actions of every step within the budget, and whether these are all."""
    judge = machine.for_propnet(game)
    sizes = [len(role.moves) for role in game.roles]
    states = judge.initial(1)
    counted: list[int] = []
    pairs: list[float] = []
    while True:
        terminal, _ = judge.terminal_and_goals(states)
        legal = judge.legal(states) & ~terminal
        here = joint_actions.count_joint_actions(legal, sizes)
        counted.append(states.shape[1])
        pairs.append(here)
        if not here:
            return counted, pairs, True
        if sum(pairs) > budget or len(counted) > limits.STEPS:
            return counted, pairs, False
        parts = [part.following for part in transitions.expand(game, states, legal)]
        following = np.concatenate(parts, axis=1)
        states = following[:, unique_rows.number_bit_columns(following).example]


def _estimate(game: propnet.PropNet, seed: int) -> tuple[list[float], list[float], int]:
    judge = machine.for_propnet(game)
    rng = np.random.default_rng(seed)
    sizes = [len(role.moves) for role in game.roles]
    state = judge.initial(_MATCHES)
    states: list[float] = []
    pairs: list[float] = []
    for step in itertools.count():
        number = unique_rows.number_bit_columns(state)
        times = np.bincount(number.number)
        once, twice = int((times == 1).sum()), int((times == 2).sum())
        # The bias-corrected form, which is defined also if no state was visited twice.
        distinct = number.size + once * (once - 1) / (2 * (twice + 1))
        terminal, _ = judge.terminal_and_goals(state)
        rows = machine.split_rows(judge.legal(state) & ~terminal, sizes)
        width = np.prod([part.sum(axis=0, dtype=np.float64) for part in rows], axis=0)
        goes_on = width > 0
        states.append(distinct)
        pairs.append(distinct * float(width[number.example].mean()))
        if not goes_on.any() or step >= limits.STEPS:
            return states, pairs, step
        rows = [part[:, goes_on] for part in rows]
        does = np.concatenate([random_play.sample_legal_moves(part, rng) for part in rows])
        state, _ = judge.step(state[:, goes_on], does)
    raise AssertionError("unreachable")
