"""Drawings of propnets: Graphviz accepts them, and they show all nodes and edges."""

import dataclasses
import re
import shutil
import subprocess

import numpy as np
import pytest

from gdlx.propnet import games
from gdlx.propnet.circuits import compiler, propnet
from gdlx.propnet.io import dot

HOSTILE = ('"]; evil [label="', "\\", "\\N\\G\\", "<b>&lt;", "a\nb\0c", "\N{SNOWMAN}", "}", "x" * 10_000)


def compiled(game: str) -> propnet.PropNet:
    return compiler.compile_rulesheet(games.load_rulesheet(game))


def drawn(text: str) -> str:
    """The SVG that Graphviz draws from a text."""
    if shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed")
    ran = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_everything_is_drawn_once() -> None:
    propnet = compiled("kuhn_poker")
    text = dot.to_dot(propnet)
    labels = re.findall(r'^  (\w+) \[label="(.*?)", ', text, re.M)
    assert len({name for name, _ in labels}) == len(labels)
    texts = [label for _, label in labels]
    assert texts.count("and") + texts.count("or") == propnet.gates
    for role in propnet.roles:
        assert {f"does {role.name} {move}" for move in role.moves} <= set(texts)
        assert {f"legal {role.name} {move}" for move in role.moves} <= set(texts)
        assert {f"sees {role.name} {percept}" for percept in role.percepts} <= set(texts)
        assert {f"goal {role.name} {value}" for value in role.goal_values} <= set(texts)
    assert {"terminal", *propnet.fluents, *(f"next {fluent}" for fluent in propnet.fluents)} <= set(texts)
    edges = re.findall(r"^  (\w+) -> (\w+)", text, re.M)
    assert len(edges) == len(propnet.gate_inputs) + len(propnet.as_circuit().outputs)
    assert {name for edge in edges for name in edge} <= {name for name, _ in labels}


def test_inversions_and_or() -> None:
    def propnet_of(gate: list[int], terminal: int) -> propnet.PropNet:
        role = propnet.Role("a", (), *2 * (np.zeros(0, np.int32), ()), np.zeros(0, np.int32))
        starts, edges = propnet.gate_arrays([tuple(gate)])
        return propnet.PropNet(
            name="two",
            roles=(role,),
            fluents=("p", "q"),
            fluent_literals=np.array([2, 4], np.int32),
            initial=np.array([True, False]),
            next=np.array([2, 5], np.int32),
            terminal=terminal,
            feedback=np.zeros(0, np.int32),
            gate_starts=starts,
            gate_inputs=edges,
        )

    one = dot.to_dot(propnet_of([3, 5], 7))
    assert 'n3 [label="or"' in one
    assert "n1 -> n3;" in one
    assert "n3 -> o2;" in one
    assert "n2 -> o1 [arrowhead=odot];" in one  # next q is not q
    assert one.count("peripheries=2") == 1
    two = dot.to_dot(propnet_of([3, 5], 6))
    assert 'n3 [label="and"' in two
    assert "n1 -> n3 [arrowhead=odot];" in two
    assert "n3 -> o2;" in two
    assert "n2 -> n3;" in dot.to_dot(propnet_of([3, 4], 7))
    assert "n3 -> o2 [arrowhead=odot];" in dot.to_dot(propnet_of([3, 4], 7))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_cannot_break_out(name: str) -> None:
    propnet = compiled("rps")
    roles = tuple(dataclasses.replace(role, name=name) for role in propnet.roles)
    fluents = tuple(f"{name}{number}" for number in range(len(propnet.fluents)))
    picture = drawn(dot.to_dot(dataclasses.replace(propnet, name=name, roles=roles, fluents=fluents)))
    assert "evil" not in re.findall(r"<title>(.*?)</title>", picture)
    assert picture.count('class="node"') == drawn(dot.to_dot(propnet)).count('class="node"')


def test_what_is_too_large_is_not_drawn() -> None:
    propnet = compiled("connect_four")
    with pytest.raises(dot.TooLargeToDrawError, match=r"connect_four has .* raise the limit \(now 100\)"):
        dot.to_dot(propnet, limit=100)
    assert dot.to_dot(propnet, limit=10**6)
