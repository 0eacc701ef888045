"""Games prepared for solvers: unrolled to a tree, or as an environment that is sampled into a hash table."""

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
from gdlx.envs.states import state_graph
from gdlx.envs.trees import game_tree, sequence_form, unroll
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import limits
from gdlx.propnet.common.text import plurals
from gdlx.solvers import algorithms, infoset_values, tabular_policies
from gdlx.solvers.exact import backward_induction, best_response
from gdlx.solvers.runs import driver, result_folder

_MAX_UNROLLED_HISTORIES = 2e5  # up to here a game is unrolled, so that table policies are measured exactly
_MAX_SHOWN_HISTORIES = 2e4  # in larger games, up to here the first steps are unrolled to show policies


# As one program: run operation by operation, each operation would be compiled for every shape.
evaluate = jax.jit(best_response.evaluate)


def make_metrics(
    evaluation: best_response.Evaluation, iterations: int, seconds: float, is_finite: bool = True
) -> driver.Metrics:
    """Converts an evaluation to metrics; raises NotFiniteError if numbers overflowed."""
    value, improvements = (tuple(np.asarray(x, float).tolist()) for x in (evaluation.value, evaluation.improvements))
    driver.require_finite(iterations, is_finite and all(map(math.isfinite, (*value, *improvements))))
    return driver.Metrics(iterations, seconds, value, improvements)


class Task(abc.ABC):
    """A game prepared for some kind of solver: the interface that runs, result folders and commands use."""

    game: game_spec.GameSpec
    tree: game_tree.GameTree  # policies are shown at its information sets

    @property
    @abc.abstractmethod
    def tree_task(self) -> "TreeTask | None":
        """The unrolled game, which measures policies exactly; None if the game is too large to unroll."""

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
        """Identifies the game: a run resumes only with the rules that it started with."""

    @property
    def opponent_model(self) -> result_folder.OpponentModelConfig | None:
        """The modelled opponent as config.json records it; None without one."""
        return None

    @property
    def is_measured_exactly(self) -> bool:
        """Whether exploitability is computed, not only bounded by play."""
        return self.tree_task is not None

    def infoset_values(self, policies: tabular_policies.Policies, player: int) -> infoset_values.InfosetValues | None:
        """Returns the values of a player's information sets; None if the game is too large."""
        if self.tree_task is None:
            return None
        return infoset_values.infoset_values(self.tree_task.tree, policies, player)

    def write_inputs(self, folder: pathlib.Path) -> None:
        """Writes what defines the game besides its rules to a new result folder."""
        del folder

    def facts(self, policies: tabular_policies.Policies) -> dict[str, Any]:
        """Returns further facts about policies for reports, as JSON."""
        del policies
        return {}


@dataclasses.dataclass(frozen=True)
class TreeTask(Task):
    """An unrolled game with its sequence form. Built by `make_tree_task`.

    >>> make_tree_task("kuhn_poker")
    TreeTask(kuhn_poker: 2 players, 12 information sets, 30 terminals)
    """

    game: game_spec.GameSpec
    tree: game_tree.GameTree
    form: sequence_form.SequenceForm  # the arrays that solvers read
    layouts: tuple[sequence_form.SequenceLayout, ...]  # [P] where `form` stores each sequence of a player

    def __repr__(self) -> str:
        infosets = sum(player.sets for player in self.tree.players)
        return (
            f"TreeTask({self.game.spec}: {_num_players(self)}, {infosets:,} information sets, "
            f"{len(self.tree.terminals.weight):,} terminals)"
        )

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
        """Measures policies: their values and best-response improvements."""
        evaluation = evaluate(self.form, tabular_policies.to_levels(self.tree, self.layouts, policies))
        return make_metrics(jax.device_get(evaluation), iterations, seconds)


@dataclasses.dataclass(frozen=True)
class TableTask(Task):
    """What tabular MCCFR solves: a game of any size as an environment, for samplers with a hash table.

    Built by `make_table_task`.

    Small games are unrolled as well, and `tree_task` then measures policies exactly. Otherwise `tree` has the first
    steps only, and `tree_task` is None.

    >>> make_table_task("kuhn_poker")
    TableTask(kuhn_poker: 2 players, unrolled)
    """

    game: game_spec.GameSpec  # the game by name, with its payoffs
    env: env.Env  # in which matches are sampled
    tree: game_tree.GameTree  # the whole game, or its first steps
    tree_task: TreeTask | None = None  # the unrolled game; None if it is too large
    shared_packed: packed_env.PackedEnv | None = None  # of the same environment, to reuse its compiled programs

    def __repr__(self) -> str:
        return f"TableTask({self.game.spec}: {_num_players(self)}, {'not ' * (self.tree_task is None)}unrolled)"

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
        """The environment with packed states, shared by all runs so that they share compiled programs."""
        return packed_env.PackedEnv(self.env) if self.shared_packed is None else self.shared_packed

    @functools.cached_property
    def digest(self) -> str:
        return game_facts.probe(self.env.propnet).digest


@dataclasses.dataclass(frozen=True)
class StateTask(Task):
    """A game of states: its states are the information sets of all players. Built by `make_state_task`.

    >>> make_state_task("tictactoe")
    StateTask(tictactoe: 2 players, 5,478 states)
    """

    game: game_spec.GameSpec
    tree: game_tree.GameTree  # the information sets of `graph`, without sequences that lead to its terminals
    graph: state_graph.StateGraph
    propnet: propnet.PropNet

    def __repr__(self) -> str:
        return f"StateTask({self.game.spec}: {_num_players(self)}, {self.graph.states:,} states)"

    @property
    def tree_task(self) -> None:
        return None

    @property
    def is_measured_exactly(self) -> bool:
        return True

    @property
    def payoff_range(self) -> tuple[float, float]:
        return self.tree.payoff_range

    @property
    def is_zero_sum(self) -> bool:
        return self.graph.zero_sum

    @property
    def players(self) -> list[str]:
        return [player.name for player in self.graph.players]

    @functools.cached_property
    def digest(self) -> str:
        return game_facts.probe(self.propnet).digest

    def metrics(self, policies: tabular_policies.Policies, iterations: int = 0, seconds: float = 0.0) -> driver.Metrics:
        """Measures policies by backward induction: their values and best-response improvements."""
        return make_metrics(backward_induction.evaluate(self.graph, policies), iterations, seconds)

    def infoset_values(self, policies: tabular_policies.Policies, player: int) -> infoset_values.InfosetValues:
        return backward_induction.decision_values(self.graph, policies, player)

    def facts(self, policies: tabular_policies.Policies) -> dict[str, Any]:
        del policies
        return {"states": self.graph.states, "joint_actions": self.graph.edges, "steps": self.graph.depth}


def _num_players(task: Task) -> str:
    return plurals.count(len(task.players), "player")


def tree_digest(tree: game_tree.GameTree) -> str:
    """Returns a hash of the players, sequences and terminals of an unrolled game."""
    digest = hashlib.sha256()
    for player in tree.players:
        digest.update(player.name.encode(errors="replace"))
        for array in (player.parent, player.first, player.action):
            digest.update(array.tobytes())
        if player.orbits is not None:
            digest.update(player.orbits.copies.tobytes())
    for field in tree.terminals:
        digest.update(np.ascontiguousarray(field).tobytes())
    if tree.blocks is not None:
        members = itertools.chain.from_iterable(tree.blocks.members)
        for part in (*members, tree.blocks.sets, tree.blocks.payoff, tree.blocks.weight, tree.blocks.histories):
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()[:16]


def prepare(
    game: game_spec.GameSpec,
    needs: algorithms.GameRepresentation,
    *,
    propnet: propnet.PropNet | None = None,
    within: limits.Limits = limits.Limits(),
    max_nodes: int = limits.NODES,
    symmetries: bool = False,
    report: Callable[[int, int], None] | None = None,
) -> Task:
    """Prepares a game as an algorithm needs it.

    Args:
      game: the game, and how to read it.
      needs: `Algorithm.needs`.
      propnet: its compiled propnet, if there is one already.
      within: limits of compiling.
      max_nodes: refuse to unroll games with more joint actions in one step than this, or to build the states of games
        with more in total.
      symmetries: whether to leave symmetric information sets out of the tree, as in `gdlx.unroll`.
      report: called as `report(step, nodes)` after each level that is unrolled, or step whose states are built.

    Raises:
      TerminalsInBlocksError: it needs all terminals listed, and there are too many, before anything is unrolled.
      TooLargeError: the game is too large to unroll.

    >>> prepare(game_spec.GameSpec("kuhn_poker"), "tree")
    TreeTask(kuhn_poker: 2 players, 12 information sets, 30 terminals)
    """
    if needs == "rules":
        return make_table_task(game, propnet=propnet, within=within)
    if needs == "states":
        return make_state_task(game, propnet=propnet, within=within, max_nodes=max_nodes, report=report)
    tree = game_spec.unroll_game(
        game,
        propnet=propnet,
        within=within,
        max_nodes=max_nodes,
        keep_edges=needs == "edges",
        list_terminals=needs == "terminals",
        symmetries=symmetries,
        report=report,
    )
    return make_tree_task(game, tree)


def require_tree_task(task: Task) -> TreeTask:
    """Returns the tree task of a task that was prepared with its tree."""
    assert task.tree_task is not None, task.game.spec
    return task.tree_task


def make_tree_task(
    game: game_spec.GameLike, tree: game_tree.GameTree | None = None, *, keep_edges: bool = False
) -> TreeTask:
    """Prepares a game for solvers of unrolled games.

    Args:
      game: whatever names it, as in `gdlx.make`.
      tree: the unrolled game, if there is one already.
      keep_edges: whether to keep the edges of the tree, which sampling needs. Ignored if `tree` is passed.

    Returns:
      The tree and its sequence form.

    Raises:
      TooLargeError: the game is too large to unroll.

    >>> make_tree_task("biased_rps").payoff_range
    (-50.0, 50.0)
    """
    named = game_spec.resolve(game)
    tree = game_spec.unroll_game(named, keep_edges=keep_edges) if tree is None else tree
    return TreeTask(named.game, tree, *sequence_form.sequence_form(tree))


def make_state_task(
    game: game_spec.GameLike,
    *,
    within: limits.Limits = limits.Limits(),
    propnet: propnet.PropNet | None = None,
    max_nodes: int = limits.NODES,
    report: Callable[[int, int], None] | None = None,
) -> StateTask:
    """Prepares a game whose states are its information sets for solvers of such games.

    Args:
      game: whatever names it, as in `gdlx.make`; it needs rules.
      within: limits of compiling.
      propnet: the compiled propnet, if there is one already.
      max_nodes: refuse games whose states have more joint actions in total than this.
      report: called as `report(step, states)` after each step.

    Returns:
      The graph of its states.

    Raises:
      HiddenStateError: some player does not always know the state.
      TooLargeError: there are too many states, or the game need not end.

    >>> make_state_task("simultaneous_tictactoe").payoff_range
    (-50.0, 50.0)
    """
    named = game_spec.resolve(game)
    if named.game.is_open_spiel and named.compiled is None:
        raise state_graph.HiddenStateError(
            f"{named.game.spec} is a game of OpenSpiel, whose states are unknown: solve its tree instead"
        )
    if propnet is None:
        propnet = named.compile(within)
    graph = state_graph.build(
        propnet, named.game.payoff, max_joint_actions=max_nodes, goal_conflict=named.game.goal_conflict, report=report
    )
    return StateTask(named.game, graph.tree, graph, propnet)


def make_table_task(
    game: game_spec.GameLike,
    *,
    max_steps: int = 0,
    within: limits.Limits = limits.Limits(),
    propnet: propnet.PropNet | None = None,
) -> TableTask:
    """Prepares a game of any size for samplers with a hash table.

    Args:
      game: whatever names it, as in `gdlx.make`.
      max_steps: matches are truncated after this many joint actions; 0 for no limit.
      within: limits of compiling.
      propnet: the compiled propnet, if there is one already.

    Returns:
      The environment, with the unrolled game where it is small.

    >>> make_table_task("kuhn_poker").players
    ['player1', 'player2']
    """
    named = game_spec.resolve(game)
    game = named.game
    if propnet is None:
        propnet = named.compile(within)
    facts = game_facts.probe(propnet)
    guess = facts.histories(enough=_MAX_UNROLLED_HISTORIES)
    if not guess.is_truncated and guess.total <= _MAX_UNROLLED_HISTORIES:
        tree = game_spec.unroll_game(game, propnet=propnet)
        units = payoffs.Payoffs(tree.offset, tree.zero_sum, True)
        return TableTask(game, env.Env(propnet, units, max_steps=max_steps), tree, make_tree_task(game, tree))
    depth = sum(total <= _MAX_SHOWN_HISTORIES for total in itertools.accumulate(guess.histories)) - 1
    tree = unroll.unroll(propnet, game.payoff, depth=depth, goal_conflict=game.goal_conflict)
    return TableTask(game, env.Env(propnet, facts.payoffs(game.payoff), max_steps=max_steps), tree, None)
