"""The loop of ppo.py on pgx's leduc, whose policies cannot be judged exactly: python examples/ppo_pgx.py"""

import sys
from typing import Any

import jax
import numpy as np
import ppo  # type: ignore[import-not-found]

GAMES = 1_024


class PgxGames:
    """Batches of pgx's leduc, with the functions of `ppo.Games`."""

    def __init__(self, games: int) -> None:
        import pgx
        from pgx.experimental import auto_reset

        self.env, self.games = pgx.make("leduc_holdem"), games
        self.players, self.actions = self.env.num_players, self.env.num_actions
        self.width = int(np.prod(self.env.observation_shape))
        self._step = jax.vmap(auto_reset(self.env.step, self.env.init))

    def reset(self, key: jax.Array) -> Any:
        return jax.vmap(self.env.init)(jax.random.split(key, self.games))

    def view(self, states: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
        return states.current_player, states.observation, states.legal_action_mask

    def step(self, states: Any, action: jax.Array, key: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        states = self._step(states, action, jax.random.split(key, self.games))
        return states, states.rewards, states.terminated


def main(iterations: int = 200, every: int = 50) -> None:
    ppo.train(ppo.PPO(PgxGames(GAMES)), iterations, every, lambda params: float("nan"))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
