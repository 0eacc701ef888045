"""Subtree CFR (`cfr`): an agent that solves a small tree with CFR+ at each move and draws from the average policy.

Leaves that are not terminal are valued by random play or by a network. The tree starts at the root of the game as long
as the tree from there to the horizon fits into its limits: players in it then have exactly the information that they
have in the game, and once it reaches all terminals it is the whole game. Otherwise it starts at the states consistent
with the player's observations: the others act in it as if they knew these observations too.
"""

import contextlib
import dataclasses
import pathlib

import jax
import numpy as np

from gdlx.envs.views import history
from gdlx.players.agents import agent, match_beliefs, time_control
from gdlx.propnet.common.text import reprs
from gdlx.solvers.search import beliefs, enumeration, subtree_cfr


@dataclasses.dataclass(frozen=True)
class SubtreeCfrAgent:
    """CFR+ on a depth-limited tree.

    Options:
      seconds: of solving at a move; if neither this nor `iterations` is set, as long as the play clock.
      iterations: of CFR+ at a move.
      depth: of the tree, in joint actions.
      nodes: the most nodes of a tree.
      states: the most states that a tree starts at, if not at the root of the game.
      rollouts: random matches that value a leaf.
      network: a folder written by the learner self-play, whose state network values leaves instead.
    """

    name: str = "cfr"
    seconds: float | None = None
    iterations: int | None = None
    depth: int = 3
    nodes: int = 4_096
    states: int = 64
    rollouts: int = 16
    network: str | None = None

    __repr__ = reprs.show_changes

    def __post_init__(self) -> None:
        time_control.require_time_control(self.name, self.seconds, self.iterations)
        time_control.require_positive(
            self.name, depth=self.depth, nodes=self.nodes, states=self.states, rollouts=self.rollouts
        )
        if self.nodes > enumeration.MAX_LANES:
            raise agent.AgentError(
                f"{self.name}: a tree has at most {enumeration.MAX_LANES:,} nodes, not {self.nodes:,}"
            )

    def prepare(self, arena: agent.Arena) -> None:
        player = SubtreeCfrPlayer(self, agent.PlayerContext(arena, 0, np.random.default_rng(0)))
        tree = player.tree_from_root(self.depth)
        if tree is None or not tree.is_complete:  # later trees may start at consistent states
            match_beliefs.warm_up(arena, self.states)
            for view in match_beliefs.play_random_match(arena, np.random.default_rng(0)):
                self._warm_up(view, arena)

    def _warm_up(self, final: history.ActionObservationHistory, arena: agent.Arena) -> None:
        """Builds a tree at every choice of a player in a match."""
        player = SubtreeCfrPlayer(self, agent.PlayerContext(arena, final.player, np.random.default_rng(0)))
        view = final.initial()
        for event in final.events:
            if len(view.legal) > 1:
                with contextlib.suppress(beliefs.NoConsistentStateError, agent.AgentError):  # raised again in a match
                    player.tree_from_beliefs(view)
            view = view.after(event)

    def start_match(self, context: agent.PlayerContext, clock: agent.Clock) -> "SubtreeCfrPlayer":
        del clock
        return SubtreeCfrPlayer(self, context)

    def sources(self) -> list[pathlib.Path]:
        if self.network is None:
            return []
        from gdlx.nets import checkpoints

        return checkpoints.last_files(pathlib.Path(self.network))


class SubtreeCfrPlayer:
    """Builds and solves a tree at every move."""

    def __init__(self, options: SubtreeCfrAgent, context: agent.PlayerContext) -> None:
        self._options, self._context = options, context
        self._beliefs = match_beliefs.MatchBeliefs(context)
        self._limits = subtree_cfr.SubtreeLimits(
            options.nodes, options.rollouts, context.arena.steps, _values(options.network, context.arena)
        )
        self._game_solver: subtree_cfr.SubtreeSolver | None = None  # once the tree is the whole game
        # Where all players know the state, a tree can start at it.
        self._starts_at_root = not match_beliefs.is_fully_observable(context.arena)

    def choose(self, view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        return int(self._context.random.choice(view.legal, p=self.policy(view, clock)))

    def policy(self, view: history.ActionObservationHistory, clock: agent.Clock) -> enumeration.Floats:
        """Probabilities of the legal moves."""
        solver = self._solver(view)
        end = time_control.deadline(clock, self._options.seconds)
        for count in time_control.iteration_chunks(end, self._options.iterations):
            for _ in range(count):
                solver.iterate()
        high, low = view.keys[-1].tolist()
        average = solver.average_policy(view.player, high << 32 | low)
        if average is None:
            self._beliefs.at(view)  # raises if the observations are impossible
            raise RuntimeError(
                f"a tree of {view.game.name} lacks the information set of {view.game.players[view.player]}"
            )
        probabilities = np.asarray(average[list(view.legal)])
        return np.asarray(probabilities / probabilities.sum())

    def _solver(self, view: history.ActionObservationHistory) -> subtree_cfr.SubtreeSolver:
        if self._game_solver is not None:
            return self._game_solver
        tree = self.tree_from_root(view.step + self._options.depth)
        if tree is None:
            return subtree_cfr.SubtreeSolver(self.tree_from_beliefs(view))
        solver = subtree_cfr.SubtreeSolver(tree)
        if tree.is_complete:
            self._game_solver = solver
        return solver

    def tree_from_root(self, depth: int) -> subtree_cfr.Subtree | None:
        """The tree from the root of the game to this depth, or to the terminals; None if it exceeds the limits."""
        if self._starts_at_root:
            tree = self.grow(enumeration.start(self._context.arena.packed), np.ones(1), depth)
            if tree is not None and (tree.is_complete or len(tree.levels) > depth):
                return tree
            self._starts_at_root = False
        return None

    def tree_from_beliefs(self, view: history.ActionObservationHistory) -> subtree_cfr.Subtree:
        """A tree from consistent states, from fewer of them in games with many moves."""
        active, weights = self._distinct(self._beliefs.at(view))
        states = self._options.states
        while True:
            chosen, chosen_weights = self._sample(weights, states)
            tree = self.grow(enumeration.ActiveGames(active.games, active.lanes[chosen]), chosen_weights)
            if tree is not None:
                return tree
            if states == 1:
                raise agent.AgentError(
                    f"{self._options.name}: joint action {view.step + 1} of {view.game.name} alone has more than "
                    f"{self._options.nodes:,} possibilities; allow more with nodes="
                )
            states //= 2

    def _distinct(self, belief: beliefs.Belief) -> tuple[enumeration.ActiveGames, enumeration.Floats]:
        """The states of a belief without duplicates, which sampling may produce, and their weights."""
        active = enumeration.ActiveGames(belief.games, belief.lanes)
        merged = enumeration.merge_equal_states(enumeration.take_snapshot(self._context.arena.packed, active))
        return enumeration.ActiveGames(belief.games, belief.lanes[merged.example]), merged.sums(belief.weights)

    def _sample(self, weights: enumeration.Floats, states: int) -> tuple[enumeration.Ints, enumeration.Floats]:
        """Indices and weights of all states if they are few enough, else of a sample of them."""
        if len(weights) <= states:
            return np.arange(len(weights), dtype=np.int32), weights
        drawn = beliefs.systematic_resample(weights, states, self._context.random)
        chosen, counts = np.unique(drawn, return_counts=True)
        return chosen, counts / states

    def grow(
        self, active: enumeration.ActiveGames, weights: enumeration.Floats, depth: int | None = None
    ) -> subtree_cfr.Subtree | None:
        """The tree from these states, by default to the depth of the options; None if it exceeds the limits."""
        horizon = self._options.depth if depth is None else depth
        key = jax.random.key(self._context.random.integers(2**31))
        return subtree_cfr.build_subtree(self._context.arena.packed, active, weights, horizon, self._limits, key)


def _values(network: str | None, arena: agent.Arena) -> subtree_cfr.ValueFn | None:
    if network is None:
        return None
    from gdlx.players.agents import network_agent  # imported late, as flax takes a while

    return network_agent.load_value_function(network, arena)
