"""Games made ready for solvers: unrolled, or as an environment with a hash table for what is learnt."""

import abc
import dataclasses
import functools
import hashlib
import itertools
import math
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from gdlx.envs import env, game_facts, game_spec, payoffs
from gdlx.envs.packed import packed_env
from gdlx.envs.trees import game_tree, sequence_form, unroll
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import limits
from gdlx.solvers import algorithms, tabular_policies
from gdlx.solvers.exact import best_response
from gdlx.solvers.runs import driver, result_folder

_MAX_UNROLLED_HISTORIES = 2e5  # histories of a game that is unrolled to measure what a hash table learns
_MAX_SHOWN_HISTORIES = 2e4  # and of the first steps of one whose policies are shown


# In a program of its own: operation by operation, each would be compiled for every shape.
evaluate = jax.jit(best_response.evaluate)


def make_metrics(
    found: best_response.Evaluation, iterations: int, seconds: float, is_finite: bool = True
) -> driver.Metrics:
    value, improvements = (tuple(np.asarray(x, float).tolist()) for x in (found.value, found.improvements))
    driver.require_finite(iterations, is_finite and all(map(math.isfinite, (*value, *improvements))))
    return driver.Metrics(iterations, seconds, value, improvements)


class Task(abc.ABC):
    """A game made ready for some kind of solver; what runs, result folders and commands know of it."""

    game: game_spec.GameSpec
    tree: game_tree.GameTree  # at whose information sets policies are shown

    @property
    @abc.abstractmethod
    def tree_task(self) -> "TreeTask | None":
        """The game unrolled, where it is: then policies are measured exactly."""

    @property
    @abc.abstractmethod
    def payoff_range(self) -> tuple[float, float]: ...

    @property
    @abc.abstractmethod
    def is_zero_sum(self) -> bool: ...

    @property
    @abc.abstractmethod
    def players(self) -> list[str]: ...

    @property
    @abc.abstractmethod
    def digest(self) -> str:
        """Tells games apart: a result goes on with the rules that it began with."""

    @property
    def opponent_model(self) -> result_folder.OpponentModelConfig | None:
        """What the config of a result says of a modelled opponent."""
        return None

    def write_inputs(self, folder: pathlib.Path) -> None:
        """Into a new result folder: what the game is made from beside its rules."""
        del folder

    def facts(self, policies: tabular_policies.Policies) -> dict[str, Any]:
        """What there is to report of policies beside their metrics, as JSON."""
        del policies
        return {}


@dataclasses.dataclass(frozen=True)
class TreeTask(Task):
    """An unrolled game."""

    game: game_spec.GameSpec
    tree: game_tree.GameTree
    form: sequence_form.SequenceForm
    layouts: tuple[sequence_form.SequenceLayout, ...]

    @property
    def tree_task(self) -> "TreeTask":
        return self

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

    def metrics(self, policies: tabular_policies.Policies, iterations: int = 0, seconds: float = 0.0) -> driver.Metrics:
        """What policies are worth."""
        found = evaluate(self.form, tabular_policies.to_levels(self.tree, self.layouts, policies))
        return make_metrics(jax.device_get(found), iterations, seconds)


@dataclasses.dataclass(frozen=True)
class TableTask(Task):
    """A game that need not be unrolled. `tree` has its first steps, or all of it where it is small: then `whole` can
    measure policies exactly."""

    game: game_spec.GameSpec
    env: env.Env
    tree: game_tree.GameTree
    tree_task: TreeTask | None = None
    shared_packed: packed_env.PackedEnv | None = None  # of the same environment, whose programs are used

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
    def packed(self) -> packed_env.PackedEnv:
        """One for all runs: they share programs."""
        return packed_env.PackedEnv(self.env) if self.shared_packed is None else self.shared_packed

    @functools.cached_property
    def digest(self) -> str:
        return game_facts.probe(self.env.net).digest


def tree_digest(tree: game_tree.GameTree) -> str:
    """Tells unrolled games apart."""
    found = hashlib.sha256()
    for player in tree.players:
        found.update(player.name.encode(errors="replace"))
        for array in (player.parent, player.first, player.action):
            found.update(array.tobytes())
    for part in tree.terminals:
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()[:16]


def prepare(
    game: game_spec.GameSpec,
    needs: algorithms.GameRepresentation,
    *,
    net: propnet.PropNet | None = None,
    within: limits.Limits = limits.Limits(),
    max_nodes: int = limits.NODES,
    report: Callable[[int, int], None] | None = None,
) -> Task:
    """The game as an algorithm needs it; `report(step, nodes)` hears of every level that is unrolled.

    >>> type(prepare(game_spec.GameSpec("kuhn_poker"), "tree")).__name__
    'Problem'
    """
    if needs == "rules":
        return make_table_task(game, net=net, within=within)
    tree = game_spec.unroll_game(
        game, net=net, within=within, max_nodes=max_nodes, keep_edges=needs == "edges", report=report
    )
    return make_tree_task(game, tree)


def require_tree_task(task: Task) -> TreeTask:
    """The game of a task that was prepared to be unrolled."""
    assert task.tree_task is not None, task.game.spec
    return task.tree_task


def make_tree_task(
    game: game_spec.GameSpec, tree: game_tree.GameTree | None = None, *, keep_edges: bool = False
) -> TreeTask:
    """Sampling needs a tree with its edges."""
    tree = game_spec.unroll_game(game, keep_edges=keep_edges) if tree is None else tree
    return TreeTask(game, tree, *sequence_form.sequence_form(tree))


def make_table_task(
    game: game_spec.GameSpec,
    *,
    max_steps: int = 0,
    within: limits.Limits = limits.Limits(),
    net: propnet.PropNet | None = None,
) -> TableTask:
    """A game of any size. `max_steps` ends matches that go on longer."""
    if net is None:
        net = game.compile(within)
    facts = game_facts.probe(net)
    guess = facts.histories(enough=_MAX_UNROLLED_HISTORIES)
    if not guess.is_truncated and guess.total <= _MAX_UNROLLED_HISTORIES:
        tree = game_spec.unroll_game(game, net=net)
        units = payoffs.Payoffs(tree.offset, tree.zero_sum, True)
        return TableTask(game, env.Env(net, units, max_steps=max_steps), tree, make_tree_task(game, tree))
    depth = sum(total <= _MAX_SHOWN_HISTORIES for total in itertools.accumulate(guess.histories)) - 1
    tree = unroll.unroll(net, game.payoff, depth=depth, goal_conflict=game.goal_conflict)
    return TableTask(game, env.Env(net, facts.payoffs(game.payoff), max_steps=max_steps), tree, None)
