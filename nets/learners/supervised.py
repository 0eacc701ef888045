"""Learning from solved games: what views at public states are worth given ranges, and the policy of an equilibrium.

An iteration draws a batch of policies, solves the rest of the game below every cut given that it was come to by them,
keeps the ranges and the exact values, and trains on what is kept. Policies are drawn at all temperatures, from nearly
uniform to nearly pure ones, half of them around iterates of CFR: ranges as depth-limited solving meets them.
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

_TREMBLE = 1e-2  # how often a drawn policy is uniform: values that follow from no range cannot be learnt


class NothingToLearnError(errors.UserError, ValueError):
    """A game, or a depth, without public states to cut at."""


class SettingsError(errors.UserError, ValueError):
    pass


@dataclasses.dataclass(frozen=True)
class Settings:
    depth: int = 2  # joint moves from cut to cut
    batch: int = 64  # policies of an iteration
    solving: int = 500  # iterations of CFR+ that solve the rest of a game
    capacity: int = 8_192  # policies kept
    steps: int = 200  # of training in an iteration
    minibatch: int = 64
    rate: float = 1e-3  # of learning, when training begins
    horizon: int = 10_000  # training steps over which it falls to a hundredth
    spread: tuple[float, float] = (0.2, 4.0)  # temperatures of drawn policies, drawn by their logarithms

    def __post_init__(self) -> None:
        for name in ("depth", "batch", "solving", "capacity", "steps", "minibatch", "horizon"):
            if getattr(self, name) < 1:
                raise SettingsError(f"supervised: {name} must be 1 or more, not {getattr(self, name)}")
        if self.capacity < self.batch:
            raise SettingsError(
                f"supervised: {self.batch} policies of an iteration do not fit in a memory of {self.capacity}; "
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
    """One policy at all cuts. Axes: V views of all of them, one cut's after the other's."""

    ranges: jax.Array  # [V] how likely its player comes to a view
    values: jax.Array  # [V] in units: -1 the lowest payoff, 1 the highest
    counterfactual_reach: jax.Array  # [V] how likely the others and chance come there


class State(NamedTuple):
    values: Any  # parameters of the network of ranges
    policy: Any  # and of that of information states
    values_optimiser: Any
    policy_optimiser: Any
    buffer: replay_buffers.ReplayBuffer  # of Item
    held_out: TrainingExample  # [B, V] never trained on
    key: jax.Array


class Supervised:
    """A learner. Axes: B policies, V views of all cuts."""

    def __init__(
        self,
        encoder: encoders.Encoder,
        task: tasks.TreeTask,
        settings: Settings = DEFAULT,
        *,
        network: networks.Network | None = None,
        values: range_network.RangeValueNetwork | None = None,
    ) -> None:
        """Of a game unrolled with its edges."""
        cuts = public_states.cut_depths(task.tree, settings.depth)
        if not cuts:
            raise NothingToLearnError(
                f"{task.tree.name} has no choices both before and after a multiple of {settings.depth} joint moves; "
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

    @functools.partial(jax.jit, static_argnames="self")
    def init(self, key: jax.Array) -> State:
        own, of_values, of_policy, unseen = jax.random.split(key, 4)
        values = range_network.init_params(self.value_network, self.encoded_states[0], of_values)
        policy = networks.init_params(self.network, self.encoder.width, of_policy)
        none = jnp.zeros(self._bounds[-1])
        state = State(
            values,
            policy,
            self._optimiser.init(values),
            self._optimiser.init(policy),
            replay_buffers.init(TrainingExample(none, none, none), self.settings.capacity),
            self.items(unseen),
            own,
        )
        return sharding.replicate(state)

    @functools.partial(jax.jit, static_argnames="self")
    def iterate(self, state: State) -> tuple[State, Mapping[str, jax.Array]]:
        key, drawing, training = jax.random.split(state.key, 3)
        items = self.items(drawing)
        fresh = self.error(state.values, items)  # before they are trained on
        buffer = replay_buffers.add_fifo(state.buffer, items, jnp.ones(self.settings.batch, bool))

        def train(carry: Any, own: jax.Array) -> Any:
            values, policy, of_values, of_policy = carry
            batch = sharding.shard(replay_buffers.sample(buffer, own, self.settings.minibatch))
            loss, slope = jax.value_and_grad(self._value_loss)(values, batch)
            values, of_values = self._moved(values, slope, of_values)
            policy_loss, slope = jax.value_and_grad(self._policy_loss)(policy)
            policy, of_policy = self._moved(policy, slope, of_policy)
            return (values, policy, of_values, of_policy), (loss, policy_loss)

        before = (state.values, state.policy, state.values_optimiser, state.policy_optimiser)
        after, losses = jax.lax.scan(train, before, jax.random.split(training, self.settings.steps))
        loss, policy_loss = (jnp.mean(x) for x in losses)
        report = {
            "loss": loss + policy_loss,
            "value_loss": loss,
            "policy_loss": policy_loss,
            "value_error_fresh": fresh,
            "value_error": self.error(after[0], state.held_out),
            "value_error_played": self.error(after[0], state.held_out, is_played=True),
        }
        return sharding.replicate(State(*after, buffer, state.held_out, key)), report

    def policy_params(self, state: State) -> Any:
        return state.policy

    def values(self, state: State) -> Any:
        """Parameters of `value_network`."""
        return state.values

    def items(self, key: jax.Array) -> TrainingExample:
        """[B, V] of policies drawn anew."""
        profile = sharding.shard(self._draw(key), axis=-1)
        found = []
        for rest in self.subgames:
            solved = fixed_policies.solve_remaining(self.task.form, profile, rest.is_fixed, self.settings.solving)
            ranges = self._ranges(rest.public, solved)
            found.append(
                TrainingExample(
                    ranges, self._in_units(rest.values(solved)), public_states.counterfactual_reach(rest.public, ranges)
                )
            )
        return TrainingExample(*(jnp.concatenate(parts).T for parts in zip(*found, strict=True)))

    def error(self, values: Any, items: TrainingExample, *, is_played: bool = False) -> jax.Array:
        """[] root mean square error of values, as a part of the payoff range.

        Views count as often as the others and chance come there; where play is asked for, as often as everybody does.
        """
        told = self._told(values, items.ranges)
        weight = items.counterfactual_reach * (items.ranges if is_played else 1)
        return jnp.sqrt(jnp.sum(weight * (told - items.values) ** 2) / jnp.sum(weight)) / 2

    @property
    def payoff_center_and_scale(self) -> tuple[float, float]:
        """The middle of all payoffs, and how far the highest is from it."""
        low, high = self.task.payoff_range
        return (low + high) / 2, max((high - low) / 2, 1e-9)

    def _in_units(self, payoff: jax.Array) -> jax.Array:
        middle, scale = self.payoff_center_and_scale
        return (payoff - middle) / scale

    def _told(self, values: Any, ranges: jax.Array) -> jax.Array:
        """[B, V]"""
        parts = [
            predict_values(self.value_network, values, where, ranges[:, begin:end].T, is_zero_sum=self.task.is_zero_sum)
            for where, begin, end in zip(self.encoded_states, self._bounds, self._bounds[1:], strict=False)
        ]
        return jnp.concatenate(parts).T

    def _value_loss(self, values: Any, items: TrainingExample) -> jax.Array:
        off = (self._told(values, items.ranges) - items.values) ** 2
        weight = jnp.concatenate(
            [
                _flattened(where.public, items.counterfactual_reach[:, begin:end].T)
                for where, begin, end in zip(self.encoded_states, self._bounds, self._bounds[1:], strict=False)
            ]
        ).T
        return jnp.sum(weight * off) / jnp.sum(weight)

    def _policy_loss(self, policy: Any) -> jax.Array:
        """Cross-entropy to the equilibrium, less what it cannot fall below."""
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

    def _moved(self, parameters: Any, slope: Any, optimiser: Any) -> tuple[Any, Any]:
        step, optimiser = self._optimiser.update(slope, optimiser, parameters)
        return optax.apply_updates(parameters, step), optimiser

    def _draw(self, key: jax.Array) -> tabular_policies.Profile:
        """[w, n, B] policies of all players: softmax of Gumbel noise, on top of an iterate of CFR in half of them.

        At temperature 1 noise alone is uniform among all policies of a set (Dirichlet's distribution)."""
        heat_key, which_key, half_key, noise_key = jax.random.split(key, 4)
        count = self.settings.batch
        low, high = jnp.log(jnp.asarray(self.settings.spread))
        heat = jnp.exp(jax.random.uniform(heat_key, (count,), minval=low, maxval=high))
        size = jax.tree.leaves(self._iterates)[0].shape[-1]
        which = jax.random.randint(which_key, (count,), 0, size)
        is_near = jax.random.bernoulli(half_key, shape=(count,))
        # Around an iterate noise is weaker, so that something of it is left.
        heat = jnp.where(is_near, heat / 4, heat)
        forms = self.task.form.players
        sizes = [level.shape[0] * level.shape[1] for own in forms for level in own.uniform]
        # All at once: every call of a generator is long to compile.
        noise = iter(jnp.split(heat * jax.random.gumbel(noise_key, (sum(sizes), count)), np.cumsum(sizes)[:-1]))

        def policy(uniform: jax.Array, iterates: jax.Array) -> jax.Array:
            logits = next(noise).reshape(*uniform.shape, count)
            logits = logits + jnp.where(is_near, jnp.log(iterates[..., which] + 1e-4), 0)
            even = realization_plans.expand_like(uniform, logits)
            drawn = jax.nn.softmax(logits, axis=0, where=even > 0)
            return fixed_policies.add_tremble(drawn, uniform, _TREMBLE)

        return tuple(tuple(map(policy, own.uniform, levels)) for own, levels in zip(forms, self._iterates, strict=True))

    def _ranges(self, public: public_states.PublicStates, profile: tabular_policies.Profile) -> jax.Array:
        own = []
        for player, layout, policy in zip(self.task.form.players, self.task.layouts, profile, strict=True):
            own.append(realization_plans.flatten(realization_plans.to_realization_plan(player, policy))[layout.place])
        return public_states.ranges(public, own)


def _flattened(public: public_states.PublicStates, arrivals: jax.Array) -> jax.Array:
    """Arrivals, those in a public state over the root of all in it.

    Public states that are seldom come to would else be learnt last, and deeper solving may start from any of them. They
    cannot count all alike: where nearly nobody comes, single precision tells no regrets, and values are wrong.
    """
    return jnp.sqrt(public_states.normalize_by_state(public, arrivals) * arrivals)


def predict_values(
    network: range_network.RangeValueNetwork,
    values: Any,
    where: range_network.EncodedPublicStates,
    ranges: jax.Array,
    *,
    is_zero_sum: bool,
) -> jax.Array:
    """[V, B] values in units."""
    found: jax.Array = network.apply(values, where, ranges)  # type: ignore[assignment]
    return range_network.enforce_zero_sum(where.public, ranges, found) if is_zero_sum else found


def _equilibrium(task: tasks.TreeTask) -> jax.Array:
    """[I, W] of all sets, one player's after the other's."""
    if task.is_zero_sum and len(task.tree.players) == 2:
        policies = lp.solve(task.tree).policies
    else:
        process = tree_solvers.FullSolver(task, algorithms.find("cfr+"))
        policies = process.policies(process.advance(process.init(), 2_000))
    widths = np.concatenate([np.diff(player.first) for player in task.tree.players])
    table = np.zeros((len(widths), widths.max(initial=1)), np.float32)
    table[np.arange(table.shape[1]) < widths[:, None]] = np.concatenate([own[1:] for own in policies])
    return jnp.asarray(table)


def _iterates(
    task: tasks.TreeTask, times: Sequence[int] = (0, 1, 2, 4, 8, 16, 32, 64, 128)
) -> tabular_policies.Profile:
    """[w, n, M] policies on the way of CFR to an equilibrium, as it plays them and on average."""
    process = tree_solvers.FullSolver(task, algorithms.find("cfr+"))
    state, found = process.init(), []
    for before, now in zip((0, *times), times, strict=False):
        state = process.advance(state, now - before)
        found.append(state.policy)
        found.append(cfr.average_policies(task.form, state))
    together: tabular_policies.Profile = jax.tree.map(lambda *parts: jnp.stack(parts, axis=-1), *found)
    return together


def make_for_game(game: str, settings: Settings = DEFAULT) -> Supervised:
    """A learner of a game by name, which sees the whole of every match."""
    task = tasks.make_tree_task(game_spec.GameSpec(game), keep_edges=True)
    return Supervised(encoders.Encoder(gdlx.make(game), steps=len(task.tree.counts.nodes) - 1), task, settings)


def make(encoder: encoders.Encoder, settings: Settings, task: tasks.TreeTask) -> Supervised:
    return Supervised(encoder, task, settings)
