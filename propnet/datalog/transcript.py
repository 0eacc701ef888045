"""Plays a game with the interpreter: replays typed joint actions, and prints a random match."""

import random
from collections.abc import Iterator

from gdlx.propnet.datalog import interpreter
from gdlx.propnet.syntax import diagnostics, ground_terms


def parse_joint_action(
    game: interpreter.Interpreter, state: interpreter.State, typed: str
) -> dict[str, ground_terms.GroundTerm]:
    """Parses a typed joint action: a move for every role in file order, or only for the roles that have a choice."""
    moves = ground_terms.from_text(typed, "joint action")
    legal = game.legal(state)
    stuck = [role for role in game.roles if not legal[role]]
    if stuck:
        raise _refuse(f"{stuck[0]} has no legal move here", "no joint action can be made")
    deciding = [role for role in game.roles if len(legal[role]) > 1]
    roles = list(game.roles) if len(moves) == len(game.roles) else deciding
    if len(moves) != len(roles):
        expected = f"{len(game.roles)} moves ({', '.join(game.roles)})"
        raise _refuse(f"joint action `{diagnostics.shorten(typed)}` has {len(moves)} moves", f"expected {expected}")
    chosen = {role: options[0] for role, options in legal.items() if len(options) == 1}
    for role, move in zip(roles, moves, strict=True):
        if move not in legal[role]:
            some = ", ".join(map(ground_terms.to_text, legal[role][:8])) + (", .." if len(legal[role]) > 8 else "")
            raise _refuse(
                f"`{diagnostics.shorten(ground_terms.to_text(move))}` is not legal for {role}",
                f"legal: {some or 'nothing'}",
            )
        chosen[role] = move
    return chosen


def _refuse(message: str, hint: str) -> diagnostics.GdlError:
    return diagnostics.GdlError([diagnostics.Diagnostic("illegal-move", message, None, hint)], "joint action")


def replay(
    game: interpreter.Interpreter, typed: list[str]
) -> Iterator[tuple[interpreter.State, dict[str, ground_terms.GroundTerm]]]:
    """Yields each state of a match with the typed joint action that is made in it."""
    state = game.initial
    for text in typed:
        joint = parse_joint_action(game, state, text)
        yield state, joint
        state = game.next(state, joint)


def random_match(game: interpreter.Interpreter, seed: int, max_steps: int = 1_000) -> Iterator[str]:
    """Yields the lines of a match of uniformly random moves, a few for each step."""
    rng = random.Random(seed)
    state = game.initial
    for step in range(max_steps):
        if game.is_terminal(state):
            goals = (f"{role} {'/'.join(map(str, values)) or 'none'}" for role, values in game.goals(state).items())
            yield f"end after {step} joint actions; goals: {', '.join(goals)}"
            return
        legal = game.legal(state)
        stuck = [role for role in game.roles if not legal[role]]
        if stuck:
            yield f"unplayable after {step} joint actions: no legal move for {', '.join(stuck)}"
            return
        joint = {role: rng.choice(legal[role]) for role in game.roles}
        choices = (f"{role} {ground_terms.to_text(joint[role])}" for role in game.roles if len(legal[role]) > 1)
        yield f"{step + 1}. {', '.join(choices) or 'forced moves only'}"
        for role, percepts in game.percepts(state, joint).items():
            if game.sheet.language == 2:
                yield f"     {role} sees {', '.join(sorted(map(ground_terms.to_text, percepts))) or 'nothing'}"
        state = game.next(state, joint)
    yield f"stopped after {max_steps} joint actions"
