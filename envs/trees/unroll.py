"""PropNet -> GameTree: breadth first, all nodes of a level at once.

The propnet is evaluated once for every distinct state of a level and every joint action in it; nodes, of which there
are far more if much is hidden, are then only look-ups in that table. Information sets are exact: (the player's previous
information set, its action, percepts and legal actions). Two nodes with the same state and the same information set of
every player have the same future and the same player reach: they are merged, and their chance reach is summed.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gdlx.envs import payoffs
from gdlx.envs.packed import words
from gdlx.envs.trees import game_tree, infosets, state_evaluation, unique_rows
from gdlx.envs.trees.estimates import node_limits
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import limits
from gdlx.propnet.simulate import joint_actions, machine

Ints = game_tree.Ints
Longs = game_tree.Longs
Bools = game_tree.Bools
Floats = game_tree.Floats
GoalConflictMode = state_evaluation.GoalConflictMode
UnplayableMode = state_evaluation.UnplayableMode

MAX_NODES = node_limits.MAX_NODES
_STATES_PER_BATCH = 2**18  # states on which the propnet is evaluated at once


class _LevelNodes(NamedTuple):
    """Nodes of a level that are not terminal. Axes: N nodes, P players, S distinct states."""

    states: Bools  # [R, S]
    legal: Bools  # [moves of all roles, S]
    state: Ints  # [N]
    information: list[Ints]  # P x [N]
    weight: Floats  # [N]
    histories: Floats  # [N]


class _Transitions(NamedTuple):
    """Every joint action in every state of a level, ordered by state. Axes: J joint actions, P players, S states."""

    state: Longs  # [J] the state before
    first: Longs  # [S + 1]
    moves: list[Longs]  # of every role [J]
    percepts: list[unique_rows.Numbering]  # of every player
    percept_rows: list[Bools]  # of every player [K, Q]
    following: Ints  # [J] number of the state afterwards
    states: Bools  # [R, S'] the distinct states afterwards
    legal: Bools  # [moves, S']
    is_end: Bools  # [S']
    is_unplayable: Bools  # [S']
    goals: Floats  # [S', P] goal values in terminal states


def unroll(
    propnet: propnet.PropNet,
    mode: payoffs.PayoffMode = "auto",
    *,
    depth: int | None = None,
    max_nodes: int = MAX_NODES,
    merge: bool = True,
    keep_edges: bool = False,
    goal_conflict: GoalConflictMode = "refuse",
    unplayable: UnplayableMode = "refuse",
    report: Callable[[int, int], None] | None = None,
) -> game_tree.GameTree:
    """Unrolls the whole game, or its first `depth` joint actions; the states reached then are leaves.

    All terminals together decide whether the game is zero-sum; if the depth is limited, sampled play does.
    `report(step, nodes)` is called after every level. `keep_edges` stores the nodes and edges of every level, which
    sampling needs and exact solving does not. `merge=False` keeps every history as a node. States in which some role
    has no legal move are refused, or end the game with payoffs of 0 if `unplayable="end"`.
    """
    return _Unroller(propnet, mode, max_nodes, merge, keep_edges, goal_conflict, unplayable).run(depth, report)


class _Unroller:
    def __init__(
        self,
        propnet: propnet.PropNet,
        mode: payoffs.PayoffMode,
        max_nodes: int,
        merge: bool,
        keep_edges: bool,
        goal_conflict: GoalConflictMode,
        unplayable: UnplayableMode,
    ) -> None:
        self.propnet, self.merge, self.keep_edges = propnet, merge, keep_edges
        self.max_nodes = max_nodes
        self.machine = machine.for_propnet(propnet)
        self.evaluator = state_evaluation.StateEvaluator(propnet, mode, goal_conflict, unplayable)
        self.sizes = [len(role.moves) for role in propnet.roles]
        self.player_roles = [n for n, role in enumerate(propnet.roles) if not role.is_random]
        self.players = [infosets.InfosetCollector(role) for role in propnet.players]
        # Sequences, goals, weights, numbers of histories, and whether the terminals are unplayable:
        none = np.zeros((0, len(self.players)))
        self.ends = [(none.astype(np.int32), none, np.zeros(0), np.zeros(0), np.zeros(0, np.bool_))]
        self.end_count = 0
        self.levels: list[game_tree.Level] = []
        self.nodes: list[int] = []
        self.histories: list[float] = []
        self.information_sets: list[tuple[int, ...]] = []

    def run(self, depth: int | None, report: Callable[[int, int], None] | None) -> game_tree.GameTree:
        nodes = self._start()
        node_limits.require_fit(self.propnet, self.max_nodes, depth)
        step = 0
        while len(nodes.state) and step != depth:
            if step == limits.STEPS:
                raise game_tree.TooLargeError(
                    f"{self.propnet.name} continues after {step} joint actions, and exact solving needs a game "
                    "that ends",
                    "Add a step counter to its rules",
                )
            table = self._evaluate(nodes)
            nodes = self._expand(nodes, table, step)
            step += 1
            if report:
                report(step, self.nodes[-1])
        sequence, goals, weight, histories, unplayable = (
            np.concatenate(parts) for parts in zip(*self.ends, strict=True)
        )
        units = self.evaluator.payoffs(goals[~unplayable], is_complete=not len(nodes.state))
        payoff = np.where(unplayable[:, None], 0.0, goals - units.offset)
        terminals = game_tree.Terminals(sequence, payoff, weight, histories)
        return game_tree.GameTree(
            name=self.propnet.name,
            players=tuple(player.player() for player in self.players),
            terminals=terminals,
            counts=game_tree.Counts(tuple(self.nodes), tuple(self.histories), tuple(self.information_sets)),
            zero_sum=units.zero_sum,
            offset=units.offset,
            unplayable=int(unplayable.sum()),
            levels=tuple(self.levels) if self.keep_edges else None,
            leaves=self._leaves(nodes) if len(nodes.state) else None,
        )

    def _start(self) -> _LevelNodes:
        states = self.machine.initial(1)
        legal, is_end, is_unplayable, goals = self.evaluator.evaluate(states)
        if is_end[0]:
            self._end(np.zeros((1, len(self.players)), np.int32), goals, np.ones(1), np.ones(1), is_unplayable)
        self._count(1, 1.0, [0 if is_end[0] else 1 for _ in self.players])
        alive = 0 if is_end[0] else 1
        for player, moves in zip(self.players, self._of_players(legal, self.sizes), strict=True):
            player.start(alive, moves.T)
        zeros = np.zeros(alive, np.int32)
        return _LevelNodes(states, legal, zeros, [zeros] * len(self.players), np.ones(alive), np.ones(alive))

    def _count(self, nodes: int, histories: float, sets: list[int]) -> None:
        self.nodes.append(nodes)
        self.histories.append(histories)
        self.information_sets.append(tuple(sets))

    def _of_players(self, rows: Bools, sizes: list[int]) -> list[Bools]:
        parts = machine.split_rows(rows, sizes)
        return [parts[n] for n in self.player_roles]

    def _evaluate(self, nodes: _LevelNodes) -> _Transitions:
        """All joint actions in all states; the propnet is evaluated once for each of them."""
        total = joint_actions.count_joint_actions(nodes.legal, self.sizes)
        self._limit(
            total, total * (2 * len(self.propnet.initial) + sum(len(role.percepts) for role in self.propnet.players))
        )
        columns, chosen = self._joint_moves(nodes.legal)
        percept_bits = [np.zeros((len(role.percepts), len(columns)), np.bool_) for role in self.propnet.players]
        following = np.zeros((len(self.propnet.initial), len(columns)), np.bool_)
        percept_sizes = [len(role.percepts) for role in self.propnet.roles]
        for begin in range(0, len(columns), _STATES_PER_BATCH):
            batch = slice(begin, begin + _STATES_PER_BATCH)
            does = joint_actions.one_hot_rows([moves[batch] for moves in chosen], self.sizes)
            after, sees = words.move_packed(self.machine, nodes.states[:, columns[batch]], does)
            following[:, batch] = after
            for bits, rows in zip(percept_bits, self._of_players(sees, percept_sizes), strict=True):
                bits[:, batch] = rows
        distinct = unique_rows.number_bit_columns(following)
        states = following[:, distinct.example]
        del following
        percepts = [unique_rows.number_bit_columns(bits) for bits in percept_bits]
        legal, is_end, is_unplayable, goals = self.evaluator.evaluate(states)
        counts = np.bincount(columns, minlength=nodes.states.shape[1])
        return _Transitions(
            state=columns,
            first=np.concatenate([[0], np.cumsum(counts)]),
            moves=chosen,
            percepts=percepts,
            percept_rows=[bits[:, n.example].T for bits, n in zip(percept_bits, percepts, strict=True)],
            following=distinct.number,
            states=states,
            legal=legal,
            is_end=is_end,
            is_unplayable=is_unplayable,
            goals=goals,
        )

    def _joint_moves(self, legal: Bools) -> tuple[Longs, list[Longs]]:
        """In the order that `Level` specifies: chance's actions change fastest, wherever it is among the roles."""
        rows = machine.split_rows(legal, self.sizes)
        order = sorted(range(len(rows)), key=lambda n: self.propnet.roles[n].is_random)
        columns, chosen = joint_actions.enumerate_joint_actions(
            np.concatenate([rows[n] for n in order]), [self.sizes[n] for n in order]
        )
        return columns, [chosen[order.index(n)] for n in range(len(rows))]

    def _limit(self, edges: float, size: float = 0.0) -> None:
        node_limits.require_level(self.propnet, edges, size, self.max_nodes, len(self.nodes))

    def _expand(self, nodes: _LevelNodes, table: _Transitions, step: int) -> _LevelNodes:
        fan = np.diff(table.first)[nodes.state]
        edges = int(fan.sum())
        self._limit(edges)
        source = np.repeat(np.arange(len(nodes.state), dtype=np.int32), fan)
        starts = np.concatenate([[0], np.cumsum(fan)])
        row = np.arange(edges) - np.repeat(starts[:-1] - table.first[nodes.state], fan)
        chance = self._chance(nodes)
        weight = (nodes.weight * chance)[source]
        histories = nodes.histories[source]
        ends = table.is_end[table.following[row]]
        child = np.empty(edges if self.keep_edges else 0, np.int64)
        where = np.flatnonzero(ends)
        terminals = self._merge_terminals(nodes, table, source[where], row[where], weight[where], histories[where])
        if self.keep_edges:
            child[where] = -1 - terminals
        where = np.flatnonzero(~ends)
        # Before merging, which moves the players to the next level.
        decision = [p.decision[sets] for p, sets in zip(self.players, nodes.information, strict=True)]
        infoset = [p.first_infoset + sets for p, sets in zip(self.players, nodes.information, strict=True)]
        following, number = self._merge(nodes, table, source[where], row[where], weight[where], histories[where], step)
        if self.keep_edges:
            child[where] = number
            none = np.zeros((len(nodes.state), 0), np.int32)
            decisions, views = (np.stack(rows, axis=1) if rows else none for rows in (decision, infoset))
            self.levels.append(game_tree.Level(decisions, starts, chance[source], child, views.astype(np.int32)))
        return following

    def _chance(self, nodes: _LevelNodes) -> Floats:
        """The probability of each chance action in every node: 1 if chance has no choice."""
        parts = machine.split_rows(nodes.legal, self.sizes)
        options = [rows.sum(axis=0) for rows, role in zip(parts, self.propnet.roles, strict=True) if role.is_random]
        probability = 1.0 / np.maximum(np.prod([np.ones(nodes.legal.shape[1]), *options], axis=0), 1)
        per_node: Floats = probability[nodes.state]
        return per_node

    def _merge_terminals(
        self, nodes: _LevelNodes, table: _Transitions, source: Ints, row: Longs, weight: Floats, histories: Floats
    ) -> Longs:
        """Merges terminals with the same sequences of all players and the same goal values."""
        if not len(source):
            self.ended = 0, 0.0
            return np.zeros(0, np.int64)
        sequence = [
            player.sequence_after(sets[source], table.moves[role][row])
            for player, sets, role in zip(self.players, nodes.information, self.player_roles, strict=True)
        ]
        result = _rank_goals(table)
        end_kind = result.number[table.following[row]]
        kinds = unique_rows.number_rows(
            [*sequence, end_kind] if self.merge else [np.arange(len(row))],
            [*(player.sequences for player in self.players), result.size] if self.merge else [len(row)],
        )
        example = kinds.example
        first = self.end_count
        state = table.following[row[example]]
        self._end(
            np.stack([numbers[example] for numbers in sequence], axis=1)
            if sequence
            else np.zeros((kinds.size, 0), np.int32),
            table.goals[state],
            kinds.sums(weight),
            kinds.sums(histories),
            table.is_unplayable[state],
        )
        self.ended = kinds.size, float(histories.sum())
        terminals: Longs = first + kinds.number.astype(np.int64)
        return terminals

    def _end(self, sequence: Ints, goals: Floats, weight: Floats, histories: Floats, stuck: Bools) -> None:
        self.ends.append((sequence, goals, weight, histories, stuck))
        self.end_count += len(weight)

    def _merge(
        self,
        nodes: _LevelNodes,
        table: _Transitions,
        source: Ints,
        row: Longs,
        weight: Floats,
        histories: Floats,
        step: int,
    ) -> tuple[_LevelNodes, Ints]:
        """Numbers the information sets of non-terminal nodes, then merges nodes that agree in them and in the state."""
        legal_of = self._of_players(table.legal, self.sizes)
        information: list[Ints] = []
        counts: list[int] = []
        arrivals = []
        for player, infoset, role, percepts, percept_rows, legal in zip(
            self.players,
            nodes.information,
            self.player_roles,
            table.percepts,
            table.percept_rows,
            legal_of,
            strict=True,
        ):
            options = unique_rows.number_bit_columns(legal)
            moves = table.moves[role]
            kinds = unique_rows.number_rows(
                [moves, percepts.number, options.number[table.following]],
                [self.sizes[role], percepts.size, options.size],
            )
            before = infoset[source]
            sets = unique_rows.number_rows([before, kinds.number[row]], [max(1, len(player.sequence)), kinds.size])
            parent, example = before[sets.example], row[sets.example]
            information.append(sets.number)
            counts.append(sets.size)
            to = infosets.Arrivals(
                parent,
                moves[example],
                percepts.number[example],
                percept_rows,
                options.number[table.following[example]],
                legal[:, options.example].T,
            )
            arrivals.append((player, to, sets.sums(weight)))
        state = table.following[row]
        if self.merge:
            merged = unique_rows.number_rows(
                [*information, state], [*(max(1, n) for n in counts), table.states.shape[1]]
            )
        else:
            merged = unique_rows.Numbering(np.arange(len(row), dtype=np.int32), np.arange(len(row)))
        for player, to, chance in arrivals:
            player.advance(to, chance, step + 1)
        following = _LevelNodes(
            states=table.states,
            legal=table.legal,
            state=state[merged.example],
            information=[sets[merged.example] for sets in information],
            weight=merged.sums(weight),
            histories=merged.sums(histories),
        )
        ends, ended_histories = self.ended
        self._count(merged.size + ends, float(histories.sum()) + ended_histories, counts)
        return following, merged.number

    def _leaves(self, nodes: _LevelNodes) -> game_tree.Leaves:
        sequence = [p.sequence[sets] for p, sets in zip(self.players, nodes.information, strict=True)]
        return game_tree.Leaves(
            np.stack(sequence, axis=1),
            nodes.weight,
            nodes.histories,
            nodes.state.astype(np.int64),
            nodes.states.T,
            np.stack(nodes.information, axis=1),
        )


def _rank_goals(table: _Transitions) -> unique_rows.Numbering:
    """Numbers the states afterwards by their goal values, and by whether they are unplayable."""
    columns = [np.unique(goals, return_inverse=True)[1] for goals in table.goals.T]
    return unique_rows.number_rows(
        [np.zeros(len(table.is_end), np.int64), *columns, table.is_unplayable],
        [1, *(int(ranks.max(initial=0)) + 1 for ranks in columns), 2],
    )
