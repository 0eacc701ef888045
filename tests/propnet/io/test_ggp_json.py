"""The JSON layout of ggp-cpp, compared with an evaluator that follows its description node by node."""

import json
import pathlib
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gdlx.propnet import games, library
from gdlx.propnet.checks import checker
from gdlx.propnet.circuits import build, compiler, propnet
from gdlx.propnet.grounding import ground
from gdlx.propnet.io import files, ggp_json
from gdlx.propnet.simulate import machine, random_play
from gdlx.propnet.syntax import source as sources
from gdlx.tests.helpers import paths

DATA = paths.DATA
HANDMADE = ("foreign_rps", "foreign_lamp")
AND, OR, PROPOSITION, TRANSITION, NOT, CONSTANT, PRE, POST = 1, 2, 3, 4, 5, 6, 8, 9

Entries = dict[int, dict[str, Any]]


def handmade(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text())


def evaluate(entries: Entries, state: dict[int, bool], does: set[int], init: bool = False) -> dict[int, bool]:
    """The value of every entry: as the documentation says, without an order or a propnet."""
    values: dict[int, bool] = {}

    def value(number: int) -> bool:
        if number not in values:
            values[number] = compute(entries[number])
        return values[number]

    def compute(entry: dict[str, Any]) -> bool:
        kind: int = entry["type"]
        if kind in (TRANSITION, POST):
            return state[entry["id"]]
        ins = entry.get("ins", [entry["in"]] if "in" in entry else [])
        if kind in (AND, OR):
            return all(map(value, ins)) if kind == AND else any(map(value, ins))
        if kind == CONSTANT:
            return True
        if not ins:
            return init if entry["proposition_type"] == "init" else entry["id"] in does
        return value(ins[0]) != (kind == NOT)

    for number in entries:
        value(number)
    return values


def following(entries: Entries, values: dict[int, bool]) -> dict[int, bool]:
    return {n: values[entry["in"]] for n, entry in entries.items() if entry["type"] in (TRANSITION, POST)}


def initial(entries: Entries) -> dict[int, bool]:
    nothing = {n: False for n, entry in entries.items() if entry["type"] in (TRANSITION, POST)}
    return following(entries, evaluate(entries, nothing, set(), init=True))


def check_against_evaluator(data: Any, propnet: propnet.PropNet, seed: int, steps: int = 12) -> None:
    """Random play by the evaluator, which the propnet follows."""
    rng = random.Random(seed)
    entries: Entries = {entry["id"]: entry for entry in data["entries"]}
    game, state, columns = machine.StateMachine(propnet), initial(entries), machine.StateMachine(propnet).initial(1)
    terminal = next(n for n, entry in entries.items() if entry.get("proposition_type") == "terminal")

    def text(number: int) -> str:
        gdl = entries[number]["gdl"].replace("( ", "(").replace(" )", ")")
        return str(gdl)[1:-1].split(" ", 2)[2]

    for _ in range(steps):
        values = evaluate(entries, state, set())
        legal, expected, chosen, does = game.legal(columns)[:, 0], [], [], set()
        for role, own in zip(data["roles"], propnet.roles, strict=True):
            pairs = sorted(role["legal_to_input"], key=lambda pair: text(pair["legal"]))
            assert [text(pair["legal"]) for pair in pairs] == list(own.moves)
            expected += [values[pair["legal"]] for pair in pairs]
            pick = rng.choice([pair["input"] for pair in pairs if values[pair["legal"]]] or [None])
            chosen += [pair["input"] == pick for pair in pairs]
            does.add(pick)
        assert legal.tolist() == expected
        over, goals = game.terminal_and_goals(columns)
        assert over[0] == values[terminal]
        assert goals[:, 0].tolist() == [
            values[goal["goal"]]
            for role in data["roles"]
            if role["role"] != "random"
            for goal in sorted(role["goals"], key=lambda goal: goal["value"])
        ]
        if values[terminal]:
            return
        columns, percepts = game.step(columns, np.array(chosen, bool)[:, None])
        values = evaluate(entries, state, does)
        sees = [sorted(role["sees"], key=text) for role in data["roles"] if role["role"] != "random"]
        assert percepts[:, 0].tolist() == [values[number] for own in sees for number in own]
        state = following(entries, values)


def seen(propnet: propnet.PropNet) -> list[Any]:
    """The outputs along random play."""
    steps = random_play.random_steps(propnet, copies=16, seed=1)
    rows = [next(steps) for _ in range(25)]
    names = [(role.name, role.moves, role.percepts, role.goal_values) for role in propnet.roles]
    return [names, *([s.legal.tolist(), s.percepts.tolist(), s.terminal.tolist(), s.goals.tolist()] for s in rows)]


@pytest.mark.parametrize("name", HANDMADE)
def test_a_network_made_by_hand_is_played_as_described(name: str) -> None:
    propnet = ggp_json.load_ggp_json(DATA / f"{name}.json")
    assert propnet.name == name
    for seed in range(20):
        check_against_evaluator(handmade(name), propnet, seed)
        check_against_evaluator(handmade(name), compiler.simplify(propnet), seed)


@pytest.mark.parametrize("name", HANDMADE)
def test_a_network_made_by_hand_comes_back(name: str, tmp_path: pathlib.Path) -> None:
    propnet = files.load_propnet(DATA / f"{name}.json")  # which detects the layout by its content
    ggp_json.save_ggp_json(propnet, tmp_path / "again.json")
    again = files.load_propnet(tmp_path / "again.json")
    assert seen(again) == seen(propnet)
    assert again.fluents == propnet.fluents


def test_rock_paper_scissors_made_by_hand() -> None:
    game = machine.StateMachine(files.load_propnet(DATA / "foreign_rps.json"))
    does = np.zeros((6, 9), bool)
    does[np.repeat([0, 1, 2], 3), range(9)] = does[3 + np.tile([0, 1, 2], 3), range(9)] = True
    state, percepts = game.step(game.initial(9), does)
    assert np.array_equal(percepts, does[[3, 4, 5, 0, 1, 2]])  # each sees the other's move
    _, goals = game.terminal_and_goals(
        state
    )  # 0, 50, 100 of each; columns: paper, rock, scissors of ann by those of bob
    assert (goals.T @ [0, 50, 100, 0, 0, 0]).tolist() == [50, 100, 0, 0, 50, 100, 100, 0, 50]
    assert (goals.T @ [0, 0, 0, 0, 50, 100]).tolist() == [50, 0, 100, 100, 50, 0, 0, 100, 50]


def test_the_lamp_made_by_hand() -> None:
    propnet = files.load_propnet(DATA / "foreign_lamp.json")
    assert propnet.fluents == ("(moves 1)", "(moves 2)", "lit", "right")
    assert propnet.initial.tolist() == [False] * 4  # though (moves 1) comes next whatever happens
    assert [role.moves for role in propnet.roles] == [("flip", "keep"), ("off", "on")]
    assert [role.goal_values for role in propnet.roles] == [(), (0, 100)]


@pytest.mark.parametrize("game", library.names())
def test_a_game_plays_alike_in_the_foreign_layout(game: str, tmp_path: pathlib.Path) -> None:
    propnet = games.compile_game(game)
    path = tmp_path / "game.json"
    ggp_json.save_ggp_json(propnet, path)
    again = files.load_propnet(path)
    assert seen(again) == seen(propnet)
    check_against_evaluator(json.loads(path.read_text()), propnet, seed=1)
    check_order(json.loads(path.read_text()))


def check_order(data: Any) -> None:
    """Other readers evaluate entries in the order of the file, after those of type POST, and find them by position."""
    done: set[int] = set()
    for number in data["topologically_sorted"]:
        entry = data["entries"][number]
        assert entry["id"] == number
        ins = entry.get("ins", [entry["in"]] if "in" in entry else [])
        assert entry["type"] == POST or done.issuperset(ins)
        done.add(number)
    assert len(done) == len(data["entries"]) == len(data["topologically_sorted"])


@pytest.mark.parametrize("name", ["montyhall.gdl", "meier.gdl", "transit.gdl", "ticTacToe.kif", "switches.kif"])
def test_a_public_game_plays_alike(name: str, corpus: pathlib.Path, tmp_path: pathlib.Path) -> None:
    propnet = compiler.compile_rulesheet(games.load_rulesheet(str(corpus / name)))
    ggp_json.save_ggp_json(propnet, tmp_path / "game.json")
    assert seen(files.load_propnet(tmp_path / "game.json")) == seen(propnet)


def test_percepts_that_are_not_there_stay_away(tmp_path: pathlib.Path) -> None:
    sheet = """; gdlx: gdl-ii
    (role a) (role b) (legal a x) (legal a y) (legal b x) (<= (next end) (does a x)) (<= terminal (true end))
    (<= (goal a 100) (true end)) (goal b 50)"""
    values = checker.check(sources.Source("blind.gdl", sheet)).require_usable()
    propnet = compiler.compile_rulesheet(values)
    assert [role.percepts for role in propnet.roles] == [(), ()]
    ggp_json.save_ggp_json(propnet, tmp_path / "blind.json")
    assert [role.percepts for role in files.load_propnet(tmp_path / "blind.json").roles] == [(), ()]


WRONG: list[tuple[str, str, tuple[Any, ...], Any]] = [
    ("depend on each other in a cycle", "foreign_rps", ("entries", 10, "ins"), [1, 13]),
    ("entries 10 depend on each other", "foreign_rps", ("entries", 10, "ins"), [10]),
    ("uses an entry that does not exist", "foreign_rps", ("entries", 10, "ins"), [1, 99]),
    ("are not 0, 1, 2", "foreign_rps", ("entries", 0, "id"), 99),
    ("same id: 1", "foreign_rps", ("entries", 0, "id"), 1),
    ("unknown type", "foreign_rps", ("entries", 0, "type"), 7),
    ("unknown proposition_type 'step'", "foreign_rps", ("entries", 0, "proposition_type"), "step"),
    ("has no field 'ins'", "foreign_rps", ("entries", 9), {"id": 9, "type": 5}),
    ("has 2 inputs, not 1", "foreign_lamp", ("entries", 24, "ins"), [23, 27]),
    ("does not use a PRE TRANSITION", "foreign_rps", ("entries", 7, "in"), 0),
    ("is not a term: '\\(\\('", "foreign_rps", ("entries", 1, "gdl"), "(("),
    ("is not a term: 'a b'", "foreign_rps", ("roles", 0, "role"), "a b"),
    ("entry 1 is \\(does bob paper\\), not \\(does ann", "foreign_rps", ("entries", 1, "gdl"), "(does bob paper)"),
    ("entry 9 is x, not \\(true", "foreign_rps", ("entries", 9, "gdl"), "x"),
    ("same fluent: playing", "foreign_rps", ("entries", 20, "gdl"), "(true playing)"),
    ("moves 1. does not come from a transition", "foreign_lamp", ("entries", 24, "ins"), [11]),
    ("terminal depends on entry 1, which is input", "foreign_rps", ("entries", 37, "in"), 1),
    ("depends on entry 0, which is init", "foreign_rps", ("entries", 24, "in"), 0),
    ("0 terminal propositions", "foreign_rps", ("entries", 37, "proposition_type"), "other"),
    ("the input of another move", "foreign_rps", ("roles", 0, "legal_to_input", 0, "input"), 2),
    ("lists an entry as legal", "foreign_rps", ("roles", 0, "legal_to_input", 0, "legal"), 4),
    ("lists an entry as sees", "foreign_rps", ("roles", 0, "sees"), [1000]),
    ("same goal value: 100", "foreign_rps", ("roles", 0, "goals", 1, "value"), 100),
    ("not an integer", "foreign_rps", ("roles", 0, "goals", 1, "value"), "0"),
    ("two roles have the same name", "foreign_lamp", ("roles", 0), handmade("foreign_lamp")["roles"][1]),
    ("no field 'legal_to_input'", "foreign_rps", ("roles", 0), {"role": "ann"}),
    ("'entries' of the file is 3, not a list", "foreign_rps", (), {"entries": 3}),
]


@pytest.mark.parametrize(("message", "name", "place", "value"), WRONG, ids=[wrong[0] for wrong in WRONG])
def test_a_wrong_network_is_refused_with_the_reason(
    message: str, name: str, place: tuple[Any, ...], value: Any, tmp_path: pathlib.Path
) -> None:
    data = {"all": handmade(name)}
    changed: Any = data
    *path, last = ("all", *place)
    for key in path:
        changed = changed[key]
    changed[last] = value
    path_of_file = tmp_path / "wrong.json"
    path_of_file.write_text(json.dumps(data["all"]))
    with pytest.raises(files.PropNetFileError, match=message) as caught:
        files.load_propnet(path_of_file)
    assert str(caught.value).startswith(str(path_of_file))


@given(data=st.data(), name=st.sampled_from(HANDMADE))
def test_mutated_networks_do_no_harm(data: st.DataObject, name: str) -> None:
    content = handmade(name)
    for _ in range(data.draw(st.integers(1, 2))):
        entry = content["entries"][data.draw(st.integers(0, len(content["entries"]) - 1))]
        key = data.draw(st.sampled_from(sorted(entry)))
        ids = st.integers(-1, len(content["entries"]))
        texts = st.sampled_from(["x", "init", "other", "base", "sees", "( true lit )", "(" * 5000, "?x", ""])
        entry[key] = data.draw(ids | st.lists(ids, max_size=3) | texts | st.none() | st.booleans())
    try:
        propnet = ggp_json.propnet_from_json(content, "mutated")
    except files.PropNetFileError:
        return
    files.validate(propnet)
    seen(propnet)


def test_what_the_layout_cannot_express_is_not_written(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = ggp_json.load_ggp_json(DATA / "foreign_rps.json")
    with pytest.raises(files.PropNetFileError, match=r"name the file \.json"):
        ggp_json.save_ggp_json(foreign, tmp_path / "net.npz")
    odd = propnet.PropNet(**{**vars(foreign), "fluents": (*foreign.fluents[:-1], "z z")})
    with pytest.raises(files.PropNetFileError, match="'z z' cannot be a name"):
        ggp_json.save_ggp_json(odd, tmp_path / "net.json")
    monkeypatch.setattr(build, "_UNROLLED_GATES", 0)
    sheet = """(role a) (legal a x) (<= (p 1) (p 2) (true on)) (<= (p 2) (p 1)) (<= (p 1) (true (q 1)))
    (<= (p 2) (true (q 2))) (init (q 1)) (<= (next (q 2)) (p 2)) (<= (next on) (does a x))
    (<= terminal (p 2)) (goal a 1)"""
    values = checker.check(sources.Source("loop.gdl", sheet)).require_usable()
    looping = build.build(values, ground.ground(values))
    assert len(looping.feedback)
    with pytest.raises(files.PropNetFileError, match="no way to express recursion"):
        ggp_json.save_ggp_json(looping, tmp_path / "net.json")
    assert list(tmp_path.iterdir()) == []
