"""Supervised learning from solved games: values of public states given ranges, and an equilibrium policy.

An iteration samples a batch of policies, solves the subgames below every cut given the ranges of these policies, stores
the ranges and the exact values in a replay buffer, and trains on it. Policies are sampled at all temperatures, from
nearly uniform to nearly pure ones, half of them around iterates of CFR: such ranges occur in depth-limited solving.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

import gdlx
from gdlx.envs import game_spec
from gdlx.nets.models import encoders, networks, replay_buffers, sharding
from gdlx.nets.values import infoset_tables, public_states, range_network, subgame_values
from gdlx.propnet.common import errors
from gdlx.solvers import algorithms, tabular_policies, tasks
from gdlx.solvers.exact import cfr, fixed_policies, lp, realization_plans
from gdlx.solvers.runs import tree_solvers

_TREMBLE = 1e-2  # weight of the uniform policy in a sampled one: values at zero reach cannot be learnt from ranges


class NothingToLearnError(errors.UserError, ValueError):
    """A game, or a depth, without public states to cut at."""


class SettingsError(errors.UserError, ValueError):
    """A setting of supervised learning that is out of range, or that contradicts another one."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Hyper-parameters of supervised learning."""

    depth: int = 2  # joint actions between two cuts
    batch: int = 64  # policies sampled in an iteration
    solving: int = 500  # iterations of CFR+ that solve a subgame
    capacity: int = 8_192  # policies in the replay buffer
    steps: int = 200  # gradient steps in an iteration
    minibatch: int = 64  # policies of a gradient step
    rate: float = 1e-3  # initial learning rate
    horizon: int = 10_000  # gradient steps over which it decays to a hundredth
    spread: tuple[float, float] = (0.2, 4.0)  # range of temperatures of sampled policies, log-uniform

    def __post_init__(self) -> None:
        for name in ("depth", "batch", "solving", "capacity", "steps", "minibatch", "horizon"):
            if getattr(self, name) < 1:
                raise SettingsError(f"supervised: {name} must be 1 or more, not {getattr(self, name)}")
        if self.capacity < self.batch:
            raise SettingsError(
                f"supervised: {self.batch} policies of an iteration do not fit in a replay buffer of {self.capacity}; "
                f"make the capacity {self.batch} or more"
            )
        if not 0 < self.rate < 1:
            raise SettingsError(f"supervised: rate must be between 0 and 1, not {self.rate:g}")
        low, high = self.spread
        if not 0 < low <= high:
            raise SettingsError(
                f"supervised: spread is two temperatures above 0, the lower one first; not {low:g},{high:g}"
            )


DEFAULT = Settings()


class TrainingExample(NamedTuple):
    """One policy at all cuts. Axes: V views (information sets at a cut), cut by cut."""

    ranges: jax.Array  # [V] reach probability of the view's player
    values: jax.Array  # [V] scaled: -1 the lowest payoff, 1 the highest
    counterfactual_reach: jax.Array  # [V] reach probability of the others and chance


class State(NamedTuple):
    """Everything that an iteration reads and writes."""

    values: Any  # parameters of the value network
    policy: Any  # parameters of the policy network
    values_optimiser: Any
    policy_optimiser: Any
    buffer: replay_buffers.ReplayBuffer  # of TrainingExample
    held_out: TrainingExample  # [B, V] never trained on
    key: jax.Array


class Supervised:
    """Supervised learning as a `Learner`, for a game that can be unrolled and solved.

    Axes: B policies, V views of all cuts.

    Attributes:
      encoder: what the networks see of the game.
      task: the unrolled game.
      settings: hyper-parameters.
      network: architecture of the policy network.
      value_network: architecture of the value network, a function of ranges at public states.
      subgames: evaluators of the subgames below every cut.
      encoded_states: the public states of every cut, encoded.

    >>> import gdlx
    >>> task = tasks.make_tree_task("kuhn_poker", keep_edges=True)
    >>> learner = Supervised(encoders.Encoder(gdlx.make("kuhn_poker"), steps=4), task, Settings(depth=2))
    >>> [evaluator.public.depth for evaluator in learner.subgames]  # joint actions before the cuts
    [4]
    """

    def __init__(
        self,
        encoder: encoders.Encoder,
        task: tasks.TreeTask,
        settings: Settings = DEFAULT,
        *,
        network: networks.Network | None = None,
        values: range_network.RangeValueNetwork | None = None,
    ) -> None:
        """Prepares a learner for a task that was unrolled with `keep_edges=True`."""
        cuts = public_states.cut_depths(task.tree, settings.depth)
        if not cuts:
            raise NothingToLearnError(
                f"{task.tree.name} has no choices both before and after a multiple of {settings.depth} joint actions; "
                "take another depth, or solve the whole game"
            )
        self.task, self.settings, self.value_network = task, settings, values or range_network.RangeValueNetwork()
        self.encoder, env = encoder, encoder.env
        self.network = network or networks.Network(env.num_players, env.num_actions)
        self.subgames = tuple(subgame_values.make_subgame_evaluator(task, cut) for cut in cuts)
        self.encoded_states = tuple(
            range_network.encode_public_states(self.encoder, task.tree, rest.public) for rest in self.subgames
        )
        self._bounds = np.cumsum([0, *(rest.public.views for rest in self.subgames)]).tolist()
        self._sets = infoset_tables.encode_infosets(self.encoder, task.tree)
        self._equilibrium = _equilibrium(task)
        self._iterates = _iterates(task)

    def __repr__(self) -> str:
        settings, cuts = self.settings, tuple(subgame.public.depth for subgame in self.subgames)
        return (
            f"Supervised(game={self.task.tree.name!r}, cuts={cuts}, batch={settings.batch}, "
            f"capacity={settings.capacity})"
        )

    @functools.partial(jax.jit, static_argnames="self")
    def init(self, key: jax.Array) -> State:
        state_key, values_key, policy_key, held_out_key = jax.random.split(key, 4)
        values = range_network.init_params(self.value_network, self.encoded_states[0], values_key)
        policy = networks.init_params(self.network, self.encoder.width, policy_key)
        zeros = jnp.zeros(self._bounds[-1])
        state = State(
            values,
            policy,
            self._optimiser.init(values),
            self._optimiser.init(policy),
            replay_buffers.init(TrainingExample(zeros, zeros, zeros), self.settings.capacity),
            self.items(held_out_key),
            state_key,
        )
        return sharding.replicate(state)

    @functools.partial(jax.jit, static_argnames="self")
    def iterate(self, state: State) -> tuple[State, Mapping[str, jax.Array]]:
        key, sample_key, train_key = jax.random.split(state.key, 3)
        items = self.items(sample_key)
        fresh_error = self.error(state.values, items)  # before they are trained on
        buffer = replay_buffers.add_fifo(state.buffer, items, jnp.ones(self.settings.batch, bool))

        def train(carry: Any, key: jax.Array) -> Any:
            values, policy, values_optimiser, policy_optimiser = carry
            batch = sharding.shard(replay_buffers.sample(buffer, key, self.settings.minibatch))
            loss, gradient = jax.value_and_grad(self._value_loss)(values, batch)
            values, values_optimiser = self._update(values, gradient, values_optimiser)
            policy_loss, gradient = jax.value_and_grad(self._policy_loss)(policy)
            policy, policy_optimiser = self._update(policy, gradient, policy_optimiser)
            return (values, policy, values_optimiser, policy_optimiser), (loss, policy_loss)

        before = (state.values, state.policy, state.values_optimiser, state.policy_optimiser)
        after, losses = jax.lax.scan(train, before, jax.random.split(train_key, self.settings.steps))
        loss, policy_loss = (jnp.mean(x) for x in losses)
        metrics = {
            "loss": loss + policy_loss,
            "value_loss": loss,
            "policy_loss": policy_loss,
            "value_error_fresh": fresh_error,
            "value_error": self.error(after[0], state.held_out),
            "value_error_played": self.error(after[0], state.held_out, is_played=True),
        }
        return sharding.replicate(State(*after, buffer, state.held_out, key)), metrics

    def policy_params(self, state: State) -> Any:
        return state.policy

    def values(self, state: State) -> Any:
        """Parameters of `value_network`."""
        return state.values

    def items(self, key: jax.Array) -> TrainingExample:
        """[B, V] training examples of newly sampled policies."""
        profile = sharding.shard(self._sample_policies(key), axis=-1)
        by_cut = []
        for rest in self.subgames:
            solved = fixed_policies.solve_remaining(self.task.form, profile, rest.is_fixed, self.settings.solving)
            ranges = self._ranges(rest.public, solved)
            reach = public_states.counterfactual_reach(rest.public, ranges)
            by_cut.append(TrainingExample(ranges, self._scale_payoffs(rest.values(solved)), reach))
        return TrainingExample(*(jnp.concatenate(parts).T for parts in zip(*by_cut, strict=True)))

    def error(self, values: Any, items: TrainingExample, *, is_played: bool = False) -> jax.Array:
        """[] root mean square error of values, as a fraction of the payoff range.

        Views are weighted by their counterfactual reach; with `is_played`, by the reach of all players.
        """
        predicted = self._predict(values, items.ranges)
        weight = items.counterfactual_reach * (items.ranges if is_played else 1)
        return jnp.sqrt(jnp.sum(weight * (predicted - items.values) ** 2) / jnp.sum(weight)) / 2

    @property
    def payoff_center_and_scale(self) -> tuple[float, float]:
        """The payoff that networks predict as 0, the middle of the range, and the distance of 1 from it."""
        low, high = self.task.payoff_range
        return (low + high) / 2, max((high - low) / 2, 1e-9)

    def _scale_payoffs(self, payoff: jax.Array) -> jax.Array:
        middle, scale = self.payoff_center_and_scale
        return (payoff - middle) / scale

    def _predict(self, values: Any, ranges: jax.Array) -> jax.Array:
        """[B, V]"""
        parts = [
            predict_values(self.value_network, values, where, ranges[:, begin:end].T, is_zero_sum=self.task.is_zero_sum)
            for where, begin, end in zip(self.encoded_states, self._bounds, self._bounds[1:], strict=False)
        ]
        return jnp.concatenate(parts).T

    def _value_loss(self, values: Any, items: TrainingExample) -> jax.Array:
        squared = (self._predict(values, items.ranges) - items.values) ** 2
        weight = jnp.concatenate(
            [
                _loss_weights(where.public, items.counterfactual_reach[:, begin:end].T)
                for where, begin, end in zip(self.encoded_states, self._bounds, self._bounds[1:], strict=False)
            ]
        ).T
        return jnp.sum(weight * squared) / jnp.sum(weight)

    def _policy_loss(self, policy: Any) -> jax.Array:
        """Kullback-Leibler divergence from the equilibrium policy."""
        logits = jnp.where(
            self._sets.is_legal, infoset_tables.apply_to_infosets(self.network, policy, self._sets), -jnp.inf
        )
        log = jnp.where(self._sets.is_legal, jax.nn.log_softmax(logits, axis=1), 0)
        target = self._equilibrium
        return jnp.mean(jnp.sum(jax.scipy.special.xlogy(target, target) - target * log, axis=1))

    @functools.cached_property
    def _optimiser(self) -> optax.GradientTransformation:
        rate = optax.cosine_decay_schedule(self.settings.rate, self.settings.horizon, alpha=0.01)
        return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))

    def _update(self, parameters: Any, gradient: Any, optimiser: Any) -> tuple[Any, Any]:
        step, optimiser = self._optimiser.update(gradient, optimiser, parameters)
        return optax.apply_updates(parameters, step), optimiser

    def _sample_policies(self, key: jax.Array) -> tabular_policies.Profile:
        """[w, n, B] policies of all players: softmax of Gumbel noise, added to an iterate of CFR in half of them.

        At temperature 1 noise alone is uniform over all policies of an information set (a Dirichlet distribution).
        """
        temperature_key, iterate_key, near_key, noise_key = jax.random.split(key, 4)
        count = self.settings.batch
        low, high = jnp.log(jnp.asarray(self.settings.spread))
        temperature = jnp.exp(jax.random.uniform(temperature_key, (count,), minval=low, maxval=high))
        size = jax.tree.leaves(self._iterates)[0].shape[-1]
        iterate = jax.random.randint(iterate_key, (count,), 0, size)
        is_near = jax.random.bernoulli(near_key, shape=(count,))
        # Noise is weaker around an iterate, so that it does not drown it.
        temperature = jnp.where(is_near, temperature / 4, temperature)
        forms = self.task.form.players
        sizes = [level.shape[0] * level.shape[1] for player in forms for level in player.uniform]
        # All at once: every call of a generator takes long to compile.
        noise = iter(jnp.split(temperature * jax.random.gumbel(noise_key, (sum(sizes), count)), np.cumsum(sizes)[:-1]))

        def policy(uniform: jax.Array, iterates: jax.Array) -> jax.Array:
            logits = next(noise).reshape(*uniform.shape, count)
            logits = logits + jnp.where(is_near, jnp.log(iterates[..., iterate] + 1e-4), 0)
            is_action = realization_plans.expand_like(uniform, logits) > 0
            drawn = jax.nn.softmax(logits, axis=0, where=is_action)
            return fixed_policies.add_tremble(drawn, uniform, _TREMBLE)

        return tuple(
            tuple(map(policy, player.uniform, levels)) for player, levels in zip(forms, self._iterates, strict=True)
        )

    def _ranges(self, public: public_states.PublicStates, profile: tabular_policies.Profile) -> jax.Array:
        plans = []
        for player, layout, policy in zip(self.task.form.players, self.task.layouts, profile, strict=True):
            plans.append(realization_plans.flatten(realization_plans.to_realization_plan(player, policy))[layout.place])
        return public_states.ranges(public, plans)


def _loss_weights(public: public_states.PublicStates, reach: jax.Array) -> jax.Array:
    """Counterfactual reach, divided by the square root of its sum over the player's views in the public state.

    Without this, public states that are rarely reached would be learnt last, and deeper solving may start from any of
    them. They cannot all have the same weight: at nearly zero reach, regrets vanish in single precision, and the values
    of subgames are wrong.
    """
    return jnp.sqrt(public_states.normalize_by_state(public, reach) * reach)


def predict_values(
    network: range_network.RangeValueNetwork,
    values: Any,
    where: range_network.EncodedPublicStates,
    ranges: jax.Array,
    *,
    is_zero_sum: bool,
) -> jax.Array:
    """[V, B] scaled values from the value network."""
    predicted: jax.Array = network.apply(values, where, ranges)  # type: ignore[assignment]
    return range_network.enforce_zero_sum(where.public, ranges, predicted) if is_zero_sum else predicted


def _equilibrium(task: tasks.TreeTask) -> jax.Array:
    """[I, W] equilibrium policies at all information sets, player by player."""
    if task.is_zero_sum and len(task.tree.players) == 2:
        policies = lp.solve(task.tree).policies
    else:
        solver = tree_solvers.FullSolver(task, algorithms.find("cfr+"))
        policies = solver.policies(solver.advance(solver.init(), 2_000))
    widths = np.concatenate([np.diff(player.first) for player in task.tree.players])
    table = np.zeros((len(widths), widths.max(initial=1)), np.float32)
    table[np.arange(table.shape[1]) < widths[:, None]] = np.concatenate([policy[1:] for policy in policies])
    return jnp.asarray(table)


def _iterates(
    task: tasks.TreeTask, times: Sequence[int] = (0, 1, 2, 4, 8, 16, 32, 64, 128)
) -> tabular_policies.Profile:
    """[w, n, M] current and average policies of CFR+ on its way to an equilibrium."""
    solver = tree_solvers.FullSolver(task, algorithms.find("cfr+"))
    state, profiles = solver.init(), []
    for before, now in zip((0, *times), times, strict=False):
        state = solver.advance(state, now - before)
        profiles.append(state.policy)
        profiles.append(cfr.average_policies(task.form, state))
    stacked: tabular_policies.Profile = jax.tree.map(lambda *parts: jnp.stack(parts, axis=-1), *profiles)
    return stacked


def make_for_game(game: str, settings: Settings = DEFAULT) -> Supervised:
    """A learner for a game by name, with a window over the longest match."""
    task = tasks.make_tree_task(game_spec.GameSpec(game), keep_edges=True)
    return Supervised(encoders.Encoder(gdlx.make(game), steps=len(task.tree.counts.nodes) - 1), task, settings)


def make(encoder: encoders.Encoder, settings: Settings, task: tasks.TreeTask) -> Supervised:
    """The learner, as `learner_registry` calls it."""
    return Supervised(encoder, task, settings)
