"""Any game of OpenSpiel -> GameTree, by traversing all its histories.

Information sets are distinguished by `information_state_string`. As everywhere in gdlx, one with a single legal action
is not a decision. A simultaneous node is one node, with an edge for every joint action. OpenSpiel does not report
whether two histories have the same future, so only terminals are merged.
"""

import itertools
import time
from typing import Any, NamedTuple

import numpy as np

from gdlx.envs.trees import game_tree
from gdlx.propnet.common import errors

_ADVICE = (
    "Choose parameters that make it smaller, or raise the limit with `max_nodes=`. "
    "A rulesheet of the same game could be sampled without unrolling it"
)
MAX_NODES = 3_000_000  # histories, which are visited one by one in Python and held in memory
# Before a game is unrolled, random play estimates its size: groups of matches, and seconds for all of them.
_GROUPS, _MATCHES, _ESTIMATE_SECONDS = 14, 16, 3.0
_SAME = 1e-9  # relative difference up to which sums of returns are considered equal

Numbers = tuple[int, ...]


class UnsupportedGameError(errors.UserError, ValueError):
    """A game of OpenSpiel that cannot be solved as a tree."""


def build_tree(game: Any, *, keep_edges: bool = False, max_nodes: int = MAX_NODES) -> game_tree.GameTree:
    """Unrolls a game of OpenSpiel.

    Payoffs are returns. Players are called player0, player1, .., and a level has the nodes after the same number of
    actions of players and chance; the step of an information set that occurs at several levels is the first of them.

    Args:
      game: a pyspiel.Game, or its name: `leduc_poker`, `goofspiel(num_cards=4,imp_info=True)`.
      keep_edges: whether to store the nodes and edges of every level, which sampling needs.
      max_nodes: limit on the number of histories.

    Returns:
      The `GameTree`.

    Raises:
      UnsupportedGameError: if the game has no tree, or imperfect recall.
      TooLargeError: if it has more histories than `max_nodes`.
      MissingPackageError: if OpenSpiel is not installed.
    """
    loaded = load_game(game)
    _require_small(loaded, max_nodes)
    return _TreeBuilder(loaded, keep_edges, max_nodes).run()


def _require_small(game: Any, max_nodes: int) -> None:
    """Raises if random play shows more histories than allowed, which takes seconds; visiting them takes minutes.

    The mean over matches of Knuth's estimate has the number of histories as its expectation, so it exceeds twice that
    number with probability at most 1/2; that all groups do has probability 2 ** -14 at most.
    """
    rng = np.random.default_rng(0)
    deadline = time.monotonic() + _ESTIMATE_SECONDS
    means = []
    for _ in range(_GROUPS):
        means.append(float(np.mean([_estimate_histories(game, rng, 1e6 * max_nodes) for _ in range(_MATCHES)])))
        if means[-1] <= 2 * max_nodes or time.monotonic() > deadline:
            return
    raise game_tree.TooLargeError(
        f"{game} is too large to unroll: random play shows about {float(np.median(means)):.1e} histories or more, and "
        f"{max_nodes:,} are allowed. {_ADVICE}"
    )


def _estimate_histories(game: Any, rng: np.random.Generator, enough: float) -> float:
    """Knuth's estimate from one random match: the products of the numbers of joint actions so far, summed."""
    state, weight, total = game.new_initial_state(), 1.0, 1.0
    while not state.is_terminal() and total < enough:
        if state.is_chance_node():
            actions = [action for action, probability in state.chance_outcomes() if probability > 0]
            weight *= len(actions)
            state.apply_action(actions[rng.integers(len(actions))])
        elif state.is_simultaneous_node():
            options = [state.legal_actions(player) or [0] for player in range(game.num_players())]
            weight *= float(np.prod([len(actions) for actions in options]))
            state.apply_actions([actions[rng.integers(len(actions))] for actions in options])
        else:
            actions = state.legal_actions()
            weight *= len(actions)
            state.apply_action(actions[rng.integers(len(actions))])
        total += weight
    return total


def load_game(game: Any) -> Any:
    """Returns a pyspiel.Game that has a tree, by its name or as it is; raises UnsupportedGameError if it has none."""
    try:
        import pyspiel  # here, because it takes a second to load
    except ImportError:
        raise errors.MissingPackageError(
            "this needs OpenSpiel, which is not installed: pip install 'gdlx[peers]'"
        ) from None
    if isinstance(game, str):
        if game.partition("(")[0] not in pyspiel.registered_names():
            raise UnsupportedGameError(f"OpenSpiel has no game called {game.partition('(')[0]!r}")
        try:
            game = pyspiel.load_game(game)
        except pyspiel.SpielError as error:
            raise UnsupportedGameError(f"OpenSpiel cannot load {game!r}: {game_tree.one_line(str(error))}") from None
    kind, kinds = game.get_type(), pyspiel.GameType
    if kind.dynamics == kinds.Dynamics.MEAN_FIELD:
        raise UnsupportedGameError(f"{game} is a mean-field game, which has no tree")
    if kind.chance_mode == kinds.ChanceMode.SAMPLED_STOCHASTIC:
        raise UnsupportedGameError(f"{game} samples its chance actions itself and does not report their probabilities")
    if not kind.provides_information_state_string and kind.information != kinds.Information.PERFECT_INFORMATION:
        raise UnsupportedGameError(
            f"{game} has hidden information, but no information_state_string to distinguish information sets; "
            "exact solving needs one"
        )
    return game


class _Node(NamedTuple):
    state: Any
    sequences: Numbers
    weight: float


class _Decision(NamedTuple):
    number: int
    parent: int  # sequence that leads there
    first: int  # sequence of the first action
    actions: list[int]


class _InfosetCollector:
    """Information sets of one player, in the order of discovery."""

    def __init__(self, game: Any, number: int) -> None:
        self.game, self.number, self.name = game, number, f"player{number}"
        self.known: dict[str, _Decision] = {}
        self.forced: set[str] = set()
        self.sequences = 1
        self.steps: list[int] = []
        self.chance: list[float] = []
        self.action_name = [-1]
        self.action_names: dict[str, int] = {}
        self.has_information_state = bool(game.get_type().provides_information_state_string)

    def find(self, node: _Node, actions: list[int], step: int) -> _Decision | None:
        """The player's decision in a state; None if it has no choice."""
        state, sequence = node.state, node.sequences[self.number]
        # With perfect information all players know the history.
        has_string = self.has_information_state
        view = state.information_state_string(self.number) if has_string else state.history_str()
        decision = self.known.get(view)
        if decision is None:
            if len(actions) < 2:
                self.forced.add(view)
                return None
            decision = _Decision(len(self.known), sequence, self.sequences, actions)
            self.known[view] = decision
            self.sequences += len(actions)
            self.steps.append(step)
            self.chance.append(0.0)
            self._name(state, actions)
        elif decision.parent != sequence:
            raise UnsupportedGameError(
                f"{self.game} has imperfect recall: {self.name} reaches the information set "
                f"'{game_tree.one_line(view)}' by different sequences of its actions. "
                "The sequence form needs perfect recall"
            )
        if decision.actions != actions:
            raise UnsupportedGameError(
                f"{self.game}: {self.name} has different legal actions within the information set "
                f"'{game_tree.one_line(view)}', which its information_state_string therefore does not describe"
            )
        self.chance[decision.number] += node.weight
        return decision

    def _name(self, state: Any, actions: list[int]) -> None:
        names = [game_tree.one_line(state.action_to_string(self.number, action)) for action in actions]
        if len(set(names)) < len(names):
            names = [f"{name} #{action}" for name, action in zip(names, actions, strict=True)]
        self.action_name += [self.action_names.setdefault(name, len(self.action_names)) for name in names]

    def player(self) -> game_tree.Player:
        decisions = list(self.known.values())
        widths = [len(decision.actions) for decision in decisions]
        actions = [-1, *(action for decision in decisions for action in decision.actions)]
        return game_tree.Player(
            name=self.name,
            parent=np.array([decision.parent for decision in decisions], np.int32),
            first=np.cumsum([1, *widths]).astype(np.int32),
            step=np.array(self.steps, np.int32),
            chance=np.array(self.chance, np.float64),
            action=np.array(actions, np.int32),
            action_name=np.array(self.action_name, np.int32),
            action_names=tuple(self.action_names),
            views=tuple(self.known),
            view=np.arange(len(decisions), dtype=np.int32),
        )


class _TreeBuilder:
    """Breadth first, so that information sets are in order of time."""

    def __init__(self, game: Any, keep_edges: bool, max_nodes: int) -> None:
        self.game, self.keep_edges, self.max_nodes = game, keep_edges, max_nodes
        self.players = [_InfosetCollector(game, number) for number in range(game.num_players())]
        self.ends: dict[tuple[Numbers, tuple[float, ...]], int] = {}
        self.weight: list[float] = []
        self.histories: list[int] = []
        self.levels: list[game_tree.Level] = []
        self.nodes: list[int] = []
        self.information_sets: list[Numbers] = []

    def run(self) -> game_tree.GameTree:
        start = _Node(self.game.new_initial_state(), (0,) * len(self.players), 1.0)
        nodes = [] if start.state.is_terminal() else [start]
        if not nodes:
            self._end(start)
        self.nodes.append(1)
        while nodes:
            nodes = self._expand(nodes, len(self.nodes) - 1)
        sums = [sum(returns) for _, returns in self.ends]
        size = max((abs(value) for _, returns in self.ends for value in returns), default=0.0)
        zero_sum = len(self.players) == 2 and max(sums) - min(sums) <= _SAME * size
        offset = sums[0] / 2 if zero_sum and abs(sums[0]) > _SAME * size else 0.0
        shape = (len(self.ends), len(self.players))
        terminals = game_tree.Terminals(
            sequence=np.array([sequence for sequence, _ in self.ends], np.int32).reshape(shape),
            payoff=np.array([returns for _, returns in self.ends], np.float64).reshape(shape) - offset,
            weight=np.array(self.weight, np.float64),
            histories=np.array(self.histories, np.float64),
        )
        return game_tree.GameTree(
            name=str(self.game),
            players=tuple(player.player() for player in self.players),
            terminals=terminals,
            counts=game_tree.Counts(
                tuple(self.nodes), tuple(float(n) for n in self.nodes), (*self.information_sets, (0,) * shape[1])
            ),
            zero_sum=zero_sum,
            offset=offset,
            unplayable=0,
            levels=tuple(self.levels) if self.keep_edges else None,
        )

    def _end(self, node: _Node) -> int:
        number = self.ends.setdefault((node.sequences, tuple(node.state.returns())), len(self.weight))
        if number == len(self.weight):
            self.weight.append(0.0)
            self.histories.append(0)
        self.weight[number] += node.weight
        self.histories[number] += 1
        return number

    def _expand(self, nodes: list[_Node], step: int) -> list[_Node]:
        following: list[_Node] = []
        decisions: list[list[int]] = []
        first_edge, chance, child = [0], [], []
        ends = 0
        before = [len(player.known) + len(player.forced) for player in self.players]
        total = sum(self.nodes)
        for node in nodes:
            decision, children = self._children(node, step)
            for probability, after in children:
                if after.state.is_terminal():
                    ends += 1
                    place = -1 - self._end(after)
                else:
                    place = len(following)
                    following.append(after)
                if self.keep_edges:
                    chance.append(probability)
                    child.append(place)
            if self.keep_edges:
                decisions.append(decision)
                first_edge.append(len(child))
            if total + ends + len(following) > self.max_nodes:
                raise game_tree.TooLargeError(
                    f"{self.game} is too large to unroll: more than {self.max_nodes:,} histories, of which "
                    f"{total:,} are up to step {step}. {_ADVICE}"
                )
        if self.keep_edges:
            self.levels.append(
                game_tree.Level(
                    np.array(decisions, np.int32),
                    np.array(first_edge, np.int64),
                    np.array(chance, np.float64),
                    np.array(child, np.int64),
                )
            )
        self.nodes.append(ends + len(following))
        now = [len(player.known) + len(player.forced) for player in self.players]
        self.information_sets.append(tuple(b - a for a, b in zip(before, now, strict=True)))
        return following

    def _children(self, node: _Node, step: int) -> tuple[list[int], list[tuple[float, _Node]]]:
        """The players' decisions at a node, and its children with their chance probabilities."""
        state, sequences, weight = node
        decision = [-1] * len(self.players)
        mover = state.current_player()
        if state.is_chance_node():
            outcomes = [(action, p) for action, p in state.chance_outcomes() if p > 0]
            return decision, [(p, _Node(state.child(action), sequences, weight * p)) for action, p in outcomes]
        if mover >= 0:
            actions = state.legal_actions()
            infoset = self.players[mover].find(node, actions, step)
            after = [sequences] * len(actions)
            if infoset is not None:
                decision[mover] = infoset.number
                head, tail = sequences[:mover], sequences[mover + 1 :]
                after = [(*head, infoset.first + n, *tail) for n in range(len(actions))]
            return decision, [
                (1.0, _Node(state.child(action), reached, weight))
                for action, reached in zip(actions, after, strict=True)
            ]
        return self._joint(node, step)

    def _joint(self, node: _Node, step: int) -> tuple[list[int], list[tuple[float, _Node]]]:
        state, sequences, weight = node
        decision = [-1] * len(self.players)
        options = [state.legal_actions(player.number) or [-1] for player in self.players]  # -1: no action
        after = [[sequence] for sequence in sequences]
        for player, actions in zip(self.players, options, strict=True):
            infoset = player.find(node, actions, step)
            if infoset is not None:
                decision[player.number] = infoset.number
                after[player.number] = [infoset.first + n for n in range(len(actions))]
        children = []
        for joint, reached in zip(itertools.product(*options), itertools.product(*after), strict=True):
            child = state.clone()
            child.apply_actions(list(joint))
            children.append((1.0, _Node(child, reached, weight)))
        return decision, children
