"""Propnets as files: saving and loading gives the same propnet, and invalid files are refused."""

import dataclasses
import io
import json
import os
import pathlib
import re
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gdlx.propnet import games
from gdlx.propnet.checks import checker
from gdlx.propnet.circuits import build, propnet
from gdlx.propnet.grounding import ground
from gdlx.propnet.io import files, ggp_json_writer
from gdlx.propnet.simulate import machine
from gdlx.propnet.syntax import source as sources
from gdlx.tests.helpers import paths

ROOT = paths.ROOT
GAMES = ("rps", "kuhn_poker", "tictactoe", "blind_tictactoe", "goofspiel:cards=3", "connect_four")
EXAMPLES = re.findall(r"^```json\n(.*?)^```$", (ROOT / "docs/reference/file-formats.md").read_text(), re.M | re.S)
REACHABLE = """
(role walker) (node a) (node b) (node c) (link a b) (link b c) (link c a)
(<= (legal walker (open ?x ?y)) (link ?x ?y)) (legal walker wait)
(<= (next (road ?x ?y)) (true (road ?x ?y))) (<= (next (road ?x ?y)) (does walker (open ?x ?y)))
(<= (next (at ?x)) (reach ?x)) (init (at a))
(<= (reach ?x) (true (at ?x)))
(<= (reach ?y) (reach ?x) (true (road ?x ?y))) (<= (reach ?y) (reach ?x) (true (road ?y ?x)))
(<= terminal (reach b) (reach c)) (<= (goal walker 100) (reach c)) (<= (goal walker 0) (not (reach c)))
"""


def compiled(game: str) -> propnet.PropNet:
    return games.compile_game(game)


def small() -> propnet.PropNet:
    """The example of the documentation: a coin is guessed."""
    return files._from_json(json.loads(EXAMPLES[0]))


def recursive(monkeypatch: pytest.MonkeyPatch) -> propnet.PropNet:
    """A propnet with feedbacks, because unrolling is forbidden."""
    monkeypatch.setattr(build, "_UNROLLED_GATES", 0)
    sheet = checker.check(sources.Source("walk.gdl", REACHABLE)).require_usable()
    propnet = build.build(sheet, ground.ground(sheet))
    assert len(propnet.feedback)
    return propnet


def fields_of(propnet: propnet.PropNet) -> Any:
    """All fields of a propnet, in a form that == compares."""
    plain = dataclasses.asdict(propnet)
    for part in (plain, *plain["roles"]):
        part.update({k: (v.dtype, v.tolist()) for k, v in part.items() if isinstance(v, np.ndarray)})
    return plain


def play(propnet: propnet.PropNet, *, steps: int = 20, copies: int = 8, seed: int = 0) -> list[Any]:
    """The outputs along random play; rows are in the order of the names, which come first."""
    names = [(role.name, role.moves, role.percepts, role.goal_values) for role in propnet.roles]
    seen: list[Any] = [names]
    rng = np.random.default_rng(seed)
    game = machine.StateMachine(propnet)
    state = game.initial(copies)
    for _ in range(steps):
        legal = game.legal(state)
        terminal, goals = game.terminal_and_goals(state)
        does = np.zeros_like(legal)
        sizes = [len(role.moves) for role in propnet.roles]
        views = zip(machine.split_rows(legal, sizes), machine.split_rows(does, sizes), strict=True)
        for allowed, chosen in (pair for pair in views if len(pair[0])):
            move = (rng.random(allowed.shape) * (allowed + 0.5)).argmax(axis=0)
            chosen[move, np.arange(copies)] = True
        state, percepts = game.step(state, does)
        seen.append([rows.tolist() for rows in (legal, terminal, goals, percepts)])
    return seen


@pytest.mark.parametrize("suffix", [".npz", ".json"])
@pytest.mark.parametrize("game", GAMES)
def test_a_game_comes_back(game: str, suffix: str, tmp_path: pathlib.Path) -> None:
    propnet = compiled(game)
    first, second = tmp_path / f"one{suffix}", tmp_path / f"two{suffix.upper()}"
    files.save_propnet(propnet, first)
    again = files.load_propnet(first)
    assert fields_of(again) == fields_of(propnet)
    files.save_propnet(again, second)
    assert first.read_bytes() == second.read_bytes()
    assert play(again) == play(propnet)


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_recursion_comes_back(suffix: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    propnet = recursive(monkeypatch)
    files.save_propnet(propnet, tmp_path / f"walk{suffix}")
    again = files.load_propnet(tmp_path / f"walk{suffix}")
    assert fields_of(again) == fields_of(propnet)
    assert play(again) == play(propnet)


def names(kif: bool, most: int) -> st.SearchStrategy[tuple[str, ...]]:
    symbol = st.text("abc012", min_size=1, max_size=3)
    any_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
    name = symbol | symbol.map("(f {})".format) if kif else any_text
    return st.sets(name, max_size=most).map(lambda match: tuple(sorted(match)))


@st.composite
def networks(draw: st.DrawFn, *, kif: bool = False) -> propnet.PropNet:
    """Random propnets; with kif, those that the layout of ggp-cpp can express."""
    fluents = draw(names(kif, 3))
    moves = draw(st.lists(names(kif, 3), min_size=1, max_size=3))
    registers, feedbacks = draw(st.integers(0, 3)), 0 if kif else draw(st.integers(0, 2))
    inputs = registers + sum(map(len, moves)) + feedbacks
    gates = []
    for nodes in range(inputs, inputs + draw(st.integers(0, 5)) if inputs >= 2 else inputs):
        used = draw(st.sets(st.integers(1, nodes), min_size=2, max_size=3))
        gates.append(tuple(2 * node + draw(st.integers(0, 1)) for node in sorted(used)))
    anything = st.integers(0, 2 * (inputs + len(gates)) + 1)
    of_state = st.integers(0, 2 * registers + 1)
    growing = st.integers(0, 2 * (inputs - feedbacks) + 1) | st.integers(inputs - feedbacks, inputs).map((2).__mul__)

    def literals(strategy: st.SearchStrategy[int], count: int) -> propnet.Ints:
        return np.array(draw(st.lists(strategy, min_size=count, max_size=count)), np.int32)

    roles = []
    for number, own in enumerate(moves):
        percepts = draw(names(kif, 2))
        values = tuple(sorted(draw(st.sets(st.integers(-100, 100), max_size=2))))
        judged = of_state if kif else anything
        roles.append(
            propnet.Role(
                name=f"player{number}",
                moves=own,
                legal=literals(judged, len(own)),
                percepts=percepts,
                sees=literals(anything, len(percepts)),
                goal_values=values,
                goal=literals(judged, len(values)),
            )
        )
    starts, edges = propnet.gate_arrays(gates)
    return propnet.PropNet(
        name="random",
        roles=tuple(roles),
        fluents=fluents,
        fluent_literals=literals(of_state, len(fluents)),
        initial=np.array(draw(st.lists(st.booleans(), min_size=registers, max_size=registers)), np.bool_),
        next=literals(anything, registers),
        terminal=draw(of_state),
        feedback=literals(growing, feedbacks),
        gate_starts=starts,
        gate_inputs=edges,
    )


def reload(data: bytes, suffix: str, folder: pathlib.Path) -> propnet.PropNet:
    path = folder / f"random{suffix}"
    path.write_bytes(data)
    return files.load_propnet(path)


@given(propnet=networks())
def test_any_network_comes_back(propnet: propnet.PropNet, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    files.validate(propnet)
    for suffix, data in ((".npz", files._to_npz(propnet)), (".json", files._to_json(propnet))):
        assert fields_of(reload(data, suffix, folder)) == fields_of(propnet)


def test_a_reader_needs_no_more_than_the_documentation(tmp_path: pathlib.Path) -> None:
    propnet = compiled("kuhn_poker")
    files.save_propnet(propnet, tmp_path / "kuhn.npz")
    arrays = np.load(tmp_path / "kuhn.npz", allow_pickle=False)
    header = json.loads(arrays["header"].tobytes().decode("utf-8"))
    assert (header["format"], header["version"], header["fluents"]) == ("gdlx-network", 1, list(propnet.fluents))
    assert [tuple(role["moves"]) for role in header["roles"]] == [role.moves for role in propnet.roles]
    assert arrays["legal"].tolist() == [literal for role in propnet.roles for literal in role.legal]
    text = (ROOT / "docs/reference/file-formats.md").read_text()
    assert all(f"`{name}`" in text for name in arrays)


def test_the_examples_of_the_documentation_can_be_played(tmp_path: pathlib.Path) -> None:
    toss, stop = (reload(text.encode(), ".json", tmp_path) for text in EXAMPLES)
    game = machine.StateMachine(toss)
    # Rows: guesser heads, guesser tails, random heads, random tails; columns: all four joint actions.
    does = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]], bool)
    state, percepts = game.step(game.initial(4), does)
    terminal, goals = game.terminal_and_goals(state)
    assert terminal.all()
    assert percepts.tolist() == [[True, False, True, False]]
    assert goals[1].tolist() == [True, False, False, True] == (~goals[0]).tolist()
    assert stop.name == "random"
    assert stop.roles[0].percepts == ("(does you stop)",)  # neither sees nor chance: GDL-I
    assert [turn[1][0] for turn in play(stop, steps=3)[1:]] == [False, True, True]


def test_a_file_is_written_whole_or_not_at_all(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.json"
    files.save_propnet(small(), path)
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        files.save_propnet(compiled("rps"), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["net.json"]


def change(*keys: Any) -> Callable[[Any], None]:
    """Sets the value at a path of keys to the last argument."""

    def apply(data: Any) -> None:
        for key in keys[:-2]:
            data = data[key]
        data[keys[-2]] = keys[-1]

    return apply


WRONG: dict[str, list[tuple[Any, ...]]] = {
    "its format is 'other'": [("format", "other")],
    "another version": [("version", 2)],
    "'version' of the file is true, not an integer": [("version", True)],
    "'roles' of the file is": [("roles", 3)],
    "item 0 of 'roles' is not a JSON object": [("roles", [1])],
    "no roles": [("roles", [])],
    "two roles": [("roles", 1, "name", "guesser")],
    "not a string": [("name", 5), ("fluents", 0, None), ("roles", 0, "moves", 0, ["a"])],
    "is not a name": [("name", ""), ("fluents", 0, ""), ("name", "\ud800"), ("roles", 0, "moves", 0, "\udfff")],
    "not sorted by their text, or have a duplicate": [("fluents", ["won", "done"]), ("roles", 0, "moves", ["a", "a"])],
    "goal values of guesser": [("roles", 0, "goal_values", [100, 0]), ("roles", 0, "goal_values", [0, 0])],
    "a goal value of guesser": [("roles", 0, "goal_values", 1, 2**31)],
    "'goal_values' of item 0 of 'roles' is 0.5, not an int": [("roles", 0, "goal_values", 0, 0.5)],
    "'legal' is int32.1., not int32.2.": [("roles", 0, "legal", [3])],
    "'next' is int32": [("next", [1]), ("initial", [True])],
    "outside of 0..19": [("next", 0, 20), ("next", 0, -1), ("roles", 0, "sees", 0, 20), ("gates", 0, 0, 20)],
    "'terminal' is not a literal": [("terminal", 20), ("terminal", -1), ("terminal", 10**30)],
    "outside of 0..5": [("fluent_literals", 0, 6)],
    "outside of 32 bits": [("next", 0, 2**31), ("gates", 0, 0, 10**40)],
    "uses itself or a later gate": [("gates", 0, 1, 14), ("gates", 0, 1, 16)],
    "its literals are not sorted": [("gates", 0, [10, 6])],
    "uses a constant, or a node twice": [("gates", 0, [6, 6]), ("gates", 0, [6, 7]), ("gates", 0, [1, 6])],
    "two or more literals each": [("gates", 0, []), ("gates", 0, [6])],
    "not true or false": [("initial", 0, 1)],
}


@pytest.mark.parametrize(
    ("message", "path"), [(message, path) for message, paths in WRONG.items() for path in paths], ids=str
)
def test_a_wrong_file_is_refused_with_the_reason(message: str, path: Any, tmp_path: pathlib.Path) -> None:
    data = json.loads(EXAMPLES[0])
    change(*path)(data)
    with pytest.raises(files.PropNetFileError, match=message) as caught:
        reload(json.dumps(data).encode(), ".json", tmp_path)
    assert str(caught.value).startswith(str(tmp_path / "random.json"))
    assert caught.value.hint in str(caught.value)


@pytest.mark.parametrize("key", sorted(json.loads(EXAMPLES[0])))
def test_every_field_is_needed(key: str, tmp_path: pathlib.Path) -> None:
    data = json.loads(EXAMPLES[0])
    del data[key]
    with pytest.raises(files.PropNetFileError, match=f"no field '{key}'"):
        reload(json.dumps(data).encode(), ".json", tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("net.txt", b"", r"files ending in \.txt .* name it \.npz or \.json"),
        ("net", b"", "no suffix"),
        ("net.json", b"PK\x03\x04", "if it is a .npz file, name it so"),
        ("net.json", b"\xff", "not JSON in UTF-8"),
        ("net.json", b"[" * 100_000, "not JSON"),
        ("net.json", b"1" * 10_000, "not JSON"),
        ("net.json", b"[]", "not a JSON object"),
        ("net.npz", b"{}", "if it is a .json file, name it so"),
        ("net.npz", b"", "not a complete .npz file"),
    ],
)
def test_what_is_not_a_network_is_refused(name: str, content: bytes, message: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(files.PropNetFileError, match=message):
        files.load_propnet(tmp_path / name)


def test_an_unknown_suffix_is_not_written(tmp_path: pathlib.Path) -> None:
    with pytest.raises(files.PropNetFileError, match=r"name it \.npz or \.json"):
        files.save_propnet(small(), tmp_path / "net.bin")


def packed(**changes: Any) -> bytes:
    """The .npz of the small propnet with other arrays, or without those that are None."""
    with np.load(io.BytesIO(files._to_npz(small()))) as members:
        arrays = {**members, **changes}
    data = io.BytesIO()
    np.savez_compressed(data, allow_pickle=True, **{k: v for k, v in arrays.items() if v is not None})
    return data.getvalue()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"next": None}, "does not have the arrays"),
        ({"more": np.zeros(1, np.int32)}, "or has others too"),
        ({"next": np.zeros(2, np.int64)}, "elements '<i8', not '<i4'"),
        ({"next": np.zeros(2, ">i4")}, "elements '>i4'"),
        ({"next": np.array([{}, {}], object)}, "elements '|O'"),
        ({"next": np.zeros((1, 2), np.int32)}, "not a plain array of rank 1"),
        ({"terminal": np.zeros(2, np.int32)}, "'terminal' has 2 numbers"),
        ({"legal": np.zeros(5, np.int32)}, "'legal' has 5 numbers for 4 moves"),
        ({"gate_starts": np.zeros(0, np.int32)}, r"'gate_starts' is int32\[0\]"),
        ({"gate_starts": np.array([0, 2, 1, 6], np.int32)}, "two or more literals each"),
        ({"gate_starts": np.array([0, 2, 4, 5], np.int32)}, "two or more literals each"),
        ({"header": np.frombuffer(b"{}", np.uint8)}, "the header has no field 'format'"),
    ],
)
def test_wrong_arrays_are_refused(changes: Any, message: str, tmp_path: pathlib.Path) -> None:
    assert fields_of(reload(packed(), ".npz", tmp_path)) == fields_of(small())
    with pytest.raises(files.PropNetFileError, match=message):
        reload(packed(**changes), ".npz", tmp_path)


def test_a_small_file_cannot_unpack_to_a_large_one(tmp_path: pathlib.Path) -> None:
    bomb = packed(gate_inputs=np.zeros(10**7, np.int32))
    assert len(bomb) < 10**5
    (tmp_path / "bomb.npz").write_bytes(bomb)
    with pytest.raises(files.PropNetFileError, match="more than 1,000,000 bytes"):
        files.load_propnet(tmp_path / "bomb.npz", max_bytes=10**6)
    with pytest.raises(files.PropNetFileError, match="more than 10 bytes"):
        files.load_propnet(tmp_path / "bomb.npz", max_bytes=10)


def test_an_array_cannot_claim_to_be_larger_than_it_is(tmp_path: pathlib.Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(packed())) as old, zipfile.ZipFile(data, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "next.npy":
                content = content.replace(b"(2,), }              ", b"(123456789012345,), }", 1)
                assert np.lib.format.magic(1, 0) == content[:8]
                assert b"123456789012345" in content
            new.writestr(name, content)
    with pytest.raises(files.PropNetFileError, match="'next' does not have the size"):
        reload(data.getvalue(), ".npz", tmp_path)


def test_recursion_through_a_negation_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    propnet = recursive(monkeypatch)
    files.validate(propnet)
    first = propnet.inputs - len(propnet.feedback) + 1
    for feedback in ([2 * first + 1], [2 * first + 3, 2 * first + 1]):  # one that inverts itself; two in turn
        feedback += propnet.feedback.tolist()[len(feedback) :]
        with pytest.raises(files.PropNetFileError, match="depends on its own negation"):
            files.validate(dataclasses.replace(propnet, feedback=np.array(feedback, np.int32)))


def is_refused_or_can_be_played(data: bytes, suffix: str, folder: pathlib.Path) -> None:
    try:
        propnet = reload(data, suffix, folder)
    except files.PropNetFileError:
        return
    files.validate(propnet)
    play(propnet, steps=3, copies=2)


@given(data=st.data())
def test_corrupted_bytes_do_no_harm(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    suffix = data.draw(st.sampled_from([".npz", ".json"]))
    content = files._to_npz(small()) if suffix == ".npz" else files._to_json(small())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        gone = data.draw(st.sampled_from([0, 1, 1, 1, 4, 50, len(content)]))
        content = content[:at] + data.draw(st.binary(max_size=2)) + content[at + gone :]
    is_refused_or_can_be_played(bytes(content), suffix, tmp_path_factory.getbasetemp())


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 25)
    | st.sampled_from([2**31, -(2**31), 10**25, 0.5, float("nan"), "", "a", "\ud800", "guesser", "\0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of keys to every value in JSON data."""
    keys = range(len(data)) if isinstance(data, list) else data if isinstance(data, dict) else ()
    return [path, *(place for key in keys for place in places(data[key], (*path, key)))]


@given(data=st.data(), example=st.integers(0, 1))
def test_mutated_json_does_no_harm(data: st.DataObject, example: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    content = json.loads(EXAMPLES[example])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(places(content)[1:]))
        change(*place, data.draw(JUNK | st.sampled_from(places(content)).map(lambda p: value_at(content, p))))(content)
    is_refused_or_can_be_played(json.dumps(content).encode(), ".json", tmp_path_factory.getbasetemp())


def value_at(data: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        data = data[key]
    return json.loads(json.dumps(data))


@given(data=st.data())
def test_mutated_arrays_do_no_harm(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    with np.load(io.BytesIO(files._to_npz(small()))) as members:
        arrays = dict(members)
    name = data.draw(st.sampled_from(sorted(arrays.keys() - {"header"})))
    numbers = [int(number) for number in arrays[name]] or [0]
    numbers[data.draw(st.integers(0, len(numbers) - 1))] = data.draw(st.integers(-2, 30))
    size = data.draw(st.integers(0, len(numbers)) | st.just(len(numbers)))
    content = packed(**{name: np.array(numbers[:size], arrays[name].dtype)})
    is_refused_or_can_be_played(content, ".npz", tmp_path_factory.getbasetemp())


@given(propnet=networks(kif=True))
def test_any_network_plays_alike_in_the_foreign_layout(
    propnet: propnet.PropNet, tmp_path_factory: pytest.TempPathFactory
) -> None:
    again = reload(ggp_json_writer.to_json(propnet).encode(), ".json", tmp_path_factory.getbasetemp())
    assert play(again) == play(propnet)
    assert again.fluents == propnet.fluents
