"""The cache of propnets: reused, compiled again whenever something is wrong, and never a reason to fail."""

import os
import pathlib
from collections.abc import Callable

import numpy as np
import pytest

import gdlx.propnet
from gdlx import cli
from gdlx.propnet import games
from gdlx.propnet.circuits import compiler, propnet
from gdlx.propnet.common import errors, limits
from gdlx.propnet.io import cache, files
from gdlx.propnet.syntax import rulesheet, source
from gdlx.tests.helpers import paths, support

TEXT = "(role r) (legal r a) (<= (next x) (does r a)) (<= terminal (true x)) (goal r 100)"


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """An empty cache for this test."""
    monkeypatch.setenv("GDLX_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of sheets that were compiled, which is what the cache avoids."""
    names: list[str] = []
    compile_sheet = compiler.compile_rulesheet

    def counted(
        sheet: rulesheet.Rulesheet,
        within: limits.Limits = limits.Limits(),
        report: compiler.PassCallback = compiler._silent,
    ) -> propnet.PropNet:
        names.append(sheet.name)
        return compile_sheet(sheet, within, report)

    monkeypatch.setattr(compiler, "compile_rulesheet", counted)
    return names


def _files(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_the_second_call_finds_the_network_of_the_first(folder: pathlib.Path, compiles: list[str]) -> None:
    sheet = support.read(TEXT)
    statistics: list[compiler.PassStatistics] = []
    first, second = (cache.load_or_compile(sheet, report=statistics.append) for _ in range(2))
    assert compiles == ["test.gdl"]
    assert statistics
    assert first.roles[0].moves == second.roles[0].moves
    assert np.array_equal(first.gate_inputs, second.gate_inputs)
    assert [path.parent.name for path in _files(folder)] == ["networks"]
    assert [path for path, _ in cache.list_entries()] == _files(folder)


@pytest.mark.parametrize(
    "other",
    [
        support.read(TEXT + "(legal r b)"),
        support.read(TEXT, name="other.gdl"),
        support.read(TEXT, gdl=2),
    ],
    ids=["rules", "name", "language"],
)
def test_another_sheet_has_another_network(
    other: rulesheet.Rulesheet, folder: pathlib.Path, compiles: list[str]
) -> None:
    for sheet in (support.read(TEXT), other, other):
        assert cache.load_or_compile(sheet).name == sheet.name
    assert len(compiles) == 2


def test_comments_and_layout_make_no_other_sheet(folder: pathlib.Path, compiles: list[str]) -> None:
    for text in (TEXT, "; a comment\n" + TEXT.replace(" (", "\n (")):
        cache.load_or_compile(support.read(text))
    assert len(compiles) == 1


def test_other_code_makes_other_networks(
    folder: pathlib.Path, compiles: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.load_or_compile(support.read(TEXT))
    monkeypatch.setattr(cache, "_code_digest", lambda: b"another version")
    cache.load_or_compile(support.read(TEXT))
    assert len(compiles) == 2


def _changed(root: pathlib.Path) -> None:
    (root / "passes" / "deep" / "factor.py").write_text("x = 2")


def _moved(root: pathlib.Path) -> None:
    (root / "passes" / "deep" / "factor.py").rename(root / "passes" / "factor.py")


def _renamed(root: pathlib.Path) -> None:
    """Which keeps the order of the files."""
    (root / "passes" / "deep" / "factor.py").rename(root / "passes" / "deep" / "factors.py")


def _added(root: pathlib.Path) -> None:
    (root / "passes" / "deep" / "empty.py").touch()


def _shifted(root: pathlib.Path) -> None:
    """The same bytes one after the other, otherwise divided between the files."""
    (root / "build.py").write_text("")
    (root / "passes" / "deep" / "factor.py").write_text("y = 1x = 1")


@pytest.fixture
def code(tmp_path: pathlib.Path) -> pathlib.Path:
    """Python files at the top and two folders down."""
    root = tmp_path / "code"
    (root / "passes" / "deep").mkdir(parents=True)
    (root / "build.py").write_text("y = 1")
    (root / "passes" / "deep" / "factor.py").write_text("x = 1")
    return root


@pytest.mark.parametrize("change", [_changed, _moved, _renamed, _added, _shifted])
def test_every_python_file_below_counts(
    change: Callable[[pathlib.Path], None],
    code: pathlib.Path,
    folder: pathlib.Path,
    compiles: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cache, "_code_digest", lambda: cache.digest_of_code(code))
    cache.load_or_compile(support.read(TEXT))
    change(code)
    for _ in range(2):
        cache.load_or_compile(support.read(TEXT))
    assert len(compiles) == 2


def test_files_that_are_no_code_do_not_count(code: pathlib.Path) -> None:
    before = cache.digest_of_code(code)
    (code / "passes" / "notes.txt").write_text("x")
    (code / "passes" / "__pycache__").mkdir()
    (code / "passes" / "__pycache__" / "factor.cpython-312.pyc").write_bytes(b"x")
    assert cache.digest_of_code(code) == before


def test_the_digest_is_of_the_package() -> None:
    root = pathlib.Path(gdlx.propnet.__file__).parent
    assert cache._code_digest() == cache.digest_of_code(root)
    folders = {pathlib.PurePosixPath(path).parts[0] for path, _ in cache._python_files(root) if "/" in path}
    assert folders >= {"checks", "library"}


@pytest.mark.parametrize("damage", ["empty", "cut", "noise", "another file", "a folder"])
def test_a_damaged_file_is_made_anew(damage: str, folder: pathlib.Path, compiles: list[str]) -> None:
    sheet = support.read(TEXT)
    cache.load_or_compile(sheet)
    [path] = _files(folder)
    content = path.read_bytes()
    if damage == "a folder":
        path.unlink()
        path.mkdir()
    else:
        changed = {"empty": b"", "cut": content[:-40], "noise": b"\xff" + content[1:], "another file": b"{}"}
        path.write_bytes(changed[damage])
    assert cache.load_or_compile(sheet).roles[0].moves == ("a",)
    assert len(compiles) == 2
    if damage != "a folder":
        assert path.read_bytes() == content


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(folder: pathlib.Path, compiles: list[str]) -> None:
    folder.mkdir()
    folder.chmod(0o500)
    cache.load_or_compile(support.read(TEXT))
    assert _files(folder) == []


@pytest.mark.parametrize("place", ["a file", "/dev/null/nowhere", "/proc/nowhere"])
def test_a_folder_that_is_none(
    place: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, compiles: list[str]
) -> None:
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("GDLX_CACHE", str(tmp_path / place) if place == "a file" else place)
    for _ in range(2):
        assert cache.load_or_compile(support.read(TEXT)).roles[0].moves == ("a",)
    assert len(compiles) == 2
    assert cache.list_entries() == []
    assert cache.clear() == 0


def test_a_name_that_no_file_can_hold(folder: pathlib.Path, compiles: list[str]) -> None:
    """Paths may have bytes that are not text; such a game is compiled each time."""
    sheet = rulesheet.parse_rulesheet(source.Source("bad\udcff.gdl", TEXT))[0]
    for _ in range(2):
        assert cache.load_or_compile(sheet).roles[0].moves == ("a",)
    assert len(compiles) == 2


def test_what_was_not_used_longest_goes_first(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sheets = [support.read(TEXT, name=f"game{number}") for number in range(4)]
    for number, sheet in enumerate(sheets[:3]):
        cache.load_or_compile(sheet)
        newest = max(_files(folder), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, (1_000 + number, 1_000 + number))
    cache.load_or_compile(sheets[0])  # used again, so that the second is now the oldest
    largest = max(size for _, size in cache.list_entries())
    monkeypatch.setattr(cache, "limit_bytes", lambda: 3 * largest + 10)
    cache.load_or_compile(sheets[3])
    assert [files.load_propnet(path).name for path, _ in cache.list_entries()] == ["game2", "game0", "game3"]


@pytest.mark.parametrize(("setting", "kept"), [("0", 0), ("1", 2), ("nonsense", 2), (None, 2)])
def test_the_limit_of_size(
    setting: str | None, kept: int, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if setting is None:
        monkeypatch.delenv("GDLX_CACHE_MB", raising=False)
    else:
        monkeypatch.setenv("GDLX_CACHE_MB", setting)
    for name in ("one", "two"):
        cache.load_or_compile(support.read(TEXT, name=name))
    assert len(_files(folder)) == kept


def test_clearing_leaves_the_files_of_others_alone(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody sets GDLX_CACHE to a folder that is in use."""
    (folder / "documents").mkdir(parents=True)
    (folder / "documents" / "thesis.tex").write_text("x" * 1000)
    cache.load_or_compile(support.read(TEXT))
    monkeypatch.setattr(cache, "limit_bytes", lambda: 1)
    cache.load_or_compile(support.read(TEXT, name="another"))
    assert cache.clear() == 0
    assert _files(folder) == [folder / "documents" / "thesis.tex"]


def test_clearing_tells_what_it_freed(folder: pathlib.Path) -> None:
    cache.load_or_compile(support.read(TEXT))
    size = sum(path.stat().st_size for path in _files(folder))
    assert cache.clear() == size > 0
    assert _files(folder) == []


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"GDLX_CACHE": "/c"}, "/c"),
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/gdlx"),
        ("linux", {}, "/home/me/.cache/gdlx"),
        ("darwin", {}, "/home/me/Library/Caches/gdlx"),
    ],
)
def test_where_the_cache_is(
    platform: str, variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GDLX_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", platform)
    assert cache.cache_dir() == pathlib.Path(expected)


def test_tests_have_a_cache_of_their_own() -> None:
    assert cache.cache_dir().is_relative_to(paths.ROOT)


def test_commands_use_the_cache(folder: pathlib.Path, compiles: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    commands = (["info"], ["info", "--json"], ["check", "--play"], ["show", "--dot"], ["compile"])
    for arguments in ([command, "rps", *options] for command, *options in commands):
        assert cli.main(arguments) == 0
    assert compiles == ["rps"]
    capsys.readouterr()
    assert cli.main(["compile", "rps", "--passes"]) == 0  # reports what compiling takes, so it compiles
    assert compiles == ["rps", "rps"]
    assert games.load_rulesheet("rps").name == "rps"


def test_the_network_of_another_game_is_not_used(folder: pathlib.Path, compiles: list[str]) -> None:
    one, other = support.read(TEXT), support.read(TEXT + "(legal r b)")
    cache.load_or_compile(one)
    [path] = _files(folder)
    good = path.read_bytes()
    cache.load_or_compile(other)
    [copied] = [each for each in _files(folder) if each != path]
    path.write_bytes(copied.read_bytes())
    assert cache.load_or_compile(one).roles[0].moves == ("a",)
    assert len(compiles) == 3
    assert path.read_bytes() == good


def test_every_flipped_bit_is_noticed_or_changes_nothing(folder: pathlib.Path, compiles: list[str]) -> None:
    sheet = support.read(TEXT)
    first = files._to_npz(cache.load_or_compile(sheet))
    [path] = _files(folder)
    content = path.read_bytes()
    for bit in range(0, 8 * len(content), 11):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            propnet = files.parse_cached(bytes(changed), path.stem)
        except files.PropNetFileError:
            continue
        assert files._to_npz(propnet) == first


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_folders_are_for_their_owner_alone(folder: pathlib.Path) -> None:
    before = os.umask(0)
    try:
        cache.load_or_compile(support.read(TEXT))
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (folder, folder / "networks")} == {0o700}


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
@pytest.mark.parametrize("place", ["", "networks", "entry"])
def test_what_others_may_write_to_is_ignored(place: str, folder: pathlib.Path, compiles: list[str]) -> None:
    cache.load_or_compile(support.read(TEXT))
    unsafe = _files(folder)[0] if place == "entry" else folder / place
    unsafe.chmod(0o770)
    with pytest.warns(errors.Remark, match="ignored: other users may write to it; run chmod"):
        assert cache.load_or_compile(support.read(TEXT)).roles[0].moves == ("a",)
    assert len(compiles) == 2


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
def test_what_others_own_is_ignored(
    folder: pathlib.Path, compiles: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    cache.load_or_compile(support.read(TEXT))
    os.chown(folder, 12_345, 12_345)
    with pytest.warns(errors.Remark, match="belongs to another user"):
        cache.load_or_compile(support.read(TEXT))
    assert len(compiles) == 2
    assert cli.main(["info", "rps"]) == 0
    assert "remark: the cache" in capsys.readouterr().err
    assert cli.main(["info", "rps", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
