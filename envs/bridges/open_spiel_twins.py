"""Which games of the library are games of OpenSpiel, and a walk through both that visits all information sets.

A state of OpenSpiel has all that a policy of OpenSpiel may ask for, which a text cannot give: the walk pairs every
information set of ours with the first state of OpenSpiel's game that belongs to it.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from gdlx.envs import game_facts, host
from gdlx.envs.bridges import open_spiel_game, open_spiel_tree
from gdlx.envs.trees import game_tree
from gdlx.propnet import library
from gdlx.propnet.circuits import propnet as propnets
from gdlx.propnet.common import errors

MAX_HISTORIES = 1_000_000  # which are visited one by one in Python
_TURN_BASED = "turn_based_simultaneous_game"
_WORD = re.compile(r"[\w-]+")

Settings = Mapping[str, int | str]
ToAction = Callable[[tuple[str, ...]], int]  # OpenSpiel's action from the words of a move: its name and its arguments


class TwinError(errors.UserError, ValueError):
    """A game of OpenSpiel that is not the one that was expected."""


class Twin(NamedTuple):
    """A game of OpenSpiel that is the same as one of the library, and the actions there that its moves are."""

    name: str
    to_action: ToAction

    def actions(self, role: propnets.Role) -> dict[int, int]:
        """Returns OpenSpiel's action for the number of every move of a role, without that of waiting."""
        words = ((number, tuple(_WORD.findall(text))) for number, text in enumerate(role.moves))
        return {number: self.to_action(move) for number, move in words if move[0] != "noop"}


def find_twin(spec: str) -> Twin | None:
    """Returns the game of OpenSpiel that a game of the library is; None if there is none.

    >>> find_twin("goofspiel:cards=4,order=random").name
    'goofspiel(num_cards=4,imp_info=True,points_order=random)'
    >>> find_twin("meier")
    """
    try:
        game, settings = library.parse_spec(spec)
    except library.LibraryError:
        return None
    return _TWINS[game.name](settings) if game.name in _TWINS else None


def names() -> tuple[str, ...]:
    """Returns the games of the library that have a twin, with some parameters at least."""
    return tuple(sorted(_TWINS))


def _kuhn_poker(_: Settings) -> Twin:
    cards, actions = {"jack": 0, "queen": 1, "king": 2}, {"check": 0, "fold": 0, "bet": 1, "call": 1}
    return Twin("kuhn_poker", lambda move: cards[move[1]] if move[0] == "deal" else actions[move[0]])


def _leduc_poker(settings: Settings) -> Twin | None:
    if settings != {"ranks": 3, "raises": 2, "stacks": "inf", "fold": "facing", "suits": "seen"}:
        return None
    suits, actions = {"hearts": 0, "spades": 1}, {"fold": 0, "call": 1, "raise": 2}
    return Twin(
        "leduc_poker",
        lambda move: 2 * (int(move[1]) - 1) + suits[move[2]] if move[0] == "deal" else actions[move[0]],
    )


def _liars_dice(settings: Settings) -> Twin:
    dice, sides = int(settings["dice"]), int(settings["sides"])

    def to_action(move: tuple[str, ...]) -> int:
        match move:
            case ("roll", face):
                return int(face) - 1
            case ("bid", count, face):
                return (int(count) - 1) * sides + int(face) - 1
        return 2 * dice * sides  # calls the last bid a lie

    return Twin(f"liars_dice(numdice={dice},dice_sides={sides})", to_action)


def _goofspiel(settings: Settings) -> Twin:
    hidden = settings["info"] == "imperfect"
    name = f"goofspiel(num_cards={settings['cards']},imp_info={hidden},points_order={settings['order']})"
    return Twin(name, lambda move: int(move[1]) - 1)


def _oshi_zumo(settings: Settings) -> Twin:
    shared = ",".join(f"{key}={settings[key]}" for key in ("coins", "size", "min_bid", "horizon"))
    alesia = settings["alesia"] == "true"
    return Twin(f"oshi_zumo({shared},alesia={alesia})", lambda move: int(move[1]))


def _dark_hex(settings: Settings) -> Twin:
    columns, rows = int(settings["columns"]), int(settings["rows"])
    version = "adh" if settings["tries"] == "abrupt" else "cdh"
    return Twin(f"dark_hex(num_cols={columns},num_rows={rows},gameversion={version})", _cell(columns))


def _phantom_ttt(settings: Settings) -> Twin | None:
    if (settings["width"], settings["height"], settings["line"]) != (3, 3, 3):
        return None
    return Twin(f"phantom_ttt(gameversion={settings['tries']})", _cell(3))


def _cell(columns: int) -> ToAction:
    return lambda move: (int(move[2]) - 1) * columns + int(move[1]) - 1


_TWINS: dict[str, Callable[[Settings], Twin | None]] = {
    "dark_hex": _dark_hex,
    "goofspiel": _goofspiel,
    "kuhn_poker": _kuhn_poker,
    "leduc_poker": _leduc_poker,
    "liars_dice": _liars_dice,
    "oshi_zumo": _oshi_zumo,
    "phantom_ttt": _phantom_ttt,
}


# ---- the walk


class Decision(NamedTuple):
    """An information set with a choice, and a state of OpenSpiel's game that belongs to it.

    Where OpenSpiel tells apart what our player cannot, as in classical dark hex, there is one for each of its
    information states.
    """

    player: int
    text: str  # as `policy_tables.information_state_strings` has it
    state: Any
    actions: dict[int, int]  # OpenSpiel's action -> the number of ours


class _Rules:
    """A game of the library, node by node. Its actions are numbers of OpenSpiel's."""

    def __init__(self, propnet: propnets.PropNet, twin: Twin) -> None:
        facts = game_facts.probe(propnet)
        self._nodes = host.HostEnv(propnet, facts.payoffs(), max_steps=10 * facts.step_capacity)
        self._actions = [twin.actions(role) for role in propnet.players]
        self._chance = [twin.actions(role) for role in propnet.roles if role.is_random]
        self._names = [role.name for role in propnet.players]
        self.start: Any = self._nodes.start

    def is_over(self, node: host.Node) -> bool:
        return node.is_over

    def deciders(self, node: host.Node) -> dict[int, dict[int, int]]:
        """Players with a choice, and for each OpenSpiel's actions with our numbers."""
        return {
            player: {self._actions[player][n]: n for n in node.position.legal[player] if n in self._actions[player]}
            for player in node.deciders
        }

    def text(self, node: host.Node, player: int) -> str:
        return f"{self._names[player]}\n{node.views[player]}"

    def after(self, node: host.Node, joint: Mapping[int, int]) -> host.Node:
        deciders = self.deciders(node)
        actions = tuple(
            deciders[player][joint[player]] if player in joint else legal[0]
            for player, legal in enumerate(node.position.legal)
        )
        return self._nodes.apply_actions(node, actions)

    def after_chance(self, node: host.Node) -> dict[int, host.Node]:
        return {self._chance[0][move]: self._nodes.apply_chance(node, move) for move in node.position.chance}


class _Spiel:
    """A game of OpenSpiel, node by node."""

    def __init__(self, game: Any) -> None:
        self._game = game
        self._has_text = bool(game.get_type().provides_information_state_string)
        self.start: Any = _skip_forced(game.new_initial_state())

    def is_over(self, state: Any) -> bool:
        return bool(state.is_terminal())

    def deciders(self, state: Any) -> dict[int, dict[int, int]]:
        if state.is_chance_node():
            return {}
        players = range(self._game.num_players()) if state.is_simultaneous_node() else [state.current_player()]
        legal = {player: state.legal_actions(player) for player in players}
        return {player: {n: n for n in actions} for player, actions in legal.items() if len(actions) > 1}

    def text(self, state: Any, player: int) -> str:
        return str(state.information_state_string(player) if self._has_text else state.history_str())

    def after(self, state: Any, joint: Mapping[int, int]) -> Any:
        return _after(state, joint)

    def after_chance(self, state: Any) -> dict[int, Any]:
        return {action: _skip_forced(state.child(action)) for action, p in state.chance_outcomes() if p > 0}


def walk(reference: "_Rules | _Spiel", game: Any, *, max_histories: int = MAX_HISTORIES) -> Iterator[Decision]:
    """Walks a game and OpenSpiel's in lockstep; yields all decisions.

    Args:
      reference: `of_rules` or `of_open_spiel`, whose texts are yielded.
      game: a pyspiel.Game, the same game. It may be turn-based where the other is simultaneous.
      max_histories: limit on the histories that are visited.

    Raises:
      TwinError: the games differ.
      TooLargeError: there are more histories.
    """
    known: set[tuple[int, str, str]] = set()
    theirs = _Spiel(game)
    work = [(reference.start, _skip_forced(game.new_initial_state()))]
    visited = 0
    while work:
        node, state = work.pop()
        visited += 1
        if visited > max_histories:
            raise game_tree.TooLargeError(
                f"{game} has more than {max_histories:,} histories",
                "A policy of OpenSpiel is asked in every one of its states; write it as a table for larger games",
            )
        if reference.is_over(node) or state.is_terminal():
            _require(reference.is_over(node) == bool(state.is_terminal()), game, state)
            continue
        deciders = reference.deciders(node)
        if not deciders:
            _require(state.is_chance_node(), game, state)
            children = reference.after_chance(node)
            _require(sorted(children) == sorted(a for a, p in state.chance_outcomes() if p > 0), game, state)
            work += [(child, _skip_forced(state.child(action))) for action, child in children.items()]
            continue
        for decision in _decisions(reference, node, state, deciders, game):
            key = (decision.player, decision.text, theirs.text(decision.state, decision.player))
            if key not in known:
                known.add(key)
                yield decision
        for joint in itertools.product(*deciders.values()):
            chosen = dict(zip(deciders, joint, strict=True))
            work.append((reference.after(node, chosen), _after(state, chosen)))


def of_rules(propnet: propnets.PropNet, twin: Twin) -> _Rules:
    """Prepares a game of the library for `walk`."""
    return _Rules(propnet, twin)


def of_open_spiel(game: Any) -> _Spiel:
    """Prepares a game of OpenSpiel, or one of `open_spiel_game`, for `walk`."""
    return _Spiel(game)


def load(name: str) -> Any:
    """Loads a game of OpenSpiel by its name with parameters."""
    return open_spiel_tree.load_game(name)


def require_game(game: Any, expected: Any, spec: str) -> None:
    """Raises TwinError unless a game is the expected one of OpenSpiel, or its turn-based version."""
    if _identity(game) != _identity(expected):
        raise TwinError(f"it is a policy of OpenSpiel's {game}, and {spec} is {expected}")


def find_bridged(game: Any, propnet: propnets.PropNet) -> Any:
    """Returns what `open_spiel_game` made of the rules of a propnet, if a game is that or its turn-based version."""
    original = game
    if game.get_type().short_name == _TURN_BASED:
        original = load(str(dict(game.get_parameters()["game"])["name"]))
    if not isinstance(original, open_spiel_game.SpielGame):
        return None
    is_same = game_facts.probe(original.host.propnet).digest == game_facts.probe(propnet).digest
    return original if is_same else None


def _identity(game: Any) -> tuple[str, dict[str, Any]]:
    """The name of a game and all its parameters; those of the original if it was made turn-based."""
    parameters = dict(game.get_parameters())
    name = game.get_type().short_name
    if name == _TURN_BASED and isinstance(parameters.get("game"), dict):
        original = dict(parameters["game"])
        return str(original.pop("name")), {str(k): v for k, v in original.items()}
    parameters.pop("board_size", None)  # of dark hex: only the default of its columns and rows
    return name, parameters


def _decisions(
    reference: "_Rules | _Spiel", node: Any, state: Any, deciders: Mapping[int, dict[int, int]], game: Any
) -> Iterator[Decision]:
    """The decisions at a node. Turn-based versions of simultaneous games let the players choose one after another."""
    for player, actions in deciders.items():
        is_turn = state.is_simultaneous_node() or state.current_player() == player
        _require(is_turn and sorted(actions) == sorted(state.legal_actions(player)), game, state)
        yield Decision(player, reference.text(node, player), state, actions)
        if not state.is_simultaneous_node() and len(deciders) > 1:
            state = _skip_forced(state.child(next(iter(actions))))


def _after(state: Any, joint: Mapping[int, int]) -> Any:
    """The next decision, chance node or end after the actions of those who have a choice."""
    if not state.is_simultaneous_node():
        for action in joint.values():
            state = _skip_forced(state.child(action))
        return state
    actions = [joint.get(player, -1) for player in range(state.num_players())]
    child = state.clone()
    child.apply_actions([(state.legal_actions(player) or [0])[0] if n < 0 else n for player, n in enumerate(actions)])
    return _skip_forced(child)


def _skip_forced(state: Any) -> Any:
    """Takes actions without an alternative, of players and of chance."""
    while not state.is_terminal():
        if state.is_simultaneous_node():
            legal = [state.legal_actions(player) for player in range(state.num_players())]
            if any(len(actions) > 1 for actions in legal):
                return state
            state = state.clone()
            state.apply_actions([actions[0] if actions else 0 for actions in legal])
        elif len(state.legal_actions()) > 1:
            return state
        else:
            state = state.child(state.legal_actions()[0])
    return state


def _require(is_same: bool, game: Any, state: Any) -> None:
    if not is_same:
        raise TwinError(f"{game} is another game at the history '{game_tree.one_line(state.history_str())}'")
