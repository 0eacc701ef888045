"""An agent that solves a small tree with CFR+ at each move, values its open ends by random play or by a network, and
draws from the average policy (`cfr`).

The tree begins at the start of the game as long as it fits in from there to the horizon: then nobody knows in it what
nobody could know, and once it reaches all ends it is the whole game. Else it begins at the states that agree with what
the player has seen: the others act in it as if they knew that too.
"""

import contextlib
import dataclasses
import pathlib

import jax
import numpy as np

from gdlx.envs.views import history
from gdlx.players.agents import agent, match_beliefs, time_control
from gdlx.solvers.search import beliefs, enumeration, subtree_cfr


@dataclasses.dataclass(frozen=True)
class SubtreeCfrAgent:
    name: str = "cfr"
    seconds: float | None = None  # for a move; None: as long as the clock
    iterations: int | None = None  # of CFR+
    depth: int = 3  # joint moves
    nodes: int = 4_096  # of a tree at most
    states: int = 64  # that it begins at, if not at the start
    rollouts: int = 16  # random matches that value an open end
    net: str | None = None  # folder of `gdlx train --learner self-play`: its network values open ends instead

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
        mind = SubtreeCfrPlayer(self, agent.PlayerContext(arena, 0, np.random.default_rng(0)))
        tree = mind.tree_from_root(self.depth)
        if tree is None or not tree.is_complete:  # then trees will begin at states that agree, sooner or later
            match_beliefs.warm_up(arena, self.states)
            for view in match_beliefs.play_random_match(arena, np.random.default_rng(0)):
                self._warm_up(view, arena)

    def _warm_up(self, whole: history.ActionObservationHistory, arena: agent.Arena) -> None:
        """Grow a tree wherever a player has to choose in a match."""
        mind, view = (
            SubtreeCfrPlayer(self, agent.PlayerContext(arena, whole.player, np.random.default_rng(0))),
            whole.initial(),
        )
        for event in whole.events:
            if len(view.legal) > 1:
                with contextlib.suppress(beliefs.NoConsistentStateError, agent.AgentError):  # told when it matters
                    mind.tree_from_beliefs(view)
            view = view.after(event)

    def start_match(self, seat: agent.PlayerContext, clock: agent.Clock) -> "SubtreeCfrPlayer":
        del clock
        return SubtreeCfrPlayer(self, seat)

    def sources(self) -> list[pathlib.Path]:
        if self.net is None:
            return []
        from gdlx.nets import checkpoints

        return checkpoints.last_files(pathlib.Path(self.net))


class SubtreeCfrPlayer:
    def __init__(self, options: SubtreeCfrAgent, seat: agent.PlayerContext) -> None:
        self._options, self._seat = options, seat
        self._beliefs = match_beliefs.MatchBeliefs(seat)
        self._room = subtree_cfr.SubtreeLimits(
            options.nodes, options.rollouts, seat.arena.steps, _values(options.net, seat.arena)
        )
        self._whole: subtree_cfr.SubtreeSolver | None = None  # of the whole game
        self._fits = not match_beliefs.is_fully_observable(
            seat.arena
        )  # where everybody knows the state, a tree may begin at it

    def choose(self, view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        return int(self._seat.random.choice(view.legal, p=self.policy(view, clock)))

    def policy(self, view: history.ActionObservationHistory, clock: agent.Clock) -> enumeration.Floats:
        """Probabilities of the legal moves."""
        solver = self._solver(view)
        end = time_control.deadline(clock, self._options.seconds)
        for portion in time_control.iteration_chunks(end, self._options.iterations):
            for _ in range(portion):
                solver.iterate()
        high, low = view.keys[-1].tolist()
        average = solver.average_policy(view.player, high << 32 | low)
        if average is None:
            self._beliefs.at(view)  # which tells what is impossible
            raise RuntimeError(f"a tree of {view.game.name} lacks what {view.game.players[view.player]} knows")
        own = np.asarray(average[list(view.legal)])
        return np.asarray(own / own.sum())

    def _solver(self, view: history.ActionObservationHistory) -> subtree_cfr.SubtreeSolver:
        if self._whole is not None:
            return self._whole
        tree = self.tree_from_root(view.step + self._options.depth)
        if tree is None:
            return subtree_cfr.SubtreeSolver(self.tree_from_beliefs(view))
        solver = subtree_cfr.SubtreeSolver(tree)
        if tree.is_complete:
            self._whole = solver
        return solver

    def tree_from_root(self, depth: int) -> subtree_cfr.Subtree | None:
        """The tree from the start of the game to this depth, or to the ends; None if it does not fit in."""
        if self._fits:
            tree = self.grow(enumeration.start(self._seat.arena.packed), np.ones(1), depth)
            if tree is not None and (tree.is_complete or len(tree.levels) > depth):
                return tree
            self._fits = False
        return None

    def tree_from_beliefs(self, view: history.ActionObservationHistory) -> subtree_cfr.Subtree:
        """From states that agree, fewer where moves are many."""
        active, weights = self._distinct(self._beliefs.at(view))
        states = self._options.states
        while True:
            chosen, often = self._some(weights, states)
            tree = self.grow(enumeration.ActiveGames(active.games, active.lanes[chosen]), often)
            if tree is not None:
                return tree
            if states == 1:
                raise agent.AgentError(
                    f"{self._options.name}: joint move {view.step + 1} of {view.game.name} alone has more than "
                    f"{self._options.nodes:,} possibilities; allow for more with nodes="
                )
            states //= 2

    def _distinct(self, found: beliefs.Belief) -> tuple[enumeration.ActiveGames, enumeration.Floats]:
        """Sampled games may be there many times."""
        active = enumeration.ActiveGames(found.games, found.lanes)
        same = enumeration.merge_equal_states(enumeration.take_snapshot(self._seat.arena.packed, active))
        return enumeration.ActiveGames(found.games, found.lanes[same.example]), same.sums(found.weights)

    def _some(self, weights: enumeration.Floats, states: int) -> tuple[enumeration.Ints, enumeration.Floats]:
        """Positions and weights: of all states if they are few enough, else of some, as often as they are probable."""
        if len(weights) <= states:
            return np.arange(len(weights), dtype=np.int32), weights
        drawn = beliefs.systematic_resample(weights, states, self._seat.random)
        chosen, often = np.unique(drawn, return_counts=True)
        return chosen, often / states

    def grow(
        self, active: enumeration.ActiveGames, weights: enumeration.Floats, depth: int | None = None
    ) -> subtree_cfr.Subtree | None:
        deep = self._options.depth if depth is None else depth
        key = jax.random.key(self._seat.random.integers(2**31))
        return subtree_cfr.build_subtree(self._seat.arena.packed, active, weights, deep, self._room, key)


def _values(net: str | None, arena: agent.Arena) -> subtree_cfr.ValueFn | None:
    if net is None:
        return None
    from gdlx.players.agents import network_agent  # not before it is asked for: flax takes a while to import

    return network_agent.load_value_function(net, arena)
