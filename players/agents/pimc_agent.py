"""Perfect information Monte Carlo (`pimc`): an agent that samples states from its belief and searches each as if known.

The values of its moves are averaged over the states. The searches may play differently in states that the player cannot
distinguish ("strategy fusion"), so that moves which hide or reveal information are undervalued.
"""

import dataclasses
import time
from typing import Literal

import jax
import numpy as np
import numpy.typing as npt

from gdlx.envs.packed import packed_env
from gdlx.envs.views import history
from gdlx.players.agents import agent, match_beliefs, time_control
from gdlx.players.agents import uct_agent as uct_player
from gdlx.propnet.common.text import reprs
from gdlx.solvers.search import rollouts

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class PimcAgent:
    """Chooses the move with the highest mean value over sampled states.

    Options:
      seconds: of search at a move; if neither this nor `iterations` is set, as long as the play clock.
      iterations: rounds at a move, each with new states.
      states: sampled states of a round.
      visits: iterations of UCT, or random matches, from every state.
      search: uct, or flat: random matches after every move.
      c: exploration constant of UCT, in goals; None: 0.4 of their range.
    """

    name: str = "pimc"
    seconds: float | None = None
    iterations: int | None = None
    states: int = 64
    visits: int = 128
    search: Literal["uct", "flat"] = "uct"
    c: float | None = None

    __repr__ = reprs.show_changes

    def __post_init__(self) -> None:
        time_control.require_time_control(self.name, self.seconds, self.iterations)
        time_control.require_positive(self.name, states=self.states, visits=self.visits)
        uct_player.require_search(self.name, self.c, 4)

    def prepare(self, arena: agent.Arena) -> None:
        match_beliefs.warm_up(arena, self.states)
        with jax.enable_x64(False):
            games = arena.packed.start(self.states)
        for player in range(arena.env.num_players):
            PimcPlayer(self, agent.PlayerContext(arena, player, np.random.default_rng(0))).values(games, end=0.0)

    def start_match(self, context: agent.PlayerContext, clock: agent.Clock) -> "PimcPlayer":
        del clock
        return PimcPlayer(self, context)


class PimcPlayer:
    """Searches in rounds until time is up."""

    def __init__(self, options: PimcAgent, context: agent.PlayerContext) -> None:
        self._options, self._context = options, context
        self._beliefs = match_beliefs.MatchBeliefs(context)
        table = (2 * options.states * options.visits).bit_length()  # a tree grows by at most a node in an iteration
        self._trees = uct_player.UctSearch(
            context.arena, context.player, options.states, options.c, min(max(table, 12), 28)
        )

    def choose(self, view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        end = time_control.deadline(clock, self._options.seconds)
        total = known = np.zeros(self._context.arena.env.num_actions)
        rounds, longest = 0, 0.0
        while rounds != self._options.iterations:
            round_start = time.monotonic()
            values = self.values(self._beliefs.sample(view, self._options.states), end)
            total, known = total + np.nansum(values, axis=1), known + (~np.isnan(values)).sum(axis=1)
            rounds, longest = rounds + 1, max(longest, time.monotonic() - round_start)
            if time.monotonic() + longest > end:
                break
        mean = np.where(known > 0, total / np.maximum(known, 1), -np.inf)[list(view.legal)]
        return view.legal[int(np.argmax(mean))]

    def values(self, games: packed_env.PackedState, end: float) -> Floats:
        """[A, K] the mean payoff of each of its moves in every state; NaN where the move was never made."""
        arena, options = self._context.arena, self._options
        counts: npt.NDArray[np.int64] | npt.NDArray[np.float64]
        if options.search == "uct":
            self._trees.reset(games)
            for portion in time_control.iteration_chunks(end, options.visits):
                self._trees.advance(self._context.random, portion)
            counts, totals = self._trees.counts()
        else:
            counts, totals = np.zeros((2, arena.env.num_actions, games.batch))
            for portion in time_control.iteration_chunks(end, options.visits):
                more = self._flat(games, portion)
                counts, totals = counts + more[0], totals + more[1]
        return np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)

    def _flat(self, games: packed_env.PackedState, rounds: int) -> tuple[Floats, Floats]:
        with jax.enable_x64(False):
            statistics = rollouts.payoffs_by_first_action(
                self._context.arena.packed,
                games,
                jax.random.key(self._context.random.integers(2**31)),
                np.int32(rounds),
                player=self._context.player,
                steps=self._context.arena.steps,
            )
        counts, totals = (np.asarray(part, np.float64) for part in statistics)
        return counts, totals
