"""Agents of other people's modules: `module:Class`."""

import pathlib
import sys
from collections.abc import Iterator

import pytest

import gdlx
from gdlx.players.agents import agent, agent_registry

AGENTS = """
import dataclasses

import table_of_moves  # beside it


class Plain:
    def start_match(self, context, clock):
        return self

    def choose(self, view, clock):
        import late_table  # imported while it plays

        is_good = "(dealt jack)" not in view.percept_names
        return next(move for move, name in zip(view.legal, view.legal_names) if name in late_table.WANTED[is_good])


@dataclasses.dataclass(frozen=True)
class Stubborn:
    name: str
    move: int = 0

    def __post_init__(self):
        if self.move < 0:
            raise ValueError("no such move")

    def start_match(self, context, clock):
        return self

    def choose(self, view, clock):
        return view.legal[self.move]


class Slots(Plain):
    __slots__ = ()
    name = property(lambda self: "fixed")


class NoAgent:
    pass


NUMBER = 3
"""
TABLE = "WANTED = {True: ('bet', 'call'), False: ('check', 'fold')}"


@pytest.fixture(autouse=True)
def _folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with modules, which is the current one; nothing of them is left afterwards."""
    (tmp_path / "own" / "deep").mkdir(parents=True)
    (tmp_path / "own" / "deep" / "agents.py").write_text(AGENTS)
    (tmp_path / "table_of_moves.py").write_text("")
    (tmp_path / "late_table.py").write_text(TABLE)
    (tmp_path / "broken.py").write_text("raise RuntimeError('of\\x1b[31m its own')")
    (tmp_path / "needy.py").write_text("import nowhere_at_all")
    (tmp_path / "leaving.py").write_text("raise SystemExit(0)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("own", "table_of_moves", "late_table"):
            del sys.modules[name]


def test_an_agent_of_ones_own_plays() -> None:
    result = gdlx.compete("kuhn_poker", ["own.deep.agents:Plain", "random"], games=200, seed=1)
    assert [score.agent for score in result.scores] == ["own.deep.agents:Plain", "random"]
    assert (result.games, result.incidents) == (200, ())
    assert result.scores[0].overall.payoff.mean > 0.1  # it reads its card


def test_options_are_the_fields_of_a_dataclass() -> None:
    actual = agent_registry.make_agent("own.deep.agents:Stubborn:move=2")
    assert (actual.name, getattr(actual, "move")) == ("own.deep.agents:Stubborn:move=2", 2)  # noqa: B009


def test_the_folder_shadows_nothing_later() -> None:
    agent_registry.make_agent("own.deep.agents:Plain")
    assert sys.path[-1] == str(pathlib.Path.cwd())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "nowhere.agents:Mine",
            "there is no agent and no module 'nowhere': nowhere.py is neither in the current folder",
        ),
        ("own.deep.other:Mine", "there is no agent and no module 'own.deep.other'"),
        ("own.deep.agents:Plan", "own.deep.agents has no class Plan; there is Plain"),
        ("own.deep.agents:NoAgent", "NoAgent is not an agent: it has no method `start_match(context, clock)`"),
        ("own.deep.agents:NUMBER", "NUMBER is not an agent: it is not a class"),
        ("own.deep.agents:Stubborn:moves=2", "own.deep.agents:Stubborn has no option 'moves'; its options: move"),
        ("own.deep.agents:Stubborn:move=-1", "own.deep.agents:Stubborn cannot be made: ValueError: no such move"),
        ("own.deep.agents:Plain:move=1", "only a dataclass with the field `name: str` has options"),
        ("own.deep.agents:Slots", "own.deep.agents:Slots cannot be made: AttributeError"),
        ("table_of_moves:Mine", "table_of_moves has no class Mine; there is no agent in it"),
        ("broken:Mine", "the module broken cannot be imported: RuntimeError: of"),
        ("needy:Mine", "the module needy cannot be imported: it needs nowhere_at_all, which is not there"),
        ("leaving:Mine", "the module leaving cannot be imported: SystemExit: 0"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(agent.AgentError) as caught:
        agent_registry.make_agent(text)
    assert message in str(caught.value)
    assert "\x1b" not in str(caught.value)
