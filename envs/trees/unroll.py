"""PropNet -> GameTree: breadth first, all nodes of a level at once.

The network is evaluated once for every different state of a level and every joint move in it; nodes, which are far
more where much is hidden, are then only look-ups in that table. Information sets are exact: (set one step earlier, own
move, percepts, own legal moves). Two nodes with the same state and the same information set of every player have
the same future and the same reach: they become one, with the sum of their chance weights.
"""

import itertools
import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from gdlx.envs import game_facts, payoffs
from gdlx.envs.packed import words
from gdlx.envs.trees import game_tree, infosets, size_estimate, unique_rows
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import limits
from gdlx.propnet.simulate import joint_actions, machine

Ints = game_tree.Ints
Longs = game_tree.Longs
Bools = game_tree.Bools
Floats = game_tree.Floats
GoalConflictMode = Literal["refuse", "max"]

MAX_NODES = limits.NODES
_BYTES_PER_EDGE, _MAX_BYTES = 100, 10 * 2**30
_MAX_HISTORIES_PER_NODE = 100_000  # histories for every node that is allowed
# Random matches that show whether a game is too large: the root of so many times the joint moves allowed.
_MATCHES_SQUARED, _MAX_MATCHES = 100, 2**18
_STATES_PER_BATCH = 2**18  # states that the network is evaluated on at once
_MAX_STEPS = 1_000  # joint moves after which a game is taken to be endless


class _LevelNodes(NamedTuple):
    """Nodes of a level that are not ends. Axes: N nodes, P players, S different states."""

    states: Bools  # [R, S]
    legal: Bools  # [moves of all roles, S]
    state: Ints  # [N]
    information: list[Ints]  # P x [N]
    weight: Floats  # [N]
    histories: Floats  # [N]


class _Transitions(NamedTuple):
    """Every joint move of every state of a level, in order of states. Axes: J joint moves, P players, S states."""

    state: Longs  # [J] the state before
    first: Longs  # [S + 1]
    moves: list[Longs]  # of every role [J]
    percepts: list[unique_rows.Numbering]  # of every player
    percept_rows: list[Bools]  # of every player [K, Q]
    following: Ints  # [J] number of the state afterwards
    states: Bools  # [R, S'] the different states afterwards
    legal: Bools  # [moves, S']
    is_end: Bools  # [S']
    is_unplayable: Bools  # [S']
    goals: Floats  # [S', P] of ends


def unroll(
    net: propnet.PropNet,
    mode: payoffs.PayoffMode = "auto",
    *,
    depth: int | None = None,
    max_nodes: int = MAX_NODES,
    merge: bool = True,
    keep_edges: bool = False,
    goal_conflict: GoalConflictMode = "refuse",
    report: Callable[[int, int], None] | None = None,
) -> game_tree.GameTree:
    """The whole game, or its first `depth` joint moves with the states reached then as leaves.

    Whether the game is zero-sum is seen from all its ends; where the depth is limited, from sampled play.
    `report(step, nodes)` hears of every level. `keep_edges` keeps the nodes and joint moves of every level, which
    sampling needs and exact solving does not.
    """
    return _Unroller(net, mode, max_nodes, merge, keep_edges, goal_conflict).run(depth, report)


class _Unroller:
    def __init__(
        self,
        net: propnet.PropNet,
        mode: payoffs.PayoffMode,
        max_nodes: int,
        merge: bool,
        keep_edges: bool,
        goal_conflict: GoalConflictMode,
    ) -> None:
        self.net, self.mode, self.merge, self.keep_edges = net, mode, merge, keep_edges
        self.max_nodes, self.goal_conflict = max_nodes, goal_conflict
        self.machine = machine.for_propnet(net)
        self.sizes = [len(role.moves) for role in net.roles]
        self.player_roles = [n for n, role in enumerate(net.roles) if not role.is_random]
        self.players = [infosets.InfosetCollector(role) for role in net.players]
        # Sequences, goals, weights, numbers of histories, and whether the ends are unplayable:
        none = np.zeros((0, len(self.players)))
        self.ends = [(none.astype(np.int32), none, np.zeros(0), np.zeros(0), np.zeros(0, np.bool_))]
        self.end_count = 0
        self.levels: list[game_tree.Level] = []
        self.nodes: list[int] = []
        self.histories: list[float] = []
        self.information_sets: list[tuple[int, ...]] = []

    def run(self, depth: int | None, report: Callable[[int, int], None] | None) -> game_tree.GameTree:
        nodes = self._start()
        self._check_size_estimate(depth)
        step = 0
        while len(nodes.state) and step != depth:
            if step == _MAX_STEPS:
                raise game_tree.TooLargeError(
                    f"{self.net.name} goes on after {step} joint moves; exact solving needs a game that ends: "
                    "add a step counter to its rules, or limit the depth"
                )
            table = self._evaluate(nodes)
            nodes = self._expand(nodes, table, step)
            step += 1
            if report:
                report(step, self.nodes[-1])
        sequence, goals, weight, histories, unplayable = (
            np.concatenate(parts) for parts in zip(*self.ends, strict=True)
        )
        units = self._units(goals[~unplayable], is_whole=not len(nodes.state))
        payoff = np.where(unplayable[:, None], 0.0, goals - units.offset)
        ends = game_tree.Terminals(sequence, payoff, weight, histories)
        return game_tree.GameTree(
            name=self.net.name,
            players=tuple(player.player() for player in self.players),
            terminals=ends,
            counts=game_tree.Counts(tuple(self.nodes), tuple(self.histories), tuple(self.information_sets)),
            zero_sum=units.zero_sum,
            offset=units.offset,
            unplayable=int(unplayable.sum()),
            levels=tuple(self.levels) if self.keep_edges else None,
            leaves=self._leaves(nodes) if len(nodes.state) else None,
        )

    def _start(self) -> _LevelNodes:
        states = self.machine.initial(1)
        legal, is_end, is_unplayable, goals = self._judge(states)
        if is_end[0]:
            self._end(np.zeros((1, len(self.players)), np.int32), goals, np.ones(1), np.ones(1), is_unplayable)
        self._count(1, 1.0, [0 if is_end[0] else 1 for _ in self.players])
        alive = 0 if is_end[0] else 1
        for player, own in zip(self.players, self._of_players(legal, self.sizes), strict=True):
            player.add_level(np.zeros(alive, np.int32), own.T[:alive], np.ones(alive), 0)
        zeros = np.zeros(alive, np.int32)
        return _LevelNodes(states, legal, zeros, [zeros] * len(self.players), np.ones(alive), np.ones(alive))

    def _count(self, nodes: int, histories: float, sets: list[int]) -> None:
        self.nodes.append(nodes)
        self.histories.append(histories)
        self.information_sets.append(tuple(sets))

    def _of_players(self, rows: Bools, sizes: list[int]) -> list[Bools]:
        parts = machine.split_rows(rows, sizes)
        return [parts[n] for n in self.player_roles]

    def _judge(self, states: Bools) -> tuple[Bools, Bools, Bools, Floats]:
        """Legal moves (none at ends), whether a state is an end and an unplayable one, and the goals at ends."""
        terminal, goals = self.machine.terminal_and_goals(states)
        legal = self.machine.legal(states) & ~terminal
        stuck = ~np.all([rows.any(axis=0) for rows in machine.split_rows(legal, self.sizes)], axis=0) & ~terminal
        goals_held = np.zeros((states.shape[1], len(self.players)))
        held = self._of_players(goals, [len(role.goal_values) for role in self.net.roles])
        for n, (role, own) in enumerate(zip(self.net.players, held, strict=True)):
            wrong = terminal & (own.sum(axis=0) != 1)
            if wrong.any() and self.goal_conflict == "refuse":
                column = int(np.argmax(wrong))
                self._raise_goal_conflict(role, own[:, column], states[:, column])
            goals_held[terminal, n] = payoffs.highest_goals(role, own)[terminal]
        return legal & ~stuck, terminal | stuck, stuck, goals_held

    def _raise_goal_conflict(self, role: propnet.Role, held: Bools, state: Bools) -> None:
        values = [str(value) for value, holds in zip(role.goal_values, held, strict=True) if holds]
        raise game_tree.GoalConflictError(
            f"{role.name} has {'the goal values ' + ' and '.join(values) if values else 'no goal value'} in a terminal "
            f"state of {self.net.name}: {self._text(state)}. Make its goal rules exclude each other, or take the "
            "highest (0 for none) with `goal_conflict='max'`"
        )

    def _units(self, goals: Floats, *, is_whole: bool) -> payoffs.Payoffs:
        sums = np.unique(goals.sum(axis=1))
        if not is_whole:
            units = game_facts.probe(self.net).payoffs(self.mode)
            if units.zero_sum and len(sums) and (sums != 2 * units.offset).any():
                raise payoffs.PayoffError(
                    f"the goals of {self.net.name} had the sum {2 * units.offset:g} in sampled play, but not in the "
                    "unrolled game; use `payoff='goal'`"
                )
            return units
        return payoffs.payoffs_from_goal_sums(self.net, set(sums.astype(int).tolist()), self.mode)

    def _text(self, state: Bools) -> str:
        literals = self.net.fluent_literals
        values = np.concatenate([[False], state])[literals >> 1] ^ (literals & 1).astype(np.bool_)
        return " ".join(name for name, holds in zip(self.net.fluents, values, strict=True) if holds) or "(nothing true)"

    def _evaluate(self, nodes: _LevelNodes) -> _Transitions:
        """All joint moves of all states; the network sees every one of them once."""
        total = joint_actions.count_joint_actions(nodes.legal, self.sizes)
        self._limit(total, total * (2 * len(self.net.initial) + sum(len(role.percepts) for role in self.net.players)))
        columns, chosen = self._joint_moves(nodes.legal)
        percept_bits = [np.zeros((len(role.percepts), len(columns)), np.bool_) for role in self.net.players]
        following = np.zeros((len(self.net.initial), len(columns)), np.bool_)
        percept_sizes = [len(role.percepts) for role in self.net.roles]
        for begin in range(0, len(columns), _STATES_PER_BATCH):
            part = slice(begin, begin + _STATES_PER_BATCH)
            does = joint_actions.one_hot_rows([moves[part] for moves in chosen], self.sizes)
            after, sees = words.move_packed(self.machine, nodes.states[:, columns[part]], does)
            following[:, part] = after
            for bits, own in zip(percept_bits, self._of_players(sees, percept_sizes), strict=True):
                bits[:, part] = own
        different = unique_rows.number_bit_columns(following)
        states = following[:, different.example]
        del following
        percepts = [unique_rows.number_bit_columns(bits) for bits in percept_bits]
        legal, is_end, is_unplayable, goals = self._judge(states)
        counts = np.bincount(columns, minlength=nodes.states.shape[1])
        return _Transitions(
            state=columns,
            first=np.concatenate([[0], np.cumsum(counts)]),
            moves=chosen,
            percepts=percepts,
            percept_rows=[bits[:, n.example].T for bits, n in zip(percept_bits, percepts, strict=True)],
            following=different.number,
            states=states,
            legal=legal,
            is_end=is_end,
            is_unplayable=is_unplayable,
            goals=goals,
        )

    def _joint_moves(self, legal: Bools) -> tuple[Longs, list[Longs]]:
        """In the order that `Level` promises: chance's moves change fastest, wherever it stands among the roles."""
        rows = machine.split_rows(legal, self.sizes)
        order = sorted(range(len(rows)), key=lambda n: self.net.roles[n].is_random)
        columns, chosen = joint_actions.enumerate_joint_actions(
            np.concatenate([rows[n] for n in order]), [self.sizes[n] for n in order]
        )
        return columns, [chosen[order.index(n)] for n in range(len(rows))]

    def _check_size_estimate(self, depth: int | None) -> None:
        """At once, where random play shows that a step has too many nodes, however many histories merge."""
        bound = _MAX_HISTORIES_PER_NODE * self.max_nodes
        guess = game_facts.probe(self.net).histories(bound, depth)
        widest = max(guess.histories)
        if widest > bound:  # merging would have to find a hundred thousand histories for every node
            raise game_tree.TooLargeError(
                f"{self.net.name} is too large to unroll: random play tells of more than {widest:.0e} histories "
                f"after {len(guess.histories) - 1} joint moves. {self._smaller(guess)}"
            )
        allowed = min(self.max_nodes, _MAX_BYTES // _BYTES_PER_EDGE)
        if widest <= allowed:
            return
        matches = min(_MAX_MATCHES, math.isqrt(_MATCHES_SQUARED * allowed) + 1)
        steps = itertools.islice(
            size_estimate.node_count_lower_bounds(self.net, matches=matches), len(guess.histories) - 1
        )
        for step, nodes in enumerate(steps, 1):
            if nodes > allowed:
                raise game_tree.TooLargeError(
                    f"{self.net.name} is too large to unroll: random play tells of about {guess.total:.1e} histories, "
                    f"which lead to more than {nodes:.1e} different nodes after {step} joint moves; allowed are "
                    f"{allowed:,} joint moves that lead to a step. {self._smaller(guess)}"
                )

    def _smaller(self, guess: size_estimate.SizeEstimate) -> str:
        depth = guess.max_depth_within(self.max_nodes)
        fewer = f"Unroll fewer steps (depth {depth})" if depth > 0 else "Allow more nodes"
        return f"{fewer}, or make the game smaller"

    def _limit(self, edges: float, size: float = 0.0) -> None:
        """`size` is bytes besides those of the edges."""
        needed = size + _BYTES_PER_EDGE * edges
        if edges > self.max_nodes or needed > _MAX_BYTES:
            guess = game_facts.probe(self.net).histories(1e30)
            raise game_tree.TooLargeError(
                f"{self.net.name} is too large to unroll: {edges:,.0f} joint moves lead to step {len(self.nodes)}, "
                f"which need about {needed / 2**30:,.1f} GiB; allowed are {self.max_nodes:,} joint moves and "
                f"{_MAX_BYTES / 2**30:.0f} GiB. Random play tells of about {guess.total:.1e} histories in all. Unroll "
                "fewer steps, or make the game smaller"
            )

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
        merged_ends = self._merge_terminals(nodes, table, source[where], row[where], weight[where], histories[where])
        if self.keep_edges:
            child[where] = -1 - merged_ends
        where = np.flatnonzero(~ends)
        # Before merging, which takes the players to the next level.
        decision = [p.decision[own] for p, own in zip(self.players, nodes.information, strict=True)]
        trail = [p.first_infoset + own for p, own in zip(self.players, nodes.information, strict=True)]
        following, number = self._merge(nodes, table, source[where], row[where], weight[where], histories[where], step)
        if self.keep_edges:
            child[where] = number
            none = np.zeros((len(nodes.state), 0), np.int32)
            decisions, views = (np.stack(own, axis=1) if own else none for own in (decision, trail))
            self.levels.append(game_tree.Level(decisions, starts, chance[source], child, views.astype(np.int32)))
        return following

    def _chance(self, nodes: _LevelNodes) -> Floats:
        """The probability of each chance move in every node: 1 where chance has none to make."""
        parts = machine.split_rows(nodes.legal, self.sizes)
        options = [rows.sum(axis=0) for rows, role in zip(parts, self.net.roles, strict=True) if role.is_random]
        probability = 1.0 / np.maximum(np.prod([np.ones(nodes.legal.shape[1]), *options], axis=0), 1)
        found: Floats = probability[nodes.state]
        return found

    def _merge_terminals(
        self, nodes: _LevelNodes, table: _Transitions, source: Ints, row: Longs, weight: Floats, histories: Floats
    ) -> Longs:
        """Merge what ends: the same sequences of all players, and the same goals."""
        if not len(source):
            self.ended = 0, 0.0
            return np.zeros(0, np.int64)
        sequence = [
            player.sequence_after(own[source], table.moves[role][row])
            for player, own, role in zip(self.players, nodes.information, self.player_roles, strict=True)
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
            np.stack([own[example] for own in sequence], axis=1) if sequence else np.zeros((kinds.size, 0), np.int32),
            table.goals[state],
            kinds.sums(weight),
            kinds.sums(histories),
            table.is_unplayable[state],
        )
        self.ended = kinds.size, float(histories.sum())
        numbers: Longs = first + kinds.number.astype(np.int64)
        return numbers

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
        """Number the information sets of what goes on, then merge nodes that agree in them and in the state."""
        legal_of = self._of_players(table.legal, self.sizes)
        information: list[Ints] = []
        counts: list[int] = []
        arrivals = []
        for player, own, role, percepts, percept_rows, legal in zip(
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
            before = own[source]
            sets = unique_rows.number_rows([before, kinds.number[row]], [max(1, len(player.sequence)), kinds.size])
            parent, example = before[sets.example], row[sets.example]
            information.append(sets.number)
            counts.append(sets.size)
            arrivals.append(
                (
                    player,
                    parent,
                    moves[example],
                    percepts.number[example],
                    percept_rows,
                    legal,
                    example,
                    sets.sums(weight),
                )
            )
        state = table.following[row]
        if self.merge:
            merged = unique_rows.number_rows(
                [*information, state], [*(max(1, n) for n in counts), table.states.shape[1]]
            )
        else:
            merged = unique_rows.Numbering(np.arange(len(row), dtype=np.int32), np.arange(len(row)))
        for player, parent, move, percept, rows, legal, example, chance in arrivals:
            sequence = player.sequence_after(parent, move)
            player.remember(parent, move, percept, rows)
            player.arrive(sequence, legal[:, table.following[example]].T, chance, step + 1)
        following = _LevelNodes(
            states=table.states,
            legal=table.legal,
            state=state[merged.example],
            information=[own[merged.example] for own in information],
            weight=merged.sums(weight),
            histories=merged.sums(histories),
        )
        ends, ended_histories = self.ended
        self._count(merged.size + ends, float(histories.sum()) + ended_histories, counts)
        return following, merged.number

    def _leaves(self, nodes: _LevelNodes) -> game_tree.Leaves:
        sequence = [p.sequence[own] for p, own in zip(self.players, nodes.information, strict=True)]
        return game_tree.Leaves(
            np.stack(sequence, axis=1),
            nodes.weight,
            nodes.histories,
            nodes.state.astype(np.int64),
            nodes.states.T,
            np.stack(nodes.information, axis=1),
        )


def _rank_goals(table: _Transitions) -> unique_rows.Numbering:
    """States afterwards by what an end in them gives."""
    columns = [np.unique(own, return_inverse=True)[1] for own in table.goals.T]
    return unique_rows.number_rows(
        [np.zeros(len(table.is_end), np.int64), *columns, table.is_unplayable],
        [1, *(int(own.max(initial=0)) + 1 for own in columns), 2],
    )
