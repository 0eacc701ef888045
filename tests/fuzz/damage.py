"""Damages one file of a folder: bytes, the values inside JSON, CSV and .npz files, or what kind of file it is."""

import csv
import io
import json
import os
import pathlib
import random
import shutil
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gdlx.propnet.io import array_files
from gdlx.tests.fuzz import sheets

_DEEP = '{"a":' * 60 + "1" + "}" * 60
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 0.5, 1e308, -1e-300, "", "x", "0", "-1", "nan", "inf"),
    *("x" * 5_000, "\0", "\x1b[2J", "\ud800", "../../etc/passwd", "/dev/zero", "9" * 5_000, "\u202eabc"),
    *([], {}, [[]], [None], ["x"], {"": 0}, [0] * 1_000, [[0] * 10] * 10),
)
_CELLS = (
    *("", "x", "nan", "inf", "-inf", "-1", "0", "1e400", "9" * 30, "9" * 5_000, "1.5", "0x10", "1_000", "٣", " 1 "),
    *("\0", '"', "a,b", "\n", "None", "True", "\x1b[2J", "é", "²"),
)
_DTYPES = ("<f8", ">f8", "<f4", "<f2", "<i8", "<i4", "<u4", "|u1", "|b1", "<c16", "<U3", "|S4", "<M8[s]", "|O", "|V3")
_SHAPES = ("(0,)", "(1,)", "()", "(99999999999999,)", "(-1,)", "(1, 1, 1)", "(0, 999999999999999999)", "(1e3,)", "x")


def damage(folder: pathlib.Path, chance: random.Random) -> str:
    """Damages a file in a folder or its subfolders; returns what was done."""
    path = chance.choice(sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"))
    name = path.relative_to(folder)
    if chance.random() < 0.03:
        kind = chance.choice(sorted(_KINDS))
        path.unlink()
        _KINDS[kind](path)
        return f"{name}: {kind}"
    content = path.read_bytes()
    change = _CHANGES.get(path.suffix)
    if not content or change is None or chance.random() < 0.35:
        changed = _damage_bytes(content, chance)
    else:
        changed = change(content, chance)
    path.write_bytes(changed)
    return f"{name}: {len(content)} bytes became {len(changed)}"


def _link_to_itself(path: pathlib.Path) -> None:
    path.symlink_to(path)


_KINDS: Mapping[str, Callable[[pathlib.Path], object]] = {
    "missing": lambda path: None,
    "a pipe": os.mkfifo,
    "a folder": pathlib.Path.mkdir,
    "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to(path.with_name("nothing")),
    "a link to itself": _link_to_itself,
    "a link to a folder": lambda path: path.symlink_to(path.parent),
    "4 GB without data": lambda path: _sparse(path, 2**32),
    "40 GB without data": lambda path: _sparse(path, 40 * 2**30),
}


def _sparse(path: pathlib.Path, size: int) -> None:
    with open(path, "wb") as file:
        file.truncate(size)


def _damage_bytes(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content) + 1)
    changed = bytearray(content)
    match chance.randrange(8):
        case 0:
            return content[:place]
        case 1:
            return content[place:]
        case 2:
            changed[place:place] = chance.choice((b"\0", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b'"', b"\r", b"\n\n"))
        case 3:
            changed[place : place + 64] = bytes(chance.randrange(256) for _ in range(64))
        case 4:
            changed += content[place:] * chance.randint(1, 3)
        case 5:
            return chance.choice((b"", b"\0" * 1_000, b"[" * 100_000, b"9" * 10_000, _DEEP.encode(), b"\xef\xbb\xbf{}"))
        case _:
            for _ in range(min(len(changed), chance.choice((1, 1, 2, 8)))):
                changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _damage_json(content: bytes, chance: random.Random) -> bytes:
    try:
        value = json.loads(content)
    except ValueError:
        return _damage_bytes(content, chance)
    changed = [value]
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        within, key = chance.choice(_json_places(changed))
        match chance.randrange(6):
            case 0 if within is not changed:
                del within[key]
            case 1 if isinstance(within, dict):
                within[chance.choice(("", "x", key + "x", key.upper()))] = within.pop(key)
            case 2:
                other, at = chance.choice(_json_places(changed)[1:] or [(changed, 0)])
                within[key] = json.loads(json.dumps(other[at]))
            case 3 if type(within[key]) in (int, float):
                within[key] = chance.choice((-within[key], within[key] + 1, str(within[key]), float(within[key])))
            case _:
                within[key] = json.loads(json.dumps(chance.choice(_VALUES)))  # the next damage may change it
        if not changed:
            break
    text = json.dumps(changed[0] if changed else None)
    if chance.random() < 0.1:
        text = text.replace("0", chance.choice(("NaN", "1e999", _DEEP, "-Infinity", "01", "[")), 1)
    return text.encode(errors="surrogatepass")


def _json_places(root: list[Any]) -> list[tuple[Any, Any]]:
    collected: list[tuple[Any, Any]] = []
    todo: list[Any] = [root]
    while todo:
        within = todo.pop()
        for key in list(within) if isinstance(within, dict) else range(len(within)):
            collected.append((within, key))
            if isinstance(within[key], (dict, list)) and within[key]:
                todo.append(within[key])
    return collected


def _damage_csv(content: bytes, chance: random.Random) -> bytes:
    rows = list(csv.reader(io.StringIO(content.decode(errors="replace"))))
    for _ in range(chance.choice((1, 1, 2, 4))):
        number = chance.randrange(len(rows)) if rows else 0
        if not rows or not rows[number]:
            break
        column = chance.randrange(len(rows[number]))
        match chance.randrange(7):
            case 0:
                del rows[number][column]
            case 1:
                del rows[number]
            case 2:
                rows.insert(number, list(chance.choice(rows)))
            case 3:
                rows[number].append(chance.choice(_CELLS))
            case 4:
                for row in rows:
                    row[column : column + 1] = []
            case _:
                rows[number][column] = chance.choice(_CELLS)
    if chance.random() < 0.1:
        return "\n".join(",".join(row) for row in rows).encode()
    text = io.StringIO()
    csv.writer(text, lineterminator=chance.choice(("\n", "\n", "\n", "\r\n"))).writerows(rows)
    return text.getvalue().encode()


def _damage_arrays(content: bytes, chance: random.Random) -> bytes:
    """A valid zip file with other members."""
    try:
        members = array_files.read_members(io.BytesIO(content), 2**30)
    except ValueError:
        return _damage_bytes(content, chance)
    named = {f"{name}.npy": bytes(data) for name, data in members.items()}
    for _ in range(chance.choice((1, 1, 2))):
        if not named:
            break
        name = chance.choice(sorted(named))
        match chance.randrange(7):
            case 0:
                del named[name]
            case 1:
                named[chance.choice(("arr_99.npy", "x.npy", "../x.npy", "arr_0.txt", "", "\0.npy"))] = named[name]
            case 2:
                named[name] = named[chance.choice(sorted(named))]
            case 3:
                named[name] = _damage_bytes(named[name], chance)
            case 4:
                named[name] = _declared(named[name], chance)
            case _:
                named[name] = _other_numbers(named[name], chance)
    kind = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", kind) as archive:
        for name, data in named.items():
            archive.writestr(zipfile.ZipInfo(name or "x"), data, kind)
        if chance.random() < 0.01 and "arr_9.npy" not in named:
            archive.writestr("arr_9.npy", bytes(2**29), zipfile.ZIP_DEFLATED)  # a bomb
    return packed.getvalue() if chance.random() < 0.9 else _damage_bytes(packed.getvalue(), chance)


def _declared(member: bytes, chance: random.Random) -> bytes:
    """The same numbers, whose header declares another type or shape."""
    start = 10 + int.from_bytes(member[8:10], "little")
    header = f"{{'descr': '{chance.choice(_DTYPES)}', 'fortran_order': False, 'shape': {chance.choice(_SHAPES)}, }}"
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + member[start:]


def _other_numbers(member: bytes, chance: random.Random) -> bytes:
    try:
        array = array_files.parse_array(bytearray(member), "")
    except ValueError:
        return member
    if array.dtype == np.uint8 and array.ndim == 1 and array.tobytes()[:1] == b"{":  # the header of a propnet
        return _saved(np.frombuffer(_damage_json(array.tobytes(), chance), np.uint8))
    match chance.randrange(6):
        case 0:
            return _saved(array.reshape(-1)[: chance.randrange(array.size + 1)])
        case 1:
            return _saved(array.T if array.ndim > 1 else array[..., None])
        case 2:
            with np.errstate(all="ignore"):
                return _saved(array.astype(chance.choice(("<f8", "<f4", "<i4", "<i8", "|b1", "<u4", ">f4"))))
        case 3 if array.size > 1:
            return _saved(np.concatenate([array, array[::-1]]) if array.ndim else array)
        case _:
            changed = array.reshape(-1).copy()
            values = (np.nan, np.inf, -np.inf, -1, 0, 1, 2, 1e38) if array.dtype.kind == "f" else (0, 1, -1, 2**31 - 1)
            if changed.size:
                with np.errstate(all="ignore"):
                    value = np.array(chance.choice(values)).astype(array.dtype)
                    changed[chance.randrange(changed.size)] = value
            return _saved(changed.reshape(array.shape))


def _saved(array: Any) -> bytes:
    member = io.BytesIO()
    np.lib.format.write_array(member, np.asarray(array), version=(1, 0), allow_pickle=False)
    return member.getvalue()


_CHANGES: Mapping[str, Callable[[bytes, random.Random], bytes]] = {
    ".json": _damage_json,
    ".csv": _damage_csv,
    ".npz": _damage_arrays,
    ".toml": sheets.mutate,
    ".gdl": sheets.mutate,
}


def copy(pristine: pathlib.Path, place: pathlib.Path) -> pathlib.Path:
    """Replaces `place` by a copy of an undamaged folder."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(pristine, place)
    return place
