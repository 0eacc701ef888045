"""Deep CFR (Brown, Lerer, Gross & Sandholm 2019) on two-player games that can be unrolled.

In iteration t, for each player in turn: traversals with external sampling add to a reservoir of sampled advantages
r(I, .); then the player's advantage network A is fitted to all that are in it, with weight t (linear CFR),

    minimise  sum t (r(I, a) - A(I, a))^2,

and plays regret matching from then on: options in proportion to their positive advantage; where none is positive, the
best one. Whoever does not walk adds its policy at the sets it visits to a third reservoir, which the policy network is
fitted to. That network stands for the average of all policies, and is what is played in the end.

As in the paper, but for this: policies are fitted by cross-entropy, which has its minimum where squares have theirs, at
the mean, and comes there sooner; advantages are in units of the payoff range, so that one rate of learning suits all
games; and several best options share alike, so that a new network, which tells 0 of all of them, plays uniformly.

The theory needs two players and payoffs that sum to zero. With more players visits are no measure of a player's own
reach, so that the average would not be one; such games are refused.
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
    pass


@dataclasses.dataclass(frozen=True)
class Settings:
    traversals: int = 256  # of each player in an iteration
    width: float = 64.0  # lanes for a traversal: what goes beyond is sampled
    capacity: int = 1 << 20  # visits that each reservoir keeps
    steps: int = 400  # of an advantage network in an iteration
    policy_steps: int = 2_000  # of the policy network whenever it is asked for
    batch: int = 512  # visits of one step
    rate: float = 1e-3  # of Adam
    fresh: bool = True  # advantage networks learn from the start in every iteration, else they go on
    widths: tuple[int, ...] = (64, 64)  # of the layers of all networks
    kind: networks.NetworkKind = "residual"  # learns in fewer steps

    def __post_init__(self) -> None:
        for name in ("traversals", "capacity", "steps", "policy_steps", "batch"):
            if getattr(self, name) < 1:
                raise SettingsError(f"deep-cfr: {name} must be 1 or more, not {getattr(self, name)}")
        if not self.width > 0:
            raise SettingsError(f"deep-cfr: width must be more than 0 lanes for a traversal, not {self.width:g}")
        if not 0 < self.rate < 1:
            raise SettingsError(f"deep-cfr: rate must be between 0 and 1, not {self.rate:g}; 0.001 suits most games")
        networks.require_widths(self.widths)


class GameArrays(NamedTuple):
    """Arrays that every iteration needs."""

    table: traversals.TraversalTable
    sets: infoset_tables.EncodedInfosets  # the columns of the table, without that of no choice
    advantage_scale: jax.Array  # [] float, of advantages


class ReservoirItem(NamedTuple):
    """An item of a reservoir. Axes: W options."""

    column: jax.Array  # [] int32, information set
    weight: jax.Array  # [] float, iteration times the visits it stands for
    target: jax.Array  # [W] float, sampled advantages in units, or a policy


class TrainState(NamedTuple):
    params: Any  # of a network
    opt_state: Any  # of the optimiser


class State(NamedTuple):
    """Axes: 2 players."""

    start: TrainState  # what every network begins with
    advantage_train_states: TrainState  # [2, ..] advantage networks
    advantages: replay_buffers.ReplayBuffer  # [2, ..] of Visit
    policies: replay_buffers.ReplayBuffer  # of Visit
    iteration: jax.Array  # [] int32
    key: jax.Array


Loss = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]  # what is told, targets, options [.., W] -> [..]


@dataclasses.dataclass(frozen=True, eq=False)
class DeepCfr:
    """A `learners.Learner` of one unrolled game, whose tree has its edges."""

    encoder: encoders.Encoder
    tree: game_tree.GameTree
    settings: Settings = Settings()

    def __post_init__(self) -> None:
        if len(self.tree.players) != 2:
            raise SettingsError(
                f"deep-cfr learns games of two players, and {self.tree.name} has {len(self.tree.players)}; "
                "es-mccfr solves games of any number of players"
            )
        if not any(player.sets for player in self.tree.players):
            raise SettingsError(f"deep-cfr: nobody ever has a choice in {self.tree.name}; there is nothing to learn")
        _ = self.game, self.size  # now, as inside a traced iteration it would be too late

    @property
    def network(self) -> networks.Network:
        """Advantage networks have the same layers."""
        return networks.Network(
            len(self.tree.players), self.encoder.env.num_actions, self.settings.widths, self.settings.kind
        )

    @functools.cached_property
    def form(self) -> sampling_form.SamplingForm:
        return sampling_form.sampling_form(self.tree)

    @functools.cached_property
    def game(self) -> GameArrays:
        low, high = self.tree.payoff_range
        unit = jnp.asarray(max(high - low, 1e-6) / 2, self.form.share.dtype)
        return GameArrays(
            traversals.make_traversal_table(self.form), infoset_tables.encode_infosets(self.encoder, self.tree), unit
        )

    @functools.cached_property
    def size(self) -> traversals.TraversalSize:
        found = traversals.traversal_size(self.form, batch=self.settings.traversals, width=self.settings.width)
        if not lane_packing.can_pack(found.lanes, self.form.shape[0], found.lanes):
            raise SettingsError(
                f"deep-cfr: {self.settings.traversals:,} traversals of {self.tree.name} may be at {found.lanes:,} "
                "places at once, which are too many; take fewer traversals or a smaller width"
            )
        return found

    def init(self, key: jax.Array) -> State:
        if not isinstance(key, jax.core.Tracer):
            self._compile_ahead()
        found: State = self._init(key)
        return found

    def _compile_ahead(self) -> None:
        """What is needed next, on a core that has nothing to do; who calls a program waits until it is there."""
        state = jax.eval_shape(self._beginning, jax.random.key(0))
        threading.Thread(target=_compile, args=((self._iterate, self._act), self.game, state)).start()

    def iterate(self, state: State) -> tuple[State, Mapping[str, jax.Array]]:
        after: tuple[State, Mapping[str, jax.Array]] = self._iterate(self.game, state)
        return after

    def policy_params(self, state: State) -> Any:
        """The policy network, fitted anew to all that has been visited so far."""
        return self._act(self.game, state)

    @functools.cached_property
    def _init(self) -> Any:
        return jax.jit(self._beginning)

    @functools.cached_property
    def _iterate(self) -> Any:
        return jax.jit(self._iteration)

    @functools.cached_property
    def _act(self) -> Any:
        return jax.jit(self._average)

    def _beginning(self, key: jax.Array) -> State:
        starting, after = jax.random.split(key)
        variables = networks.init_params(self.network, self.encoder.width, starting)
        start = TrainState(variables, self._optimiser.init(variables))
        like = ReservoirItem(jnp.int32(0), jnp.float32(0), jnp.zeros(self.form.shape[0], jnp.float32))
        empty = replay_buffers.init(like, self.settings.capacity)
        fitted, advantages = jax.tree.map(lambda x: jnp.stack([x, x]), (start, empty))
        return sharding.replicate(State(start, fitted, advantages, empty, jnp.int32(0), after))

    def _iteration(self, game: GameArrays, state: State) -> tuple[State, Mapping[str, jax.Array]]:
        now, after = jax.random.split(state.key)
        # All that is random at once: every call of a generator is long to compile.
        turns = (jnp.arange(2), jax.random.bits(now, (2, sum(self._draws)), jnp.uint32))
        # A loop, not one after the other: what both players do is compiled once.
        state, losses = jax.lax.scan(
            lambda s, turn: self._turn(game, s, *turn), state._replace(iteration=state.iteration + 1), turns
        )
        visits = jnp.sum(jnp.append(state.advantages.num_added, state.policies.num_added).astype(jnp.float32))
        mean, some = losses.mean(axis=0) / state.iteration, -(-self.settings.steps // 10)  # one batch tells little
        told = {"loss": mean[-some:].mean(), "loss_before": mean[:some].mean(), "visits": visits}
        return sharding.replicate(state._replace(key=after)), told

    @property
    def _draws(self) -> tuple[int, int, int, int]:
        """Of a turn: for its walks, for what both reservoirs keep of them, for the fit."""
        visits, choices = self.size.levels * self.size.lanes, len(self.game.table.nodes.column)
        walks = math.prod(traversals.draws_shape(self.game.table, self.size))
        return walks, visits, choices * visits, self.settings.steps * self.settings.batch

    def _turn(self, game: GameArrays, state: State, player: jax.Array, bits: jax.Array) -> tuple[State, jax.Array]:
        """A player's traversals, then its network."""
        walking, keeping, keeping_other, fitting = jnp.split(bits, np.cumsum(self._draws)[:-1])
        policy = self._policy(game, state.advantage_train_states)
        drawn = (walking >> 8).astype(policy.dtype) * 2**-24  # as many bits as a float tells
        drawn = drawn.reshape(traversals.draws_shape(game.table, self.size))
        met = traversals.sample_visits(game.table, policy, drawn, player, size=self.size)
        none = policy.shape[1] - 1
        own, reservoir = (_of_player(x, player) for x in (state.advantage_train_states, state.advantages))
        visits = ReservoirItem(met.column, met.weight * state.iteration, met.advantage / game.advantage_scale)
        reservoir = replay_buffers.add_reservoir(reservoir, visits, met.column < none, keeping)
        others = ReservoirItem(
            met.opponent_column, met.opponent_weight * state.iteration, policy.T[met.opponent_column]
        )
        policies = replay_buffers.add_reservoir(state.policies, others, met.opponent_column < none, keeping_other)
        start = state.start if self.settings.fresh else own
        own, losses = self._fit(game.sets, start, reservoir, fitting, _squares)
        fitted, advantages = (
            jax.tree.map(lambda x, y: x.at[player].set(y), old, new)
            for old, new in ((state.advantage_train_states, own), (state.advantages, reservoir))
        )
        return state._replace(advantage_train_states=fitted, advantages=advantages, policies=policies), losses

    def _average(self, game: GameArrays, state: State) -> Any:
        # The key of the next iteration does as well: nothing that is learnt depends on what is drawn here.
        steps = self.settings.policy_steps
        bits = jax.random.bits(state.key, (steps * self.settings.batch,), jnp.uint32)
        fitted, _ = self._fit(game.sets, state.start, state.policies, bits, _crossed)
        return fitted.params

    def _policy(self, game: GameArrays, fitted: TrainState) -> jax.Array:
        """[W, C] the policies of both players."""
        told = jax.vmap(lambda variables: infoset_tables.apply_to_infosets(self.network, variables, game.sets))(
            fitted.params
        )
        own = jnp.where(game.sets.player[:, None] == 0, told[0], told[1])
        return self.form.join_players([regret_matching(own, game.sets.is_legal).T])

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
        """A network after steps on batches of a reservoir, one visit for each of the random bits, and [steps] its
        losses."""

        # The network is asked once for every set or once for every visit, whichever is less.
        is_small = len(sets.player) < self.settings.batch

        def weighted(variables: Any, visits: ReservoirItem) -> jax.Array:
            there = jax.tree.map(lambda x: x[visits.column], sets)
            if is_small:
                told = infoset_tables.apply_to_infosets(self.network, variables, sets)[visits.column]
            else:
                told = infoset_tables.apply_to_infosets(self.network, variables, there)
            return jnp.mean(visits.weight * loss(told, visits.target, there.is_option))

        def step(fitted: TrainState, place: jax.Array) -> tuple[TrainState, jax.Array]:
            visits = sharding.shard(jax.tree.map(lambda x: x[place], buffer.items))
            lost, slope = jax.value_and_grad(weighted)(fitted.params, visits)
            change, moments = self._optimiser.update(slope, fitted.opt_state)
            return TrainState(optax.apply_updates(fitted.params, change), moments), lost

        # By a remainder, whose bias is nothing beside 2^32.
        drawn = bits.reshape(-1, self.settings.batch)
        places = (drawn % jnp.maximum(buffer.filled, 1).astype(jnp.uint32)).astype(jnp.int32)
        found: tuple[TrainState, jax.Array] = jax.lax.scan(step, start, places)
        return found


def _compile(programs: Sequence[Any], *shapes: Any) -> None:
    with contextlib.suppress(Exception):  # whoever calls the program meets it too
        for program in programs:
            program.lower(*shapes).compile()


def _of_player(tree: Any, player: jax.Array) -> Any:
    return jax.tree.map(lambda x: x[player], tree)


def regret_matching(advantage: jax.Array, is_option: jax.Array) -> jax.Array:
    """[.., W] regret matching on what a network tells of options."""
    positive = jnp.where(is_option, jnp.maximum(advantage, 0), 0)
    total = positive.sum(axis=-1, keepdims=True)
    masked = jnp.where(is_option, advantage, -jnp.inf)
    best = (is_option & (masked == masked.max(axis=-1, keepdims=True))).astype(advantage.dtype)
    return jnp.where(total > 0, positive / jnp.where(total > 0, total, 1), best / best.sum(axis=-1, keepdims=True))


def _squares(told: jax.Array, target: jax.Array, is_option: jax.Array) -> jax.Array:
    return jnp.sum(jnp.where(is_option, (told - target) ** 2, 0), axis=-1)


def _crossed(told: jax.Array, target: jax.Array, is_option: jax.Array) -> jax.Array:
    likely = jax.nn.log_softmax(jnp.where(is_option, told, -jnp.inf), axis=-1)
    return -jnp.sum(jnp.where(is_option, target * jnp.where(is_option, likely, 0), 0), axis=-1)


def make(encoder: encoders.Encoder, settings: Settings, task: tasks.TreeTask) -> DeepCfr:
    return DeepCfr(encoders.drop_unused_features(encoder, task.tree), task.tree, settings)
