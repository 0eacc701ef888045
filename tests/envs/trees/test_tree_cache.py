"""The cache of unrolled trees: the same tree again, unrolled again whenever something is wrong."""

import dataclasses
import pathlib
import warnings
from typing import Any

import numpy as np
import pytest

from gdlx import cli
from gdlx.envs import game_spec
from gdlx.envs.trees import game_tree, tree_cache
from gdlx.envs.trees.factored import unroll_blocks
from gdlx.propnet import games
from gdlx.propnet.common import errors
from gdlx.solvers import tasks


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """An empty cache for this test, which stores every tree."""
    monkeypatch.setenv("GDLX_CACHE", str(tmp_path))
    monkeypatch.setattr(tree_cache, "_SECONDS", 0.0)
    return tmp_path / "trees"


@pytest.fixture
def unrolled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of games that were unrolled, which is what the cache avoids."""
    names: list[str] = []
    unroll = game_spec._unroll

    def counted(game: game_spec.GameSpec, *args: Any) -> game_tree.GameTree:
        names.append(game.spec)
        return unroll(game, *args)

    monkeypatch.setattr(game_spec, "_unroll", counted)
    return names


def assert_same(one: Any, other: Any) -> None:
    """Compares all parts of two trees, types included."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for first, second in zip(one, other, strict=True):
            assert_same(first, second)
    else:
        assert one == other


def read_back(tree: game_tree.GameTree) -> game_tree.GameTree:
    return tree_cache.parse(memoryview(b"".join(tree_cache.serialise(tree))))


@pytest.mark.parametrize("options", [{}, {"keep_edges": True}, {"depth": 3}])
def test_every_part_of_a_tree_is_kept(options: dict[str, Any]) -> None:
    tree = game_spec.unroll_game("goofspiel:cards=3", **options)
    assert_same(tree, read_back(tree))


def test_orbits_are_kept() -> None:
    tree = game_spec.unroll_game("dark_hex:columns=2,rows=2", symmetries=True)
    assert not tree.is_whole
    assert_same(tree, read_back(tree))


def test_blocks_are_kept() -> None:
    tree = unroll_blocks.unroll(games.compile_game("dark_hex:columns=2,rows=2"))
    assert tree.blocks is not None
    assert_same(tree, read_back(tree))


def test_the_next_call_finds_the_tree_and_solves_it_alike(folder: pathlib.Path, unrolled: list[str]) -> None:
    first, second = (game_spec.unroll_game("kuhn_poker") for _ in range(2))
    assert unrolled == ["kuhn_poker"]
    assert_same(first, second)
    one, other = (tasks.make_tree_task("kuhn_poker", tree) for tree in (first, second))
    assert one.digest == other.digest
    policies = tuple(np.full(player.sequences, 0.5) for player in first.players)
    assert one.metrics(policies) == other.metrics(policies)
    assert [path for path, _ in tree_cache.entries()] == list(folder.iterdir())


def test_other_options_make_another_tree(folder: pathlib.Path, unrolled: list[str]) -> None:
    rules = game_spec.GameSpec("kuhn_poker")
    for game, options in (
        (rules, {}),
        (rules, {"keep_edges": True}),
        (rules, {"depth": 2}),
        (rules, {"max_nodes": 1_000}),
        (rules._replace(payoff="goal"), {}),
        (rules._replace(goal_conflict="max"), {}),
        (game_spec.GameSpec("biased_rps"), {}),
        (game_spec.GameSpec("rps"), {}),
        (game_spec.GameSpec("rps"), {"symmetries": True}),
    ):
        game_spec.unroll_game(game, **options)
    assert len(unrolled) == len(tree_cache.entries()) == 9


def test_no_tree_is_found_or_stored_without_the_cache(folder: pathlib.Path, unrolled: list[str]) -> None:
    for _ in range(2):
        game_spec.unroll_game("rps", cached=False)
    assert unrolled == ["rps", "rps"]
    assert not folder.exists()


def test_every_changed_bit_is_refused(folder: pathlib.Path, unrolled: list[str]) -> None:
    game_spec.unroll_game("rps")
    [path] = folder.iterdir()
    content = path.read_bytes()
    key = path.stem
    for bit in range(0, 8 * len(content), 7):  # every byte, and every bit of a byte in turn
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.warns(errors.Remark, match="the cached tree of rps is damaged; it is unrolled again"):
            assert tree_cache._load(path, key, "rps") is None


@pytest.mark.parametrize("damage", ["empty", "cut", "longer", "another tree"])
def test_a_damaged_file_is_unrolled_again_with_one_remark(
    damage: str, folder: pathlib.Path, unrolled: list[str]
) -> None:
    game_spec.unroll_game("biased_rps")
    [other] = folder.iterdir()
    foreign = other.read_bytes()
    tree = game_spec.unroll_game("rps")
    [path] = set(folder.iterdir()) - {other}
    content = path.read_bytes()
    changed = {"empty": b"", "cut": content[:-40], "longer": content + b"\0", "another tree": foreign}
    path.write_bytes(changed[damage])
    with pytest.warns(errors.Remark, match="is unrolled again") as remarks:
        assert_same(game_spec.unroll_game("rps"), tree)
    assert len(remarks) == 1
    assert path.read_bytes() == content
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        game_spec.unroll_game("rps")
    assert unrolled == ["biased_rps", "rps", "rps"]


def test_an_intact_file_that_is_no_tree_is_refused() -> None:
    tree = game_spec.unroll_game("rps")
    whole = b"".join(tree_cache.serialise(tree))
    for content in (b"", b"5", whole[:200], whole.replace(b'"GameTree"', b'"Counts"  ', 1), b"9" * 64):
        with pytest.raises(ValueError, match="not an unrolled tree"):
            tree_cache.parse(memoryview(content))


def test_trees_that_unroll_fast_are_not_stored(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_cache, "_SECONDS", 1e9)
    game_spec.unroll_game("rps")
    assert tree_cache.entries() == []


def test_the_least_recently_used_tree_goes_first(
    folder: pathlib.Path, unrolled: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    game_spec.unroll_game("rps")
    [(path, size)] = tree_cache.entries()
    assert cli.main(["doctor", "--json"]) == 0
    assert f'"cache_mb": {round(size / 2**20, 1)}' in capsys.readouterr().out
    monkeypatch.setenv("GDLX_CACHE_MB", "0")
    game_spec.unroll_game("rps")
    assert unrolled == ["rps", "rps"]
    assert tree_cache.clear() == size
    assert not path.exists()
