"""Unrolled trees cached on disk, so that the next call with the same large game starts at once.

The key is a digest of the propnet, of how it is unrolled, and of the code that unrolls it. A file is a description in
JSON and arrays in the format .npy; it is read only if its digest is right, and its arrays are mapped, not copied. A
file that cannot be read or written is not an error: the game is then unrolled.
"""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.resources
import io
import json
import os
import pathlib
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gdlx.envs.trees import game_tree
from gdlx.envs.trees.factored import ragged, terminal_blocks
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import bounded_files, errors
from gdlx.propnet.io import array_files, cache, files

_TREES = "trees"
_SECONDS = 5.0  # trees that took less processor time to unroll are not cached
_HEADER_BYTES = 64  # the length of the description, as text; arrays are aligned to this

# What a tree consists of; everything else in it is an array, a tuple, or a value of JSON.
_PARTS: dict[str, Any] = {
    part.__name__: part
    for part in (
        game_tree.GameTree,
        game_tree.Player,
        game_tree.InfosetTree,
        game_tree.Orbits,
        game_tree.Terminals,
        game_tree.Counts,
        game_tree.Level,
        game_tree.Leaves,
        terminal_blocks.TerminalBlocks,
        ragged.Ragged,
    )
}


def load_or_unroll(
    propnet: propnet.PropNet, options: dict[str, Any], unroll: Callable[[], game_tree.GameTree]
) -> game_tree.GameTree:
    """Loads the tree of a propnet from the cache, or unrolls it, and caches it if that took long.

    Args:
      propnet: the propnet of the game.
      options: how it is unrolled, as values of JSON: trees of other options are other trees.
      unroll: unrolls it in this way.
    """
    folder = cache.private_folder(_TREES)
    if folder is None or not cache.limit_bytes():
        return unroll()
    key = _key(propnet, options)
    path = folder / f"{key}.tree"
    tree = _load(path, key, propnet.name)
    if tree is not None:
        return tree
    begun = time.process_time()
    tree = unroll()
    if time.process_time() - begun >= _SECONDS:
        _save(path, key, tree)
    return tree


def entries() -> list[tuple[pathlib.Path, int]]:
    """Files of trees with their sizes, the least recently used first."""
    return cache.entries_of(_TREES)


def clear() -> int:
    """Removes all trees; returns the number of bytes freed."""
    return cache.remove(entries())


def _key(propnet: propnet.PropNet, options: dict[str, Any]) -> str:
    digest = hashlib.sha256(_code_digest())
    digest.update(np.__version__.encode())
    digest.update(json.dumps(options, sort_keys=True).encode())
    digest.update(files.to_bytes(propnet))
    return digest.hexdigest()[:40]


@functools.cache
def _code_digest() -> bytes:
    """Digest of the code that unrolls: another version may number information sets in another order."""
    folders = (importlib.resources.files("gdlx") / name for name in ("propnet", "envs"))
    return b"".join(map(cache.digest_of_code, folders))


def _load(path: pathlib.Path, key: str, name: str) -> game_tree.GameTree | None:
    try:
        content = cache.map_checked(path, key)
        tree = None if content is None else parse(content)
        if tree is not None:
            os.utime(path)  # the least recently used files are removed first
            return tree
    except FileNotFoundError:
        return None
    except (OSError, bounded_files.FileError):
        pass
    warnings.warn(f"the cached tree of {name} is damaged; it is unrolled again", errors.Remark, stacklevel=4)
    return None


def _save(path: pathlib.Path, key: str, tree: game_tree.GameTree) -> None:
    parts = list(serialise(tree))
    if sum(map(len, parts)) > cache.limit_bytes():
        return
    with contextlib.suppress(OSError):
        cache.write_checked(path, key, parts)
        cache.remove_oldest(entries())


def serialise(tree: game_tree.GameTree) -> Iterator[bytes | memoryview]:
    """The bytes of a tree; arrays are not copied."""
    arrays: dict[int, np.ndarray[Any, Any]] = {}  # by identity: some are in several places

    def describe(part: Any) -> Any:
        if isinstance(part, np.ndarray):
            arrays.setdefault(id(part), part)
            return {"array": list(arrays).index(id(part))}
        if type(part).__name__ in _PARTS:
            return {
                "part": type(part).__name__,
                "fields": {name: describe(getattr(part, name)) for name in _fields(part)},
            }
        if isinstance(part, tuple | list):
            return [describe(item) for item in part]
        assert part is None or isinstance(part, bool | int | float | str), type(part)
        return part

    description = describe(tree)
    pieces = [_npy(array) for array in arrays.values()]
    sizes = [sum(map(len, piece)) for piece in pieces]
    text = json.dumps({"tree": description, "arrays": sizes}).encode()
    yield b"%d" % len(text) + b" " * (_HEADER_BYTES - len(b"%d" % len(text)))
    yield text + b" " * (-len(text) % _HEADER_BYTES)
    for piece, size in zip(pieces, sizes, strict=True):
        yield from piece
        yield bytes(-size % _HEADER_BYTES)


def parse(content: memoryview) -> game_tree.GameTree:
    """The tree of the bytes of `serialise`; its arrays are parts of them. Raises FileError if they are damaged."""
    damaged = bounded_files.FileError("it is not an unrolled tree", "remove it")
    try:
        length = int(bytes(content[:_HEADER_BYTES]))
        described = bounded_files.parse_json(bytes(content[_HEADER_BYTES : _HEADER_BYTES + length]))
        place, arrays = _HEADER_BYTES + _aligned(length), []
        for size in described["arrays"]:
            arrays.append(array_files.parse_array(content[place : place + size], "of a tree"))
            place += _aligned(size)
        tree = _build(described["tree"], arrays)
    except (ValueError, KeyError, IndexError, TypeError):
        raise damaged from None
    if not isinstance(tree, game_tree.GameTree):
        raise damaged
    return tree


def _build(described: Any, arrays: list[Any]) -> Any:
    if isinstance(described, list):
        return tuple(_build(item, arrays) for item in described)
    if not isinstance(described, dict):
        return described
    if "array" in described:
        return arrays[described["array"]]
    return _PARTS[described["part"]](**{name: _build(value, arrays) for name, value in described["fields"].items()})


def _fields(part: Any) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(part)) if dataclasses.is_dataclass(part) else part._fields


def _npy(array: np.ndarray[Any, Any]) -> tuple[bytes, memoryview]:
    """The header and the data of a .npy file."""
    header = io.BytesIO()
    flat = np.ascontiguousarray(array)
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(flat))
    return header.getvalue(), flat.reshape(-1).view(np.uint8).data


def _aligned(size: int) -> int:
    return size + -size % _HEADER_BYTES
