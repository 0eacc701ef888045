"""A game as pure functions of the state of one match, to be vmapped: `init` and `step`."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

import jax
import jax.numpy as jnp

from gdlx.envs import payoffs
from gdlx.envs import state as states
from gdlx.envs.lowering import lower
from gdlx.envs.views import info_key
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common.text import suggestions

if TYPE_CHECKING:
    from gdlx.envs.packed import batched_env, game_step

State = states.State
EnvError = states.EnvError
TRACKABLE = ("info_key", "percepts", "actions")


@dataclasses.dataclass(frozen=True, eq=False)
class Env:
    """A game with simultaneous moves, chance and partial observations. Use `gdlx.make` to build one.

    `init` and `step` are pure and unbatched: apply `jax.jit` and `jax.vmap` as needed.

    Attributes:
      propnet: the compiled rules.
      payoffs: how goal values become payoffs, and whether those sum to zero.
      form: how the propnet is lowered to JAX operations; see `gdlx.make`.
      max_steps: joint actions after which a match is terminated as unplayable; 0 for no limit.
      track: what states keep of the past: any of `"info_key"`, `"percepts"` and `"actions"`.

    >>> import gdlx
    >>> env = gdlx.make("rps")
    >>> env
    Env(rps: players player1, player2; 3 actions, zero-sum)
    >>> state = env.step(env.init(), jnp.array([0, 1]), None)
    >>> state.rewards.tolist(), bool(state.terminated)
    ([50.0, -50.0], True)
    """

    propnet: propnet.PropNet
    payoffs: payoffs.Payoffs
    form: lower.LoweringMode = "auto"
    max_steps: int = 0
    track: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "track", (self.track,) if isinstance(self.track, str) else tuple(self.track))
        for name in self.track:
            if name not in TRACKABLE:
                raise EnvError(
                    f"`track=` takes {', '.join(TRACKABLE[:-1])} and {TRACKABLE[-1]}; got {name!r}"
                    f"{suggestions.is_it(name, TRACKABLE)}"
                )
        if self.form not in (forms := get_args(lower.LoweringMode)):
            raise EnvError(f"`form=` must be one of {', '.join(forms)}; got {self.form!r}")
        if not isinstance(self.max_steps, int) or self.max_steps < 0:
            raise EnvError(f"`max_steps=` must be a number of joint actions, or 0 for no limit; got {self.max_steps}")

    def __repr__(self) -> str:
        kind = "zero-sum" if self.payoffs.zero_sum else "general-sum"
        return f"Env({self.name}: players {', '.join(self.players)}; {self.num_actions} actions, {kind})"

    @property
    def name(self) -> str:
        return self.propnet.name

    @property
    def players(self) -> tuple[str, ...]:
        return tuple(role.name for role in self.propnet.players)

    @property
    def num_players(self) -> int:
        return len(self.propnet.players)

    @property
    def num_actions(self) -> int:
        return max((len(role.moves) for role in self.propnet.players), default=0)

    @property
    def num_percepts(self) -> int:
        return max((len(role.percepts) for role in self.propnet.players), default=0)

    @property
    def num_chance_actions(self) -> int:
        return sum(len(role.moves) for role in self.propnet.roles if role.is_random)

    @property
    def payoff_range(self) -> tuple[float, float]:
        """The lowest and the highest payoff that the goal rules mention."""
        payoffs = [value - self.payoffs.offset for role in self.propnet.players for value in role.goal_values]
        return min(payoffs, default=0.0), max(payoffs, default=0.0)

    def batched(
        self,
        batch: int,
        *,
        track: str | Sequence[str] = (),
        auto_reset: bool = True,
        mesh: jax.sharding.Mesh | None = None,
    ) -> "batched_env.BatchedEnv":
        """The environment of many games in lockstep, whose states stay in words of 32 games from step to step.

        Args:
          batch: the number of games.
          track: what states keep of the past, for `observe` and `info_key`: `"info_key"`, and `"infostate"` or
            `"window:T"` for the last T steps.
          auto_reset: whether games that have ended start again within the step.
          mesh: devices among which the games are divided, a multiple of 512 on each.

        Returns:
          A `BatchedEnv`.

        >>> import gdlx
        >>> gdlx.make("rps").batched(64)
        BatchedEnv(rps: 64 games)
        """
        from gdlx.envs.packed import batched_env

        return batched_env.BatchedEnv(self, batch, track, auto_reset, mesh)  # type: ignore[arg-type]

    def tracking(self, *names: str) -> "Env":
        """The same game whose states also keep what is named; the same object for the same names.

        >>> import gdlx
        >>> gdlx.make("rps").tracking("percepts").init().percepts.shape
        (2, 6)
        """
        missing = tuple(name for name in TRACKABLE if name in names and name not in self.track)
        if not missing and all(name in TRACKABLE for name in names):
            return self
        if missing not in self._others:
            self._others[missing] = dataclasses.replace(self, track=(*self.track, *missing, *set(names) - {*TRACKABLE}))
        return self._others[missing]

    def init(self, key: jax.Array | None = None) -> State:
        """Returns the initial state.

        Args:
          key: ignored. The initial state is deterministic, and chance acts within `step`.
        """
        del key
        players = self.num_players
        state = State(
            words=jnp.asarray(self._step.first()),
            step=jnp.asarray(0, jnp.int32),
            _actions=jnp.full(players, -1, jnp.int32) if "actions" in self.track else None,
            _info_key=None,
            layout=self._step.layout,
        )
        return dataclasses.replace(state, _info_key=self._first_key(state) if "info_key" in self.track else None)

    def step(
        self, state: State, joint_action: jax.Array, key: jax.Array | None, chance_action: jax.Array | None = None
    ) -> State:
        """Applies one joint action of all players, and one action of chance.

        Args:
          state: the current state.
          joint_action: [N] integers, an action of each player.
          key: draws the action of chance. May be None without a random role, or with `chance_action`.
          chance_action: [] integer, the action of chance; None to draw it from `key`.

        Returns:
          The next state. A terminated match does not change, except that its rewards are 0. If an action is illegal,
          the state does not change either, and `illegal` or `illegal_chance` is set.

        Raises:
          EnvError: if an argument has the wrong shape or dtype, or is missing.
        """
        actions = self._checked(joint_action)
        if state.layout != self._step.layout:
            raise EnvError(f"the state is of another game than {self.name}, or its environment tracks something else")
        rank, allowed = self._chance(state, key, chance_action)
        words = self._step(state.words, actions, rank, allowed)
        moved = dataclasses.replace(state, words=words)
        has_moved = moved.has_moved
        taken = actions.astype(jnp.int32)
        return dataclasses.replace(
            moved,
            step=state.step + has_moved,
            _actions=None if state._actions is None else jnp.where(has_moved, taken, state._actions),
            _info_key=None if state._info_key is None else self._next_key(moved, taken),
        )

    def _checked(self, joint_action: jax.Array) -> jax.Array:
        actions = jnp.asarray(joint_action)
        expected = (self.num_players,)
        if actions.shape != expected or not jnp.issubdtype(actions.dtype, jnp.integer):
            raise EnvError(
                f"joint_action of {self.name} must be integers of shape {expected}, one action for each of "
                f"{', '.join(self.players)}; got {actions.dtype} of shape {actions.shape}. For a batch use "
                "jax.vmap(env.step)."
            )
        return actions

    def _chance(
        self, state: State, key: jax.Array | None, chance_action: jax.Array | None
    ) -> tuple[jax.Array | None, jax.Array | None]:
        """The rank of chance's action among the legal ones, and whether it is legal; None without a random role."""
        if not self.num_chance_actions:
            if chance_action is not None:
                raise EnvError(f"{self.name} has no random role, so step takes no `chance_action=`")
            return None, None
        if chance_action is not None:
            chosen = jnp.asarray(chance_action)
            if chosen.shape or not jnp.issubdtype(chosen.dtype, jnp.integer):
                raise EnvError(
                    f"chance_action of {self.name} must be one integer, an action of the random role; got "
                    f"{chosen.dtype} of shape {chosen.shape}. For a batch use jax.vmap(env.step)."
                )
            legal, numbers = state.chance_mask, jnp.arange(self.num_chance_actions)
            rank = jnp.sum(legal & (numbers < chosen), dtype=jnp.uint32)
            return rank, (legal & (numbers == chosen)).any()
        if key is None:
            raise EnvError(f"{self.name} has a random role: pass `key=` or `chance_action=` to step")
        return states.scale_down(jax.random.bits(key, (), jnp.uint32), state.chance_outcomes), None

    @functools.cached_property
    def _others(self) -> dict[tuple[str, ...], "Env"]:
        return {}

    @functools.cached_property
    def _step(self) -> "game_step.GameStep":
        from gdlx.envs.packed import game_step

        return game_step.GameStep(self, game_step.make_layout(self))

    @functools.cached_property
    def _key_constants(self) -> tuple[info_key.HashConstants, info_key.HashConstants, info_key.HashConstants]:
        """For legal actions, for the player's action, and for percepts."""
        return (
            info_key.hash_constants(self.num_actions, 1),
            info_key.hash_constants(self.num_actions, 2),
            info_key.hash_constants(self.num_percepts, 3),
        )

    def _first_key(self, state: State) -> jax.Array:
        options, _, _ = self._key_constants
        start = jnp.zeros(2, jnp.uint32)
        return jax.vmap(lambda mask: info_key.extend(start, info_key.hash_bits(mask, options)))(state.legal_mask)

    def _next_key(self, state: State, actions: jax.Array) -> jax.Array:
        """Keys of the histories that lead to a state whose `info_key` is still that of the step before."""
        options, moves, senses = self._key_constants

        def one(key: jax.Array, action: jax.Array, seen: jax.Array, legal: jax.Array) -> jax.Array:
            one_hot = jnp.arange(self.num_actions) == action
            event = (
                info_key.hash_bits(one_hot, moves)
                + info_key.hash_bits(seen, senses)
                + info_key.hash_bits(legal, options)
            )
            return info_key.extend(key, event)

        before = state.info_key
        after = jax.vmap(one)(before, actions, state.percepts_of_last, state.legal_mask)
        return jnp.where(state.has_moved, after, before)
