"""Plays games that are written in tests with the interpreter."""

from gdlx.propnet.checks import checker
from gdlx.propnet.datalog import interpreter, transcript
from gdlx.propnet.syntax import ground_terms, source

FRAME = "(role x) (legal x go) (<= (next over) (does x go)) (<= terminal (true over)) (goal x 100)\n"


def load_interpreter(text: str, gdl: int | None = None) -> interpreter.Interpreter:
    return interpreter.Interpreter(checker.check(source.Source("sheet", text), gdl=gdl).require_usable())


def play_moves(game: interpreter.Interpreter, *moves: str) -> interpreter.State:
    state = game.initial
    for typed in moves:
        state = game.next(state, transcript.parse_joint_action(game, state, typed))
    return state


def legal_texts(game: interpreter.Interpreter, state: interpreter.State) -> dict[str, list[str]]:
    return {role: [ground_terms.to_text(move) for move in moves] for role, moves in game.legal(state).items()}


def texts(state: interpreter.State) -> set[str]:
    return set(map(ground_terms.to_text, state))
