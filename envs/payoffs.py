"""Goal values -> payoffs: zero-sum where the goal values of two players have a constant sum."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import memo, propnet, sat
from gdlx.propnet.common import errors
from gdlx.propnet.simulate import machine, random_play

PayoffMode = Literal["auto", "zero-sum", "goal"]
_SAMPLED_TERMINALS = 10_000
# Parallel matches and steps: many short matches are fastest; if they do not end, a few long ones.
_ROUNDS = ((10_000, 256), (512, 4_000))
_QUICK_ROUNDS = ((32, 256),)


@dataclasses.dataclass(frozen=True)
class Payoffs:
    """payoff = goal value - offset.

    Attributes:
      offset: what to subtract from a goal value.
      zero_sum: whether the payoffs of two players sum to zero.
      proved: whether that is proved, or only observed in sampled play.

    >>> import gdlx
    >>> infer_payoffs(gdlx.compile("kuhn_poker"))
    Payoffs(offset=50.0, zero_sum=True, proved=False)
    """

    offset: float
    zero_sum: bool
    proved: bool


class PayoffError(errors.UserError, ValueError):
    """A payoff mode that the game's goals contradict."""


@memo.per_propnet
def infer_payoffs(propnet: propnet.PropNet, mode: PayoffMode = "auto", seed: int = 0) -> Payoffs:
    """Decides how goal values become payoffs, before a run."""
    if mode not in (modes := get_args(PayoffMode)):
        raise PayoffError(f"`payoff=` must be one of {', '.join(modes)}; got {mode!r}")
    if mode == "goal" or len(propnet.players) != 2:
        if mode == "zero-sum":
            raise PayoffError(f"`payoff='zero-sum'` needs two players; {propnet.name} has {len(propnet.players)}")
        return Payoffs(0.0, False, True)
    sums = _sampled_sums(propnet, seed, _QUICK_ROUNDS, enough=1)
    if len(sums) == 1 and _is_proved(propnet, total := next(iter(sums))):  # which saves the longer sampling
        return Payoffs(total / 2, True, True)
    sums |= _sampled_sums(propnet, seed, _ROUNDS, enough=_SAMPLED_TERMINALS)
    units = payoffs_from_goal_sums(propnet, sums, mode)
    return dataclasses.replace(units, proved=not units.zero_sum or _is_proved(propnet, int(2 * units.offset)))


def payoffs_from_goal_sums(propnet: propnet.PropNet, sums: set[int], mode: PayoffMode = "auto") -> Payoffs:
    """The same, from the sums of the players' goal values at all terminals of the game."""
    if mode == "goal" or len(propnet.players) != 2:
        return infer_payoffs(propnet, mode)
    if len(sums) != 1:
        if mode == "zero-sum":
            observed = f"sums observed: {', '.join(map(str, sorted(sums)[:6]))}" if sums else "no random match ended"
            raise PayoffError(f"the goals of {propnet.name} were not observed to have a constant sum; {observed}")
        return Payoffs(0.0, False, True)
    return Payoffs(next(iter(sums)) / 2, True, True)


def _sampled_sums(propnet: propnet.PropNet, seed: int, rounds: Sequence[tuple[int, int]], enough: int) -> set[int]:
    """Sums of the players' goal values (the highest if a player has several) at the terminals of random matches."""
    sums: set[int] = set()
    terminals = 0
    for copies, steps in rounds:
        for step in itertools.islice(random_play.random_steps(propnet, copies, seed), steps):
            if step.terminal.any():
                rows = machine.split_rows(
                    step.goals[:, step.terminal], [len(role.goal_values) for role in propnet.roles]
                )
                players = [(role, held) for role, held in zip(propnet.roles, rows, strict=True) if not role.is_random]
                sums.update(np.unique(sum(highest_goals(role, held) for role, held in players)).tolist())
                terminals += int(step.terminal.sum())
            if terminals >= enough or len(sums) > 1:
                return sums
    return sums


def highest_goals(role: propnet.Role, held: random_play.Bools) -> npt.NDArray[np.int64]:
    """The highest of a player's goal values in every column, 0 where it has none."""
    highest = np.zeros(held.shape[1], np.int64)
    for value, row in zip(role.goal_values, held, strict=True):
        highest[row] = value
    return highest


def _is_proved(propnet: propnet.PropNet, total: int) -> bool:
    """Whether no state, reachable or not, is terminal and has goal values with another sum."""
    gates = propnet.as_circuit()
    lines = [f"{{n(1..{gates.inputs})}}."]
    lines += sat.gates_to_asp(gates)
    first, second = propnet.players
    lines.append(f":- {sat.literal_to_asp(propnet.terminal ^ 1)}.")
    for role, name in ((first, "a"), (second, "b")):
        lines += [
            f"{name}({value}) :- {sat.literal_to_asp(literal)}."
            for value, literal in zip(role.goal_values, role.goal.tolist(), strict=True)
        ]
        lines.append(f"top_{name}(M) :- M = #max {{ V : {name}(V) }}, {name}(_).")
        lines.append(f"top_{name}(0) :- not {name}(_).")
    lines.append(f":- top_a(V), top_b(W), V + W == {total}.")
    return sat.is_unsatisfiable(lines)
