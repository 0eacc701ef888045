"""Batches of turn-taking games in which one player acts at a time: an action for each game, and views of its player."""

import dataclasses
import functools

import jax
import jax.numpy as jnp

from gdlx.envs import env as envs
from gdlx.envs import game_facts
from gdlx.envs.lowering import tape
from gdlx.envs.packed import action_words, batched_env, lanes

NOBODY = -1


@dataclasses.dataclass(frozen=True, eq=False)
class TurnBasedBatch:
    """A `BatchedEnv` in which only the current player acts; see `BatchedEnv.turn_based`.

    Where no player has a choice, as when chance moves, the current player is -1, no action is legal, and `step` ignores
    the action. Where a game is turn-taking in random play but not proved so, and two players do have a choice at the
    same time, it stays as it is, and `TimeStep.illegal` is set for the second one.

    Attributes:
      batched: the environment of joint actions.

    >>> import gdlx
    >>> game = gdlx.make("kuhn_poker").batched(3).turn_based()
    >>> states, key = game.reset(), jax.random.key(0)
    >>> for _ in range(2):
    ...     states, timestep = game.step(states, jnp.zeros(3, jnp.int32), key)
    >>> game.current_player(states).tolist(), game.legal(states).mask[0].tolist()
    ([0, 0, 0], [True, False, True, False, False])
    """

    batched: batched_env.BatchedEnv

    def __post_init__(self) -> None:
        require_turn_taking(self.batched.env)

    def __repr__(self) -> str:
        return f"TurnBasedBatch({repr(self.batched).partition('(')[2]}"

    @property
    def env(self) -> envs.Env:
        return self.batched.env

    @property
    def num_players(self) -> int:
        return self.batched.num_players

    @property
    def num_actions(self) -> int:
        return self.batched.num_actions

    def reset(self, key: jax.Array | None = None) -> batched_env.BatchedState:
        """All games in the initial state."""
        return self.batched.reset(key)

    def current_player(self, states: batched_env.BatchedState) -> jax.Array:
        """int32[B], -1 where nobody has a choice."""
        turns = lanes.unpack(self._deciders(states)[1]).astype(jnp.int32)
        numbers = jnp.arange(1, self.batched.num_players + 1, dtype=jnp.int32)[:, None]
        return (jnp.sum(turns * numbers, axis=0) + NOBODY)[: self.batched.batch]

    def legal(self, states: batched_env.BatchedState) -> action_words.LegalActions:
        """The legal actions of the current player, uint32[A, W] words and bool[B, A] mask; none where there is none."""
        legal = self.batched.legal(states)
        turns = self._deciders(states)[1]
        words = functools.reduce(jnp.bitwise_or, legal.words & turns[:, None])
        return dataclasses.replace(legal, words=words)

    def step(
        self,
        states: batched_env.BatchedState,
        actions: action_words.ActionWords | jax.Array,
        key: jax.Array | None = None,
    ) -> tuple[batched_env.BatchedState, batched_env.TimeStep]:
        """Applies the action of the current player in every game, with the only legal actions of the others.

        Args:
          states: the current states.
          actions: [B] integers, or `ActionWords` as `random_actions` returns them.
          key: draws the actions of chance. Only games with a random role need it.

        Returns:
          The next states and the `TimeStep`, as `BatchedEnv.step` does.
        """
        game = self.batched
        words = states.rows.shape[1]
        if isinstance(actions, action_words.ActionWords):
            if actions.words.shape != (game.num_actions, words):
                raise envs.EnvError(
                    f"actions of {self!r} must have words of shape {(game.num_actions, words)}; got "
                    f"{actions.words.shape}: choose them from the legal actions of the same environment"
                )
            chosen = actions.words
        else:
            array = action_words.require_integers(actions, (game.batch,), repr(self), "one of each current player")
            chosen = game.one_hot(array[None], words)[0]
        game.require_key(key)
        deciders, turns = self._deciders(states)
        forced = game.legal(states).words & ~deciders[:, None]
        return game.advance(states, (chosen & turns[:, None]) | forced, key)

    def observe(self, states: batched_env.BatchedState, encoder: str = "state") -> jax.Array:
        """The current player's observation, bool[B, O], of zeros where there is none; see `BatchedEnv.observe`."""
        if encoder == "state":
            return self.batched.observe(states, encoder)
        rows = self.batched.player_rows(states, encoder)
        turns = self._deciders(states)[1]
        mover_bits = functools.reduce(jnp.bitwise_or, rows & turns[:, None])
        return lanes.unpack_games(mover_bits)[: self.batched.batch]

    def info_key(self, states: batched_env.BatchedState) -> jax.Array:
        """uint32[B, 2] keys of the current player's information sets, 0 where there is none."""
        keys = self.batched.info_key(states)
        turn = jnp.arange(self.batched.num_players) == self.current_player(states)[:, None]
        return jnp.sum(jnp.where(turn[:, :, None], keys, jnp.uint32(0)), axis=1, dtype=jnp.uint32)

    def observation_size(self, encoder: str = "state") -> int:
        """The length of an observation."""
        return self.batched.observation_size(encoder)

    def terminated(self, states: batched_env.BatchedState) -> jax.Array:
        """bool[B], games that have ended; none are left by a step with automatic resets."""
        return self.batched.terminated(states)

    def rewards(self, states: batched_env.BatchedState) -> jax.Array:
        """float32[B, P] payoffs of games that have ended, else 0."""
        return self.batched.rewards(states)

    def render(self, states: batched_env.BatchedState, game: int = 0) -> str:
        """The true fluents of one game as text, and the legal actions of its players."""
        return self.batched.render(states, game)

    def _deciders(self, states: batched_env.BatchedState) -> tuple[jax.Array, jax.Array]:
        """uint32[P, W] players with a choice, and the first of them alone."""
        rows = self.batched.run_tape(self._turn_tape, *self.batched.legal_rows(states))
        return rows[: self.batched.num_players], rows[self.batched.num_players :]

    @functools.cached_property
    def _turn_tape(self) -> tape.Tape:
        """Inputs: legal actions of the players. Outputs: who has several, and the first who has."""
        sizes = [len(player.moves) for player in self.batched.env.propnet.players]
        builder = tape.TapeBuilder(sum(sizes))
        inputs = iter(builder.input(number) for number in range(builder.inputs))
        deciders, turns, earlier = [], [], tape.FALSE
        for size in sizes:
            one = several = tape.FALSE
            for _ in range(size):
                option = next(inputs)
                several = builder.disjunction(several, builder.conjunction(one, option))
                one = builder.disjunction(one, option)
            deciders.append(several)
            turns.append(builder.conjunction(several, earlier ^ 1))
            earlier = builder.disjunction(earlier, several)
        return builder.tape([*deciders, *turns])


def require_turn_taking(env: envs.Env) -> None:
    """Refuses games in which several players decide at once."""
    if not game_facts.probe(env.propnet).dynamics.turn_taking:
        raise envs.EnvError(
            f"{env.name} is not turn-taking: several players decide at once; use its joint actions, without turn_based"
        )
