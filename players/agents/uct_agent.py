"""An agent that searches with UCT: many trees from the states that the match may be in, one vote for every visit."""

import dataclasses
import math
from typing import Literal

import jax
import numpy as np
import numpy.typing as npt

from gdlx.envs.packed import packed_env
from gdlx.envs.views import history
from gdlx.players.agents import agent, match_beliefs, time_control
from gdlx.solvers.search import uct

_PART = 0.4  # of the range of goals: C = 40 where they are 0 to 100
_MOST_BYTES = 2**27  # of a table


@dataclasses.dataclass(frozen=True)
class UctAgent:
    """Where everything is known all trees have the same root; else each starts from a state that may be the true one,
    and searches as if it were known to be.
    """

    name: str = "uct"
    seconds: float | None = None  # for a move; None: as long as the clock
    iterations: int | None = None  # of every tree
    trees: int = 32
    c: float | None = None  # exploration, in goals; None: 0.4 of their range
    table: int = 17  # the logarithm of the number of nodes of all trees; less where moves are many
    by: Literal["visits", "value"] = "visits"

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

    def start_match(self, seat: agent.PlayerContext, clock: agent.Clock) -> "UctPlayer":
        del clock
        return UctPlayer(self, seat, self._search(seat.arena, seat.player))

    def _search(self, arena: agent.Arena, player: int) -> "UctSearch":
        return UctSearch(arena, player, self.trees, self.c, self.table)


def require_search(name: str, c: float | None, table: int) -> None:
    if c is not None and not 0 <= c < math.inf:
        raise agent.AgentError(f"{name}: c is the weight of exploration, 0 or more, not {c:g}")
    if not 4 <= table <= 28:
        raise agent.AgentError(f"{name}: table is the logarithm of a number of nodes, 4 to 28; not {table}")


class UctSearch:
    """Trees for one player; each search begins with new ones."""

    def __init__(self, arena: agent.Arena, player: int, trees: int, c: float | None, table: int) -> None:
        self._arena, self._player, self._trees = arena, player, trees
        low, high = arena.env.payoff_range
        constant = _PART * (high - low) if c is None else c
        self._exploration = np.full(arena.env.num_players, constant, np.float32)
        room = (_MOST_BYTES // uct.node_bytes(arena.packed)).bit_length() - 1
        self._bits = max(4, min(table, room))

    def start(self) -> packed_env.PackedState:
        """As many games as trees, before the first move."""
        with jax.enable_x64(False):
            return self._arena.packed.start(self._trees)

    def reset(self, roots: packed_env.PackedState) -> None:
        self._roots = roots
        with jax.enable_x64(False):
            self._found = uct.init(self._arena.packed, self._bits)

    def advance(self, random: np.random.Generator, iterations: int) -> None:
        """So many iterations of every tree."""
        with jax.enable_x64(False):
            self._found = uct.search(
                self._arena.packed,
                self._found,
                self._roots,
                jax.random.key(random.integers(2**31)),
                np.int32(iterations),
                self._exploration,
                steps=self._arena.steps,
            )
            int(self._found.num_nodes)  # waits for it: the clock must not run ahead of the device

    def counts(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """[A, K] visits of the player's moves at every root, and its payoffs then."""
        with jax.enable_x64(False):
            found = uct.root_statistics(self._arena.packed, self._found, self._roots, player=self._player)
        return np.asarray(found.counts, np.int64), np.asarray(found.totals, np.float64)


@dataclasses.dataclass
class UctPlayer:
    options: UctAgent
    seat: agent.PlayerContext
    search: UctSearch

    def __post_init__(self) -> None:
        self._beliefs = match_beliefs.MatchBeliefs(self.seat)

    def choose(self, view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        self.search.reset(self._beliefs.sample(view, self.options.trees))
        end = time_control.deadline(clock, self.options.seconds)
        for portion in time_control.iteration_chunks(end, self.options.iterations):
            self.search.advance(self.seat.random, portion)
        visits, payoffs = (part.sum(axis=1)[list(view.legal)] for part in self.search.counts())
        value = np.where(visits > 0, payoffs / np.maximum(visits, 1), -np.inf)
        order = (value, visits) if self.options.by == "visits" else (visits, value)
        return view.legal[int(np.lexsort(order)[-1])]
