"""Saves and loads propnets as .npz (compact) or .json (readable) files; see docs/reference/file-formats.md.

Files may be untrusted. Nothing in them is executed, their size is bounded before anything is unpacked, and every
propnet that loads can be played, because `validate` has checked it.
"""

import io
import itertools
import json
import pathlib
import zipfile
from typing import Any

import numpy as np

from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import atomic_files, bounded_files
from gdlx.propnet.io import array_files, checked_fields, ggp_json, validity
from gdlx.propnet.syntax import diagnostics

PropNetFileError = checked_fields.PropNetFileError
validate = validity.validate

FORMAT, VERSION = "gdlx-network", 1

_ARRAYS = {  # member of a .npz -> its element type there
    "header": "|u1",
    "legal": "<i4",
    "sees": "<i4",
    "goal": "<i4",
    "fluent_literals": "<i4",
    "initial": "|b1",
    "next": "<i4",
    "terminal": "<i4",
    "feedback": "<i4",
    "gate_starts": "<i4",
    "gate_inputs": "<i4",
}
_OF_ROLES = {"legal": "moves", "sees": "percepts", "goal": "goal_values"}  # array -> field with the names of its rows


def save_propnet(propnet: propnet.PropNet, path: checked_fields.Path) -> None:
    """Saves a propnet to a file. Writing is atomic, and equal propnets give equal bytes.

    Args:
      propnet: the propnet.
      path: a file name that ends in .npz or .json, which selects the format.

    Returns:
      Nothing; the file is there once it returns, whole.

    Raises:
      PropNetFileError: if the suffix is unknown, or the propnet is not valid.

    >>> import tempfile
    >>> import gdlx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_propnet(gdlx.compile("rps"), f"{folder}/rps.npz")
    """
    with checked_fields.name_file_in_errors(path):
        writer = {".npz": _to_npz, ".json": _to_json}.get(_suffix(path))
        if writer is None:
            raise _unknown_suffix(path)
        validate(propnet)
        atomic_files.write_atomically(path, writer(propnet))


def load_propnet(path: checked_fields.Path, *, max_bytes: int = checked_fields.MAX_BYTES) -> propnet.PropNet:
    """Loads a propnet from a file.

    Args:
      path: a .npz or .json file of `save_propnet`, or a .json file in the layout of `gdlx.propnet.io.ggp_json`.
      max_bytes: limit on the size of the file, and of what it unpacks to.

    Returns:
      The propnet, which is valid: it can be played.

    Raises:
      PropNetFileError: if the file is not a valid propnet, or is larger than `max_bytes`.

    >>> import tempfile
    >>> import gdlx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_propnet(gdlx.compile("kuhn_poker"), f"{folder}/kuhn.json")
    ...     load_propnet(f"{folder}/kuhn.json")
    PropNet(kuhn_poker: 2 players, 17 registers, 42 gates)
    """
    with checked_fields.name_file_in_errors(path):
        if _suffix(path) not in (".npz", ".json"):
            raise _unknown_suffix(path)
        data = bounded_files.read_bytes(path, max_bytes)
        if _suffix(path) == ".npz":
            propnet = _from_npz(data, max_bytes)
        else:
            parsed = checked_fields.parse_json(data)
            if ggp_json.is_ggp_json(parsed):
                return ggp_json.propnet_from_json(parsed, pathlib.Path(path).stem)
            propnet = _from_json(parsed)
        validate(propnet)
        return propnet


def save_cached(propnet: propnet.PropNet, path: checked_fields.Path, key: str) -> None:
    """Saves a propnet as .npz together with the key of the cache that it was compiled for."""
    with checked_fields.name_file_in_errors(path):
        validate(propnet)
        atomic_files.write_atomically(path, _to_npz(propnet, key))


def to_bytes(propnet: propnet.PropNet) -> bytes:
    """The content of a .npz file: equal propnets give equal bytes.

    >>> import gdlx
    >>> to_bytes(gdlx.compile("rps")) == to_bytes(gdlx.compile("rps"))
    True
    """
    return _to_npz(propnet)


def parse_cached(data: bytes, key: str) -> propnet.PropNet:
    """Parses a file of `save_cached`; raises PropNetFileError if it was saved for another key."""
    propnet = _from_npz(data, bounded_files.MAX_BYTES, key)
    validate(propnet)
    return propnet


def _suffix(path: checked_fields.Path) -> str:
    return pathlib.PurePath(path).suffix.lower()


def _unknown_suffix(path: checked_fields.Path) -> PropNetFileError:
    suffix = _suffix(path)
    problem = f"files ending in {suffix} are not propnets" if suffix else "its name has no suffix"
    return PropNetFileError(problem, "name it .npz or .json")


def _check_format(header: checked_fields.Fields) -> None:
    form = header.value("format", str)
    if form != FORMAT:
        raise PropNetFileError(f"its format is {diagnostics.shorten(form)!r}, not {FORMAT!r}")
    if header.value("version", int) != VERSION:
        hint = f"use the gdlx that wrote it, or {checked_fields.REWRITE_HINT}"
        raise PropNetFileError(f"it has another version of the format than {VERSION}", hint)


def _names_of(role: propnet.Role) -> dict[str, Any]:
    return {"name": role.name, **{names: getattr(role, names) for names in _OF_ROLES.values()}}


def _role(fields: checked_fields.Fields, legal: propnet.Ints, sees: propnet.Ints, goal: propnet.Ints) -> propnet.Role:
    return propnet.Role(
        name=fields.value("name", str),
        moves=tuple(fields.values("moves", str)),
        legal=legal,
        percepts=tuple(fields.values("percepts", str)),
        sees=sees,
        goal_values=tuple(fields.values("goal_values", int)),
        goal=goal,
    )


def _to_json(propnet: propnet.PropNet) -> bytes:
    roles = [{**_names_of(role), **{k: getattr(role, k).tolist() for k in _OF_ROLES}} for role in propnet.roles]
    fields = {
        "format": FORMAT,
        "version": VERSION,
        "name": propnet.name,
        "roles": roles,
        "fluents": propnet.fluents,
        "fluent_literals": propnet.fluent_literals.tolist(),
        "initial": propnet.initial.tolist(),
        "next": propnet.next.tolist(),
        "terminal": propnet.terminal,
        "feedback": propnet.feedback.tolist(),
        "gates": propnet.as_circuit().gates,
    }
    lines = (f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in fields.items())
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode("ascii")


def _from_json(data: object) -> propnet.PropNet:
    fields = checked_fields.Fields(data, "the file")
    _check_format(fields)
    gates = fields.values("gates", list)
    inputs = [checked_fields.require_type(lit, int, "a literal of a gate") for gate in gates for lit in gate]
    return propnet.PropNet(
        name=fields.value("name", str),
        roles=tuple(_role(role, *map(role.literals, _OF_ROLES)) for role in fields.objects("roles")),
        fluents=tuple(fields.values("fluents", str)),
        fluent_literals=fields.literals("fluent_literals"),
        initial=np.array(fields.values("initial", bool), np.bool_),
        next=fields.literals("next"),
        terminal=fields.value("terminal", int),
        feedback=fields.literals("feedback"),
        gate_starts=np.cumsum([0, *map(len, gates)], dtype=np.int32),
        gate_inputs=checked_fields.int32(inputs, "'gates'"),
    )


def _to_npz(propnet: propnet.PropNet, key: str | None = None) -> bytes:
    header = {
        **({} if key is None else {"key": key}),
        "format": FORMAT,
        "version": VERSION,
        "name": propnet.name,
        "roles": [_names_of(role) for role in propnet.roles],
        "fluents": propnet.fluents,
    }
    arrays: dict[str, Any] = {
        "header": np.frombuffer(json.dumps(header).encode("ascii"), np.uint8),
        "terminal": [propnet.terminal],
        **{key: np.concatenate([getattr(role, key) for role in propnet.roles]) for key in _OF_ROLES},
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, kind in _ARRAYS.items():
            member = io.BytesIO()
            array = np.asarray(arrays[name] if name in arrays else getattr(propnet, name), kind)
            np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))  # no clock: equal bytes each time
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, member.getvalue())
    return packed.getvalue()


def _from_npz(data: bytes, max_bytes: int, key: str | None = None) -> propnet.PropNet:
    try:
        members = array_files.read_members(io.BytesIO(data), max_bytes, _ARRAYS)
        arrays = {name: _array(members[name], kind, name) for name, kind in _ARRAYS.items()}
    except bounded_files.FileError as error:
        wrong_name = f"if it is a .json file, name it so; otherwise {checked_fields.REWRITE_HINT}"
        raise PropNetFileError(error.problem, wrong_name if error.hint == array_files.HINT else error.hint) from None
    header = checked_fields.Fields(checked_fields.parse_json(arrays["header"].tobytes()), "the header")
    _check_format(header)
    if key is not None and header.value("key", str) != key:
        raise PropNetFileError("it belongs to other rules, or was compiled by another version of gdlx")
    if len(arrays["terminal"]) != 1:
        raise PropNetFileError(f"array 'terminal' has {len(arrays['terminal'])} numbers, not 1")
    roles = header.objects("roles")
    rows = [_split_by_role(arrays[key], roles, key, names) for key, names in _OF_ROLES.items()]
    plain_arrays = ("fluent_literals", "initial", "next", "feedback", "gate_starts", "gate_inputs")
    return propnet.PropNet(
        name=header.value("name", str),
        roles=tuple(_role(role, *literals) for role, *literals in zip(roles, *rows, strict=True)),
        fluents=tuple(header.values("fluents", str)),
        terminal=int(arrays["terminal"][0]),
        **{key: arrays[key] for key in plain_arrays},
    )


def _array(data: bytearray, kind: str, name: str) -> Any:
    array = array_files.parse_array(data, name)
    if array.dtype != np.dtype(kind):
        raise PropNetFileError(f"array {name!r} has elements {array.dtype.str!r}, not {kind!r}")
    if array.ndim != 1:
        raise PropNetFileError(f"array {name!r} is not a plain array of rank 1 (.npy version 1.0)")
    return array


def _split_by_role(array: propnet.Ints, roles: list[checked_fields.Fields], key: str, names: str) -> list[propnet.Ints]:
    """Splits an array of all roles into one per role."""
    bounds = list(itertools.accumulate((len(role.value(names, list)) for role in roles), initial=0))
    if len(array) != bounds[-1]:
        raise PropNetFileError(f"array {key!r} has {len(array)} numbers for {bounds[-1]} {names}")
    return [array[a:b] for a, b in itertools.pairwise(bounds)]
