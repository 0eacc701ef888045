"""Online outcome sampling: an agent that samples at every move, targeted at the current state of the match.

See `solvers.mccfr.online_sampling`.
"""

import dataclasses
import math
import time
import weakref
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.packed import packed_env
from gdlx.envs.views import history, public
from gdlx.players.agents import agent, time_control
from gdlx.propnet.common.text import reprs
from gdlx.solvers.exact import regret_matching
from gdlx.solvers.mccfr import mccfr, online_sampling, table_loop, table_rows, table_state
from gdlx.solvers.runs import table_solver

_TARGETINGS: dict[str, online_sampling.Targeting] = {"set": "information set", "public": "public subgame"}
_TARGETED_FRACTION = 0.75  # of the trajectories, by default


@dataclasses.dataclass(frozen=True)
class OosAgent:
    """Samples the whole game before the first match, and continues from there at every move of every match.

    Options:
      seconds: of sampling at a move; if neither this nor `iterations` is set, as long as the play clock.
      iterations: of sampling at a move.
      start: seconds of sampling before the first match; if neither this nor `start_iterations` is set, as long as the
        start clock.
      start_iterations: of sampling before the first match.
      aim: what trajectories are targeted at: the player's information set ("set"), or the public subgame ("public"),
        which is everything with the same public knowledge.
      aimed: the fraction of targeted trajectories, which are a multiple of 32; None: three quarters, rounded.
      batch: trajectories of an iteration, for every player.
      table: binary logarithm of the capacity of the hash table in information sets.
      exploration: probability of a uniform action of the updated player, when trajectories are sampled.
      uniform: weight of the uniform policy in every policy.
      decay: step size of the baselines at a visit; None: no baselines.
      seed: of the sampling before the first match.
    """

    name: str = "oos"
    seconds: float | None = None
    iterations: int | None = None
    start: float | None = None
    start_iterations: int | None = None
    aim: Literal["set", "public"] = "set"
    aimed: float | None = None
    batch: int = 512
    table: int = 18
    exploration: float = 0.4
    uniform: float = 0.01
    decay: float | None = None
    seed: int = 0
    _prepared: weakref.WeakKeyDictionary[agent.Arena, "_Prepared"] = dataclasses.field(
        default_factory=weakref.WeakKeyDictionary, init=False, repr=False, compare=False
    )

    __repr__ = reprs.show_changes

    def __post_init__(self) -> None:
        time_control.require_time_control(self.name, self.seconds, self.iterations)
        time_control.require_time_control(self.name, self.start, self.start_iterations)
        time_control.require_seed(self.name, self.seed)
        if self.aimed is not None and not 0 < self.aimed < 1:
            raise agent.AgentError(f"{self.name}: aimed is a fraction of the trajectories, above 0 and below 1")
        if self.batch < 2 * packed_env.GAMES_PER_WORD or self.batch % packed_env.GAMES_PER_WORD:
            raise agent.AgentError(
                f"{self.name}: batch must be a multiple of {packed_env.GAMES_PER_WORD} "
                f"and at least {2 * packed_env.GAMES_PER_WORD}"
            )
        if self.aimed is not None and not math.isclose(self.aimed * self.batch, self.num_targeted_trajectories):
            raise agent.AgentError(
                f"{self.name}: aimed trajectories are a multiple of {packed_env.GAMES_PER_WORD}, "
                f"so with batch={self.batch} aimed is a multiple of {packed_env.GAMES_PER_WORD / self.batch:g}; "
                f"the nearest is aimed={self.num_targeted_trajectories / self.batch:g}"
            )
        if not 4 <= self.table <= 26:
            raise agent.AgentError(
                f"{self.name}: table is the binary logarithm of a number of information sets, 4 to 26; not {self.table}"
            )
        for option in ("exploration", "uniform", "decay"):
            value = getattr(self, option)
            if value is not None and not 0 < value <= 1:
                raise agent.AgentError(f"{self.name}: {option} is more than 0 and at most 1, not {value:g}")

    @property
    def num_targeted_trajectories(self) -> int:
        """Targeted trajectories of a batch: at least one word of them, and not all."""
        words = self.batch // packed_env.GAMES_PER_WORD
        fraction = _TARGETED_FRACTION if self.aimed is None else self.aimed
        return packed_env.GAMES_PER_WORD * min(words - 1, max(1, round(fraction * words)))

    @property
    def depends_on_wall_clock(self) -> bool:
        return self.start_iterations is None

    def prepare(self, arena: agent.Arena) -> None:
        if arena not in self._prepared:
            self._prepared[arena] = _Prepared(self, arena)

    def start_match(self, context: agent.PlayerContext, clock: agent.Clock) -> "OosPlayer":
        del clock  # `prepare` has sampled for all matches
        self.prepare(context.arena)
        return OosPlayer(self, context, self._prepared[context.arena])


class _Prepared:
    """What all matches of a game share: compiled programs, and the table that they start from."""

    def __init__(self, options: OosAgent, arena: agent.Arena) -> None:
        is_public = options.aim == "public"
        self.game = (
            packed_env.PackedEnv(arena.env, public.find_public_info(arena.env.propnet)) if is_public else arena.packed
        )
        if self.game.public is not None and self.game.public.is_empty:
            raise agent.AgentError(f"{options.name}: no move and no percept of {arena.env.name} is public; use aim=set")
        self.config = table_state.SamplerConfig(options.batch, arena.steps, baselines=options.decay is not None)
        self._require_memory(options)
        minimiser = regret_matching.Settings(1.0, 1.0, 1.0, exploration=options.uniform)
        settings = mccfr.MccfrSettings(minimiser, options.exploration, options.decay)
        self.settings: Any = jax.tree.map(np.float32, settings)
        self.num_targeted = options.num_targeted_trajectories
        self.targeting = _TARGETINGS[options.aim]
        self._compile(options, arena)
        self._start = self._sample_before_matches(options, arena)

    def _require_memory(self, options: OosAgent) -> None:
        # The initial table, and for every player its table before and after an update.
        tables = (1 + 2 * self.game.env.num_players) * 2**options.table
        needed = tables * table_state.row_bytes(self.game.env.num_players, self.game.env.num_actions, self.config)
        allowed = table_solver.memory_budget()
        if needed > allowed:
            raise agent.AgentError(
                f"{options.name}: tables of 2^{options.table} information sets of {self.game.env.name} need about "
                f"{needed / 2**30:.1f} GiB, and may take {allowed / 2**30:.1f} GiB; take a smaller table"
            )

    def _compile(self, options: OosAgent, arena: agent.Arena) -> None:
        """Compiles all programs of a move, before any clock runs."""
        with jax.enable_x64(False):
            legal = tuple(np.flatnonzero(np.asarray(self.game.start(1).legal[0, :, 0])).tolist())
        view = history.ActionObservationHistory(arena.env, 0, legal)
        self.policy(self.advance(self._empty_table(options), view, jax.random.key(0), 1), view)

    def _empty_table(self, options: OosAgent) -> table_state.TableState:
        with jax.enable_x64(False):
            return table_state.init(self.game, self.config, options.table, 1)

    def _sample_before_matches(self, options: OosAgent, arena: agent.Arena) -> table_state.TableState:
        state, key = self._empty_table(options), jax.random.key(options.seed)
        loop = table_loop.make_loop(tuple(jax.local_devices()[:1]), self.game, self.config)
        with jax.enable_x64(False):
            state = loop.advance(state, self.settings, key, 0)  # compiles
        timed = options.start_iterations is None and options.start is None
        end = time.monotonic() + ((arena.start_seconds if timed else options.start) or np.inf)
        for count in time_control.iteration_chunks(end, options.start_iterations):
            with jax.enable_x64(False):
                state = loop.advance(state, self.settings, key, count)
                int(state.t)  # waits for the device
        return state

    def start(self) -> table_state.TableState:
        """A copy of the initial table for a new match, as sampling donates its buffers."""
        copied: table_state.TableState = jax.tree.map(jnp.copy, self._start)
        return copied

    def advance(
        self, state: table_state.TableState, view: history.ActionObservationHistory, key: jax.Array, count: int
    ) -> table_state.TableState:
        """The table after `count` more iterations, targeted at the player's history."""
        search = online_sampling.SearchConfig(self.config, self.num_targeted, self.targeting)
        with jax.enable_x64(False):
            target = online_sampling.make_target(self.game, view, self.config.steps, self.targeting)
            after: table_state.TableState = online_sampling.advance(
                self.game, state, self.settings, target, key, count, search=search
            )
            int(after.t)  # waits for the device
        return after

    def policy(self, state: table_state.TableState, view: history.ActionObservationHistory) -> Any:
        """[A] the average policy at the player's information set."""
        legal = np.zeros(self.game.env.num_actions, np.bool_)
        legal[list(view.legal)] = True
        with jax.enable_x64(False):
            key = table_rows.player_keys(jnp.asarray(view.keys[-1, 0]), jnp.asarray(view.keys[-1, 1]), view.player)
            average, _ = online_sampling.average_policy_at(state, key, jnp.asarray(legal))
        return np.asarray(average, np.float64)


class OosPlayer:
    """Samples at every move, and draws from the average policy."""

    def __init__(self, options: OosAgent, context: agent.PlayerContext, prepared: _Prepared) -> None:
        self._options, self._context, self._prepared = options, context, prepared
        self._state = prepared.start()
        self._key = jax.random.key(int(context.random.integers(2**31)))

    def choose(self, view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        end = time_control.deadline(clock, self._options.seconds)
        for count in time_control.iteration_chunks(end, self._options.iterations):
            self._state = self._prepared.advance(self._state, view, self._key, count)
        probabilities = self._prepared.policy(self._state, view)[list(view.legal)]
        return int(self._context.random.choice(view.legal, p=probabilities / probabilities.sum()))
