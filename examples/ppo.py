"""PPO by self-play on leduc_poker, in one jitted program, judged exactly as it learns: python examples/ppo.py"""

import functools
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

import gdlx

GAME = "leduc_poker"
GAMES, STEPS = 1_024, 32  # of a rollout; what is not over by its end is not learnt from
EPOCHS, MINIBATCHES, CLIP = 2, 4, 0.2
WIDTH, RATE, ENTROPY = 64, 1e-3, 0.05
SCALE = 1 / 13  # of payoffs

Params = Sequence[dict[str, jax.Array]]


class Decisions(NamedTuple):
    """What one player saw and did in one step of one game. Axes in front: steps, games."""

    seen: jax.Array  # [.., O] bool, the information state and the player
    legal: jax.Array  # [.., A] bool
    action: jax.Array  # [..] int32
    log_probability: jax.Array  # [..] float32
    payoff: jax.Array  # [..] float32, at the end of the game
    weight: jax.Array  # [..] float32, 0 where nobody decided or the game did not end


def make_network(key: jax.Array, sizes: Sequence[int]) -> Params:
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"weights": jax.random.normal(key, (n, m)) * np.sqrt(2 / n), "biases": jnp.zeros(m)}
        for key, n, m in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def forward(params: Params, seen: jax.Array, legal: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Logarithms of probabilities [.., A], and values [..]."""
    hidden = seen.astype(jnp.float32)
    for layer in params[:-1]:
        hidden = jax.nn.relu(hidden @ layer["weights"] + layer["biases"])
    out = hidden @ params[-1]["weights"] + params[-1]["biases"]
    return jax.nn.log_softmax(jnp.where(legal, out[..., :-1], -1e9)), out[..., -1]


class PPO:
    """The program: `train` is one iteration of rollout and updates."""

    def __init__(self, game: str, games: int = GAMES, steps: int = STEPS) -> None:
        self.env = gdlx.make(game).batched(games, track="infostate").turn_based()
        self.players, self.steps = self.env.num_players, steps
        self.window = (self.env.observation_size("infostate") - self.env.num_actions) // self.event_width
        self.optimiser = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(RATE))

    @property
    def event_width(self) -> int:
        return self.env.num_actions + self.env.env.num_percepts

    def init(self, key: jax.Array) -> Any:
        sizes = (self.env.observation_size("infostate") + self.players, WIDTH, WIDTH, self.env.num_actions + 1)
        params = make_network(key, sizes)
        return params, self.optimiser.init(params), self.env.reset()

    @functools.partial(jax.jit, static_argnames="self")
    def train(self, state: Any, key: jax.Array) -> tuple[Any, jax.Array]:
        params, moments, games = state
        rollout, shuffle = jax.random.split(key)
        games, decisions = self.rollout(params, games, rollout)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), decisions)

        def update(carry: Any, rows: jax.Array) -> tuple[Any, jax.Array]:
            params, moments = carry
            loss, gradient = jax.value_and_grad(ppo_loss)(params, jax.tree.map(lambda x: x[rows], flat))
            changes, moments = self.optimiser.update(gradient, moments, params)
            return (optax.apply_updates(params, changes), moments), loss

        orders = [jax.random.permutation(k, flat.action.size) for k in jax.random.split(shuffle, EPOCHS)]
        rows = jnp.concatenate(orders).reshape(EPOCHS * MINIBATCHES, -1)
        (params, moments), losses = jax.lax.scan(update, (params, moments), rows)
        return (params, moments, games), losses.mean()

    def rollout(self, params: Params, games: Any, key: jax.Array) -> tuple[Any, Decisions]:
        env = self.env

        def step(games: Any, key: jax.Array) -> tuple[Any, Any]:
            choose, move = jax.random.split(key)
            player, legal = env.current_player(games), env.legal(games).mask
            seen = jnp.concatenate([env.observe(games, "infostate"), jax.nn.one_hot(player, self.players) != 0], axis=1)
            logs, _ = forward(params, seen, legal)
            action = jax.random.categorical(choose, logs).astype(jnp.int32)
            games, timestep = env.step(games, action, move)
            chosen = jnp.take_along_axis(logs, action[:, None], axis=1)[:, 0]
            return games, (player, Decisions(seen, legal, action, chosen, timestep.rewards, timestep.terminated))

        games, (players, steps) = jax.lax.scan(step, games, jax.random.split(key, self.steps))

        def backwards(later: Any, now: Any) -> tuple[Any, Any]:
            payoffs, known = jnp.where(now[1][:, None], now[0], later[0]), now[1] | later[1]
            return (payoffs, known), (payoffs, known)

        nothing = jnp.zeros_like(steps.payoff[0]), jnp.zeros_like(steps.weight[0])
        _, (payoffs, known) = jax.lax.scan(backwards, nothing, (steps.payoff, steps.weight), reverse=True)
        payoff_of_mover = jnp.take_along_axis(payoffs, jnp.maximum(players, 0)[:, :, None], axis=2)[:, :, 0]
        return games, steps._replace(
            payoff=payoff_of_mover * SCALE, weight=((players >= 0) & known).astype(jnp.float32)
        )

    def policy(self, params: Params) -> Any:
        """The network as a function of information sets, which `gdlx.evaluate` judges."""
        actions = self.env.num_actions

        def probabilities(infosets: Any) -> np.ndarray:
            count, moves, seen = len(infosets), infosets.legal.shape[1], infosets.seen.shape[2]
            window = np.zeros((count, self.window, self.event_width), np.bool_)
            for row, steps in enumerate(infosets.steps.tolist()):
                for back in range(1, min(steps, self.window) + 1):
                    window[row, -back, infosets.made[row, steps - back]] = True
                    window[row, -back, actions : actions + seen] = infosets.seen[row, steps - back]
            legal = np.pad(infosets.legal, ((0, 0), (0, actions - moves)))
            player = np.broadcast_to(np.arange(self.players) == infosets.player, (count, self.players))
            observed = np.concatenate([window.reshape(count, -1), legal, player], axis=1)
            logs, _ = forward(params, jnp.asarray(observed), jnp.asarray(legal))
            return np.asarray(jnp.exp(logs))[:, :moves]

        return probabilities


def ppo_loss(params: Params, batch: Decisions) -> jax.Array:
    logs, values = forward(params, batch.seen, batch.legal)
    chosen = jnp.take_along_axis(logs, batch.action[:, None], axis=1)[:, 0]
    advantage = jax.lax.stop_gradient(batch.payoff - values)
    mean = jnp.average(advantage, weights=batch.weight + 1e-9)
    advantage = (advantage - mean) / (
        jnp.sqrt(jnp.average((advantage - mean) ** 2, weights=batch.weight + 1e-9)) + 1e-8
    )
    ratio = jnp.exp(chosen - batch.log_probability)
    gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
    entropy = -jnp.sum(jnp.exp(logs) * jnp.where(batch.legal, logs, 0), axis=1)
    each = -gain + 0.5 * (batch.payoff - values) ** 2 - ENTROPY * entropy
    return jnp.sum(each * batch.weight) / jnp.maximum(batch.weight.sum(), 1)


def main(iterations: int = 200, every: int = 50) -> float:
    """Returns the exploitability of the last policy."""
    ppo = PPO(GAME)
    state, exploitability = ppo.init(jax.random.key(0)), float("nan")
    for number in range(iterations + 1):
        if number % every == 0:
            judged = gdlx.evaluate(GAME, ppo.policy(state[0]))
            assert judged.exploitability is not None
            exploitability = judged.exploitability
            print(f"iteration {number}: exploitability {exploitability:.3f}")
        if number < iterations:
            state, _ = ppo.train(state, jax.random.fold_in(jax.random.key(1), number))
    return exploitability


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
