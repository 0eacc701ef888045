"""Self-play with search: games in lockstep, in each of their states a depth-limited search, and networks that learn it.

Two networks. One sees what a player knows and gives its policy; the other sees the whole state, which a player does
not, and gives everybody's value: it is only used in training. From every state s of the games, a search tries each
move a of each player p while the others and chance draw theirs, everybody goes on by the policies for `depth` - 1 joint
moves, and the state network values where that ends:

    q(s, a) = payoff of p at the end of the game, or value of the state the search comes to

These are sampled counterfactual values of CFR at the information set of p, but that states come as often as the games
come to them. What CFR keeps of them, regrets, the network keeps: its logits z are moved by mirror descent with a magnet
(Sokota et al. 2023), which unlike regret matching needs no average,

    z  <-  z + rate (q - temperature z)            at the information sets of the games

which is linear in q, so that what many hidden states say of one set adds up to its mean. Where it stands still policies
are exp(q / temperature): an equilibrium of players who sometimes err, and the less the lower the temperature.

With `strangers`, in a part of the games somebody plays uniformly, and only the network of states knows it: policies
then exploit weak players more, and can be exploited more, as a restricted Nash response does (docs/exploitation.md).
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
    pass


@dataclasses.dataclass(frozen=True)
class Settings:
    """What may be changed from the command line."""

    games: int = 512  # in lockstep; divided among devices if these divide them
    steps: int = 8  # joint moves of each of them in an iteration
    depth: int = 1  # joint moves of a search
    draws: int = 1  # of the others' moves, for each of a player's
    exploration: float = 0.05  # part of moves that are uniform
    strangers: float = 0.0  # part of games in which one player does not learn, but plays uniformly
    temperature: float = 0.1  # at first, in units of the largest payoff; falls with the root of the iterations
    coldest: float = 0.01
    rate: float = 0.3  # of mirror descent
    trace: float = 0.8  # how much values learn from what comes later in a game
    capacity: int = 65_536  # states remembered
    batch: int = 1_024
    updates: int = 8  # in an iteration
    learning_rate: float = 1e-3  # of Adam, at first; falls as the temperature does
    smoothing: float = 0.998  # of the parameters that are played
    widths: tuple[int, ...] = (128, 128)  # of the layers of both networks
    kind: networks.NetworkKind = "residual"  # learns in fewer iterations

    def __post_init__(self) -> None:
        for name in ("games", "steps", "depth", "draws", "capacity", "batch", "updates"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} is a whole number above 0, not {getattr(self, name)}")
        for name in ("exploration", "strangers", "trace", "smoothing"):
            if not 0 <= getattr(self, name) <= 1:
                raise SettingsError(f"{name} is a part, from 0 to 1; not {getattr(self, name)}")
        for name in ("temperature", "coldest", "rate", "learning_rate"):
            if not 0 < getattr(self, name) < float("inf"):
                raise SettingsError(f"{name} is a number above 0, not {getattr(self, name)}")
        if self.coldest > self.temperature:
            raise SettingsError(f"the coldest temperature, {self.coldest}, is above the first, {self.temperature}")
        networks.require_widths(self.widths)
        if self.capacity < self.games * self.steps:
            raise SettingsError(
                f"an iteration of {self.games} games and {self.steps} steps does not fit in a memory of "
                f"{self.capacity}; make the capacity {self.games * self.steps} or more"
            )


class Parameters(NamedTuple):
    policy: Any  # of the network of information states
    value: Any  # of the network of states


class SelfPlayGames(NamedTuple):
    """Axes: B games first."""

    states: envs.State
    windows: observation_window.Window
    is_uniform: jax.Array  # [B, P] bool, who plays uniformly in this game; at most one


class Transition(NamedTuple):
    """What a state taught. Axes: P players, A moves, F numbers of an information state, R of a state."""

    information: jax.Array  # [P, F]
    state: jax.Array  # [R + P], and who plays uniformly
    legal: jax.Array  # [P, A] bool
    q_values: jax.Array  # [P, A] q, in units of the largest payoff
    value: jax.Array  # [P] likewise


class State(NamedTuple):
    parameters: Parameters
    ema_policy_params: Any  # of the policy network: the parameters that are played
    optimiser: Any
    games: SelfPlayGames
    replay_buffer: replay_buffers.ReplayBuffer  # of Lessons
    key: jax.Array
    iteration: jax.Array  # [] int32


@dataclasses.dataclass(frozen=True, eq=False)
class SelfPlay:
    """A `learners.Learner`."""

    encoder: encoders.Encoder
    settings: Settings = Settings()

    @functools.cached_property
    def network(self) -> networks.Network:
        env = self.encoder.env
        return networks.Network(env.num_players, env.num_actions, self.settings.widths, self.settings.kind)

    @property
    def scale(self) -> float:
        """One unit of what networks tell of payoffs."""
        low, high = self.encoder.env.payoff_range
        return max(abs(low), abs(high), 1e-9)

    @functools.partial(jax.jit, static_argnames="self")
    def init(self, key: jax.Array) -> State:
        policy_key, value_key, own = jax.random.split(key, 3)
        policy = networks.init_params(self.network, self.encoder.width, policy_key)
        value = networks.init_params(self.network, self._state_width, value_key)
        parameters = Parameters(policy, value)
        start = self._start()
        games = jax.tree.map(lambda x: jnp.broadcast_to(x, (self.settings.games, *x.shape)), start)
        memory = replay_buffers.init(self._lesson(start), self.settings.capacity)
        iteration = jnp.zeros((), jnp.int32)
        optimiser = self._optimiser.init(parameters)
        return sharding.replicate(State(parameters, policy, optimiser, games, memory, own, iteration))

    @functools.partial(jax.jit, static_argnames="self")
    def iterate(self, state: State) -> tuple[State, Mapping[str, jax.Array]]:
        key, of_play, of_learning = jax.random.split(state.key, 3)
        games, lessons, told = self._play(state.parameters, sharding.shard(state.games), of_play)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), sharding.replicate(lessons))
        memory = replay_buffers.add_fifo(state.replay_buffer, flat, jnp.ones(flat.value.shape[0], jnp.bool_))
        temperature = self._temperature(state.iteration)
        parameters, optimiser, losses = self._learn(state, memory, temperature, of_learning)
        keep = jnp.minimum(self.settings.smoothing, (1 + state.iteration) / (10 + state.iteration))
        smooth = jax.tree.map(
            lambda old, new: keep * old + (1 - keep) * new, state.ema_policy_params, parameters.policy
        )
        after = State(parameters, smooth, optimiser, games, memory, key, state.iteration + 1)
        return sharding.replicate(after), {**losses, **told, "temperature": temperature}

    def policy_params(self, state: State) -> Any:
        return state.ema_policy_params

    def values(self, state: State, states: jax.Array) -> jax.Array:
        """[B, P] payoffs that states [B, R] are worth, encoded, as the network of states tells."""
        seen = jnp.pad(states, ((0, 0), (0, self.encoder.env.num_players)))  # nobody plays uniformly
        return networks.apply_network(self.network, state.parameters.value, seen).value * self.scale

    @functools.cached_property
    def _optimiser(self) -> optax.GradientTransformation:
        return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(self.settings.learning_rate))

    def _temperature(self, iteration: jax.Array) -> jax.Array:
        fallen = self.settings.temperature / jnp.sqrt(1 + iteration / 100)
        return jnp.maximum(self.settings.coldest, fallen)

    def _start(self) -> SelfPlayGames:
        """One game."""
        state = self.encoder.env.init()
        return SelfPlayGames(state, self.encoder.window(state), jnp.zeros(self.encoder.env.num_players, jnp.bool_))

    @property
    def _state_width(self) -> int:
        return self.encoder.state_width + self.encoder.env.num_players

    def _told_of(self, games: SelfPlayGames) -> jax.Array:
        """[B, R + P] what the network of states sees."""
        return jnp.concatenate([jax.vmap(self.encoder.state)(games.states), games.is_uniform], axis=1)

    def _lesson(self, game: SelfPlayGames) -> Transition:
        """Of the shapes of one."""
        env = self.encoder.env
        moves = jnp.zeros((env.num_players, env.num_actions))
        information = self.encoder.information_state(game.windows)
        return Transition(information, jnp.zeros(self._state_width), game.states.legal_mask, moves, moves[:, 0])

    def _play(
        self, parameters: Parameters, games: SelfPlayGames, key: jax.Array
    ) -> tuple[SelfPlayGames, Transition, Mapping[str, jax.Array]]:
        """The games afterwards, and lessons [T, B, ..]."""
        start = self._start()

        def step(now: SelfPlayGames, key: jax.Array) -> tuple[SelfPlayGames, tuple[Transition, _Step]]:
            of_move, of_search, of_stranger = jax.random.split(key, 3)
            information = jax.vmap(self.encoder.information_state)(now.windows)
            policy = self._policy(parameters, now, information)
            searched = self._search(parameters, now, policy, of_search)
            value = jnp.sum(policy * searched, axis=-1)
            after, trust = self._move(now, policy, of_move)
            ended = after.states.terminated
            guess = self._value(parameters, after)
            lesson = Transition(information, self._told_of(now), now.states.legal_mask, searched, value)
            seen = _Step(after.states.rewards / self.scale, guess, ended, trust)
            new = jax.tree.map(lambda x: jnp.broadcast_to(x, (len(ended), *x.shape)), start)
            fresh = _where(ended, new._replace(stranger=self._strangers(of_stranger, len(ended))), after)
            return fresh, (lesson, seen)

        games, (lessons, seen) = jax.lax.scan(step, games, jax.random.split(key, self.settings.steps))
        spread = jnp.mean(jnp.square(lessons.value - lessons.value.mean()))
        told = {"ended": seen.ended.mean(), "value_spread": jnp.sqrt(spread)}
        return games, lessons._replace(value=self._returns(lessons.value, seen)), told

    def _returns(self, value: jax.Array, seen: "_Step") -> jax.Array:
        """[T, B, P]: what the search says, corrected by what later searches say of where the game went."""

        def back(later: jax.Array, now: tuple[jax.Array, _Step]) -> tuple[jax.Array, jax.Array]:
            value, step = now
            ended = step.ended[:, None]
            surprise = jnp.where(ended, step.reward, later) - jnp.where(ended, step.reward, step.guess)
            here = value + self.settings.trace * step.trust[:, None] * surprise
            return here, here

        _, found = jax.lax.scan(back, seen.guess[-1], (value, seen), reverse=True)
        return found

    def _strangers(self, key: jax.Array, games: int) -> jax.Array:
        """[B, P]"""
        players = self.encoder.env.num_players
        of_game, of_player = jax.random.split(key)
        who = jax.random.randint(of_player, (games, 1), 0, players) == jnp.arange(players)
        return who & (jax.random.uniform(of_game, (games, 1)) < self.settings.strangers)

    def _policy(self, parameters: Parameters, games: SelfPlayGames, information: jax.Array | None = None) -> jax.Array:
        """[B, P, A]"""
        legal = games.states.legal_mask
        if information is None:
            information = jax.vmap(self.encoder.information_state)(games.windows)
        told = networks.diagonal_outputs(networks.apply_network(self.network, parameters.policy, information))
        return jnp.where(
            games.is_uniform[..., None], networks.uniform_policy(legal), networks.masked_softmax(told.logits, legal)
        )

    def _value(self, parameters: Parameters, games: SelfPlayGames) -> jax.Array:
        """[B, P]"""
        return networks.apply_network(self.network, parameters.value, self._told_of(games)).value

    def _move(self, games: SelfPlayGames, policy: jax.Array, key: jax.Array) -> tuple[SelfPlayGames, jax.Array]:
        """The games after a joint move, and how much more probable it was to the policies, at most 1."""
        legal = games.states.legal_mask
        drawn_from = (1 - self.settings.exploration) * policy + self.settings.exploration * networks.uniform_policy(
            legal
        )
        of_draw, of_chance = jax.random.split(key)
        actions = vectorised_play.sample_actions(of_draw, drawn_from)
        chosen = actions[..., None] == jnp.arange(legal.shape[-1])
        ratio = jnp.sum(chosen * policy, -1) / jnp.maximum(jnp.sum(chosen * drawn_from, -1), 1e-9)
        trust = jnp.prod(jnp.minimum(ratio, 1.0), axis=-1)
        return self._moved(games, actions, of_chance), trust

    def _moved(self, games: SelfPlayGames, actions: jax.Array, key: jax.Array) -> SelfPlayGames:
        states = self._stepped(games.states, actions, key)
        return SelfPlayGames(states, jax.vmap(observation_window.update)(games.windows, states), games.is_uniform)

    def _stepped(self, states: envs.State, actions: jax.Array, key: jax.Array) -> envs.State:
        return jax.vmap(self.encoder.env.step)(states, actions, jax.random.split(key, actions.shape[0]))

    def _search(self, parameters: Parameters, games: SelfPlayGames, policy: jax.Array, key: jax.Array) -> jax.Array:
        """[B, P, A] q of each player's moves; 0 of those that are not legal."""
        batch, players, moves = policy.shape
        draws = self.settings.draws
        of_others, of_chance, of_rest = jax.random.split(key, 3)
        others = vectorised_play.sample_actions(
            of_others, jnp.broadcast_to(policy[:, None], (batch, draws, players, moves))
        )
        # All moves of a player meet the same moves of the others: their differences are what counts.
        joint = jnp.broadcast_to(others[:, None, None], (batch, players, moves, draws, players))
        own = jnp.eye(players, dtype=jnp.bool_)[:, None, None]
        joint = jnp.where(own, jnp.arange(moves)[:, None, None], joint).reshape(-1, players)
        branches = jax.tree.map(lambda x: jnp.repeat(x, players * moves * draws, axis=0), games)
        searched = self._searched(parameters, branches, joint, of_chance, of_rest)
        worth = searched.reshape(batch, players, moves, draws, players).mean(axis=3)
        found = jnp.einsum("bpap->bpa", worth)
        return jnp.where(games.states.legal_mask, found, 0.0)

    def _searched(
        self,
        parameters: Parameters,
        branches: SelfPlayGames,
        joint: jax.Array,
        of_chance: jax.Array,
        of_rest: jax.Array,
    ) -> jax.Array:
        """[L, P] what branches [L] are worth after their first joint move."""
        if self.settings.depth == 1:
            last = branches._replace(states=self._stepped(branches.states, joint, of_chance))
            reward = last.states.rewards
            return jnp.where(last.states.terminated[:, None], reward / self.scale, self._value(parameters, last))

        def go_on(
            carry: tuple[SelfPlayGames, jax.Array], key: jax.Array
        ) -> tuple[tuple[SelfPlayGames, jax.Array], None]:
            now, reward = carry
            policy = self._policy(parameters, now)
            of_draw, of_move = jax.random.split(key)
            after = self._moved(now, vectorised_play.sample_actions(of_draw, policy), of_move)
            return (after, reward + after.states.rewards), None  # rewards come in the step that ends a game alone

        first = self._moved(branches, joint, of_chance)
        keys = jax.random.split(of_rest, self.settings.depth - 1)
        (last, reward), _ = jax.lax.scan(go_on, (first, first.states.rewards), keys)
        return jnp.where(last.states.terminated[:, None], reward / self.scale, self._value(parameters, last))

    def _learn(
        self, state: State, memory: replay_buffers.ReplayBuffer, temperature: jax.Array, key: jax.Array
    ) -> tuple[Parameters, Any, Mapping[str, jax.Array]]:
        settings = self.settings
        slower = temperature / settings.temperature  # the colder, the more a small error of q moves policies

        def loss(parameters: Parameters, lessons: Transition) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
            has_choice = lessons.legal.sum(axis=-1) > 1
            told = networks.diagonal_outputs(
                networks.apply_network(self.network, parameters.policy, lessons.information)
            )
            before = networks.diagonal_outputs(
                networks.apply_network(self.network, state.parameters.policy, lessons.information)
            ).logits
            centred = functools.partial(_centred, legal=lessons.legal)
            target = before + settings.rate * (lessons.q_values - temperature * before)
            missed = jnp.square(centred(told.logits) - jax.lax.stop_gradient(centred(target))).sum(axis=-1)
            of_policy = jnp.sum(missed * has_choice) / jnp.maximum(has_choice.sum(), 1)
            of_value = jnp.square(
                networks.apply_network(self.network, parameters.value, lessons.state).value - lessons.value
            ).mean()
            of_guess = jnp.square(told.value - lessons.value).mean()
            return of_policy + of_value + 0.1 * of_guess, (of_policy, of_value)

        def update(carry: tuple[Parameters, Any], key: jax.Array) -> tuple[tuple[Parameters, Any], Any]:
            parameters, optimiser = carry
            lessons = sharding.shard(replay_buffers.sample(memory, key, settings.batch))
            (total, parts), gradient = jax.value_and_grad(loss, has_aux=True)(parameters, lessons)
            change, optimiser = self._optimiser.update(gradient, optimiser, parameters)
            change = jax.tree.map(lambda x: x * slower, change)
            return (optax.apply_updates(parameters, change), optimiser), (total, *parts)

        keys = jax.random.split(key, settings.updates)
        (parameters, optimiser), losses = jax.lax.scan(update, (state.parameters, state.optimiser), keys)
        total, of_policy, of_value = (part.mean() for part in losses)
        return parameters, optimiser, {"loss": total, "policy_loss": of_policy, "value_error": jnp.sqrt(of_value)}


class _Step(NamedTuple):
    """After a joint move. Axes: B games, P players."""

    reward: jax.Array  # [B, P]
    guess: jax.Array  # [B, P] value of where the game went
    ended: jax.Array  # [B] bool
    trust: jax.Array  # [B]


def _centred(moves: jax.Array, legal: jax.Array) -> jax.Array:
    """[.., A] less the mean of the legal ones; 0 elsewhere."""
    count = jnp.maximum(legal.sum(axis=-1, keepdims=True), 1)
    mean = jnp.sum(moves * legal, axis=-1, keepdims=True) / count
    return jnp.where(legal, moves - mean, 0.0)


def _where(condition: jax.Array, yes: Any, no: Any) -> Any:
    """By game."""
    return jax.tree.map(lambda a, b: jnp.where(condition.reshape(-1, *[1] * (a.ndim - 1)), a, b), yes, no)


def make(encoder: encoders.Encoder, settings: Settings) -> SelfPlay:
    return SelfPlay(encoder, settings)
