"""PPO by self-play on leduc_poker, in one jitted program, judged exactly as it learns: python examples/ppo.py"""

import functools
import sys
import timeit
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

import gdlx
from gdlx.nets.models import encoders

GAME = "leduc_poker"
GAMES, STEPS = 1_024, 32  # of a rollout; what is not over by its end is not learnt from
EPOCHS, MINIBATCHES, CLIP = 2, 4, 0.2
WIDTH, RATE, ENTROPY, SCALE = 64, 1e-3, 0.05, 1 / 13  # the last one of payoffs

Params = Sequence[tuple[jax.Array, jax.Array]]  # weights and biases of the layers


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
    layers = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [(jax.random.normal(key, (n, m)) * np.sqrt(2 / n), jnp.zeros(m)) for key, n, m in layers]


def forward(params: Params, seen: jax.Array, legal: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Logarithms of probabilities [.., A], and values [..]."""
    hidden = seen.astype(jnp.float32)
    for weights, biases in params[:-1]:
        hidden = jax.nn.relu(hidden @ weights + biases)
    out = hidden @ params[-1][0] + params[-1][1]
    return jax.nn.log_softmax(jnp.where(legal, out[..., :-1], -1e9)), out[..., -1]


class Games:
    """Batches of a game of gdlx."""

    def __init__(self, game: str, games: int) -> None:
        self.env = gdlx.make(game).batched(games, track="infostate").turn_based()
        self.players, self.actions = self.env.num_players, self.env.num_actions
        self.width = self.env.observation_size("infostate")
        self.reset = self.env.reset

    def view(self, states: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
        """The current player, or -1, what it sees, and its legal actions."""
        return self.env.current_player(states), self.env.observe(states, "infostate"), self.env.legal(states).mask

    def step(self, states: Any, action: jax.Array, key: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        states, timestep = self.env.step(states, action, key)
        return states, timestep.rewards, timestep.terminated


class PPO:
    """The program: `train` is one iteration of rollout and updates."""

    def __init__(self, env: Any, steps: int = STEPS) -> None:
        self.env, self.players, self.steps = env, env.players, steps
        self.optimiser = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(RATE))

    def init(self, key: jax.Array) -> Any:
        params = make_network(key, (self.env.width + self.players, WIDTH, WIDTH, self.env.actions + 1))
        return params, self.optimiser.init(params), self.env.reset(key)

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

    def rollout(self, params: Params, games: Any, key: jax.Array, uniform: int = -1) -> tuple[Any, Decisions]:
        """`uniform` is a player that plays uniformly, if any."""

        def step(games: Any, key: jax.Array) -> tuple[Any, Any]:
            choose, move = jax.random.split(key)
            player, seen, legal = self.env.view(games)
            seen = jnp.concatenate([seen, jax.nn.one_hot(player, self.players) != 0], axis=1)
            logs, _ = forward(params, seen, legal)
            logs = jnp.where((player == uniform)[:, None], jax.nn.log_softmax(jnp.where(legal, 0.0, -1e9)), logs)
            action = jax.random.categorical(choose, logs).astype(jnp.int32)
            games, rewards, ended = self.env.step(games, action, move)
            chosen = jnp.take_along_axis(logs, action[:, None], axis=1)[:, 0]
            return games, (player, Decisions(seen, legal, action, chosen, rewards, ended))

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

    @functools.partial(jax.jit, static_argnames="self")
    def against_uniform(self, params: Params, key: jax.Array) -> jax.Array:
        """The mean payoff of a decision against a uniform opponent, of both players."""
        played = [self.rollout(params, self.env.reset(key), key, opponent)[1] for opponent in (0, 1)]
        learnt = [one.weight * (one.seen[..., -self.players + opponent] == 0) for opponent, one in enumerate(played)]
        payoff, weight = jnp.stack([one.payoff for one in played]), jnp.stack(learnt)
        return (payoff * weight).sum() / weight.sum() / SCALE

    @functools.partial(jax.jit, static_argnames="self")
    def only_games(self, games: Any, key: jax.Array) -> Any:
        """A rollout without networks, to time the environment; everything that it shows is written to memory."""

        def step(carry: Any, key: jax.Array) -> tuple[Any, None]:
            action = gdlx.random_actions(key, carry[1][2])
            games, *ended = self.env.step(carry[0], action, jax.random.fold_in(key, 1))
            return (games, self.env.view(games), ended), None

        return jax.lax.scan(step, step((games, self.env.view(games)), key)[0], jax.random.split(key, self.steps))[0]

    def policy(self, params: Params) -> Any:
        """The network as a function of information sets, which `gdlx.evaluate` judges."""
        game = self.env.env.env
        steps = (self.env.width - game.num_actions) // (game.num_actions + game.num_percepts)
        encoder = encoders.Encoder(game, steps)  # its features: the same observation, the player, and the step

        def probabilities(infosets: Any) -> np.ndarray:
            moves = infosets.legal.shape[1]
            legal = np.pad(infosets.legal, ((0, 0), (0, game.num_actions - moves)))
            logs, _ = forward(params, jnp.asarray(encoder.encode(infosets)[:, :-1]), jnp.asarray(legal))
            return np.asarray(jnp.exp(logs))[:, :moves]

        return probabilities


def ppo_loss(params: Params, batch: Decisions) -> jax.Array:
    logs, values = forward(params, batch.seen, batch.legal)
    chosen = jnp.take_along_axis(logs, batch.action[:, None], axis=1)[:, 0]
    advantage, weight = jax.lax.stop_gradient(batch.payoff - values), batch.weight + 1e-9
    advantage -= jnp.average(advantage, weights=weight)
    advantage /= jnp.sqrt(jnp.average(advantage**2, weights=weight)) + 1e-8
    ratio = jnp.exp(chosen - batch.log_probability)
    gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
    entropy = -jnp.sum(jnp.exp(logs) * jnp.where(batch.legal, logs, 0), axis=1)
    each = -gain + 0.5 * (batch.payoff - values) ** 2 - ENTROPY * entropy
    return jnp.sum(each * batch.weight) / jnp.maximum(batch.weight.sum(), 1)


def train(ppo: PPO, iterations: int, every: int, judge: Any) -> float:
    """Trains, and prints the policy's exploitability and payoffs, and the share of time that the games take."""
    state, exploitability, key = ppo.init(jax.random.key(0)), float("nan"), jax.random.key(2)
    for number in range(iterations + 1):
        if number % every == 0:
            exploitability = judge(state[0])
            won = float(ppo.against_uniform(state[0], key))
            print(f"iteration {number}: exploitability {exploitability:.3f}, {won:.2f} chips against uniform play")
        if number < iterations:
            state, _ = ppo.train(state, jax.random.fold_in(jax.random.key(1), number))
    share = seconds(ppo.only_games, state[2], key) / seconds(ppo.train, state, key)
    print(f"environment: {share:.0%} of an iteration")
    return exploitability


def seconds(function: Any, *arguments: Any) -> float:
    """Of the fastest of some calls, without compiling."""
    return min(timeit.repeat(lambda: jax.tree.map(np.asarray, function(*arguments)), number=1, repeat=6))


def main(iterations: int = 200, every: int = 50) -> float:
    """Returns the exploitability of the last policy."""
    ppo = PPO(Games(GAME, GAMES))
    return train(ppo, iterations, every, lambda params: gdlx.evaluate(GAME, ppo.policy(params)).exploitability)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
