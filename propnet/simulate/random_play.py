"""Random play of a batch of games with a propnet in numpy: to sample states, not for speed.

Joint actions are uniform: every role draws one of its legal moves. `envs/lowering/random_move.py` does the same on
the device.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import seeds
from gdlx.propnet.simulate import machine

Bools = npt.NDArray[np.bool_]


class BatchedStep(NamedTuple):
    """One step of B games. Axes: rows as in machine.StateMachine."""

    state: Bools  # [R, B] before the move
    legal: Bools  # [M, B]
    does: Bools  # [M, B] one legal move for every role that has one
    percepts: Bools  # [P, B]
    next_state: Bools  # [R, B]
    terminal: Bools  # [B] whether `state` is terminal; the game then restarts
    unplayable: Bools  # [B] whether a role has no legal move in a nonterminal state; the game then restarts too
    goals: Bools  # [G, B] goal rows of `state`


def random_steps(propnet: propnet.PropNet, copies: int, seed: int, start: Bools | None = None) -> Iterator[BatchedStep]:
    """Yields steps of uniformly random play forever; finished games restart from the initial state or `start`."""
    game = machine.for_propnet(propnet)
    rng = np.random.default_rng(seeds.non_negative(seed))
    fresh = game.initial(copies) if start is None else start
    state = fresh
    sizes = [len(role.moves) for role in propnet.roles]
    while True:
        terminal, goals = game.terminal_and_goals(state)
        legal = game.legal(state)
        per_role = machine.split_rows(legal, sizes)
        unplayable = ~terminal & ~np.all([rows.any(axis=0) for rows in per_role], axis=0)
        does = np.concatenate([sample_legal_moves(rows, rng) for rows in per_role]) if per_role else legal
        following, percepts = game.step(state, does)
        yield BatchedStep(state, legal, does, percepts, following, terminal, unplayable, goals)
        state = np.where(terminal | unplayable, fresh, following)


def sample_legal_moves(legal: Bools, rng: np.random.Generator) -> Bools:
    """Selects one true row uniformly at random in every column that has any."""
    chosen = np.zeros_like(legal)
    if legal.size:
        rank = rng.random(legal.shape)
        best = np.multiply(rank, legal, out=rank).argmax(axis=0)
        columns = np.arange(legal.shape[1])
        chosen[best, columns] = legal[best, columns]
    return chosen
