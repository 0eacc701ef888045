"""An agent that searches with UCT: many trees from states sampled from the player's belief, whose visits are summed."""

import dataclasses
import math
from typing import Literal

import jax
import numpy as np
import numpy.typing as npt

from gdlx.envs.packed import packed_env
from gdlx.envs.views import history
from gdlx.players.agents import agent, match_beliefs, time_control
from gdlx.propnet.common.text import reprs
from gdlx.solvers.search import uct

_EXPLORATION = 0.4  # of the range of goals: C = 40 where they are 0 to 100
_MAX_TABLE_BYTES = 2**27


@dataclasses.dataclass(frozen=True)
class UctAgent:
    """UCT from sampled states (determinisation).

    With perfect information all trees have the same root. Otherwise each starts from a state that is consistent with
    the player's observations, and searches as if that state were known.

    Options:
      seconds: of search at a move; if neither this nor `iterations` is set, as long as the play clock.
      iterations: of every tree at a move.
      trees: number of trees.
      c: exploration constant, in goals; None: 0.4 of their range.
      table: binary logarithm of the nodes of all trees; reduced in games with many moves.
      by: what the chosen move has most of, summed over trees: visits or mean value.
    """

    name: str = "uct"
    seconds: float | None = None
    iterations: int | None = None
    trees: int = 32
    c: float | None = None
    table: int = 17
    by: Literal["visits", "value"] = "visits"

    __repr__ = reprs.show_changes

    def __post_init__(self) -> None:
        time_control.require_time_control(self.name, self.seconds, self.iterations)
        time_control.require_positive(self.name, trees=self.trees)
        require_search(self.name, self.c, self.table)

    def prepare(self, arena: agent.Arena) -> None:
        match_beliefs.warm_up(arena, self.trees)
        for player in range(arena.env.num_players):
            search = self._search(arena, player)
            search.reset(search.start())
            search.advance(np.random.default_rng(0), 1)
            search.counts()

    def start_match(self, context: agent.PlayerContext, clock: agent.Clock) -> "UctPlayer":
        del clock
        return UctPlayer(self, context, self._search(context.arena, context.player))

    def _search(self, arena: agent.Arena, player: int) -> "UctSearch":
        return UctSearch(arena, player, self.trees, self.c, self.table)


def require_search(name: str, c: float | None, table: int) -> None:
    """Raises AgentError if options of a search are out of range."""
    if c is not None and not 0 <= c < math.inf:
        raise agent.AgentError(f"{name}: c is the weight of exploration, 0 or more, not {c:g}")
    if not 4 <= table <= 28:
        raise agent.AgentError(f"{name}: table is the binary logarithm of a number of nodes, 4 to 28; not {table}")


class UctSearch:
    """The trees of one player; `reset` starts new ones."""

    def __init__(self, arena: agent.Arena, player: int, trees: int, c: float | None, table: int) -> None:
        self._arena, self._player, self._trees = arena, player, trees
        low, high = arena.env.payoff_range
        constant = _EXPLORATION * (high - low) if c is None else c
        self._exploration = np.full(arena.env.num_players, constant, np.float32)
        max_bits = (_MAX_TABLE_BYTES // uct.node_bytes(arena.packed)).bit_length() - 1
        self._bits = max(4, min(table, max_bits))

    def start(self) -> packed_env.PackedState:
        """Roots at the start of the game, one for each tree."""
        with jax.enable_x64(False):
            return self._arena.packed.start(self._trees)

    def reset(self, roots: packed_env.PackedState) -> None:
        """Starts new trees at these roots."""
        self._roots = roots
        with jax.enable_x64(False):
            self._trees_state = uct.init(self._arena.packed, self._bits)

    def advance(self, random: np.random.Generator, iterations: int) -> None:
        """Runs `iterations` of every tree."""
        with jax.enable_x64(False):
            self._trees_state = uct.search(
                self._arena.packed,
                self._trees_state,
                self._roots,
                jax.random.key(random.integers(2**31)),
                np.int32(iterations),
                self._exploration,
                steps=self._arena.steps,
            )
            int(self._trees_state.num_nodes)  # waits for the device, as its time counts

    def counts(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """[A, K] visits of the player's moves at every root, and the sums of its payoffs."""
        with jax.enable_x64(False):
            statistics = uct.root_statistics(self._arena.packed, self._trees_state, self._roots, player=self._player)
        return np.asarray(statistics.counts, np.int64), np.asarray(statistics.totals, np.float64)


@dataclasses.dataclass
class UctPlayer:
    """Searches from states sampled from its belief."""

    options: UctAgent
    context: agent.PlayerContext
    search: UctSearch

    def __post_init__(self) -> None:
        self._beliefs = match_beliefs.MatchBeliefs(self.context)

    def choose(self, view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        self.search.reset(self._beliefs.sample(view, self.options.trees))
        end = time_control.deadline(clock, self.options.seconds)
        for portion in time_control.iteration_chunks(end, self.options.iterations):
            self.search.advance(self.context.random, portion)
        visits, payoffs = (part.sum(axis=1)[list(view.legal)] for part in self.search.counts())
        value = np.where(visits > 0, payoffs / np.maximum(visits, 1), -np.inf)
        order = (value, visits) if self.options.by == "visits" else (visits, value)
        return view.legal[int(np.lexsort(order)[-1])]
