"""A game as pure functions of the state of one match, to be vmapped: `init` and `step`."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, get_args

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from gdlx.envs import payoffs
from gdlx.envs.lowering import lower, packing, tape
from gdlx.envs.views import info_key
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import errors

if TYPE_CHECKING:
    from gdlx.envs.packed import batched_env


class State(NamedTuple):
    """The state of one match.

    Axes: R registers, N players, A actions (of the player with the most), P percepts (likewise), C chance actions (0
    without a random role).

    >>> from gdlx.envs import make_env
    >>> env = make_env.make("rps")
    >>> state = env.init()
    >>> state.legal_mask.tolist(), bool(state.terminated)
    ([[True, True, True], [True, True, True]], False)
    >>> jax.vmap(env.step, in_axes=(None, 0, None))(state, jnp.array([[0, 1], [1, 1]]), None).rewards.tolist()
    [[50.0, -50.0], [0.0, 0.0]]
    """

    registers: jax.Array  # [R] bool
    legal_mask: jax.Array  # [N, A] bool; all false once terminated
    chance_mask: jax.Array  # [C] bool
    percepts: jax.Array  # [N, P] bool, of the last joint action
    actions: jax.Array  # [N] int32, the last joint action, -1 before the first
    rewards: jax.Array  # [N] float32, payoffs in the step that terminates the match, else 0
    goals: jax.Array  # [N] int32, goal values (0..100) once terminated, else 0
    terminated: jax.Array  # [] bool
    unplayable: jax.Array  # [] bool, terminated because some role had no legal move; rewards are then 0
    goal_conflict: jax.Array  # [] bool, terminated with several goal values (the highest counts) or none for a player
    illegal: jax.Array  # [N] bool, players whose action was illegal; the state then did not change
    illegal_chance: jax.Array  # [] bool, the same for a `chance_action` passed to `step`
    info_key: jax.Array  # [N, 2] uint32
    step: jax.Array  # [] int32, joint actions taken so far

    def __repr__(self) -> str:
        registers, legal = (getattr(field, "shape", None) for field in (self.registers, self.legal_mask))
        if not isinstance(registers, tuple) or not isinstance(legal, tuple) or not registers or len(legal) < 2:
            return f"State({type(self.registers).__name__} leaves)"
        batch = f", batch {registers[:-1]}" if registers[:-1] else ""
        return f"State({registers[-1]} registers, {legal[-2]} players, {legal[-1]} actions{batch})"


# So that a step exported by jax.export can be saved.
jax.export.register_namedtuple_serialization(State, serialized_name="gdlx.envs.env.State")

_LOWEST_GOAL = -(2**31)


class EnvError(errors.UserError, ValueError):
    """An invalid argument, reported at trace time together with what was expected."""


@dataclasses.dataclass(frozen=True, eq=False)
class Env:
    """A game with simultaneous moves, chance and partial observations. Use `gdlx.make` to build one.

    `init` and `step` are pure and unbatched: apply `jax.jit` and `jax.vmap` as needed.

    Attributes:
      propnet: the compiled rules.
      payoffs: how goal values become payoffs, and whether those sum to zero.
      form: how the propnet is lowered to JAX operations; see `gdlx.make`.
      max_steps: joint actions after which a match is terminated as unplayable; 0 for no limit.

    >>> from gdlx.envs import make_env
    >>> env = make_env.make("rps")
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

    def __post_init__(self) -> None:
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

        >>> from gdlx.envs import make_env
        >>> make_env.make("rps").batched(64)
        BatchedEnv(rps: 64 games)
        """
        from gdlx.envs.packed import batched_env

        return batched_env.BatchedEnv(self, batch, track, auto_reset, mesh)  # type: ignore[arg-type]

    def init(self, key: jax.Array | None = None) -> State:
        """Returns the initial state.

        Args:
          key: ignored. The initial state is deterministic, and chance acts within `step`.
        """
        del key
        registers = jnp.asarray(self.propnet.initial)
        legal, chance = self._legal(registers)
        players = self.num_players
        terminal, goals, conflict = self._judge(registers)
        state = State(
            registers=registers,
            legal_mask=legal,
            chance_mask=chance,
            percepts=jnp.zeros((players, self.num_percepts), jnp.bool_),
            actions=jnp.full(players, -1, jnp.int32),
            rewards=jnp.zeros(players, jnp.float32),
            goals=jnp.zeros(players, jnp.int32),
            terminated=jnp.asarray(False),
            unplayable=jnp.asarray(False),
            goal_conflict=jnp.asarray(False),
            illegal=jnp.zeros(players, jnp.bool_),
            illegal_chance=jnp.asarray(False),
            info_key=jnp.zeros((players, 2), jnp.uint32),
            step=jnp.asarray(0, jnp.int32),
        )
        state = self._ended(state, terminal, goals, conflict)
        return state._replace(info_key=self._first_key(state.legal_mask))

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
        allowed = (state.legal_mask & (jnp.arange(self.num_actions) == actions[:, None])).any(axis=1)
        chance = self._chance(state, key, chance_action)
        does = self._does(actions, chance)
        registers, percepts = self._move(state.registers, does)
        legal, chance_mask = self._legal(registers)
        terminal, goals, conflict = self._judge(registers)
        moved = State(
            registers=registers,
            legal_mask=legal,
            chance_mask=chance_mask,
            percepts=percepts,
            actions=actions.astype(jnp.int32),
            rewards=jnp.zeros_like(state.rewards),
            goals=jnp.zeros_like(state.goals),
            terminated=jnp.asarray(False),
            unplayable=jnp.asarray(False),
            goal_conflict=jnp.asarray(False),
            illegal=jnp.zeros_like(state.illegal),
            illegal_chance=jnp.asarray(False),
            info_key=state.info_key,
            step=state.step + 1,
        )
        moved = self._ended(moved, terminal, goals, conflict)
        moved = moved._replace(info_key=self._next_key(moved))
        chance_allowed = jnp.asarray(True)
        if chance is not None:
            chance_allowed = (state.chance_mask & (jnp.arange(self.num_chance_actions) == chance)).any()
        stays = state._replace(
            rewards=jnp.zeros_like(state.rewards),
            illegal=~allowed & ~state.terminated,
            illegal_chance=~chance_allowed & ~state.terminated,
        )
        keep = state.terminated | ~jnp.all(allowed) | ~chance_allowed
        return State(*(jnp.where(keep, old, new) for old, new in zip(stays, moved, strict=True)))

    def _ended(self, state: State, terminal: jax.Array, goals: jax.Array, conflict: jax.Array) -> State:
        """Marks the state as terminated where it is, and sets rewards and goals."""
        playable = jnp.all(state.legal_mask.any(axis=1))
        if any(role.is_random for role in self.propnet.roles):
            playable &= state.chance_mask.any()
        too_long = (state.step >= self.max_steps) if self.max_steps else jnp.asarray(False)
        unplayable = ~terminal & (~playable | too_long)
        ended = terminal | unplayable
        return state._replace(
            legal_mask=state.legal_mask & ~ended,
            chance_mask=state.chance_mask & ~ended,
            rewards=jnp.where(terminal, goals.astype(jnp.float32) - self.payoffs.offset, 0.0),
            goals=jnp.where(terminal, goals, 0),
            terminated=ended,
            unplayable=unplayable,
            goal_conflict=terminal & conflict,
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

    def _chance(self, state: State, key: jax.Array | None, chance_action: jax.Array | None) -> jax.Array | None:
        """The action of chance; None without a random role."""
        if not self.num_chance_actions:
            if chance_action is not None:
                raise EnvError(f"{self.name} has no random role, so step takes no `chance_action=`")
            return None
        if chance_action is not None:
            chosen = jnp.asarray(chance_action)
            if chosen.shape or not jnp.issubdtype(chosen.dtype, jnp.integer):
                raise EnvError(
                    f"chance_action of {self.name} must be one integer, an action of the random role; got "
                    f"{chosen.dtype} of shape {chosen.shape}. For a batch use jax.vmap(env.step)."
                )
            return chosen
        if key is None:
            raise EnvError(f"{self.name} has a random role: pass `key=` or `chance_action=` to step")
        logits = jnp.where(state.chance_mask, 0.0, -jnp.inf)
        return jax.random.categorical(key, jnp.where(state.chance_mask.any(), logits, 0.0)).astype(jnp.int32)

    def _does(self, actions: jax.Array, chance: jax.Array | None) -> jax.Array:
        """The joint action as input bits of the propnet, roles in file order."""
        parts = []
        player = 0
        for role in self.propnet.roles:
            if role.is_random:
                chosen = jnp.asarray(-1) if chance is None else chance  # None if the random role has no moves
            else:
                chosen = actions[player]
                player += 1
            parts.append(jnp.arange(len(role.moves)) == chosen)
        return jnp.concatenate(parts)

    @functools.cached_property
    def _functions(self) -> dict[str, Callable[[jax.Array], jax.Array]]:
        propnet = self.propnet
        tapes = {
            "legal": tape.compile_tape(propnet, np.concatenate([role.legal for role in propnet.roles])),
            "move": tape.compile_tape(propnet, np.concatenate([propnet.next, *(role.sees for role in propnet.roles)])),
            "judge": tape.compile_tape(
                propnet, np.concatenate([[propnet.terminal], *(role.goal for role in propnet.roles)])
            ),
        }
        return {name: packing.packed_function(program, self.form) for name, program in tapes.items()}

    def _evaluate(self, name: str, registers: jax.Array, does: jax.Array | None = None) -> jax.Array:
        moves = sum(len(role.moves) for role in self.propnet.roles)
        bits = jnp.concatenate([registers, jnp.zeros(moves, jnp.bool_) if does is None else does])
        return self._functions[name](bits)

    def _legal(self, registers: jax.Array) -> tuple[jax.Array, jax.Array]:
        """bool[N, A] legal actions of the players, bool[C] of chance."""
        players, chance = self._by_role(self._evaluate("legal", registers), [len(r.moves) for r in self.propnet.roles])
        return _padded(players, self.num_actions), chance

    def _move(self, registers: jax.Array, does: jax.Array) -> tuple[jax.Array, jax.Array]:
        outputs = self._evaluate("move", registers, does)
        following, seen = outputs[: len(self.propnet.initial)], outputs[len(self.propnet.initial) :]
        players, _ = self._by_role(seen, [len(r.percepts) for r in self.propnet.roles])
        return following, _padded(players, self.num_percepts)

    def _judge(self, registers: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Whether the state is terminal, the players' goals, and whether some player has several or none."""
        outputs = self._evaluate("judge", registers)
        players, _ = self._by_role(outputs[1:], [len(r.goal_values) for r in self.propnet.roles])
        goals = []
        for role, held in zip(self.propnet.players, players, strict=True):
            values = jnp.asarray(role.goal_values, jnp.int32)
            top = jnp.max(jnp.where(held, values, _LOWEST_GOAL), initial=_LOWEST_GOAL)
            goals.append(jnp.where(held.any(), top, 0))
        conflict = jnp.stack([jnp.sum(held) != 1 for held in players]).any() if players else jnp.asarray(False)
        return outputs[0], jnp.stack(goals) if goals else jnp.zeros(0, jnp.int32), conflict

    def _by_role(self, bits: jax.Array, sizes: list[int]) -> tuple[list[jax.Array], jax.Array]:
        """Splits the concatenated bits of all roles into those of each player, and those of chance."""
        parts = [bits[a:b] for a, b in itertools.pairwise(np.cumsum([0, *sizes]))]
        players = [part for part, role in zip(parts, self.propnet.roles, strict=True) if not role.is_random]
        chance = [part for part, role in zip(parts, self.propnet.roles, strict=True) if role.is_random]
        return players, chance[0] if chance else jnp.zeros(0, jnp.bool_)

    @functools.cached_property
    def _key_constants(self) -> tuple[info_key.HashConstants, info_key.HashConstants, info_key.HashConstants]:
        """For legal actions, for the player's action, and for percepts."""
        return (
            info_key.hash_constants(self.num_actions, 1),
            info_key.hash_constants(self.num_actions, 2),
            info_key.hash_constants(self.num_percepts, 3),
        )

    def _first_key(self, legal: jax.Array) -> jax.Array:
        options, _, _ = self._key_constants
        start = jnp.zeros(2, jnp.uint32)
        return jax.vmap(lambda mask: info_key.extend(start, info_key.hash_bits(mask, options)))(legal)

    def _next_key(self, state: State) -> jax.Array:
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

        return jax.vmap(one)(state.info_key, state.actions, state.percepts, state.legal_mask)


def _padded(parts: list[jax.Array], width: int) -> jax.Array:
    rows = [jnp.pad(part, (0, width - part.shape[0])) for part in parts]
    return jnp.stack(rows) if rows else jnp.zeros((0, width), jnp.bool_)
