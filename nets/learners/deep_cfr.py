"""Deep CFR (Brown, Lerer, Gross & Sandholm 2019) on two-player games that can be unrolled.

In iteration t, for each player in turn: traversals with external sampling add sampled advantages r(I, .) to a
reservoir; then the player's advantage network A is fitted to all samples in it, with weight t (linear CFR),

    minimise  sum t (r(I, a) - A(I, a))^2,

and the player follows regret matching on A: actions in proportion to their positive advantage; where none is positive,
the best action. The opponent of the traversing player adds its policy at the information sets that it visits to a third
reservoir. The policy network is fitted to it, represents the average policy, and is what is played in the end.

Differences to the paper: policies are fitted by cross-entropy, which like the squared error has its minimum at the
mean, and converges sooner; advantages are in units of half the payoff range, so that one learning rate suits all games;
and ties between best actions are split evenly, so that an untrained network, which predicts 0, plays uniformly.

The theory needs two players and payoffs that sum to zero. With more players the visits of a traversal do not measure a
player's own reach, so the policy network would not represent an average policy; such games are refused.
"""

import contextlib
import dataclasses
import functools
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from gdlx.envs.trees import game_tree, sampling_form
from gdlx.nets.learners import traversals
from gdlx.nets.models import encoders, networks, replay_buffers, sharding
from gdlx.nets.values import infoset_tables
from gdlx.propnet.common import errors
from gdlx.solvers import tasks
from gdlx.solvers.mccfr import lane_packing


class SettingsError(errors.UserError, ValueError):
    """A setting of Deep CFR that is out of range, or a game that it cannot learn."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Hyper-parameters of Deep CFR."""

    traversals: int = 256  # of each player in an iteration
    width: float = 64.0  # lanes per traversal; lanes in excess are subsampled
    capacity: int = 1 << 20  # visits in each reservoir
    steps: int = 400  # gradient steps of an advantage network in an iteration
    policy_steps: int = 2_000  # gradient steps of the policy network each time it is fitted
    batch: int = 512  # visits of a gradient step
    rate: float = 1e-3  # learning rate of Adam
    fresh: bool = True  # advantage networks restart from their initial parameters in every iteration
    widths: tuple[int, ...] = (64, 64)  # of the layers of all networks
    kind: networks.NetworkKind = "residual"  # learns in fewer steps

    def __post_init__(self) -> None:
        for name in ("traversals", "capacity", "steps", "policy_steps", "batch"):
            if getattr(self, name) < 1:
                raise SettingsError(f"deep-cfr: {name} must be 1 or more, not {getattr(self, name)}")
        if not self.width > 0:
            raise SettingsError(f"deep-cfr: width must be more than 0 lanes per traversal, not {self.width:g}")
        if not 0 < self.rate < 1:
            raise SettingsError(f"deep-cfr: rate must be between 0 and 1, not {self.rate:g}; 0.001 suits most games")
        networks.require_widths(self.widths)


class GameArrays(NamedTuple):
    """The game on the device, which every iteration reads."""

    table: traversals.TraversalTable
    sets: infoset_tables.EncodedInfosets  # the columns of the table, without that of no choice
    advantage_scale: jax.Array  # [] float, the advantage that networks predict as 1


class ReservoirItem(NamedTuple):
    """A visit to an information set. Axes: W actions."""

    column: jax.Array  # [] int32, information set
    weight: jax.Array  # [] float, iteration times the number of visits that it represents
    target: jax.Array  # [W] float, scaled sampled advantages, or a policy


class TrainState(NamedTuple):
    params: Any  # of a network
    opt_state: Any  # of the optimiser


class State(NamedTuple):
    """Everything that an iteration reads and writes. Axes: 2 players."""

    start: TrainState  # initial one of every network
    advantage_train_states: TrainState  # [2, ..] advantage networks
    advantages: replay_buffers.ReplayBuffer  # [2, ..] of ReservoirItem
    policies: replay_buffers.ReplayBuffer  # of ReservoirItem
    iteration: jax.Array  # [] int32
    key: jax.Array


Loss = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]  # predictions, targets, is_action [.., W] -> [..]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class DeepCfr:
    """Deep CFR as a `Learner`, for a two-player game that can be unrolled.

    Attributes:
      encoder: what the networks see of the game.
      tree: the game, unrolled with `keep_edges=True`.
      settings: hyper-parameters.
      network: architecture of the policy network and of both advantage networks.

    >>> import gdlx
    >>> tree = gdlx.unroll("kuhn_poker", keep_edges=True)
    >>> DeepCfr(encoders.Encoder(gdlx.make("kuhn_poker"), steps=5), tree)
    DeepCfr(game='kuhn_poker', traversals=256, capacity=1048576, widths=(64, 64), kind='residual')
    """

    encoder: encoders.Encoder
    tree: game_tree.GameTree
    settings: Settings = Settings()

    def __repr__(self) -> str:
        settings = self.settings
        return (
            f"DeepCfr(game={self.tree.name!r}, traversals={settings.traversals}, capacity={settings.capacity}, "
            f"widths={settings.widths}, kind={settings.kind!r})"
        )

    def __post_init__(self) -> None:
        if len(self.tree.players) != 2:
            raise SettingsError(
                f"deep-cfr learns games of two players, and {self.tree.name} has {len(self.tree.players)}; "
                "es-mccfr solves games of any number of players"
            )
        if not any(player.sets for player in self.tree.players):
            raise SettingsError(f"deep-cfr: no player ever has a choice in {self.tree.name}; there is nothing to learn")
        _ = self.game, self.size  # computed here, as a traced iteration must not

    @property
    def network(self) -> networks.Network:
        """The policy network; advantage networks have the same architecture."""
        return networks.Network(
            len(self.tree.players), self.encoder.env.num_actions, self.settings.widths, self.settings.kind
        )

    @functools.cached_property
    def form(self) -> sampling_form.SamplingForm:
        return sampling_form.sampling_form(self.tree)

    @functools.cached_property
    def game(self) -> GameArrays:
        low, high = self.tree.payoff_range
        scale = jnp.asarray(max(high - low, 1e-6) / 2, self.form.share.dtype)
        return GameArrays(
            traversals.make_traversal_table(self.form), infoset_tables.encode_infosets(self.encoder, self.tree), scale
        )

    @functools.cached_property
    def size(self) -> traversals.TraversalSize:
        size = traversals.traversal_size(self.form, batch=self.settings.traversals, width=self.settings.width)
        if not lane_packing.can_pack(size.lanes, self.form.shape[0], size.lanes):
            raise SettingsError(
                f"deep-cfr: {self.settings.traversals:,} traversals of {self.tree.name} need {size.lanes:,} lanes, "
                "which are too many; take fewer traversals or a smaller width"
            )
        return size

    def init(self, key: jax.Array) -> State:
        if not isinstance(key, jax.core.Tracer):
            self._compile_ahead()
        state: State = self._init(key)
        return state

    def _compile_ahead(self) -> None:
        """Compiles the next programs in a thread, on an idle core; a caller waits until its program is ready."""
        state = jax.eval_shape(self._initial_state, jax.random.key(0))
        threading.Thread(target=_compile, args=((self._iterate, self._act), self.game, state)).start()

    def iterate(self, state: State) -> tuple[State, Mapping[str, jax.Array]]:
        after: tuple[State, Mapping[str, jax.Array]] = self._iterate(self.game, state)
        return after

    def policy_params(self, state: State) -> Any:
        """Fits the policy network to all visits so far, and returns its parameters."""
        return self._act(self.game, state)

    @functools.cached_property
    def _init(self) -> Any:
        return jax.jit(self._initial_state)

    @functools.cached_property
    def _iterate(self) -> Any:
        return jax.jit(self._iteration)

    @functools.cached_property
    def _act(self) -> Any:
        return jax.jit(self._average)

    def _initial_state(self, key: jax.Array) -> State:
        params_key, state_key = jax.random.split(key)
        variables = networks.init_params(self.network, self.encoder.width, params_key)
        start = TrainState(variables, self._optimiser.init(variables))
        like = ReservoirItem(jnp.int32(0), jnp.float32(0), jnp.zeros(self.form.shape[0], jnp.float32))
        empty = replay_buffers.init(like, self.settings.capacity)
        fitted, advantages = jax.tree.map(lambda x: jnp.stack([x, x]), (start, empty))
        return sharding.replicate(State(start, fitted, advantages, empty, jnp.int32(0), state_key))

    def _iteration(self, game: GameArrays, state: State) -> tuple[State, Mapping[str, jax.Array]]:
        iteration_key, next_key = jax.random.split(state.key)
        # All random bits at once: every call of a generator takes long to compile.
        turns = (jnp.arange(2), jax.random.bits(iteration_key, (2, sum(self._draws)), jnp.uint32))
        # A scan over players, so that a turn is compiled once.
        state, losses = jax.lax.scan(
            lambda s, turn: self._turn(game, s, *turn), state._replace(iteration=state.iteration + 1), turns
        )
        visits = jnp.sum(jnp.append(state.advantages.num_added, state.policies.num_added).astype(jnp.float32))
        mean, tenth = losses.mean(axis=0) / state.iteration, -(-self.settings.steps // 10)  # single batches are noisy
        metrics = {"loss": mean[-tenth:].mean(), "loss_before": mean[:tenth].mean(), "visits": visits}
        return sharding.replicate(state._replace(key=next_key)), metrics

    @property
    def _draws(self) -> tuple[int, int, int, int]:
        """Random numbers of a turn: for traversals, for both reservoirs, and for the batches of the fit."""
        visits, choices = self.size.levels * self.size.lanes, len(self.game.table.nodes.column)
        traversal_draws = math.prod(traversals.draws_shape(self.game.table, self.size))
        return traversal_draws, visits, choices * visits, self.settings.steps * self.settings.batch

    def _turn(self, game: GameArrays, state: State, player: jax.Array, bits: jax.Array) -> tuple[State, jax.Array]:
        """A player's traversals, then the fit of its advantage network."""
        traversal_bits, reservoir_bits, opponent_bits, fit_bits = jnp.split(bits, np.cumsum(self._draws)[:-1])
        policy = self._policy(game, state.advantage_train_states)
        drawn = (traversal_bits >> 8).astype(policy.dtype) * 2**-24  # as many bits as a float32 holds
        drawn = drawn.reshape(traversals.draws_shape(game.table, self.size))
        visits = traversals.sample_visits(game.table, policy, drawn, player, size=self.size)
        none = policy.shape[1] - 1
        train_state, reservoir = (_of_player(x, player) for x in (state.advantage_train_states, state.advantages))
        items = ReservoirItem(visits.column, visits.weight * state.iteration, visits.advantage / game.advantage_scale)
        reservoir = replay_buffers.add_reservoir(reservoir, items, visits.column < none, reservoir_bits)
        opponent_items = ReservoirItem(
            visits.opponent_column, visits.opponent_weight * state.iteration, policy.T[visits.opponent_column]
        )
        policies = replay_buffers.add_reservoir(
            state.policies, opponent_items, visits.opponent_column < none, opponent_bits
        )
        start = state.start if self.settings.fresh else train_state
        train_state, losses = self._fit(game.sets, start, reservoir, fit_bits, _squared_error)
        fitted, advantages = (
            jax.tree.map(lambda x, y: x.at[player].set(y), old, new)
            for old, new in ((state.advantage_train_states, train_state), (state.advantages, reservoir))
        )
        return state._replace(advantage_train_states=fitted, advantages=advantages, policies=policies), losses

    def _average(self, game: GameArrays, state: State) -> Any:
        # The key of the next iteration can be reused: nothing that is trained further depends on these draws.
        steps = self.settings.policy_steps
        bits = jax.random.bits(state.key, (steps * self.settings.batch,), jnp.uint32)
        fitted, _ = self._fit(game.sets, state.start, state.policies, bits, _cross_entropy)
        return fitted.params

    def _policy(self, game: GameArrays, fitted: TrainState) -> jax.Array:
        """[W, C] the policies of both players."""
        predicted = jax.vmap(lambda variables: infoset_tables.apply_to_infosets(self.network, variables, game.sets))(
            fitted.params
        )
        advantage = jnp.where(game.sets.player[:, None] == 0, predicted[0], predicted[1])
        return self.form.join_players([regret_matching(advantage, game.sets.is_legal).T])

    @property
    def _optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.settings.rate)

    def _fit(
        self,
        sets: infoset_tables.EncodedInfosets,
        start: TrainState,
        buffer: replay_buffers.ReplayBuffer,
        bits: jax.Array,
        loss: Loss,
    ) -> tuple[TrainState, jax.Array]:
        """Gradient steps on batches of a reservoir, one random word per visit: the network, and losses [steps]."""

        # The network is applied once to every information set, or once to every visit, whichever is less.
        is_small = len(sets.player) < self.settings.batch

        def weighted(variables: Any, visits: ReservoirItem) -> jax.Array:
            visited = jax.tree.map(lambda x: x[visits.column], sets)
            if is_small:
                predicted = infoset_tables.apply_to_infosets(self.network, variables, sets)[visits.column]
            else:
                predicted = infoset_tables.apply_to_infosets(self.network, variables, visited)
            return jnp.mean(visits.weight * loss(predicted, visits.target, visited.is_legal))

        def step(fitted: TrainState, slot: jax.Array) -> tuple[TrainState, jax.Array]:
            visits = sharding.shard(jax.tree.map(lambda x: x[slot], buffer.items))
            value, gradient = jax.value_and_grad(weighted)(fitted.params, visits)
            change, opt_state = self._optimiser.update(gradient, fitted.opt_state)
            return TrainState(optax.apply_updates(fitted.params, change), opt_state), value

        # The bias of the remainder is negligible beside 2^32.
        drawn = bits.reshape(-1, self.settings.batch)
        slots = (drawn % jnp.maximum(buffer.filled, 1).astype(jnp.uint32)).astype(jnp.int32)
        result: tuple[TrainState, jax.Array] = jax.lax.scan(step, start, slots)
        return result


def _compile(programs: Sequence[Any], *shapes: Any) -> None:
    with contextlib.suppress(Exception):  # the caller of the program meets the error too
        for program in programs:
            program.lower(*shapes).compile()


def _of_player(tree: Any, player: jax.Array) -> Any:
    return jax.tree.map(lambda x: x[player], tree)


def regret_matching(advantage: jax.Array, is_option: jax.Array) -> jax.Array:
    """[.., W] regret matching on predicted advantages; the best actions where none is positive."""
    positive = jnp.where(is_option, jnp.maximum(advantage, 0), 0)
    total = positive.sum(axis=-1, keepdims=True)
    masked = jnp.where(is_option, advantage, -jnp.inf)
    best = (is_option & (masked == masked.max(axis=-1, keepdims=True))).astype(advantage.dtype)
    return jnp.where(total > 0, positive / jnp.where(total > 0, total, 1), best / best.sum(axis=-1, keepdims=True))


def _squared_error(predicted: jax.Array, target: jax.Array, is_action: jax.Array) -> jax.Array:
    return jnp.sum(jnp.where(is_action, (predicted - target) ** 2, 0), axis=-1)


def _cross_entropy(logits: jax.Array, target: jax.Array, is_action: jax.Array) -> jax.Array:
    log_policy = jax.nn.log_softmax(jnp.where(is_action, logits, -jnp.inf), axis=-1)
    return -jnp.sum(jnp.where(is_action, target * jnp.where(is_action, log_policy, 0), 0), axis=-1)


def make(encoder: encoders.Encoder, settings: Settings, task: tasks.TreeTask) -> DeepCfr:
    """The learner, as `learner_registry` calls it."""
    return DeepCfr(encoders.drop_unused_features(encoder, task.tree), task.tree, settings)
