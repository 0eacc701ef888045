"""Writes docs/reference/api.md and docs/reference/cli.md from docstrings and from `--help`: `make reference`."""

import ast
import importlib
import inspect
import pathlib
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import typer.testing

import gdlx
from gdlx import cli

PACKAGES = ("gdlx", *(f"gdlx.{name}" for name in ("propnet", "envs", "solvers", "nets", "players", "experiments")))
FOLDER = pathlib.Path(__file__).parent / "reference"
_SECTIONS = ("Args", "Returns", "Raises", "Attributes", "Yields")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_QUOTED = re.compile(r"(: |-> )'([^']*)'")  # an annotation that is a string
_MODULE = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])")  # of a class, which is shown without it


def public_symbols() -> Iterator[tuple[str, str, Any]]:
    """Every public name as (package, name, object); sub-packages of `gdlx` are left out."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in dir(module):
            value = getattr(module, name)
            if not inspect.ismodule(value) and not name.startswith("__"):
                yield package, name, value


def api() -> str:
    """The page of all public names."""
    lines = [
        "# API reference",
        "",
        "Generated from the docstrings by `make reference`: the names that packages export. Import them from there,",
        "not from the modules behind it. Examples are doctests of those modules, and may use other names from there.",
    ]
    shown: dict[int, str] = {}
    last = ""
    for package, name, value in public_symbols():
        if package != last:
            lines += ["", f"## `{package}`", "", _one_paragraph(importlib.import_module(package).__doc__ or "")]
            last = package
        full = f"{package}.{name}"
        lines += ["", f"### `{full}`", ""]
        if id(value) in shown:
            same = f"The same as [`{shown[id(value)]}`](#{_anchor(shown[id(value)])})"
            lines.append(f"{same}: {_one_paragraph(inspect.getdoc(value) or '')}")
            continue
        shown[id(value)] = full
        lines += _described(name, value)
    return "\n".join(lines) + "\n"


def _anchor(full: str) -> str:
    return full.replace(".", "").lower()


def _one_paragraph(doc: str) -> str:
    return " ".join(inspect.cleandoc(doc).split("\n\n")[0].split())


def _described(name: str, value: Any) -> list[str]:
    lines = ["```python", f"{'class ' if inspect.isclass(value) else ''}{name}{_signature(value)}", "```", ""]
    lines += _markdown(inspect.getdoc(value) or "")
    if inspect.isclass(value):
        lines += _commented_fields(value)
        for method, member in _methods(value):
            doc = _one_paragraph(inspect.getdoc(member) or "")
            call = "" if isinstance(member, property) or not callable(member) else _signature(member)
            lines.append(f"- `{method}{call}`{': ' + doc if doc else ''}")
    return lines


def _commented_fields(kind: type) -> list[str]:
    """The fields that comments explain, as a list like that of a docstring with a section of attributes."""
    if "__annotations__" not in vars(kind) or "Attributes" in (kind.__doc__ or ""):
        return []
    source = inspect.getsource(kind)
    [body] = [node.body for node in ast.parse(textwrap.dedent(source)).body if isinstance(node, ast.ClassDef)]
    texts = textwrap.dedent(source).splitlines()
    items = []
    for node in body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and not node.target.id.startswith("_"):
            comment = texts[(node.end_lineno or 0) - 1].encode()[node.end_col_offset or 0 :].decode().strip()
            items.append(f"- {node.target.id}{comment.replace('# ', ': ', 1)}")
    return ["**Attributes**", "", *items, ""] if any(":" in item for item in items) else []


def _methods(kind: type) -> list[tuple[str, Any]]:
    """Public methods and properties that a class of gdlx defines itself."""
    return [
        (name, member if isinstance(member, property) else getattr(kind, name))
        for name, member in sorted(vars(kind).items())
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, (property, classmethod)))
    ]


def _signature(value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(..)"
    text = _QUOTED.sub(r"\1\2", _ADDRESS.sub("", str(signature)))
    return _MODULE.sub("", text)


def _markdown(doc: str) -> list[str]:
    """A docstring with its sections as lists and its examples as blocks."""
    lines: list[str] = []
    section = example = False
    for line in doc.splitlines():
        is_code = line.lstrip().startswith((">>>", "..."))
        if is_code and not example:
            lines += ["```python"]
            example = True
        elif example and not line.strip():
            lines += ["```"]
            example = False
        if line.rstrip(":") in _SECTIONS and line.endswith(":"):
            section = True
            lines += [f"**{line.rstrip(':')}**", ""]
        elif section and re.match(r"  \S", line):
            lines.append(f"- {line.strip()}")
        else:
            section = section and (not line or line.startswith("  "))
            lines.append(line.strip() if section else line)
    return [*lines, *(["```"] if example else []), ""]


def command_line() -> str:
    """The page of all commands."""
    runner = typer.testing.CliRunner()
    lines = ["# Command-line reference", "", "Generated from `gdlx COMMAND --help` by `make reference`."]
    names = [info.callback.__name__ for info in cli.app.registered_commands if info.callback is not None]
    for arguments in ([], *([name] for name in names)):
        text = runner.invoke(cli.app, [*arguments, "--help"], prog_name="gdlx", terminal_width=100).output
        lines += ["", f"## `{' '.join(['gdlx', *arguments])}`", "", "```", text.strip(), "```"]
    return "\n".join(lines) + "\n"


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for name, text in (("api.md", api()), ("cli.md", command_line())):
        (FOLDER / name).write_text(text)
    print(f"gdlx {gdlx.__version__}: wrote {FOLDER}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
