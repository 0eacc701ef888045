"""Games written in tests, played by their rules."""

from gdlx.propnet import check, interpreter, source, transcript, values

FRAME = "(role x) (legal x go) (<= (next over) (does x go)) (<= terminal (true over)) (goal x 100)\n"


def load(text: str, gdl: int | None = None) -> interpreter.Interpreter:
    return interpreter.Interpreter(check.check(source.Source("sheet", text), gdl=gdl).require_usable())


def after(game: interpreter.Interpreter, *moves: str) -> interpreter.State:
    state = game.initial
    for typed in moves:
        state = game.next(state, transcript.joint_move(game, state, typed))
    return state


def legal(game: interpreter.Interpreter, state: interpreter.State) -> dict[str, list[str]]:
    return {role: [values.text(move) for move in moves] for role, moves in game.legal(state).items()}


def texts(state: interpreter.State) -> set[str]:
    return set(map(values.text, state))
