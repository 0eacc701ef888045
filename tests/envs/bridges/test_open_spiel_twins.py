"""Games of the library that are games of OpenSpiel, walked with OpenSpiel's own in lockstep, history by history.

At every history both have the same moves, the same players and the same probabilities, and at the end the same
returns. Two histories are in the same information set of one game if and only if they are in the other.
"""

import dataclasses
import itertools
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gdlx.envs import host, payoffs
from gdlx.envs.trees import unroll
from gdlx.propnet import games
from gdlx.propnet.circuits import propnet as propnets

pyspiel = pytest.importorskip("pyspiel")

SLOW = pytest.mark.slow
History = tuple[str, ...]  # a player's moves, percepts and legal moves, step by step
Moves = dict[int, int]  # OpenSpiel's action -> our number of the move
ToAction = Callable[[str, tuple[int, ...]], int]  # OpenSpiel's action from the name of our move and its arguments


@dataclasses.dataclass
class Counts:
    terminals: int = 0
    information_sets: int = 0  # where a player of OpenSpiel's game moves


class Lockstep:
    """Walks both games. A move `noop` of ours is none of theirs; theirs has no steps in which all wait."""

    def __init__(self, spec: str, spiel: str, to_action: ToAction, state_text: Callable[[str], str] = str) -> None:
        self.propnet = games.compile_game(spec)
        self.nodes = host.HostEnv(self.propnet, payoffs.infer_payoffs(self.propnet), max_steps=10_000)
        self.spiel = pyspiel.load_game(spiel)
        self.state_text = state_text
        self.players = range(len(self.propnet.players))
        chance = [role for role in self.propnet.roles if role.is_random]
        self.actions = [self._actions(role, to_action) for role in (*self.propnet.players, *chance)]
        self.counts = Counts()
        self.theirs: dict[tuple[int, History], str] = {}
        self.ours: dict[tuple[int, str], History] = {}

    @staticmethod
    def _actions(role: propnets.Role, to_action: ToAction) -> dict[int, int]:
        """Our number of a move -> OpenSpiel's action."""
        named = ((n, re.findall(r"[\w-]+", text)) for n, text in enumerate(role.moves))
        return {n: to_action(words[0], tuple(map(int, words[1:]))) for n, words in named if words[0] != "noop"}

    def walk(self, choose: Callable[[list[Any]], list[Any]] = list) -> Counts:
        """Walks all histories, or those that `choose` takes from the options at each node."""
        start = self.nodes.position(self.propnet.initial.tobytes())
        work = [(start, tuple((str(legal),) for legal in start.legal), self.spiel.new_initial_state())]
        while work:
            work += choose(list(self._children(*work.pop())))
        self.counts.information_sets = len(self.ours)
        return self.counts

    def _children(self, position: host.Position, views: tuple[History, ...], state: Any) -> Iterator[Any]:
        if position.terminal:
            assert state.is_terminal()
            self.counts.terminals += 1
            assert [goal / 50 - 1 for goal in position.goals] == state.returns()
            return
        options = [self._options(player, legal) for player, legal in enumerate((*position.legal, position.chance))]
        movers = [player for player in self.players if options[player]]
        if state.is_terminal():  # what is left of ours is forced
            assert all(len(legal) == 1 for legal in position.legal)
        elif movers:
            self._compare_decisions(options, movers, views, state)
        for joint in itertools.product(*position.legal):
            after = state
            if movers and not state.is_terminal():
                chosen = [self.actions[player][joint[player]] for player in movers]
                after = state.clone()
                after.apply_actions(chosen) if len(chosen) > 1 else after.apply_action(chosen[0])
            yield from self._after_chance(position, joint, options[-1], views, after)

    def _options(self, player: int, legal: tuple[int, ...]) -> Moves:
        known = self.actions[player] if player < len(self.actions) else {}
        return {known[n]: n for n in legal if n in known}

    def _compare_decisions(
        self, options: list[Moves], movers: list[int], views: tuple[History, ...], state: Any
    ) -> None:
        assert state.is_simultaneous_node() if len(movers) > 1 else state.current_player() == movers[0]
        for player in movers:
            assert sorted(options[player]) == state.legal_actions(player)
            text = self.state_text(state.information_state_string(player))
            assert self.theirs.setdefault((player, views[player]), text) == text
            assert self.ours.setdefault((player, text), views[player]) == views[player]

    def _after_chance(
        self, position: host.Position, joint: tuple[int, ...], chance: Moves, views: tuple[History, ...], state: Any
    ) -> Iterator[Any]:
        if state.is_chance_node():
            outcomes = dict(state.chance_outcomes())
            assert sorted(outcomes) == sorted(chance)
            assert list(outcomes.values()) == pytest.approx([1 / len(chance)] * len(chance))
            for action, move in chance.items():
                yield self._stepped(position, joint, move, views, state.child(action))
        else:
            assert len(position.chance) <= 1
            yield self._stepped(position, joint, position.chance[0] if position.chance else 0, views, state)

    def _stepped(
        self, position: host.Position, joint: tuple[int, ...], chance: int, views: tuple[History, ...], state: Any
    ) -> Any:
        registers, percepts = self.nodes.transition(position.registers, joint, chance)
        following = self.nodes.position(registers)
        events = zip(views, joint, percepts, following.legal or ((),) * len(joint), strict=True)
        return following, tuple((*view, f"{move} {seen} {legal}") for view, move, seen, legal in events), state


def oshi_zumo(_: str, numbers: tuple[int, ...]) -> int:
    return numbers[0]


def goofspiel(_: str, numbers: tuple[int, ...]) -> int:
    return numbers[0] - 1


def liars_dice(dice: int, sides: int) -> ToAction:
    def to_action(name: str, numbers: tuple[int, ...]) -> int:
        if name == "roll":
            return numbers[0] - 1
        return 2 * dice * sides if name == "call" else (numbers[0] - 1) * sides + numbers[1] - 1

    return to_action


def board(width: int) -> ToAction:
    return lambda _, numbers: (numbers[1] - 1) * width + numbers[0] - 1


def goofspiel_name(cards: int, info: str) -> str:
    return f"goofspiel(num_cards={cards},imp_info={info == 'imperfect'},points_order=random)"


def without_number_of_tries(text: str) -> str:
    """Dark hex: the line between the board and the player's tries, which is how often both have tried."""
    lines = text.split("\n")
    assert lines[-2].isdigit()
    return "\n".join([*lines[:-2], lines[-1]])


@pytest.mark.parametrize(
    ("ours", "theirs", "to_action"),
    [
        ("oshi_zumo:coins=5,size=1,min_bid=1", "oshi_zumo(coins=5,size=1,min_bid=1)", oshi_zumo),
        ("oshi_zumo:coins=5,size=0,min_bid=2", "oshi_zumo(coins=5,size=0,min_bid=2)", oshi_zumo),
        ("oshi_zumo:coins=3,size=1,horizon=4", "oshi_zumo(coins=3,size=1,horizon=4)", oshi_zumo),
        ("oshi_zumo:coins=7,size=2,min_bid=2", "oshi_zumo(coins=7,size=2,min_bid=2)", oshi_zumo),
        (
            "oshi_zumo:coins=5,size=1,min_bid=1,horizon=3,alesia=true",
            "oshi_zumo(coins=5,size=1,min_bid=1,horizon=3,alesia=True)",
            oshi_zumo,
        ),
        pytest.param(
            "oshi_zumo:coins=8,size=3,min_bid=1", "oshi_zumo(coins=8,size=3,min_bid=1)", oshi_zumo, marks=SLOW
        ),
        ("liars_dice:sides=3", "liars_dice(dice_sides=3)", liars_dice(1, 3)),
        ("liars_dice:dice=2,sides=2", "liars_dice(numdice=2,dice_sides=2)", liars_dice(2, 2)),
        pytest.param("liars_dice:dice=3,sides=2", "liars_dice(numdice=3,dice_sides=2)", liars_dice(3, 2), marks=SLOW),
        pytest.param("liars_dice:dice=2,sides=3", "liars_dice(numdice=2,dice_sides=3)", liars_dice(2, 3), marks=SLOW),
        ("goofspiel:cards=3,order=random", goofspiel_name(3, "imperfect"), goofspiel),
        ("goofspiel:cards=3,order=random,info=perfect", goofspiel_name(3, "perfect"), goofspiel),
        pytest.param("goofspiel:cards=4,order=random", goofspiel_name(4, "imperfect"), goofspiel, marks=SLOW),
        ("dark_hex:columns=2,rows=2,tries=abrupt", "dark_hex(board_size=2,gameversion=adh)", board(2)),
        (
            "dark_hex:columns=3,rows=2,tries=abrupt",
            "dark_hex(num_cols=3,num_rows=2,board_size=2,gameversion=adh)",
            board(3),
        ),
    ],
)
def test_the_same_game_as_open_spiels(ours: str, theirs: str, to_action: ToAction) -> None:
    counts = Lockstep(ours, theirs, to_action).walk()
    assert counts.terminals > 1
    assert counts == count(pyspiel.load_game(theirs))


def count(game: Any) -> Counts:
    """OpenSpiel's information sets and terminals, by its own recursion."""
    texts: set[tuple[int, str]] = set()
    work, terminals = [game.new_initial_state()], 0
    while work:
        state = work.pop()
        if state.is_terminal():
            terminals += 1
            continue
        if not state.is_chance_node():
            movers = range(game.num_players()) if state.is_simultaneous_node() else [state.current_player()]
            texts |= {(player, state.information_state_string(player)) for player in movers}
        work += [state.child(action) for action in state.legal_actions()]
    return Counts(terminals, len(texts))


@pytest.mark.parametrize(("columns", "rows"), [(2, 2), pytest.param(3, 2, marks=SLOW), pytest.param(2, 3, marks=SLOW)])
def test_classical_dark_hex_but_for_the_number_of_tries(columns: int, rows: int) -> None:
    """OpenSpiel's information states tell the number of all tries; without it they are those of the paper and ours."""
    theirs = f"dark_hex(num_cols={columns},num_rows={rows},gameversion=cdh)"
    spec = f"dark_hex:columns={columns},rows={rows}"
    counts = Lockstep(spec, theirs, board(columns), without_number_of_tries).walk()
    plain = count(pyspiel.load_game(theirs))
    assert counts.terminals == plain.terminals
    assert counts.information_sets < plain.information_sets


@pytest.mark.parametrize("tries", ["classical", "abrupt"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=SLOW), pytest.param(2, marks=SLOW)])
def test_phantom_ttt_on_two_branches_of_every_node(tries: str, seed: int) -> None:
    """OpenSpiel's board has nine cells, too many for all histories: some, of which many differ late only."""
    branch = random.Random(seed)

    def choose(options: list[Any]) -> list[Any]:
        return branch.sample(options, min(len(options), 1 + (branch.random() < 0.45)))

    twins = Lockstep(f"phantom_ttt:tries={tries}", f"phantom_ttt(gameversion={tries})", board(3))
    while twins.counts.terminals < 1_000:
        counts = twins.walk(choose)
    assert counts.information_sets > 1_000


@pytest.mark.parametrize(
    ("ours", "theirs", "to_action"),
    [
        ("goofspiel:cards=3,order=random", goofspiel_name(3, "perfect"), goofspiel),  # other information sets
        ("dark_hex:columns=2,rows=2", "dark_hex(board_size=2,gameversion=adh)", board(2)),  # other movers
        ("oshi_zumo:coins=5,size=1,min_bid=1", "oshi_zumo(coins=5,size=1,min_bid=2)", oshi_zumo),  # other moves
        ("oshi_zumo:coins=3,min_bid=1", "oshi_zumo(coins=3,min_bid=1,alesia=True)", oshi_zumo),  # other returns
    ],
)
def test_differences_are_noticed(ours: str, theirs: str, to_action: ToAction) -> None:
    with pytest.raises(AssertionError):
        Lockstep(ours, theirs, to_action).walk()


@pytest.mark.parametrize("spec", ["oshi_zumo:coins=5,size=1,min_bid=1", "liars_dice:dice=2,sides=2"])
def test_unrolled_as_many_terminals(spec: str) -> None:
    to_theirs = {"coins=": "coins=", "dice=": "numdice=", "sides=": "dice_sides="}
    name = re.sub("|".join(to_theirs), lambda match: to_theirs[match[0]], spec.replace(":", "(") + ")")
    tree = unroll.unroll(games.compile_game(spec))
    assert tree.terminals.histories.sum() == count(pyspiel.load_game(name)).terminals
