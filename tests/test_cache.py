"""The cache never changes what a command answers, only how fast."""

import pathlib

import pytest

from gdlx.propnet import cache, compiler, files, load, network


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("GDLX_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GDLX_CACHE_MB", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the sheets that were really compiled."""
    done: list[str] = []
    real = compiler.compile_sheet

    def counting(sheet: object, *arguments: object) -> network.PropNet:
        done.append(getattr(sheet, "name", ""))
        return real(sheet, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(compiler, "compile_sheet", counting)
    return done


def saved(net: network.PropNet, folder: pathlib.Path) -> bytes:
    files.save(net, folder / "compared.npz")
    return (folder / "compared.npz").read_bytes()


def test_the_second_call_reads_what_the_first_wrote(folder: pathlib.Path, compilations: list[str]) -> None:
    sheet = load.load("simple_poker")
    first, second = cache.compiled(sheet), cache.compiled(sheet)
    assert compilations == ["simple_poker"]
    assert saved(first, folder) == saved(second, folder)


def test_another_sheet_is_another_entry(folder: pathlib.Path, compilations: list[str]) -> None:
    cache.compiled(load.load("rps"))
    cache.compiled(load.load("rps:n=5"))
    assert compilations == ["rps", "rps:n=5"]
    assert len(cache.entries()) == 2


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_a_damaged_entry_is_made_anew(folder: pathlib.Path, compilations: list[str], damage: bytes | None) -> None:
    sheet = load.load("rps")
    cache.compiled(sheet)
    ((path, _),) = cache.entries()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    cache.compiled(sheet)
    assert len(compilations) == 2
    assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_written_is_no_error(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, compilations: list[str]
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("GDLX_CACHE", str(tmp_path / "file" / "cache"))
    sheet = load.load("rps")
    cache.compiled(sheet)
    cache.compiled(sheet)
    assert len(compilations) == 2


def test_a_limit_of_zero_keeps_nothing(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, compilations: list[str]
) -> None:
    monkeypatch.setenv("GDLX_CACHE_MB", "0")
    cache.compiled(load.load("rps"))
    assert cache.entries() == []


def test_the_longest_unused_is_removed_first(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = load.load("rps"), load.load("rps:n=5")
    cache.compiled(old)
    ((first, size),) = cache.entries()
    monkeypatch.setattr(cache, "limit_bytes", lambda: size + size // 2)
    cache.compiled(new)
    ((left, _),) = cache.entries()
    assert left != first


def test_clear_removes_everything_and_tells_how_much(folder: pathlib.Path) -> None:
    cache.compiled(load.load("rps"))
    total = sum(size for _, size in cache.entries())
    assert total > 0
    assert cache.clear() == total
    assert cache.entries() == []


def test_a_limit_that_is_no_number_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GDLX_CACHE_MB", "plenty")
    several = cache.limit_bytes()
    monkeypatch.delenv("GDLX_CACHE_MB")
    assert several == cache.limit_bytes() > 0
