"""PropNet -> GameTree with terminals in blocks: breadth first, all blocks of a level at once.

A strict generalisation of nodes: where players keep nothing to themselves a block is a node. Nothing is approximated;
what is saved is the listing of combinations. docs/concepts/trees-in-blocks.md says when that is exact, and why.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from gdlx.envs import payoffs
from gdlx.envs.trees import game_tree, infosets, state_evaluation, unique_rows
from gdlx.envs.trees.factored import (
    blocks,
    merge,
    observations,
    orbits,
    ragged,
    symmetry_group,
    terminal_blocks,
    transitions,
)
from gdlx.propnet.checks import unplayable
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import limits
from gdlx.propnet.simulate import machine

Bools = blocks.Bools
Longs = blocks.Longs
Floats = blocks.Floats

_ACTIONS_PER_BLOCK = 12  # joint actions and unmerged blocks that a step may have for each block that it may keep
_MEMBERS_PER_INFOSET = 20  # an information set takes as much memory as so many members of sets


def unroll(
    propnet: propnet.PropNet,
    mode: payoffs.PayoffMode = "auto",
    *,
    max_blocks: int = limits.BLOCKS,
    max_members: int = limits.MEMBERS,
    goal_conflict: state_evaluation.GoalConflictMode = "refuse",
    report: Callable[[int, int], None] | None = None,
    group: symmetry_group.Group | None = None,
) -> game_tree.GameTree:
    """Unrolls the whole game in blocks.

    Args:
      propnet: the propnet of the game.
      mode: how goal values become payoffs.
      max_blocks: limit on the blocks of one step.
      max_members: limit on the members of the sets that one step extends.
      goal_conflict: as for `unroll.unroll`.
      report: called as `report(step, blocks)` after every level.
      group: symmetries of the game; of those information sets that they exchange one is kept, which stands for all.

    Returns:
      A tree whose terminals are in `GameTree.blocks`.

    Raises:
      TooLargeError: more blocks or members than the limits, or a game without an end.
      UnplayableError: some role has no legal move in a state that is not terminal.
    """
    return _BlockUnroller(propnet, mode, max_blocks, max_members, goal_conflict, group).run(report)


class WholeTree(NamedTuple):
    """A whole game, and where its sequences are in the tree without symmetric ones. Axes: P players, S sequences."""

    tree: game_tree.GameTree
    representative: tuple[Longs, ...]  # P x [S] the sequence that stands for each
    players: tuple[game_tree.Player, ...]  # P, of the tree without symmetric information sets


def unroll_whole(
    propnet: propnet.PropNet,
    group: symmetry_group.Group,
    mode: payoffs.PayoffMode = "auto",
    *,
    max_blocks: int = limits.BLOCKS,
    max_members: int = limits.MEMBERS,
    goal_conflict: state_evaluation.GoalConflictMode = "refuse",
    report: Callable[[int, int], None] | None = None,
) -> WholeTree:
    """Unrolls the whole game, and finds which of its information sets symmetries exchange; arguments as in `unroll`."""
    unroller = _BlockUnroller(propnet, mode, max_blocks, max_members, goal_conflict, group, whole=True)
    tree = unroller.run(report)
    players = tuple(each.collector.player() for each in unroller.orbits)
    return WholeTree(tree, tuple(map(np.concatenate, unroller.representatives)), players)


class _Children(NamedTuple):
    """Blocks after a joint action, before they are merged. Axes: C children, P players."""

    block: Longs  # [C] the block before
    joint: Longs  # [C] the joint action
    sets: list[Longs]  # P x [C] rows of what `transitions.extend` returned
    weight: Floats  # [C]
    histories: Floats  # [C] for each combination of members
    total: Floats  # [C] histories of all combinations

    def take(self, rows: Longs) -> "_Children":
        return _Children(
            self.block[rows],
            self.joint[rows],
            [sets[rows] for sets in self.sets],
            self.weight[rows],
            self.histories[rows],
            self.total[rows],
        )


class _Arrival(NamedTuple):
    """The members that a player may have at the next level, and its information sets there."""

    side: blocks.Side
    infosets: infosets.Arrivals


class _BlockUnroller:
    def __init__(
        self,
        propnet: propnet.PropNet,
        mode: payoffs.PayoffMode,
        max_blocks: int,
        max_members: int,
        goal_conflict: state_evaluation.GoalConflictMode,
        group: symmetry_group.Group | None,
        *,
        whole: bool = False,
    ) -> None:
        self.group = None if whole else group  # with which blocks are replaced
        self.game = blocks.divide_registers(propnet, () if group is None else list(group.registers.image))
        self.max_blocks, self.max_members = max_blocks, max_members
        self.evaluator = state_evaluation.StateEvaluator(propnet, mode, goal_conflict)

        def collectors(*, symmetric: bool) -> list[infosets.InfosetCollector]:
            return [infosets.InfosetCollector(r, contract=True, symmetric=symmetric) for r in propnet.players]

        self.collectors = collectors(symmetric=self.group is not None)
        self.orbits: list[orbits.PlayerOrbits] = []
        if group is not None:
            of_orbits = collectors(symmetric=True) if whole else self.collectors
            self.orbits = [orbits.PlayerOrbits(group, n, collector) for n, collector in enumerate(of_orbits)]
        self.numberings: Sequence[infosets.InfosetCollector | orbits.PlayerOrbits] = (
            self.collectors if self.group is None else self.orbits
        )
        # Of a whole tree: the sequence without symmetric ones, for all sequences of every player.
        self.representatives: list[list[Longs]] = [[np.zeros(1, np.int64)] for _ in self.orbits] if whole else []
        self.terminals = terminal_blocks.TerminalCollector(len(propnet.players))
        self.nodes: list[int] = []
        self.histories: list[float] = []
        self.information_sets: list[tuple[int, ...]] = []

    def run(self, report: Callable[[int, int], None] | None) -> game_tree.GameTree:
        level = self._start()
        step = 0
        while len(level.world):
            if step == limits.STEPS:
                name = self.game.propnet.name
                raise game_tree.TooLargeError(
                    f"{name} continues after {step} joint actions, and exact solving needs a game that ends",
                    "Add a step counter to its rules",
                )
            step += 1
            level = self._advance(level, step)
            if report:
                report(step, self.nodes[-1])
        units = self.evaluator.payoffs(self.terminals.goals(), is_complete=True)
        none = np.zeros((0, len(self.collectors)))
        return game_tree.GameTree(
            name=self.game.propnet.name,
            players=tuple(collector.player() for collector in self.collectors),
            terminals=game_tree.Terminals(none.astype(np.int32), none, np.zeros(0), np.zeros(0)),
            counts=game_tree.Counts(tuple(self.nodes), tuple(self.histories), tuple(self.information_sets)),
            zero_sum=units.zero_sum,
            offset=units.offset,
            unplayable=0,
            blocks=self.terminals.collect(units.offset),
        )

    def _start(self) -> blocks.Level:
        game = self.game
        state = game.machine.initial(1)
        ended, goals = self.evaluator.goals(state)
        alive = 0 if ended[0] else 1
        one = np.ones(alive)
        zero = np.zeros(alive, np.int64)
        sides = []
        for player, (private, role, collector) in enumerate(
            zip(game.private, game.players, self.numberings, strict=True)
        ):
            sides.append(blocks.Side(zero, zero, state[private], ragged.Ragged(np.arange(alive + 1), zero)))
            legal = machine.split_rows(game.machine.legal(state), game.sizes)[role]
            collector.start(alive, legal.T)
            if self.representatives:
                self.orbits[player].start(alive, legal.T)
                self._find_representatives(player)
        if ended[0]:
            empty = [ragged.Ragged(np.array([0, 1]), np.zeros(1, np.int32))] * len(sides)
            self.terminals.add(empty, [np.zeros(1, np.int64)] * len(sides), goals, np.ones(1), np.ones(1))
        self._count(1, 1.0, [alive] * len(sides))
        return blocks.Level(state[game.world], zero, [zero] * len(sides), one, one, sides)

    def _count(self, nodes: int, histories: float, sets: list[int]) -> None:
        self.nodes.append(nodes)
        self.histories.append(histories)
        self.information_sets.append(tuple(sets))

    def _advance(self, level: blocks.Level, step: int) -> blocks.Level:
        """All joint actions in all blocks of a level; returns the blocks that have not ended, merged."""
        joint, views = observations.observe(self.game, level, self._limit_actions)
        self._refuse_unplayable(level, views)
        terminal, goals = self.evaluator.goals(self.game.states(joint.worlds))
        chosen = observations.representatives(self.game, joint, views)
        moves = [
            transitions.find_transitions(
                self.game, joint, view, player, chosen, terminal, level.sides[player].private_states.shape[1]
            )
            for player, view in enumerate(views)
        ]
        children, extended = self._children(level, joint, moves)
        following = joint.following[children.joint]
        ended = np.flatnonzero(terminal[following])
        ends = children.take(ended)
        self.terminals.add(
            [each.ends for each in extended], ends.sets, goals[following[ended]], ends.weight, ends.histories
        )
        total = float(children.total.sum())
        children = children.take(np.flatnonzero(~terminal[following]))
        arrivals, sets = [], []
        for player, (numbers, each) in enumerate(zip(children.sets, extended, strict=True)):
            used, pool = merge.used_sets(numbers, each.sets)
            sets.append(used)
            arrivals.append(_arrive(level.sides[player], pool, moves[player], views[player]))
        del extended
        chose = [(joint.possible[role].sum(axis=0) > 1)[level.world][children.block] for role in self.game.players]
        world, worlds, sides = joint.following[children.joint], joint.worlds, [arrival.side for arrival in arrivals]
        placements: list[orbits.Placement] = []
        placed = [each.place(arrival.infosets) for each, arrival in zip(self.orbits, arrivals, strict=False)]
        if self.group is not None:
            placements = [placement for _, placement in placed]
            if len(world):
                world, worlds, sets, sides, placements = orbits.canonicalise(
                    self.game, self.group, world, worlds, sets, sides, placements
                )
        merged, pools = merge.merge(
            merge.Products(world, sets, children.weight, children.histories, chose), [side.sets for side in sides]
        )
        self._limit(len(merged.world), self.max_blocks, "blocks")
        after = _next_level(worlds, merged, pools, sides)
        arriving = [to for to, _ in placed] if self.group is not None else [arrival.infosets for arrival in arrivals]
        self._collect(after, arriving, placements, step)
        if self.representatives:
            for player, (to, placement) in enumerate(placed):
                self.orbits[player].advance(to, placement, np.zeros(len(to.parent)), step)
                self._find_representatives(player)
        self._count(len(after.world) + len(ended), total, [len(to.parent) for to in arriving])
        return after

    def _refuse_unplayable(self, level: blocks.Level, views: list[observations.Views]) -> None:
        for player, (role, view) in enumerate(zip(self.game.players, views, strict=True)):
            stuck = ~view.legal.any(axis=0)
            if stuck.any():
                pair = int(np.argmax(stuck))
                world = level.worlds[:, view.pair_world[pair]][:, None]
                private = level.sides[player].private_states[:, view.pair_private[pair]][:, None]
                state = self.game.states(world, player, private)[:, 0]
                may = [np.full(size, n != role) for n, size in enumerate(self.game.sizes)]
                raise game_tree.UnplayableError(unplayable.explain(self.game.propnet, np.concatenate(may), state))

    def _children(
        self, level: blocks.Level, joint: observations.JointActions, moves: list[transitions.Transitions]
    ) -> tuple[_Children, list[transitions.Extended]]:
        """Every block after every joint action that stands for those that are alike, and the sets of the players."""
        actions = np.flatnonzero(np.all([each.of_joint >= 0 for each in moves], axis=0))
        first = np.searchsorted(joint.world[actions], np.arange(level.worlds.shape[1] + 1))
        counts = np.diff(first)[level.world]
        self._limit_actions(float(counts.sum()))
        block = np.repeat(np.arange(len(level.world)), counts)
        number = actions[ragged.places_of(first[level.world], counts)]
        alive = np.ones(len(block), np.bool_)
        histories = level.histories[block]
        total = histories
        sets, extended = [], []
        rows = zip(level.sides, level.sets, moves, self.collectors, self.numberings, strict=True)
        for side, before, each, collector, numbering in rows:
            transition = each.of_joint[number]
            pairs = unique_rows.number_rows([before[block], transition], [side.sets.rows, len(each.is_end)])
            chosen = before[block][pairs.example]
            members = float(side.sets.lengths[chosen].sum())
            self._limit(members + _MEMBERS_PER_INFOSET * len(collector.sequence), self.max_members, "members of sets")
            extended.append(transitions.extend(side, each, numbering.sequence_after, chosen, transition[pairs.example]))
            sets.append(extended[-1].number[pairs.number])
            size = extended[-1].size[pairs.number]
            alive &= size > 0  # before information sets are numbered: nobody reaches those of the other sets
            total = total * size
        weight = (level.weight * joint.chance[level.world])[block]
        return _Children(block, number, sets, weight, histories, total).take(np.flatnonzero(alive)), extended

    def _limit_actions(self, actions: float) -> None:
        """Raises before the arrays of a step are made that would not fit into memory."""
        self._limit(actions, _ACTIONS_PER_BLOCK * self.max_blocks, "joint actions in blocks")

    def _limit(self, needed: float, allowed: int, what: str) -> None:
        if needed > allowed:
            name, step = self.game.propnet.name, len(self.nodes)
            raise game_tree.TooManyBlocksError(
                f"{name} is too large to unroll, also in blocks: step {step} needs the memory of {needed:,.0f} {what}; "
                f"allowed are {allowed:,}",
                "Allow more with `max_nodes=`, or make the game smaller",
            )

    def _find_representatives(self, player: int) -> None:
        """For the sequences that the last level of a whole tree has added."""
        collector = self.collectors[player]
        decisions = np.flatnonzero(collector.first > 0)
        _, widths, _, _, moves, _ = collector.decisions[-1]
        after = self.orbits[player].sequence_after(np.repeat(decisions, widths), moves.astype(np.int64))
        self.representatives[player].append(after.astype(np.int64))

    def _collect(
        self, after: blocks.Level, arrivals: list[infosets.Arrivals], placements: list[orbits.Placement], step: int
    ) -> None:
        """Numbers the information sets of the next level, with their chance reach."""
        sizes = after.sizes
        for player, (to, collector) in enumerate(zip(arrivals, self.collectors, strict=True)):
            others = np.prod([np.ones(len(after.world)), *(s for n, s in enumerate(sizes) if n != player)], axis=0)
            side = after.sides[player]
            per_set = merge.sum_by(after.sets[player], after.weight * others, side.sets.rows)
            per_member = merge.member_sums(per_set, side.sets, len(side.infoset))
            if self.group is None:
                collector.advance(to, merge.sum_by(side.infoset, per_member, len(to.parent)), step)
            else:
                placement = placements[player]
                chance = merge.sum_by(placement.representative[side.infoset], per_member, len(to.parent))
                self.orbits[player].advance(to, placement, chance, step)


def _arrive(
    before: blocks.Side, pool: ragged.Ragged, moves: transitions.Transitions, views: observations.Views
) -> _Arrival:
    """Numbers members and information sets exactly, in order of what came before."""
    kinds, most = moves.kinds, moves.most_options
    occurs = np.zeros(len(before.infoset) * most, np.bool_)
    occurs[pool.items] = True
    keys = np.flatnonzero(occurs)
    rank = np.empty(len(occurs), np.int32)
    rank[keys] = np.arange(len(keys))
    items = rank[pool.items]
    del occurs, rank
    member = keys // most
    kind = moves.options.items[moves.options.starts[before.private[member]] + keys % most]
    parent = before.infoset[member]
    infoset = unique_rows.number_rows(
        [parent, kinds.infoset[kind]], [int(before.infoset.max(initial=0)) + 1, max(1, len(kinds.infoset_move))]
    )
    private = kinds.private[kind]
    sets = ragged.Ragged(pool.starts, items)
    states = max(1, views.private_states.shape[1])
    same = unique_rows.number_rows([infoset.number, private], [max(1, infoset.size), states])
    if same.size < len(keys):  # different members before, whose difference is forgotten
        sets = ragged.sort_rows(ragged.Ragged(sets.starts, same.number[sets.items]))
    side = blocks.Side(infoset.number[same.example].astype(np.int64), private[same.example], views.private_states, sets)
    if same.size == len(keys):
        side = side._replace(infoset=infoset.number.astype(np.int64), private=private)
    follows = kinds.infoset[kind[infoset.example]]
    to = infosets.Arrivals(
        parent[infoset.example].astype(np.int32),
        kinds.infoset_move[follows],
        kinds.infoset_percept[follows].astype(np.int32),
        views.percept_rows,
        kinds.infoset_legal[follows].astype(np.int32),
        kinds.legal,
    )
    return _Arrival(side, to)


def _next_level(
    worlds: Bools, merged: merge.Products, pools: list[ragged.Ragged], sides: list[blocks.Side]
) -> blocks.Level:
    """The merged blocks, without worlds and sets that none of them has."""
    world, worlds = merge.drop_unused(merged.world, worlds)
    sets, used = [], []
    for numbers, pool, side in zip(merged.sets, pools, sides, strict=True):
        rows, kept = merge.used_sets(numbers, pool)
        sets.append(rows)
        used.append(side._replace(sets=kept))
    return blocks.Level(worlds, world, sets, merged.weight, merged.histories, used)
