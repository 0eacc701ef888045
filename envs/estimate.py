"""How large a game is, from random play: Knuth's estimate of the number of its histories, step by step.

A random match through states with k1, k2, .. joint moves stands for k1 k2 .. histories of its length; the mean over
many matches is an unbiased estimate, mostly from below where few matches find the widest part of the game.
"""

from typing import NamedTuple

import numpy as np

from gdlx.propnet import machine, network, play

_MATCHES, _MAX_STEPS = 2_048, 500
_BYTES_PER_EDGE = 100  # that unrolling needs for every joint move of its widest step


class Estimate(NamedTuple):
    histories: tuple[float, ...]  # after each number of joint moves, ends included; unmerged
    is_cut: bool  # whether matches went on after the last one

    def upto(self, depth: int | None) -> "Estimate":
        """Of the first joint moves only."""
        if depth is None or depth + 1 >= len(self.histories):
            return self
        return Estimate(self.histories[: depth + 1], is_cut=False)

    @property
    def total(self) -> float:
        return sum(self.histories)

    @property
    def bytes(self) -> float:
        """That unrolling needs if no histories can be merged."""
        return _BYTES_PER_EDGE * max(self.histories)


def estimate(net: network.PropNet, seed: int = 0, *, matches: int = _MATCHES, enough: float = np.inf) -> Estimate:
    """Stops early where there are more than `enough` histories."""
    game = machine.Machine(net)
    rng = np.random.default_rng(seed)
    sizes = [len(role.moves) for role in net.roles]
    state = game.initial(matches)
    weight = np.ones(matches)
    histories = [1.0]
    with np.errstate(over="ignore"):
        for _ in range(_MAX_STEPS):
            terminal, _ = game.judge(state)
            per_role = machine.split_rows(game.legal(state), sizes)
            choices = np.prod([rows.sum(axis=0, dtype=np.float64) for rows in per_role], axis=0)
            alive = ~terminal & (choices > 0)
            weight = weight * choices * alive
            if not alive.any():
                return Estimate(tuple(histories), is_cut=False)
            histories.append(float(weight.mean()))
            if histories[-1] > enough:
                return Estimate(tuple(histories), is_cut=True)
            state, _ = game.move(state, np.concatenate([play.choose(rows, rng) for rows in per_role]))
    return Estimate(tuple(histories), is_cut=True)
