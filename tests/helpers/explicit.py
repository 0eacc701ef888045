"""Games as nested nodes, solved by plain recursion: slow, and independent of the arrays of the solvers."""

import collections
import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple, Union

import numpy as np

from gdlx.envs import host, payoffs
from gdlx.envs.trees import game_tree, unroll
from gdlx.propnet import games
from gdlx.propnet.circuits import propnet
from gdlx.solvers import tabular_policies
from gdlx.solvers.exact import regret_matching
from gdlx.solvers.runs import policy_tables
from gdlx.tests.helpers import sheets

InfosetKey = tuple[int, str]  # player, information state
Policy = dict[InfosetKey, dict[int, float]]
_NOISE = 1e-13
Node = Union["TerminalNode", "ChanceNode", "DecisionNode"]


class TerminalNode(NamedTuple):
    payoffs: tuple[float, ...]
    is_leaf: bool = False  # at the depth limit


class ChanceNode(NamedTuple):
    children: list[tuple[float, Node]]


class DecisionNode(NamedTuple):
    """Joint actions are those of the deciding players, in their order."""

    views: dict[int, str]
    actions: dict[int, list[int]]
    children: dict[tuple[int, ...], Node]


def from_propnet(propnet: propnet.PropNet, units: payoffs.Payoffs | None = None, depth: int = 1_000) -> Node:
    nodes = host.HostEnv(propnet, units or payoffs.infer_payoffs(propnet), depth)
    names = [role.name for role in propnet.players]

    def build(node: host.Node) -> Node:
        if node.is_over:
            return TerminalNode(tuple(nodes.returns(node)), not (node.position.terminal or node.position.unplayable))
        if node.is_chance:
            options = node.position.chance
            return ChanceNode([(1 / len(options), build(nodes.apply_chance(node, action))) for action in options])
        legal = node.position.legal
        children = {}
        for joint in itertools.product(*legal):
            children[tuple(joint[player] for player in node.deciders)] = build(nodes.apply_actions(node, joint))
        return DecisionNode(
            {player: f"{names[player]}\n{node.views[player]}" for player in node.deciders},
            {player: list(legal[player]) for player in node.deciders},
            children,
        )

    return build(nodes.start)


def from_open_spiel(state: Any) -> Node:
    """Builds the nodes of an OpenSpiel game; a single legal action is not a decision."""
    if state.is_terminal():
        return TerminalNode(tuple(state.returns()))
    if state.is_chance_node():
        return ChanceNode([(p, from_open_spiel(state.child(action))) for action, p in state.chance_outcomes()])
    movers = list(range(state.num_players())) if state.is_simultaneous_node() else [state.current_player()]
    legal = {player: state.legal_actions(player) for player in movers}
    deciders = [player for player in movers if len(legal[player]) > 1]
    children = {}
    for joint in itertools.product(*legal.values()):
        child = state.clone()
        if state.is_simultaneous_node():
            child.apply_actions(list(joint))
        else:
            child.apply_action(joint[0])
        chosen = dict(zip(movers, joint, strict=True))
        children[tuple(chosen[player] for player in deciders)] = from_open_spiel(child)
    if not deciders:
        return children[()]
    return DecisionNode(
        {player: state.information_state_string(player) for player in deciders},
        {player: legal[player] for player in deciders},
        children,
    )


class TerminalClass(NamedTuple):
    """The own choices of every player, and what they get."""

    choices: tuple[tuple[tuple[str, int], ...], ...]
    payoffs: tuple[float, ...]
    is_leaf: bool


def terminal_classes(root: Node, players: int) -> dict[TerminalClass, tuple[float, int]]:
    """Probability of chance and number of histories of every kind of end."""
    collected: dict[TerminalClass, tuple[float, int]] = {}

    def walk(node: Node, weight: float, choices: tuple[tuple[tuple[str, int], ...], ...]) -> None:
        match node:
            case TerminalNode():
                kind = TerminalClass(choices, node.payoffs, node.is_leaf)
                before, count = collected.get(kind, (0.0, 0))
                collected[kind] = before + weight, count + 1
            case ChanceNode():
                for probability, child in node.children:
                    walk(child, weight * probability, choices)
            case DecisionNode():
                for joint, child in node.children.items():
                    after = list(choices)
                    for player, action in zip(node.views, joint, strict=True):
                        after[player] += ((node.views[player], action),)
                    walk(child, weight, tuple(after))

    walk(root, 1.0, ((),) * players)
    return collected


def iterate_nodes(root: Node) -> Iterator[Node]:
    yield root
    match root:
        case ChanceNode():
            for _, child in root.children:
                yield from iterate_nodes(child)
        case DecisionNode():
            for child in root.children.values():
                yield from iterate_nodes(child)


def legal_actions(root: Node) -> dict[InfosetKey, list[int]]:
    collected: dict[InfosetKey, list[int]] = {}
    for node in iterate_nodes(root):
        if isinstance(node, DecisionNode):
            collected |= {(player, view): node.actions[player] for player, view in node.views.items()}
    return collected


def infoset_chance_reach(root: Node) -> dict[InfosetKey, float]:
    """The probabilities of chance, summed over the histories of every information set."""
    actual: dict[InfosetKey, float] = collections.defaultdict(float)

    def walk(node: Node, weight: float) -> None:
        match node:
            case ChanceNode():
                for probability, child in node.children:
                    walk(child, weight * probability)
            case DecisionNode():
                for key in node.views.items():
                    actual[key] += weight
                for child in node.children.values():
                    walk(child, weight)

    walk(root, 1.0)
    return actual


def uniform(root: Node) -> Policy:
    return {key: dict.fromkeys(own, 1 / len(own)) for key, own in legal_actions(root).items()}


def from_arrays(tree: game_tree.GameTree, policies: tabular_policies.Policies) -> Policy:
    table = {}
    for number, (player, policy) in enumerate(zip(tree.players, policies, strict=True)):
        for decision, state in enumerate(policy_tables.information_state_strings(player)):
            own = slice(player.first[decision], player.first[decision + 1])
            table[number, state] = dict(zip(player.action[own].tolist(), policy[own].tolist(), strict=True))
    return table


def to_arrays(tree: game_tree.GameTree, table: Policy) -> tabular_policies.Policies:
    arrays = []
    for number, player in enumerate(tree.players):
        values = [
            table[number, state][action]
            for decision, state in enumerate(policy_tables.information_state_strings(player))
            for action in player.action[player.first[decision] : player.first[decision + 1]].tolist()
        ]
        arrays.append(np.array([1.0, *values]))
    return tuple(arrays)


def expected(node: Node, policy: Policy) -> list[float]:
    match node:
        case TerminalNode():
            return list(node.payoffs)
        case ChanceNode():
            return _weighted_sum([(p, expected(child, policy)) for p, child in node.children])
        case DecisionNode():
            return _weighted_sum(
                [(_joint_probability(node, joint, policy), expected(c, policy)) for joint, c in node.children.items()]
            )


def _weighted_sum(parts: list[tuple[float, list[float]]]) -> list[float]:
    return [
        sum(p * own for (p, _), own in zip(parts, row, strict=True)) for row in zip(*(v for _, v in parts), strict=True)
    ]


def _joint_probability(node: DecisionNode, joint: tuple[int, ...], policy: Policy) -> float:
    return math.prod(policy[key][action] for key, action in zip(node.views.items(), joint, strict=True))


def pure_policies(root: Node, player: int) -> Iterator[Policy]:
    own = {key: actions for key, actions in legal_actions(root).items() if key[0] == player}
    for chosen in itertools.product(*own.values()):
        yield {
            key: {action: float(action == choice) for action in actions}
            for (key, actions), choice in zip(own.items(), chosen, strict=True)
        }


class ReferenceCfr:
    """Counterfactual regret minimisation with dictionaries, player by player, with the conventions of OpenSpiel."""

    def __init__(self, root: Node, players: int) -> None:
        self.root, self.players = root, players
        self.policy = uniform(root)
        self.regret = {key: dict.fromkeys(chosen, 0.0) for key, chosen in self.policy.items()}
        self.cumulative_policy = {key: dict.fromkeys(chosen, 0.0) for key, chosen in self.policy.items()}
        self.t = 0

    def start(self, regrets: Policy) -> None:
        """With initial regrets."""
        self.regret = {key: dict(own) for key, own in regrets.items()}
        self.policy = {key: self._matching(own, 0.0) for key, own in regrets.items()}

    def iterate(self, settings: regret_matching.Settings, alternating: bool) -> None:
        self.t += 1
        before = self.policy
        done = min(self.t / float(settings.horizon), 1)
        alpha = float(settings.alpha) + done * float(settings.alpha_change)
        beta = float(settings.beta) + done * float(settings.beta_change)
        gamma = float(settings.gamma) + done * float(settings.gamma_change)
        for player in range(self.players):
            self._add_to_average(self.root, player, 1.0, set())
            for key in self.cumulative_policy:
                if key[0] == player:
                    for action in self.cumulative_policy[key]:
                        self.cumulative_policy[key][action] *= (self.t / (self.t + 1)) ** gamma
            new: Policy = collections.defaultdict(lambda: collections.defaultdict(float))
            self._value(self.root, player, 1.0, self.policy if alternating else before, new)
            self.policy = dict(self.policy)
            for key, actual in new.items():
                # Options of equal worth: whether rounding errors are positive must not decide.
                chosen = {action: change if abs(change) > _NOISE else 0.0 for action, change in actual.items()}
                for action, change in chosen.items():
                    after = self.regret[key][action] + change
                    self.regret[key][action] = after * self._discount(alpha if after > 0 else beta)
                optimism = float(settings.optimism or 0.0)
                self.policy[key] = self._matching(
                    {action: self.regret[key][action] + optimism * change for action, change in chosen.items()},
                    float(settings.exploration or 0.0),
                )

    def _discount(self, exponent: float) -> float:
        if math.isinf(exponent):
            return float(exponent > 0)
        power: float = float(self.t) ** exponent
        return power / (power + 1)

    @staticmethod
    def _matching(values: dict[int, float], exploration: float) -> dict[int, float]:
        total = sum(max(value, 0.0) for value in values.values())
        even = 1 / len(values)
        chosen = {a: max(value, 0.0) / total if total > 0 else even for a, value in values.items()}
        return {a: (1 - exploration) * p + exploration * even for a, p in chosen.items()}

    def _add_to_average(self, node: Node, player: int, reach: float, seen: set[InfosetKey]) -> None:
        match node:
            case ChanceNode():
                for _, child in node.children:
                    self._add_to_average(child, player, reach, seen)
            case DecisionNode():
                key = player, node.views.get(player, "")
                place = list(node.views).index(player) if player in node.views else -1
                if place >= 0 and key not in seen:  # perfect recall: the own reach is the same at all its nodes
                    seen.add(key)
                    for action, probability in self.policy[key].items():
                        self.cumulative_policy[key][action] += reach * probability
                for joint, child in node.children.items():
                    chosen = self.policy[key][joint[place]] if place >= 0 else 1.0
                    self._add_to_average(child, player, reach * chosen, seen)

    def _value(self, node: Node, player: int, others: float, policy: Policy, new: Policy) -> float:
        """The value to a player; `others` is the reach of all others and chance, `new` collects regrets."""
        match node:
            case TerminalNode():
                return node.payoffs[player]
            case ChanceNode():
                return sum(p * self._value(child, player, others * p, policy, new) for p, child in node.children)
            case DecisionNode():
                worth: dict[int, float] = collections.defaultdict(float)
                for joint, child in node.children.items():
                    chosen = dict(zip(node.views, joint, strict=True))
                    mine = chosen.pop(player, -1)
                    reach = math.prod(policy[p, node.views[p]][action] for p, action in chosen.items())
                    worth[mine] += reach * self._value(child, player, others * reach, policy, new)
                if player not in node.views:
                    return worth[-1]
                key = player, node.views[player]
                mean = sum(policy[key][action] * value for action, value in worth.items())
                for action, value in worth.items():
                    new[key][action] += others * (value - mean)
                return mean

    def average(self) -> Policy:
        return {key: self._matching(policy, 0.0) for key, policy in self.cumulative_policy.items()}


@functools.cache
def load_game(spec: str) -> tuple[game_tree.GameTree, Node]:
    """A library game, or the text of a sheet, unrolled and as nodes."""
    propnet = sheets.compile_text(spec) if "(" in spec else games.compile_game(spec)
    tree = unroll.unroll(propnet, unplayable="end")
    return tree, from_propnet(propnet, payoffs.Payoffs(tree.offset, tree.zero_sum, True))
