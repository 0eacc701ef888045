"""Whether a game is turn-taking: never more than one player with a choice at the same time."""

import dataclasses

import numpy as np

from gdlx.propnet.circuits import propnet, sat
from gdlx.propnet.circuits.passes import invariants
from gdlx.propnet.simulate import machine, random_play

_COPIES, _STEPS = 256, 400


@dataclasses.dataclass(frozen=True)
class Dynamics:
    """`proved`: whether `turn_taking` is proved, or only observed in sampled play."""

    turn_taking: bool
    proved: bool


def infer_dynamics(propnet: propnet.PropNet, seed: int = 0) -> Dynamics:
    """Decides whether the game is turn-taking, by random play and then by a proof."""
    if len(propnet.players) < 2:
        return Dynamics(turn_taking=True, proved=True)
    if has_simultaneous_choices(propnet, seed):
        return Dynamics(turn_taking=False, proved=True)
    return Dynamics(turn_taking=True, proved=_is_proved(propnet))


def has_simultaneous_choices(propnet: propnet.PropNet, seed: int = 0, *, steps: int = _STEPS) -> bool:
    """Whether random play reaches a state in which two players have a choice."""
    sizes = [len(role.moves) for role in propnet.roles]
    for number, step in enumerate(random_play.random_steps(propnet, _COPIES, seed)):
        rows = machine.split_rows(step.legal, sizes)
        choices = [legal.sum(axis=0) > 1 for role, legal in zip(propnet.roles, rows, strict=True) if not role.is_random]
        if (~step.terminal & ~step.unplayable & (np.sum(choices, axis=0) > 1)).any():
            return True
        if number >= steps:
            break
    return False


def _is_proved(propnet: propnet.PropNet) -> bool:
    """Whether no state that satisfies the game's proved invariants gives two players a choice."""
    gates = propnet.as_circuit()
    lines = [f"{{n(1..{gates.inputs})}}."]
    lines += sat.gates_to_asp(gates)
    lines.append(f":- {sat.literal_to_asp(propnet.terminal)}.")
    for number, role in enumerate(propnet.players):
        lines += [
            f"may({number},{m}) :- {sat.literal_to_asp(literal)}." for m, literal in enumerate(role.legal.tolist())
        ]
        lines.append(f"choice({number}) :- 2 {{ may({number},M) }}.")
    lines.append(":- #count { P : choice(P) } < 2.")
    lines += invariants.to_asp(invariants.find_invariants(propnet))
    return sat.is_unsatisfiable(lines)
