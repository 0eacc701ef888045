"""Self-play with search: vectorised games, a depth-limited search in each of their states, and networks trained on it.

There are two networks. The policy network sees a player's information state and predicts its policy. The state network
sees the full state, hidden parts included, and predicts every player's value; it is only used in training. From every
state s of the games, a search tries each action a of each player p. The others and chance sample theirs, all players
follow their policies for another `depth` - 1 joint actions, and the state network evaluates the resulting state:

    q(s, a) = payoff of p if the game has ended, else the predicted value of the resulting state

These are sampled counterfactual values at the information set of p, as in CFR, except that states are weighted by how
often the games visit them. CFR accumulates them as regrets; here they move the logits z of the policy network by
magnetic mirror descent (Sokota et al. 2023), which unlike regret matching needs no average policy:

    z  <-  z + rate (q - temperature z)            at the visited information sets

The update is linear in q, so the targets of many hidden states average at their information set. At a fixed point
policies are proportional to exp(q / temperature): an equilibrium of players who make errors, fewer as the temperature
falls.

With `uniform_opponent_fraction` > 0, one player plays uniformly in that fraction of the games, which only the state
network observes. Policies then exploit weak players more and are more exploitable themselves, as with a restricted Nash
response (docs/howto/exploit-an-opponent.md).
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from gdlx.envs import env as envs
from gdlx.envs.views import observation_window
from gdlx.nets import vectorised_play
from gdlx.nets.models import encoders, networks, replay_buffers, sharding
from gdlx.propnet.common import errors


class SettingsError(errors.UserError, ValueError):
    """A setting of self-play that is out of range, or that contradicts another one."""


RENAMED_SETTINGS: Mapping[str, str] = {
    "strangers": "uniform_opponent_fraction",
    "coldest": "min_temperature",
    "smoothing": "ema_decay",
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Hyper-parameters of self-play."""

    games: int = 512  # played in parallel; sharded if the number of devices divides it
    steps: int = 8  # joint actions of each game in an iteration
    depth: int = 1  # joint actions of a search
    draws: int = 1  # samples of the others' actions, for each action of a player
    exploration: float = 0.05  # probability of a uniform action
    uniform_opponent_fraction: float = 0.0  # of the games: one player does not learn, but plays uniformly
    temperature: float = 0.1  # initial, in units of the largest payoff; decays with the square root of the iterations
    min_temperature: float = 0.01
    rate: float = 0.3  # step size of mirror descent
    trace: float = 0.8  # how far value targets follow later searches of the game: 0 not at all, 1 fully
    capacity: int = 65_536  # states in the replay buffer
    batch: int = 1_024  # states of a gradient step
    updates: int = 8  # gradient steps in an iteration
    learning_rate: float = 1e-3  # of Adam, initially; decays in proportion to the temperature
    ema_decay: float = 0.998  # of the moving average of policy parameters, which is what is played
    widths: tuple[int, ...] = (128, 128)  # of the layers of both networks
    kind: networks.NetworkKind = "residual"  # learns in fewer iterations

    def __post_init__(self) -> None:
        for name in ("games", "steps", "depth", "draws", "capacity", "batch", "updates"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be a whole number above 0, not {getattr(self, name)}")
        for name in ("exploration", "uniform_opponent_fraction", "trace", "ema_decay"):
            if not 0 <= getattr(self, name) <= 1:
                raise SettingsError(f"{name} must be a fraction from 0 to 1, not {getattr(self, name)}")
        for name in ("temperature", "min_temperature", "rate", "learning_rate"):
            if not 0 < getattr(self, name) < float("inf"):
                raise SettingsError(f"{name} must be a number above 0, not {getattr(self, name)}")
        if self.min_temperature > self.temperature:
            raise SettingsError(
                f"min_temperature, {self.min_temperature}, is above the initial temperature, {self.temperature}"
            )
        networks.require_widths(self.widths)
        if self.capacity < self.games * self.steps:
            raise SettingsError(
                f"an iteration of {self.games} games and {self.steps} steps does not fit in a replay buffer of "
                f"{self.capacity} states; make the capacity {self.games * self.steps} or more"
            )


class Parameters(NamedTuple):
    policy: Any  # of the policy network
    value: Any  # of the state network


class SelfPlayGames(NamedTuple):
    """Games in progress. Axes: B games first, P players."""

    states: envs.State
    windows: observation_window.Window
    is_uniform: jax.Array  # [B, P] bool, who plays uniformly in this game; at most one player


class Transition(NamedTuple):
    """The training targets of one state. Axes: P players, A actions, F information state features, R state features."""

    information: jax.Array  # [P, F]
    state: jax.Array  # [R + P], and who plays uniformly
    legal: jax.Array  # [P, A] bool
    q_values: jax.Array  # [P, A] q, in units of the largest payoff
    value: jax.Array  # [P] likewise


class State(NamedTuple):
    """Everything that an iteration reads and writes."""

    parameters: Parameters
    ema_policy_params: Any  # moving average of `parameters.policy`, which is what is played
    optimiser: Any
    games: SelfPlayGames
    replay_buffer: replay_buffers.ReplayBuffer  # of Transitions
    key: jax.Array
    iteration: jax.Array  # [] int32


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SelfPlay:
    """Self-play with search as a `Learner`, for any game.

    Attributes:
      encoder: what the networks see of the game.
      settings: hyper-parameters.
      network: architecture of both networks.
      scale: the payoff that networks predict as 1.

    >>> import gdlx
    >>> SelfPlay(encoders.Encoder(gdlx.make("kuhn_poker"), steps=5), Settings(games=64))
    SelfPlay(game='kuhn_poker', games=64, depth=1, widths=(128, 128), kind='residual')
    """

    encoder: encoders.Encoder
    settings: Settings = Settings()

    def __repr__(self) -> str:
        settings = self.settings
        return (
            f"SelfPlay(game={self.encoder.env.name!r}, games={settings.games}, depth={settings.depth}, "
            f"widths={settings.widths}, kind={settings.kind!r})"
        )

    @functools.cached_property
    def network(self) -> networks.Network:
        env = self.encoder.env
        return networks.Network(env.num_players, env.num_actions, self.settings.widths, self.settings.kind)

    @property
    def scale(self) -> float:
        """The payoff that networks predict as 1: the largest absolute one."""
        low, high = self.encoder.env.payoff_range
        return max(abs(low), abs(high), 1e-9)

    @functools.partial(jax.jit, static_argnames="self")
    def init(self, key: jax.Array) -> State:
        policy_key, value_key, state_key = jax.random.split(key, 3)
        policy = networks.init_params(self.network, self.encoder.width, policy_key)
        value = networks.init_params(self.network, self._state_width, value_key)
        parameters = Parameters(policy, value)
        start = self._start()
        games = jax.tree.map(lambda x: jnp.broadcast_to(x, (self.settings.games, *x.shape)), start)
        buffer = replay_buffers.init(self._example_transition(start), self.settings.capacity)
        iteration = jnp.zeros((), jnp.int32)
        optimiser = self._optimiser.init(parameters)
        return sharding.replicate(State(parameters, policy, optimiser, games, buffer, state_key, iteration))

    @functools.partial(jax.jit, static_argnames="self")
    def iterate(self, state: State) -> tuple[State, Mapping[str, jax.Array]]:
        key, play_key, learn_key = jax.random.split(state.key, 3)
        games, transitions, metrics = self._play(state.parameters, sharding.shard(state.games), play_key)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), sharding.replicate(transitions))
        buffer = replay_buffers.add_fifo(state.replay_buffer, flat, jnp.ones(flat.value.shape[0], jnp.bool_))
        temperature = self._temperature(state.iteration)
        parameters, optimiser, losses = self._learn(state, buffer, temperature, learn_key)
        decay = jnp.minimum(self.settings.ema_decay, (1 + state.iteration) / (10 + state.iteration))
        average = jax.tree.map(
            lambda old, new: decay * old + (1 - decay) * new, state.ema_policy_params, parameters.policy
        )
        after = State(parameters, average, optimiser, games, buffer, key, state.iteration + 1)
        return sharding.replicate(after), {**losses, **metrics, "temperature": temperature}

    def policy_params(self, state: State) -> Any:
        return state.ema_policy_params

    def values(self, state: State, states: jax.Array) -> jax.Array:
        """[B, P] payoffs that the state network predicts for encoded states [B, R]."""
        inputs = jnp.pad(states, ((0, 0), (0, self.encoder.env.num_players)))  # no player is uniform
        return networks.apply_network(self.network, state.parameters.value, inputs).value * self.scale

    @functools.cached_property
    def _optimiser(self) -> optax.GradientTransformation:
        return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(self.settings.learning_rate))

    def _temperature(self, iteration: jax.Array) -> jax.Array:
        decayed = self.settings.temperature / jnp.sqrt(1 + iteration / 100)
        return jnp.maximum(self.settings.min_temperature, decayed)

    def _start(self) -> SelfPlayGames:
        """One game."""
        state = self.encoder.env.init()
        return SelfPlayGames(state, self.encoder.window(state), jnp.zeros(self.encoder.env.num_players, jnp.bool_))

    @property
    def _state_width(self) -> int:
        return self.encoder.state_width + self.encoder.env.num_players

    def _state_inputs(self, games: SelfPlayGames) -> jax.Array:
        """[B, R + P] the inputs of the state network."""
        return jnp.concatenate([jax.vmap(self.encoder.state)(games.states), games.is_uniform], axis=1)

    def _example_transition(self, game: SelfPlayGames) -> Transition:
        """Has the shapes of all transitions."""
        env = self.encoder.env
        moves = jnp.zeros((env.num_players, env.num_actions))
        information = self.encoder.information_state(game.windows)
        return Transition(information, jnp.zeros(self._state_width), game.states.legal_mask, moves, moves[:, 0])

    def _play(
        self, parameters: Parameters, games: SelfPlayGames, key: jax.Array
    ) -> tuple[SelfPlayGames, Transition, Mapping[str, jax.Array]]:
        """The games afterwards, transitions [T, B, ..], and metrics."""
        start = self._start()

        def step(now: SelfPlayGames, key: jax.Array) -> tuple[SelfPlayGames, tuple[Transition, _Step]]:
            move_key, search_key, opponent_key = jax.random.split(key, 3)
            information = jax.vmap(self.encoder.information_state)(now.windows)
            policy = self._policy(parameters, now, information)
            q_values = self._search(parameters, now, policy, search_key)
            value = jnp.sum(policy * q_values, axis=-1)
            after, trust = self._move(now, policy, move_key)
            ended = after.states.terminated
            bootstrap = self._value(parameters, after)
            transition = Transition(information, self._state_inputs(now), now.states.legal_mask, q_values, value)
            outcome = _Step(after.states.rewards / self.scale, bootstrap, ended, trust)
            new = jax.tree.map(lambda x: jnp.broadcast_to(x, (len(ended), *x.shape)), start)
            new = new._replace(is_uniform=self._uniform_opponents(opponent_key, len(ended)))
            return _where(ended, new, after), (transition, outcome)

        games, (transitions, outcomes) = jax.lax.scan(step, games, jax.random.split(key, self.settings.steps))
        variance = jnp.mean(jnp.square(transitions.value - transitions.value.mean()))
        metrics = {"ended": outcomes.ended.mean(), "value_spread": jnp.sqrt(variance)}
        return games, transitions._replace(value=self._returns(transitions.value, outcomes)), metrics

    def _returns(self, value: jax.Array, steps: "_Step") -> jax.Array:
        """[T, B, P] values of searches, corrected by later searches of the same game (a lambda return)."""

        def back(later: jax.Array, now: tuple[jax.Array, _Step]) -> tuple[jax.Array, jax.Array]:
            value, step = now
            ended = step.ended[:, None]
            error = jnp.where(ended, step.reward, later) - jnp.where(ended, step.reward, step.bootstrap)
            here = value + self.settings.trace * step.trust[:, None] * error
            return here, here

        _, returns = jax.lax.scan(back, steps.bootstrap[-1], (value, steps), reverse=True)
        return returns

    def _uniform_opponents(self, key: jax.Array, games: int) -> jax.Array:
        """[B, P] who plays uniformly in new games."""
        players = self.encoder.env.num_players
        game_key, player_key = jax.random.split(key)
        who = jax.random.randint(player_key, (games, 1), 0, players) == jnp.arange(players)
        return who & (jax.random.uniform(game_key, (games, 1)) < self.settings.uniform_opponent_fraction)

    def _policy(self, parameters: Parameters, games: SelfPlayGames, information: jax.Array | None = None) -> jax.Array:
        """[B, P, A]"""
        legal = games.states.legal_mask
        if information is None:
            information = jax.vmap(self.encoder.information_state)(games.windows)
        output = networks.diagonal_outputs(networks.apply_network(self.network, parameters.policy, information))
        return jnp.where(
            games.is_uniform[..., None], networks.uniform_policy(legal), networks.masked_softmax(output.logits, legal)
        )

    def _value(self, parameters: Parameters, games: SelfPlayGames) -> jax.Array:
        """[B, P]"""
        return networks.apply_network(self.network, parameters.value, self._state_inputs(games)).value

    def _move(self, games: SelfPlayGames, policy: jax.Array, key: jax.Array) -> tuple[SelfPlayGames, jax.Array]:
        """The games after a joint action, and its importance ratio to the policies, clipped at 1."""
        legal = games.states.legal_mask
        uniform = networks.uniform_policy(legal)
        behaviour = (1 - self.settings.exploration) * policy + self.settings.exploration * uniform
        action_key, chance_key = jax.random.split(key)
        actions = vectorised_play.sample_actions(action_key, behaviour)
        chosen = actions[..., None] == jnp.arange(legal.shape[-1])
        ratio = jnp.sum(chosen * policy, -1) / jnp.maximum(jnp.sum(chosen * behaviour, -1), 1e-9)
        trust = jnp.prod(jnp.minimum(ratio, 1.0), axis=-1)
        return self._step_games(games, actions, chance_key), trust

    def _step_games(self, games: SelfPlayGames, actions: jax.Array, key: jax.Array) -> SelfPlayGames:
        states = self._step_states(games.states, actions, key)
        return SelfPlayGames(states, jax.vmap(observation_window.update)(games.windows, states), games.is_uniform)

    def _step_states(self, states: envs.State, actions: jax.Array, key: jax.Array) -> envs.State:
        return jax.vmap(self.encoder.env.step)(states, actions, jax.random.split(key, actions.shape[0]))

    def _search(self, parameters: Parameters, games: SelfPlayGames, policy: jax.Array, key: jax.Array) -> jax.Array:
        """[B, P, A] q of each player's actions; 0 of illegal ones."""
        batch, players, num_actions = policy.shape
        draws = self.settings.draws
        others_key, chance_key, rollout_key = jax.random.split(key, 3)
        others = vectorised_play.sample_actions(
            others_key, jnp.broadcast_to(policy[:, None], (batch, draws, players, num_actions))
        )
        # All actions of a player meet the same actions of the others: only differences between them matter.
        joint = jnp.broadcast_to(others[:, None, None], (batch, players, num_actions, draws, players))
        is_searcher = jnp.eye(players, dtype=jnp.bool_)[:, None, None]
        joint = jnp.where(is_searcher, jnp.arange(num_actions)[:, None, None], joint).reshape(-1, players)
        branches = jax.tree.map(lambda x: jnp.repeat(x, players * num_actions * draws, axis=0), games)
        leaf_values = self._branch_values(parameters, branches, joint, chance_key, rollout_key)
        values = leaf_values.reshape(batch, players, num_actions, draws, players).mean(axis=3)
        q_values = jnp.einsum("bpap->bpa", values)
        return jnp.where(games.states.legal_mask, q_values, 0.0)

    def _branch_values(
        self,
        parameters: Parameters,
        branches: SelfPlayGames,
        joint: jax.Array,
        chance_key: jax.Array,
        rollout_key: jax.Array,
    ) -> jax.Array:
        """[L, P] values of branches [L] whose first joint action is `joint`."""
        if self.settings.depth == 1:
            last = branches._replace(states=self._step_states(branches.states, joint, chance_key))
            reward = last.states.rewards
            return jnp.where(last.states.terminated[:, None], reward / self.scale, self._value(parameters, last))

        def follow_policy(
            carry: tuple[SelfPlayGames, jax.Array], key: jax.Array
        ) -> tuple[tuple[SelfPlayGames, jax.Array], None]:
            now, reward = carry
            policy = self._policy(parameters, now)
            action_key, step_key = jax.random.split(key)
            after = self._step_games(now, vectorised_play.sample_actions(action_key, policy), step_key)
            return (after, reward + after.states.rewards), None  # only the step that ends a game has rewards

        first = self._step_games(branches, joint, chance_key)
        keys = jax.random.split(rollout_key, self.settings.depth - 1)
        (last, reward), _ = jax.lax.scan(follow_policy, (first, first.states.rewards), keys)
        return jnp.where(last.states.terminated[:, None], reward / self.scale, self._value(parameters, last))

    def _learn(
        self, state: State, buffer: replay_buffers.ReplayBuffer, temperature: jax.Array, key: jax.Array
    ) -> tuple[Parameters, Any, Mapping[str, jax.Array]]:
        settings = self.settings
        # The lower the temperature, the more a small error of q moves policies.
        step_scale = temperature / settings.temperature

        def loss(parameters: Parameters, batch: Transition) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
            has_choice = batch.legal.sum(axis=-1) > 1
            output = networks.diagonal_outputs(
                networks.apply_network(self.network, parameters.policy, batch.information)
            )
            before = networks.diagonal_outputs(
                networks.apply_network(self.network, state.parameters.policy, batch.information)
            ).logits
            centred = functools.partial(_centred, legal=batch.legal)
            target = before + settings.rate * (batch.q_values - temperature * before)
            squared = jnp.square(centred(output.logits) - jax.lax.stop_gradient(centred(target))).sum(axis=-1)
            policy_loss = jnp.sum(squared * has_choice) / jnp.maximum(has_choice.sum(), 1)
            value_loss = jnp.square(
                networks.apply_network(self.network, parameters.value, batch.state).value - batch.value
            ).mean()
            auxiliary_loss = jnp.square(output.value - batch.value).mean()
            return policy_loss + value_loss + 0.1 * auxiliary_loss, (policy_loss, value_loss)

        def update(carry: tuple[Parameters, Any], key: jax.Array) -> tuple[tuple[Parameters, Any], Any]:
            parameters, optimiser = carry
            batch = sharding.shard(replay_buffers.sample(buffer, key, settings.batch))
            (total, parts), gradient = jax.value_and_grad(loss, has_aux=True)(parameters, batch)
            change, optimiser = self._optimiser.update(gradient, optimiser, parameters)
            change = jax.tree.map(lambda x: x * step_scale, change)
            return (optax.apply_updates(parameters, change), optimiser), (total, *parts)

        keys = jax.random.split(key, settings.updates)
        (parameters, optimiser), losses = jax.lax.scan(update, (state.parameters, state.optimiser), keys)
        total, policy_loss, value_loss = (part.mean() for part in losses)
        return parameters, optimiser, {"loss": total, "policy_loss": policy_loss, "value_error": jnp.sqrt(value_loss)}


class _Step(NamedTuple):
    """The outcome of a joint action. Axes: B games, P players."""

    reward: jax.Array  # [B, P]
    bootstrap: jax.Array  # [B, P] predicted value of the next state
    ended: jax.Array  # [B] bool
    trust: jax.Array  # [B] clipped importance ratio of the joint action


def _centred(logits: jax.Array, legal: jax.Array) -> jax.Array:
    """[.., A] minus the mean of the legal ones; 0 elsewhere."""
    count = jnp.maximum(legal.sum(axis=-1, keepdims=True), 1)
    mean = jnp.sum(logits * legal, axis=-1, keepdims=True) / count
    return jnp.where(legal, logits - mean, 0.0)


def _where(condition: jax.Array, yes: Any, no: Any) -> Any:
    """`jnp.where` with one condition per game, on every array of a pytree."""
    return jax.tree.map(lambda a, b: jnp.where(condition.reshape(-1, *[1] * (a.ndim - 1)), a, b), yes, no)


def make(encoder: encoders.Encoder, settings: Settings) -> SelfPlay:
    """The learner, as `learner_registry` calls it."""
    return SelfPlay(encoder, settings)
