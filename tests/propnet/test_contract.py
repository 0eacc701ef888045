"""What every game of the library must do, and what is known of some."""

import importlib
import pathlib
import pkgutil

import numpy as np
import pytest

from gdlx.propnet import games, library
from gdlx.propnet.checks import by_playing, checker
from gdlx.propnet.circuits import propnet
from gdlx.propnet.io import cache
from gdlx.propnet.simulate import joint_actions, machine
from gdlx.propnet.syntax import ground_terms
from gdlx.tests.helpers import paths, support

OTHER_PARAMETERS = (
    "battleship:side=3,ships=3",
    "blind_tictactoe:bias=x",
    "blind_tictactoe:bias=x23",
    "connect_four:width=4,height=4,line=3",
    "difference:cards=5,ties=second",
    "goofspiel:cards=4,info=perfect,order=descending",
    "goofspiel:cards=8",
    "goofspiel:cards=3,order=random",
    "goofspiel:cards=3,info=perfect,order=random",
    "gops:rounds=2,extra=1",
    "gops:rounds=2,slots=yes",
    "krieg_tictactoe:size=3,line=3",
    "phantom_ttt:width=2,height=4,line=2,tries=abrupt",
    "dark_hex:columns=2,rows=2,tries=abrupt",
    "latent_tictactoe:conflict=kept",
    "leduc_poker:ranks=2,raises=1,stacks=5,fold=any,suits=hidden",
    "leduc_poker:ranks=4,raises=1",
    "liars_dice:sides=3",
    "liars_dice:dice=2,sides=2",
    "meier:truth=at_least",
    "oshi_zumo:coins=6,size=1,min_bid=2,horizon=2,alesia=true",
    "princess_and_monster:turns=2",
    "racko:slots=2,cards=6,turns=3",
    "repeated_rps:rounds=3",
    "rps:n=7",
    "simultaneous_breakthrough:width=2,height=6,rows=2",
    "smallest:players=2,numbers=3,target=30,steps=4",
)
GAMES = (*library.names(), *OTHER_PARAMETERS)
PUBLISHED = sorted(path.name for path in paths.CORPUS.glob("*") if path.suffix in (".gdl", ".kif"))


def test_no_game_is_missing() -> None:
    """Neither one that a module of the library defines, nor a rulesheet beside them."""
    modules = [module.name for module in pkgutil.iter_modules(library.__path__, f"{library.__name__}.")]
    values = [value for name in modules for value in vars(importlib.import_module(name)).values()]
    defined = {
        game.name
        for value in values
        for game in (value if isinstance(value, tuple) else (value,))
        if isinstance(game, library.Game)
    }
    sheets = {path.stem for path in pathlib.Path(library.__path__[0]).glob("sheets/*.gdl")}
    assert len(sheets) >= 7
    assert sheets < defined
    assert defined == set(library.names())
    assert len(defined) >= 24


def test_every_parameter_is_changed_once() -> None:
    changed = set()
    for spec in OTHER_PARAMETERS:
        game, settings = library.parse_spec(spec)
        changed |= {(game.name, key) for key, value in settings.items() if value != game.parameters[key].default}
    assert changed == {(name, key) for name in library.names() for key in library.get(name).parameters}


@pytest.mark.parametrize("game", GAMES)
def test_a_game_is_clean(game: str) -> None:
    report = checker.check(games.find_source(game))
    assert [problem.render() for problem in report.diagnostics] == []


def compare(game: str, states: int, small: int) -> None:
    sheet = games.load_rulesheet(game)
    twins = support.RulesAndPropnet(sheet, cache.load_or_compile(sheet))
    if twins.compare_all(small) is None:
        twins.compare_random(states)


@pytest.mark.parametrize("game", GAMES)
def test_the_network_plays_by_the_rules(game: str) -> None:
    """On every reachable state of a small game, else on the first ones and on 100 of random play."""
    compare(game, 100, small=150)


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
def test_the_network_plays_by_the_rules_for_long(game: str) -> None:
    compare(game, 10_000, small=6_000)


LONGEST = ("Qyshinsu_dresden.gdl", "wargame01.kif")  # to compile
SHORT = [name for name in PUBLISHED if name not in LONGEST][::2]


@pytest.mark.parametrize("name", SHORT or [pytest.param("", marks=pytest.mark.skip("the corpus is not there"))])
def test_networks_of_other_authors_play_by_the_rules(name: str) -> None:
    sheet = games.load_rulesheet(str(paths.CORPUS / name))
    twins = support.RulesAndPropnet(sheet, cache.load_or_compile(sheet))
    if twins.compare_all(30) is None:
        twins.compare_random(40)


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_networks_of_other_authors_play_by_the_rules_for_long(name: str) -> None:
    sheet = games.load_rulesheet(str(paths.CORPUS / name))
    support.RulesAndPropnet(sheet, cache.load_or_compile(sheet)).compare_random(2_000, seed=1)


@pytest.mark.parametrize("game", GAMES)
def test_a_game_plays_as_it_should(game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_playing, "_MAX_NODES", 10_000)
    findings = by_playing.check_by_playing(games.compile_game(game))
    # A goal that few of the sampled matches reach is not a problem; all other problems are.
    faults = [problem.render() for problem in findings.problems if problem.code != "never-wins"]
    assert faults == []
    assert findings.matches > 0
    if findings.exhaustive:
        assert findings.problems == ()


@pytest.mark.parametrize(
    ("game", "states", "terminals"),
    [
        ("kuhn_poker", 58, 30),  # OpenSpiel
        ("leduc_poker", 9_457, 5_520),  # OpenSpiel
        ("goofspiel:cards=4", None, 576),  # OpenSpiel, imperfect information
        ("goofspiel", None, 14_400),
        ("tictactoe", 5_478, 958),  # positions counted once
    ],
)
def test_known_sizes(game: str, states: int | None, terminals: int) -> None:
    findings = by_playing.check_by_playing(games.compile_game(game))
    assert findings.exhaustive
    assert findings.matches == terminals
    assert states in (None, findings.states)


@pytest.mark.parametrize(
    ("game", "sets", "terminals"),
    [
        ("kuhn_poker", 12, 30),  # Kuhn 1950
        ("leduc_poker", 936, 5_520),  # OpenSpiel
        ("goofspiel:cards=4", 162, 576),
        ("goofspiel", 2_124, 14_400),
        ("simple_poker", 4, 8),
        ("liars_dice", 12_288, 147_420),
    ],
)
def test_known_numbers_of_information_sets(game: str, sets: int, terminals: int) -> None:
    assert decision_sets(games.compile_game(game)) == (sets, terminals)


def test_turns_of_liars_dice() -> None:
    """OpenSpiel's 24 576: half of them come after the highest bid, where calling it a lie is the only move."""
    assert decision_sets(games.compile_game("liars_dice"), waiting="noop") == (24_576, 147_420)


def decision_sets(propnet: propnet.PropNet, waiting: str | None = None) -> tuple[int, int]:
    """Histories of (own move, percepts, own legal moves) after which a player has a choice; and terminals.

    With `waiting`, also those after which its only move is another one than that.
    """
    game = machine.StateMachine(propnet)
    sizes = [len(role.moves) for role in propnet.roles]
    percepts = [len(role.percepts) for role in propnet.roles]
    state = game.initial(1)
    known: list[list[tuple[object, ...]]] = [[()] for _ in propnet.roles]
    histories: set[tuple[int, tuple[object, ...]]] = set()
    terminals = 0
    while state.shape[1]:
        terminal, _ = game.terminal_and_goals(state)
        terminals += int(terminal.sum())
        legal = game.legal(state) & ~terminal
        own_legal = machine.split_rows(legal, sizes)
        for number, role in enumerate(propnet.roles):
            rows = own_legal[number].T
            known[number] = [(*past, row.tobytes()) for past, row in zip(known[number], rows, strict=True)]
            if not role.is_random:
                choice = rows.sum(axis=1) > 1
                if waiting is not None:
                    choice |= rows.any(axis=1) & ~rows[:, role.moves.index(waiting)]
                histories |= {(number, past) for past, has in zip(known[number], choice, strict=True) if has}
        parents, chosen = joint_actions.enumerate_joint_actions(legal, sizes)
        state, seen = game.step(state[:, parents], joint_actions.one_hot_rows(chosen, sizes))
        own_seen = machine.split_rows(seen, percepts)
        known = [
            [
                (*known[number][parent], int(move), row.tobytes())
                for parent, move, row in zip(parents, chosen[number], own_seen[number].T, strict=True)
            ]
            for number in range(len(propnet.roles))
        ]
    return len(histories), terminals


def test_numbering_is_by_text_and_roles_are_in_file_order() -> None:
    propnet = games.compile_game("leduc_poker")
    assert [role.name for role in propnet.roles if not role.is_random] == ["player1", "player2"]
    for role in propnet.roles:
        assert list(role.moves) == sorted(role.moves)
        assert list(role.percepts) == sorted(role.percepts)
        assert list(role.goal_values) == sorted(role.goal_values)
        assert all(ground_terms.to_text(ground_terms.from_text(move)[0]) == move for move in role.moves)
    assert list(propnet.fluents) == sorted(propnet.fluents)
    assert propnet.initial.dtype == np.bool_
