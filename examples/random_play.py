"""Play thousands of games at once with a policy of your own, in one compiled program: python examples/random_play.py"""

import jax
import jax.numpy as jnp

import gdlx

GAMES, STEPS = 4096, 12


def policy(key: jax.Array, legal: jax.Array) -> jax.Array:
    """Every legal move with the same probability, for all players of all games; put your own policy here."""
    return jax.random.categorical(key, jnp.where(legal, 0.0, -jnp.inf))


def main() -> float:
    """Plays to the end and returns the mean payoff of the first player."""
    env = gdlx.make("leduc_poker")

    def step(states: gdlx.State, key: jax.Array) -> tuple[gdlx.State, jax.Array]:
        act, chance = jax.random.split(key)
        joint_actions = policy(act, states.legal_mask)
        states = jax.vmap(env.step)(states, joint_actions, jax.random.split(chance, GAMES))
        return states, states.rewards  # which are of this step alone

    @jax.jit
    def play(key: jax.Array) -> tuple[gdlx.State, jax.Array]:
        states = jax.vmap(lambda _: env.init())(jnp.arange(GAMES))
        return jax.lax.scan(step, states, jax.random.split(key, STEPS))

    states, rewards = play(jax.random.key(0))
    mean = float(rewards[:, :, 0].sum(axis=0).mean())
    print(
        f"{env}: {int(states.terminated.sum())} of {GAMES} games ended, {env.players[0]} won {mean:+.3f} chips a game"
    )
    return mean


if __name__ == "__main__":
    main()
