"""The cache of XLA programs: found again by the next process, never a reason to fail or to talk, off by default."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from gdlx import cli
from gdlx.envs import compilation_cache
from gdlx.propnet.io import cache

COMMAND = [sys.executable, "-m", "gdlx.cli", "playout", "rps", "--batch", "32", "--seconds", "0", "--json"]


def played(folder: pathlib.Path, **settings: str) -> dict[str, object]:
    """What the command prints, with a cache of its own; never anything on stderr."""
    environment = {**os.environ, "GDLX_CACHE": str(folder), **settings}
    ran = subprocess.run(COMMAND, env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    output: dict[str, object] = json.loads(ran.stdout)
    return output


def times(folder: pathlib.Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*-cache")}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, dict[str, object]]:
    """A folder with the programs of one process, and what that printed."""
    folder = tmp_path_factory.mktemp("first")
    actual = played(folder)
    shutil.copytree(folder, folder.with_name("kept"))
    return folder, actual


@pytest.fixture
def folder(first: tuple[pathlib.Path, dict[str, object]]) -> pathlib.Path:
    """That folder as it was, to be changed; a copy would not do, because jax's keys tell folders apart."""
    shutil.rmtree(first[0])
    shutil.copytree(first[0].with_name("kept"), first[0])
    return first[0]


@pytest.fixture
def goals(first: tuple[pathlib.Path, dict[str, object]]) -> object:
    return first[1]["mean_goals"]


def test_the_second_process_finds_the_programs_of_the_first(folder: pathlib.Path, goals: object) -> None:
    kept = times(folder / "programs")
    assert any(name.startswith("jit_part") for name in kept)
    assert played(folder)["mean_goals"] == goals
    assert times(folder / "programs") == kept


def test_broken_files_are_no_error(folder: pathlib.Path, goals: object) -> None:
    for path in (folder / "programs").rglob("*-cache"):
        path.write_bytes(path.read_bytes()[:100])
    assert played(folder)["mean_goals"] == goals


def test_swapped_programs_are_compiled_again(folder: pathlib.Path, goals: object) -> None:
    paths = sorted((folder / "programs").rglob("*-cache"))
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    assert played(folder)["mean_goals"] == goals
    assert [path.stat().st_size for path in paths] == pytest.approx([len(each) for each in contents], rel=0.05)


def test_a_program_is_read_under_its_own_key_and_unchanged_or_not_at_all(tmp_path: pathlib.Path) -> None:
    programs = compilation_cache.CheckedPrograms(tmp_path)
    programs.put("one", b"program")
    assert (programs.get("one"), programs.get("other")) == (b"program", None)
    content = (tmp_path / "one-cache").read_bytes()
    (tmp_path / "other-cache").write_bytes(content)
    assert programs.get("other") is None
    for bit in range(8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        (tmp_path / "one-cache").write_bytes(changed)
        assert programs.get("one") is None
    programs.put("one", b"again")
    assert programs.get("one") == b"again"


def test_a_folder_that_is_none(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    played(tmp_path / "file")


def test_nothing_is_kept_where_the_limit_is_zero(tmp_path: pathlib.Path) -> None:
    played(tmp_path, GDLX_CACHE_MB="0")
    assert list(tmp_path.rglob("*-cache")) == []


def test_the_user_s_own_choice_stands(tmp_path: pathlib.Path) -> None:
    played(tmp_path / "ours", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "theirs"))
    assert not (tmp_path / "ours" / "programs").exists()


def test_the_library_leaves_jax_as_it_is() -> None:
    use = (
        "import jax, gdlx; gdlx.make('rps'); import gdlx.envs.compilation_cache; "
        "print(jax.config.jax_compilation_cache_dir)"
    )
    ran = subprocess.run([sys.executable, "-c", use], capture_output=True, text=True, check=True)
    assert ran.stdout == "None\n"


@pytest.fixture
def filled(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> list[pathlib.Path]:
    """Three files of a megabyte, the first one used last."""
    monkeypatch.setenv("GDLX_CACHE", str(tmp_path))
    folder = tmp_path / "programs" / "machine"
    folder.mkdir(parents=True)
    made = []
    for number in range(3):
        path = folder / f"jit_{number}-cache"
        path.write_bytes(bytes(2**20))
        os.utime(path, (1_000 - number, 1_000 - number))
        made.append(path)
    return made


def test_the_longest_unused_goes_first(filled: list[pathlib.Path], monkeypatch: pytest.MonkeyPatch) -> None:
    assert compilation_cache.entries() == [(path, 2**20) for path in reversed(filled)]
    monkeypatch.setenv("GDLX_CACHE_MB", "2")
    cache.remove_oldest(compilation_cache.entries())
    assert [path.exists() for path in filled] == [True, True, False]


def test_clearing(filled: list[pathlib.Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cache_mb"] == 3
    assert cli.main(["doctor", "--clear-cache", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["freed_bytes"] == 3 * 2**20
    assert compilation_cache.entries() == []
