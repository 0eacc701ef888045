"""Games made ready for solvers: unrolled, or as an environment with a hash table for what is learnt."""

import dataclasses
import functools
import hashlib
import itertools
import math

import jax
import numpy as np

from gdlx.envs import env, estimate, game_tree, payoffs, sequence_form, trees, unroll, walk
from gdlx.propnet import cache, limits, load, network, play
from gdlx.solvers import driver, evaluation, profiles

_WHOLE = 2e5  # histories of a game that is unrolled to measure what a hash table learns
_SHOWN = 2e4  # and of the first steps of one whose policies are shown


# In a program of its own: operation by operation, each would be compiled for every shape.
evaluate = jax.jit(evaluation.evaluate)


def metrics(found: evaluation.Evaluation, iterations: int, seconds: float, is_finite: bool = True) -> driver.Metrics:
    value, gain = (tuple(np.asarray(x, float).tolist()) for x in (found.value, found.gain))
    driver.require_finite(iterations, is_finite and all(map(math.isfinite, (*value, *gain))))
    return driver.Metrics(iterations, seconds, value, gain)


@dataclasses.dataclass(frozen=True)
class Problem:
    """An unrolled game."""

    game: trees.Game
    tree: game_tree.GameTree
    form: sequence_form.SequenceForm
    layouts: tuple[sequence_form.Layout, ...]

    @property
    def payoff_range(self) -> tuple[float, float]:
        return self.tree.payoff_range

    @property
    def is_zero_sum(self) -> bool:
        return self.tree.zero_sum

    @property
    def players(self) -> list[str]:
        return [player.name for player in self.tree.players]

    @functools.cached_property
    def digest(self) -> str:
        return tree_digest(self.tree)

    def metrics(self, policies: profiles.Policies, iterations: int = 0, seconds: float = 0.0) -> driver.Metrics:
        """What policies are worth."""
        found = evaluate(self.form, profiles.to_levels(self.tree, self.layouts, policies))
        return metrics(jax.device_get(found), iterations, seconds)


@dataclasses.dataclass(frozen=True)
class TableProblem:
    """A game that need not be unrolled. `tree` has its first steps, or all of it where it is small: then `whole` can
    measure policies exactly."""

    game: trees.Game
    env: env.Env
    tree: game_tree.GameTree
    whole: Problem | None
    shared: walk.Walk | None = None  # of the same environment, whose programs are used

    @property
    def payoff_range(self) -> tuple[float, float]:
        return self.env.payoff_range

    @property
    def is_zero_sum(self) -> bool:
        return self.env.payoffs.zero_sum

    @property
    def players(self) -> list[str]:
        return list(self.env.players)

    @functools.cached_property
    def walk(self) -> walk.Walk:
        """One for all runs: they share programs."""
        return walk.Walk(self.env) if self.shared is None else self.shared

    @functools.cached_property
    def digest(self) -> str:
        return rules_digest(self.env.net)


def tree_digest(tree: game_tree.GameTree) -> str:
    """Tells unrolled games apart."""
    found = hashlib.sha256()
    for player in tree.players:
        found.update(player.name.encode(errors="replace"))
        for array in (player.parent, player.first, player.action):
            found.update(array.tobytes())
    for part in tree.ends:
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()[:16]


def rules_digest(net: network.PropNet) -> str:
    """Tells games apart, by their names and by what happens in random play, however they are simplified."""
    found = hashlib.sha256()
    for role in net.roles:
        found.update(repr((role.name, role.moves, role.percepts, role.goal_values)).encode(errors="replace"))
    for step in itertools.islice(play.random_steps(net, 64, 0), 64):
        for part in (step.legal, step.percepts, step.terminal, step.goals):
            found.update(np.packbits(part).tobytes())
    return found.hexdigest()[:16]


def problem(game: trees.Game, tree: game_tree.GameTree | None = None, *, keep_edges: bool = False) -> Problem:
    """Sampling needs a tree with its edges."""
    tree = trees.unrolled(game, keep_edges=keep_edges) if tree is None else tree
    return Problem(game, tree, *sequence_form.sequence_form(tree))


def table_problem(
    game: trees.Game, *, max_steps: int = 0, within: limits.Limits = limits.Limits(), net: network.PropNet | None = None
) -> TableProblem:
    """A game of any size. `max_steps` ends matches that go on longer."""
    if net is None:
        net = cache.compiled(load.load(game.spec, gdl=game.gdl, fold_case=game.fold_case), within)
    guess = estimate.estimate(net, enough=_WHOLE)
    if not guess.is_cut and guess.total <= _WHOLE:
        tree = trees.unrolled(game, net=net)
        units = payoffs.Payoffs(tree.offset, tree.zero_sum, True)
        return TableProblem(game, env.Env(net, units, max_steps=max_steps), tree, problem(game, tree))
    depth = sum(total <= _SHOWN for total in itertools.accumulate(guess.histories)) - 1
    tree = unroll.unroll(net, game.payoff, depth=depth, goal_conflict=game.goal_conflict)
    return TableProblem(game, env.Env(net, payoffs.of(net, game.payoff), max_steps=max_steps), tree, None)
