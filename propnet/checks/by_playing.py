"""Checks whether a game is well-formed by playing it with its propnet.

Small games are explored exhaustively: every joint action in every state, where states with equal registers and equal
knowledge of every player are visited once. Larger games are sampled by random play.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from gdlx.propnet.checks import chance, repetition, unplayable
from gdlx.propnet.circuits import propnet
from gdlx.propnet.simulate import joint_actions, machine, random_play
from gdlx.propnet.syntax import diagnostics

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_MAX_NODES = 200_000
_COPIES, _STEPS, _MAX_LENGTH = 128, 2_000, 1_000
_SHOWN_STEPS = 20


@dataclasses.dataclass(frozen=True)
class Findings:
    """The result of playing a game: how much was explored, and every kind of problem with its first example."""

    exhaustive: bool
    states: int
    matches: int  # that finished; an exhaustive search counts each terminal state once
    longest: int  # joint actions of the longest match
    best_goal: dict[str, int]  # the highest goal value in a terminal state
    problems: tuple[diagnostics.Diagnostic, ...]


class _ProblemCollector:
    """Collects problems by kind and role, with their counts and first examples."""

    def __init__(self, propnet: propnet.PropNet) -> None:
        self.propnet = propnet
        self.exhaustive = False
        self.best = {role.name: -1 for role in propnet.players}
        self._first: dict[tuple[str, str], tuple[str, str]] = {}
        self._count: dict[tuple[str, str], int] = {}
        self._hints: dict[str, str] = {}  # of unplayable states, by role

    def note(self, code: str, role: str, count: int, message: str, example: Callable[[], str]) -> None:
        key = (code, role)
        self._count[key] = self._count.get(key, 0) + count
        if key not in self._first:
            self._first[key] = (message, example())

    def check_goals(self, terminal: Bools, goals: Bools, example: Callable[[int], str]) -> None:
        """Checks that every player has exactly one goal value in terminal states."""
        rows = machine.split_rows(goals, [len(role.goal_values) for role in self.propnet.roles])
        for role, role_goals in zip(self.propnet.roles, rows, strict=True):
            if role.is_random:
                continue
            held = role_goals[:, terminal]
            values = held.sum(axis=0)
            terminals = np.flatnonzero(terminal)
            for value, seen in zip(role.goal_values, np.any(held, axis=1), strict=True):
                if seen:
                    self.best[role.name] = max(self.best[role.name], value)
            for code, wrong, what in (
                ("two-goal-values", values > 1, "more than one goal value"),
                ("no-goal-value", values == 0, "no goal value"),
            ):
                if wrong.any():
                    first = int(terminals[np.argmax(wrong)])
                    message = f"{role.name} has {what} in a terminal state"
                    self.note(code, role.name, int(wrong.sum()), message, functools.partial(example, first))

    def unplayable(self, stuck: Bools, state: Bools, legal: Bools, example: Callable[[int], str]) -> None:
        rows = machine.split_rows(legal, [len(role.moves) for role in self.propnet.roles])
        for role, role_legal in zip(self.propnet.roles, rows, strict=True):
            without = stuck & ~role_legal.any(axis=0)
            if without.any():
                first = int(np.argmax(without))
                message = f"{role.name} has no legal move in a state that is not terminal"
                self.note("unplayable-state", role.name, int(without.sum()), message, functools.partial(example, first))
                if role.name not in self._hints:
                    self._hints[role.name] = unplayable.advise(self.propnet, role.name, state[:, first])

    def diagnostics(self) -> Iterator[diagnostics.Diagnostic]:
        for (code, role), (message, example) in self._first.items():
            times = self._count[code, role]
            seen = f" (seen {times} times)" if times > 1 else ""
            where = f", first {example}" if example else ""
            hint = _HINTS.get(f"{code} in random play", "") if not self.exhaustive else ""
            if code == "unplayable-state":
                hint = self._hints[role]
            yield diagnostics.Diagnostic(code, f"{message}{seen}{where}", None, hint or _HINTS[code])


_HINTS = {
    "two-goal-values": "make the conditions of the goal rules exclude each other; exact solving refuses such games",
    "no-goal-value": "add a goal rule for this terminal state",
    "endless-play": f"add a step counter that ends the game, e.g. {repetition.STEP_COUNTER}",
    "repeated-state": f"solving needs a game that ends; add a step counter, e.g. {repetition.STEP_COUNTER}",
    "never-wins": "no match gives this role its highest goal; check its goal rules, and whether what they ask for is "
    "still true at the end: facts last one step unless a `next` rule keeps them",
    "never-wins in random play": "only random moves were tried, and some games are rarely won by them; check its goal "
    "rules if a match that you know to be won does not give it",
    "hidden-legal-moves": "add a sees rule that shows them: gdlx treats legal moves as perceived, other systems do not",
}


def check_by_playing(propnet: propnet.PropNet, seed: int = 0) -> Findings:
    """Explores a small game exhaustively; samples a larger one."""
    findings = _play_out(propnet) or _sample(propnet, seed)
    more = list(chance.find_chance_problems(propnet, seed))
    # A game that was explored to its end has no cycle, and an endless one needs no further proof.
    may_repeat = not findings.exhaustive and all(problem.code != "endless-play" for problem in findings.problems)
    if may_repeat and (repeated := repetition.find_repetition(propnet, seed)) is not None:
        code = "repeated-state"
        more.append(diagnostics.Diagnostic(code, f"a state repeats: {repeated.in_words()}", None, _HINTS[code]))
    return dataclasses.replace(findings, problems=(*findings.problems, *more))


def _finish(notes: _ProblemCollector, exhaustive: bool, states: int, matches: int, longest: int) -> Findings:
    notes.exhaustive = exhaustive
    for role in notes.propnet.players:
        best, highest = notes.best[role.name], max(role.goal_values, default=-1)
        if matches and best < highest:
            seen = f"the best goal seen is {best}" if best >= 0 else "no goal was seen"
            how = "never gets" if exhaustive else f"never got, in {matches} matches of random moves,"
            notes.note("never-wins", role.name, 1, f"{role.name} {how} {highest}: {seen}", lambda: "")
    return Findings(exhaustive, states, matches, longest, notes.best, tuple(notes.diagnostics()))


def _play_out(propnet: propnet.PropNet) -> Findings | None:
    """Explores the game exhaustively; returns None if it has too many states."""
    game = machine.for_propnet(propnet)
    notes = _ProblemCollector(propnet)
    sizes = [len(role.moves) for role in propnet.roles]
    percept_sizes = [len(role.percepts) for role in propnet.roles]
    players = [n for n, role in enumerate(propnet.roles) if not role.is_random and not sees_everything(propnet, role)]
    state = game.initial(1)
    knowledge = [np.zeros(1, np.int64) for _ in players]
    levels: list[tuple[Ints, list[Ints]]] = []
    states = matches = 0
    for depth in range(_MAX_LENGTH):
        states += state.shape[1]

        def example(column: int) -> str:
            return _path(propnet, levels, column)

        terminal, goals = game.terminal_and_goals(state)
        notes.check_goals(terminal, goals, example)
        matches += int(terminal.sum())
        legal = game.legal(state) & ~terminal
        _check_knowledge(propnet, notes, players, knowledge, legal, terminal, example)
        if states + joint_actions.count_joint_actions(legal, sizes) > _MAX_NODES:
            return None
        parents, chosen = joint_actions.enumerate_joint_actions(legal, sizes)
        stuck = ~terminal
        stuck[parents] = False
        notes.unplayable(stuck, state, legal, example)
        if not len(parents):
            return _finish(notes, True, states, matches, depth)
        following, percepts = game.step(state[:, parents], joint_actions.one_hot_rows(chosen, sizes))
        seen = machine.split_rows(percepts, percept_sizes)
        knowledge = [
            _number(np.stack([old[parents], chosen[n]]), seen[n]) for n, old in zip(players, knowledge, strict=True)
        ]
        unique = _first_of_each(np.stack(knowledge) if knowledge else np.zeros((0, len(parents)), np.int64), following)
        levels.append((parents[unique], [moves[unique] for moves in chosen]))
        state = following[:, unique]
        knowledge = [old[unique] for old in knowledge]
    return None


def sees_everything(propnet: propnet.PropNet, role: propnet.Role) -> bool:
    """Whether a player perceives every joint action: it then knows the state, and its knowledge is not tracked."""
    moves = range(1 + len(propnet.initial), 1 + propnet.inputs - len(propnet.feedback))
    return set(role.sees.tolist()).issuperset(2 * node for node in moves)


def _packed(rows: Bools) -> npt.NDArray[np.uint8]:
    return np.packbits(rows, axis=0)


def _number(keys: Ints, rows: Bools) -> Ints:
    """Numbers the columns; equal columns get equal numbers."""
    both = np.concatenate([np.ascontiguousarray(keys.T).view(np.uint8), _packed(rows).T], axis=1)
    return np.unique(both, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _first_of_each(keys: Ints, rows: Bools) -> Ints:
    both = np.concatenate(
        [np.ascontiguousarray(keys.T).view(np.uint8).reshape(rows.shape[1], -1), _packed(rows).T], axis=1
    )
    return np.sort(np.unique(both, axis=0, return_index=True)[1])


def _check_knowledge(
    propnet: propnet.PropNet,
    notes: _ProblemCollector,
    players: list[int],
    knowledge: list[Ints],
    legal: Bools,
    terminal: Bools,
    example: Callable[[int], str],
) -> None:
    """Checks whether the percepts of a player determine its legal moves."""
    rows = machine.split_rows(legal, [len(role.moves) for role in propnet.roles])
    for number, known in zip(players, knowledge, strict=True):
        nonterminal = np.flatnonzero(~terminal)
        if not len(nonterminal):
            continue
        options = _number(np.zeros((1, len(nonterminal)), np.int64), rows[number][:, nonterminal])
        order = np.argsort(known[nonterminal], kind="stable")
        same = known[nonterminal][order][1:] == known[nonterminal][order][:-1]
        differs = same & (options[order][1:] != options[order][:-1])
        if differs.any():
            place = int(nonterminal[order][1:][np.argmax(differs)])
            name = propnet.roles[number].name
            message = f"what {name} perceives does not determine its legal moves"
            notes.note("hidden-legal-moves", name, int(differs.sum()), message, functools.partial(example, place))


def _path(propnet: propnet.PropNet, levels: list[tuple[Ints, list[Ints]]], column: int) -> str:
    """Describes the joint actions that lead to a state of the level after the last."""
    steps = []
    for parents, chosen in reversed(levels):
        steps.append([role.moves[moves[column]] for role, moves in zip(propnet.roles, chosen, strict=True)])
        column = int(parents[column])
    return _describe_history(steps[::-1])


def _describe_history(steps: list[list[str]]) -> str:
    if not steps:
        return "in the initial state"
    if len(steps) > _SHOWN_STEPS:
        return f"after {len(steps)} joint actions, the last of them [{' '.join(steps[-1])}]"
    return "after " + ", ".join(f"[{' '.join(step)}]" for step in steps)


def _sample(propnet: propnet.PropNet, seed: int) -> Findings:
    notes = _ProblemCollector(propnet)
    sizes = [len(role.moves) for role in propnet.roles]
    history: list[list[list[str]]] = [[] for _ in range(_COPIES)]
    seen: dict[tuple[int, bytes], bytes] = {}
    known = [[b""] * _COPIES for _ in propnet.roles]
    matches = longest = states = 0
    for number, step in enumerate(random_play.random_steps(propnet, _COPIES, seed)):
        if number == _STEPS or states > _MAX_NODES:
            break
        states += _COPIES

        def example(column: int) -> str:
            return _describe_history(history[column])

        notes.check_goals(step.terminal, step.goals, example)
        notes.unplayable(step.unplayable, step.state, step.legal, example)
        _sample_knowledge(propnet, notes, step, known, seen, example)
        moves = [rows.argmax(axis=0) for rows in machine.split_rows(step.does, sizes)]
        for column in range(_COPIES):
            longest = max(longest, len(history[column]))
            if step.terminal[column] or step.unplayable[column]:
                matches += bool(step.terminal[column])
                history[column] = []
            else:
                history[column].append([role.moves[m[column]] for role, m in zip(propnet.roles, moves, strict=True)])
            if len(history[column]) == _MAX_LENGTH:
                message = f"a match of random moves had not ended after {_MAX_LENGTH} joint actions"
                notes.note("endless-play", "", 1, message, lambda: "")
    return _finish(notes, False, states, matches, longest)


def _sample_knowledge(
    propnet: propnet.PropNet,
    notes: _ProblemCollector,
    step: random_play.BatchedStep,
    known: list[list[bytes]],
    seen: dict[tuple[int, bytes], bytes],
    example: Callable[[int], str],
) -> None:
    """Same as `_check_knowledge` for sampled play: known[r][c] is a digest of what role r perceived in game c."""
    legal = machine.split_rows(step.legal, [len(role.moves) for role in propnet.roles])
    does = machine.split_rows(step.does, [len(role.moves) for role in propnet.roles])
    percepts = machine.split_rows(step.percepts, [len(role.percepts) for role in propnet.roles])
    for number, role in enumerate(propnet.roles):
        if role.is_random:
            continue
        options = np.packbits(legal[number], axis=0).T
        events = np.packbits(np.concatenate([does[number], percepts[number]]), axis=0).T
        for column in range(len(step.terminal)):
            if step.terminal[column] or step.unplayable[column]:
                known[number][column] = b""
                continue
            key = (number, known[number][column])
            if seen.setdefault(key, options[column].tobytes()) != options[column].tobytes():
                message = f"what {role.name} perceives does not determine its legal moves"
                notes.note("hidden-legal-moves", role.name, 1, message, functools.partial(example, column))
            digest = hashlib.blake2b(known[number][column], digest_size=16)
            digest.update(events[column].tobytes())
            known[number][column] = digest.digest()
