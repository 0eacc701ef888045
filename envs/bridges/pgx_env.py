"""Turn-taking games with the interface of pgx (`init`, `step`, `observe`, and a state with its fields).

Programs written for pgx run on them; pgx itself is not needed.

Every step is a decision: forced moves are made and chance is sampled until the next decision or the end. As in pgx, an
illegal action terminates the game with a penalty, all actions are legal in a terminal state, and a terminated game does
not change.
"""

import dataclasses
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs import env as envs
from gdlx.envs import game_facts, game_spec, make_env, payoffs
from gdlx.envs.lowering import lower
from gdlx.envs.views import board, render, svg
from gdlx.envs.views import observation_window as windows
from gdlx.propnet.common import atomic_files, limits

_MOST_DRAWN = 16
ObservationMode = Literal["window", "registers"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PgxState:
    """Axes: N players, A actions, O observation."""

    current_player: jax.Array  # [] int32, the player to act; once terminated, the last one who acted
    observation: jax.Array  # [O] float32 or bool, of the current player
    rewards: jax.Array  # [N] float32, payoffs in the step that terminates the game
    terminated: jax.Array  # [] bool
    truncated: jax.Array  # [] bool, stopped by a limit or in an unplayable state
    legal_action_mask: jax.Array  # [A] bool, of the current player; all true once terminated
    _step_count: jax.Array  # [] int32, decisions so far
    _inner: envs.State
    _window: windows.Window
    _game: envs.Env = dataclasses.field(metadata={"static": True})

    @property
    def env_id(self) -> str:
        """The name of the game."""
        return self._game.name

    def replace(self, **changes: Any) -> "PgxState":
        return dataclasses.replace(self, **changes)

    def to_svg(self, *, color_theme: Literal["light", "dark"] | None = None, scale: float | None = None) -> str:
        """The true fluents as a picture, as a board where they are one; of a batch, those of its first games."""
        axes, games = self.terminated.ndim, self.terminated.size
        states = jax.tree.map(lambda x: np.asarray(x).reshape(games, *x.shape[axes:]), self._inner)
        shown = [jax.tree.map(lambda x, n=n: x[n], states) for n in range(min(len(states.step), _MOST_DRAWN))]
        return svg.draw_texts([_lines(self._game, state) for state in shown], color_theme == "dark", scale or 1.0)

    def save_svg(
        self, filename: str, *, color_theme: Literal["light", "dark"] | None = None, scale: float | None = None
    ) -> None:
        """Writes `to_svg` to a file, whose name must end with `.svg`."""
        if not str(filename).endswith(".svg"):
            raise envs.EnvError(f"the name of a picture must end with .svg; got {str(filename)!r}")
        picture = self.to_svg(color_theme=color_theme, scale=scale)
        atomic_files.write_atomically(filename, picture.encode())

    def _repr_html_(self) -> str:
        return self.to_svg()


class _LoopState(NamedTuple):
    """Loop state until the next decision."""

    inner: envs.State
    window: windows.Window
    key: jax.Array | None
    joint_moves: jax.Array  # [] int32, since the last decision; -1 before that


@dataclasses.dataclass(frozen=True, eq=False)
class PgxEnv:
    """One game. Functions are pure and unbatched, as in pgx.

    Attributes:
      game: the environment.
      steps: number of joint actions in an observation; see `observation_window`.
      observation: `"window"`, or `"registers"` for the full state, which suits games of perfect information.
      reward_scale: factor of the payoffs.
      max_skips: joint actions between two decisions after which the game is truncated.
    """

    game: envs.Env
    steps: int = 4
    observation: ObservationMode = "window"
    reward_scale: float = 1.0
    max_skips: int = 1_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "game", self.game.tracking("percepts", "actions"))

    @property
    def id(self) -> str:
        return self.game.name

    @property
    def version(self) -> str:
        return "v0"

    @property
    def num_players(self) -> int:
        return self.game.num_players

    @property
    def num_actions(self) -> int:
        return self.game.num_actions

    @property
    def observation_shape(self) -> tuple[int, ...]:
        if self.observation == "registers":
            return (len(self.game.propnet.initial),)
        return (windows.tensor_size(self.game, steps=self.steps),)

    def init(self, key: jax.Array) -> PgxState:
        """The first decision of a match. Actions of chance before it are sampled with the key."""
        inner = self.game.init()
        window = windows.init(self.game, inner, steps=self.steps)
        zero = jnp.asarray(0, jnp.int32)
        return self._state(self._to_decision(inner, window, key), zero, zero)

    def step(self, state: PgxState, action: jax.Array, key: jax.Array | None = None) -> PgxState:
        """The next decision after an action of the current player. Games with chance need the key."""
        action = jnp.asarray(action)
        if action.shape or not jnp.issubdtype(action.dtype, jnp.integer):
            raise envs.EnvError(
                f"an action of {self.id} must be one integer; got {action.dtype} of shape {action.shape}. For a batch "
                "use jax.vmap(env.step)."
            )
        if self.game.num_chance_actions and key is None:
            raise envs.EnvError(f"{self.id} has a random role: pass `key=` to step")
        player = jnp.arange(self.num_players) == state.current_player
        joint = jnp.where(player, action.astype(jnp.int32), _forced(state._inner))
        loop = self._to_decision(state._inner, state._window, key, joint)
        moved = self._state(loop, state.current_player, state._step_count + 1)
        return self._settled(state, moved, loop.inner.illegal.any())

    def observe(self, state: PgxState, player_id: jax.Array | None = None) -> jax.Array:
        """The observation of the current player, or of another one."""
        player = state.current_player if player_id is None else player_id
        return self._observation(state._inner, state._window, player)

    def _settled(self, before: PgxState, moved: PgxState, illegal: jax.Array) -> PgxState:
        """The result of a step, also if the game was already terminated or the action was illegal."""
        penalty = max(abs(v - self.game.payoffs.offset) for role in self.game.propnet.players for v in role.goal_values)
        loser = jnp.arange(self.num_players) == before.current_player
        fine = jnp.where(loser, -1.0, self.num_players - 1.0) * penalty * self.reward_scale
        ended = before.terminated | before.truncated
        over = before.replace(rewards=jnp.zeros_like(before.rewards))
        wrong = before.replace(
            rewards=fine.astype(jnp.float32),
            terminated=jnp.asarray(True),
            legal_action_mask=jnp.ones_like(before.legal_action_mask),
            _step_count=moved._step_count,
        )
        settled: PgxState = jax.tree.map(
            lambda old, lost, new: jnp.where(ended, old, jnp.where(illegal, lost, new)), over, wrong, moved
        )
        return settled

    def _to_decision(
        self, inner: envs.State, window: windows.Window, key: jax.Array | None, joint: jax.Array | None = None
    ) -> _LoopState:
        """Applies a joint action, if there is one, then forced moves and chance until a player has a choice."""
        first = jnp.asarray(0 if joint is None else -1, jnp.int32)

        def continues(loop: _LoopState) -> jax.Array:
            stops = loop.inner.terminated | loop.inner.illegal.any() | _deciders(loop.inner).any()
            return (loop.joint_moves < 0) | (~stops & (loop.joint_moves < self.max_skips))

        def advance(loop: _LoopState) -> _LoopState:
            key, subkey = (None, None) if loop.key is None else jax.random.split(loop.key)
            moves = _forced(loop.inner)
            if joint is not None:
                moves = jnp.where(loop.joint_moves < 0, joint, moves)
            after = self.game.step(loop.inner, moves, subkey)
            return _LoopState(after, windows.update(loop.window, after), key, loop.joint_moves + 1)

        # One loop for the decision and the forced moves after it, so that the propnet is compiled once.
        start = _LoopState(inner, window, key if self.game.num_chance_actions else None, first)
        result: _LoopState = jax.lax.while_loop(continues, advance, start)
        return result

    def _state(self, loop: _LoopState, last_player: jax.Array, count: jax.Array) -> PgxState:
        inner = loop.inner
        deciders = _deciders(inner)
        # With several deciders the game is not turn-taking; that it is, is not always proved.
        stopped = ~inner.terminated & (deciders.sum() != 1)
        ended = inner.terminated | stopped
        player = jnp.where(ended, last_player, jnp.argmax(deciders).astype(jnp.int32))
        return PgxState(
            current_player=player,
            observation=self._observation(inner, loop.window, player),
            rewards=inner.rewards * jnp.float32(self.reward_scale),
            terminated=inner.terminated & ~inner.unplayable,
            truncated=inner.unplayable | stopped,
            legal_action_mask=inner.legal_mask[player] | ended,
            _step_count=count,
            _inner=inner,
            _window=loop.window,
            _game=self.game,
        )

    def _observation(self, inner: envs.State, window: windows.Window, player: jax.Array) -> jax.Array:
        return inner.registers if self.observation == "registers" else windows.to_tensor(window)[player]


def make_pgx_env(
    game: game_spec.GameLike | None = None,
    *,
    rules: str | None = None,
    steps: int = 4,
    observation: ObservationMode = "window",
    reward_scale: float = 1.0,
    max_skips: int = 1_000,
    payoff: payoffs.PayoffMode = "auto",
    form: lower.LoweringMode = "auto",
    max_steps: int = 0,
    gdl: int | None = None,
    fold_case: bool = False,
    within: limits.Limits = limits.Limits(),
) -> PgxEnv:
    """Compiles a turn-taking game and returns it with the interface of pgx.

    Args:
      game: whatever names it, as in `gdlx.make`.
      rules: the text of its rulesheet, instead of `game`.
      steps: this and the following three are attributes of `PgxEnv`.
      observation: `"window"` or `"registers"`.
      reward_scale: factor of the payoffs.
      max_skips: joint actions between two decisions after which the game is truncated.
      payoff: this and the following arguments are as in `gdlx.make`.
      form: how the propnet is lowered to JAX operations.
      max_steps: joint actions after which a match is truncated; 0 for no limit.
      gdl: the language of the rulesheet.
      fold_case: whether names that differ only by case are the same.
      within: limits of compiling.

    Returns:
      A `PgxEnv`.

    Raises:
      EnvError: if the game is not turn-taking.

    >>> make_pgx_env("tictactoe").num_actions
    10
    """
    made = make_env.make(
        game, rules=rules, payoff=payoff, form=form, max_steps=max_steps, gdl=gdl, fold_case=fold_case, within=within
    )
    if not game_facts.probe(made.propnet).dynamics.turn_taking:
        raise envs.EnvError(
            f"{made.propnet.name} is not turn-taking: several players decide at once, which pgx's interface cannot "
            f"express; use gdlx.make({game!r})"
        )
    return PgxEnv(made, steps, observation, reward_scale, max_skips)


def _deciders(inner: envs.State) -> jax.Array:
    """bool[N], players with a choice."""
    return inner.legal_mask.sum(axis=1) > 1


def _forced(inner: envs.State) -> jax.Array:
    """int32[N], the first legal move of every player: the only one of those without a choice."""
    return jnp.argmax(inner.legal_mask, axis=1).astype(jnp.int32)


def _lines(game: envs.Env, state: envs.State) -> list[str]:
    return [
        f"{game.name}, step {int(state.step)}",
        *board.draw_board(game.propnet.fluents, render.fluent_names(game, state)),
    ]
