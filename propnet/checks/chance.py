"""Finds moves of chance that an author rarely means: doing nothing where it should deal, and dealing in the open."""

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import propnet
from gdlx.propnet.simulate import joint_actions, machine, random_play
from gdlx.propnet.syntax import diagnostics

Bools = npt.NDArray[np.bool_]

_COPIES, _STEPS = 64, 40
_MAX_CHANCE_MOVES = 50_000  # tried in all states together
_IDLE = ("noop", "nothing", "none", "wait", "pass", "idle", "skip")  # what moves are called that do nothing


def find_chance_problems(propnet: propnet.PropNet, seed: int = 0) -> Iterator[diagnostics.Diagnostic]:
    """Yields warnings about the role `random`, from random play."""
    number = next((n for n, role in enumerate(propnet.roles) if role.is_random), None)
    if number is None:
        return
    sizes = [len(role.moves) for role in propnet.roles]
    legal, states, does = _sample(propnet, seed)
    options = machine.split_rows(legal, sizes)[number]
    idle = _idle_move(propnet.roles[number].moves, options)
    if idle is not None:
        move, others = idle
        when = _fluent_of_work(propnet, options.sum(axis=0) > 1, states)
        yield diagnostics.Diagnostic(
            "chance-may-idle",
            f"random may {move} where it may also {others}: then it does nothing of that, as often as each of them",
            None,
            f"make {move} legal only where random has nothing to do, as in (<= (legal random {move}) {when})",
        )
    if len(propnet.players) > 1 and (dealt := _openly_dealt(propnet, number, options, states, does)) is not None:
        yield diagnostics.Diagnostic(
            "chance-is-seen",
            f"every player perceives every move of random, also those that make {dealt}",
            None,
            "if that should be hidden, let only its owner see it, e.g. "
            "(<= (sees ?p (card ?c)) (does random (deal ?p ?c)))",
        )


def _sample(propnet: propnet.PropNet, seed: int) -> tuple[Bools, Bools, Bools]:
    """Legal moves, states and joint actions of random play, in states in which it continues."""
    parts = []
    for number, step in enumerate(random_play.random_steps(propnet, _COPIES, seed)):
        if number == _STEPS:
            break
        live = ~(step.terminal | step.unplayable)
        parts.append((step.legal[:, live], step.state[:, live], step.does[:, live]))
    legal, states, does = (np.concatenate(rows, axis=1) for rows in zip(*parts, strict=True))
    return legal, states, does


def _idle_move(moves: tuple[str, ...], options: Bools) -> tuple[str, str] | None:
    """A move that seems to do nothing and is legal beside others, and one of those others."""
    count = options.sum(axis=0)
    for number, name in enumerate(moves):
        beside = options[number] & (count > 1)
        # A move that is always legal, and often the only one, is what a role does that has to wait.
        waits = bool(options[number].all() and (count == 1).any())
        if beside.any() and (waits or name.lower() in _IDLE):
            example = options[:, int(np.argmax(beside))].copy()
            example[number] = False
            return name, moves[int(np.argmax(example))]
    return None


def _fluent_of_work(propnet: propnet.PropNet, works: Bools, states: Bools) -> str:
    """A condition that holds in exactly those states in which chance has one move only; ".." if no fluent is that."""
    for name, literal in zip(propnet.fluents, propnet.fluent_literals.tolist(), strict=True):
        if literal >> 1:
            values = states[(literal >> 1) - 1] ^ bool(literal & 1)
            if (values == works).all():
                return f"(not (true {name}))"
            if (values != works).all():
                return f"(true {name})"
    return ".."


def _openly_dealt(propnet: propnet.PropNet, chance: int, options: Bools, states: Bools, does: Bools) -> str | None:
    """A fluent of one player that depends on chance, if everybody's percepts tell all moves of chance apart.

    A fluent that names a player, such as (hand alice king), is likely to be that player's secret; (dice 3) is not.
    """
    columns = np.flatnonzero(options.sum(axis=0) > 1)
    columns = columns[np.cumsum(options.sum(axis=0)[columns]) <= _MAX_CHANCE_MOVES]
    if not len(columns):
        return None
    sizes = [len(role.moves) for role in propnet.roles]
    allowed = machine.split_rows(does[:, columns], sizes)
    allowed[chance] = options[:, columns]
    column, chosen = joint_actions.enumerate_joint_actions(np.concatenate(allowed), sizes)
    joint = joint_actions.one_hot_rows(chosen, sizes)
    following, percepts = machine.for_propnet(propnet).step(states[:, columns[column]], joint)
    rows = machine.split_rows(percepts, [len(role.percepts) for role in propnet.roles])
    for role, seen in zip(propnet.roles, rows, strict=True):
        keys = np.concatenate([column.astype(">i8").view(np.uint8).reshape(len(column), -1), np.packbits(seen, 0).T], 1)
        if not role.is_random and len(np.unique(keys, axis=0)) < len(column):
            return None
    return next(_fluents_of_players(propnet, following, column), None)


def _fluents_of_players(propnet: propnet.PropNet, following: Bools, column: npt.NDArray[np.int64]) -> Iterator[str]:
    """Fluents that name a player and differ between the states that follow from the same column."""
    names = {role.name for role in propnet.players}
    first = np.flatnonzero(np.diff(column, prepend=-1))
    for name, literal in zip(propnet.fluents, propnet.fluent_literals.tolist(), strict=True):
        if literal >> 1 and names.intersection(re.findall(r"[^\s()]+", name)):
            values = following[(literal >> 1) - 1] ^ bool(literal & 1)
            if (np.logical_or.reduceat(values, first) & ~np.logical_and.reduceat(values, first)).any():
                yield name
