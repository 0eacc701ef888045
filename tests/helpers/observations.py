"""Random matches as each player observes them, and the histories that agree by recursion over single games."""

import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gdlx.envs import host, payoffs
from gdlx.envs.views import history
from gdlx.propnet import games
from gdlx.propnet.circuits import memo, propnet
from gdlx.propnet.observations import observation_circuit

Joint = tuple[int, ...]  # a move of every role


class Match(NamedTuple):
    """A match. Axes: T joint actions, P players."""

    joints: tuple[Joint, ...]  # [T]
    first: tuple[tuple[int, ...], ...]  # [P] legal moves in the initial state
    events: tuple[tuple[history.Event, ...], ...]  # [P][T]


@memo.per_propnet
def nodes_of(propnet: propnet.PropNet) -> host.HostEnv:
    return host.HostEnv(propnet, payoffs.Payoffs(0.0, zero_sum=False, proved=False), 1_000)


@functools.cache
def load(name: str) -> propnet.PropNet:
    return games.compile_game(name)


def play(net: propnet.PropNet, steps: int, seed: int) -> Match:
    """Plays at random for that many joint actions, or to the end."""
    rng, nodes = np.random.default_rng(seed), nodes_of(net)
    position = nodes.position(net.initial.tobytes())
    first, joints = position.legal, list[Joint]()
    events: list[list[history.Event]] = [[] for _ in net.players]
    while len(joints) < steps and not position.terminal and not position.unplayable:
        chosen = tuple(int(rng.choice(legal)) for legal in position.legal)
        chance = int(rng.choice(position.chance)) if position.chance else 0
        registers, percepts = nodes.transition(position.registers, chosen, chance)
        position = nodes.position(registers)
        joints.append(with_chance(net, chosen, chance))
        for record, move, seen, legal in zip(events, chosen, percepts, position.legal, strict=True):
            record.append(history.Event(move, seen, legal))
    return Match(tuple(joints), first, tuple(map(tuple, events)))


def with_chance(net: propnet.PropNet, chosen: Joint, chance: int) -> Joint:
    """The moves of all roles in file order."""
    moves = iter(chosen)
    return tuple(chance if role.is_random else next(moves) for role in net.roles)


def list_histories(
    net: propnet.PropNet, player: int, events: Sequence[observation_circuit.Observation]
) -> dict[tuple[Joint, ...], float]:
    """All histories that agree with a player's observations, each with its probability if all others play uniformly."""
    nodes = nodes_of(net)
    agreeing: dict[tuple[Joint, ...], float] = {}

    def visit(registers: bytes, joints: tuple[Joint, ...], probability: float) -> None:
        if len(joints) == len(events):
            agreeing[joints] = probability
            return
        position, event = nodes.position(registers), events[len(joints)]
        if position.terminal or event.move not in position.legal[player]:
            return
        options = [*position.legal, position.chance or (0,)]
        options[player] = (event.move,)
        share = probability / np.prod([len(moves) for moves in options])
        for *chosen, chance in itertools.product(*options):
            after, percepts = nodes.transition(registers, tuple(chosen), chance)
            if percepts[player] == event.percepts and nodes.position(after).legal[player] == event.legal:
                visit(after, (*joints, with_chance(net, tuple(chosen), chance)), share)

    visit(net.initial.tobytes(), (), 1.0)
    return agreeing
