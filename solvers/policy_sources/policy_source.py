"""Policies to be judged, whatever they are: one interface, and `find`, which makes it of anything that is a policy."""

import abc
import contextlib
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs import env, game_spec
from gdlx.envs.trees import game_tree
from gdlx.propnet.common import user_modules
from gdlx.propnet.syntax import diagnostics
from gdlx.solvers import solution, tabular_policies, tasks
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.policy_sources import function_policies, open_spiel_policies
from gdlx.solvers.runs import policy_files, policy_tables

PolicyError = tabular_policies.PolicyError
UNIFORM = "uniform"  # names the policy that plays every legal action with the same probability


class TabulatedPolicies(NamedTuple):
    """Policies at all information sets of a tree. Axis: M information sets of a player without a policy."""

    policies: tabular_policies.Policies
    missing: tuple[npt.NDArray[np.int64], ...]  # of each player [M], which are uniform


class PolicySource(abc.ABC):
    """A policy of some kind.

    Attributes:
      name: what to call it in messages.
    """

    name: str

    @abc.abstractmethod
    def tabulate(self, named: game_spec.ResolvedGame, task: tasks.TreeTask) -> TabulatedPolicies:
        """Returns the policies at all information sets of the unrolled game.

        Raises:
          UserError: the policy is not one of this game.
        """

    def to_table(self, game: game_spec.GameSpec, environment: env.Env) -> table_policy.TablePolicy | None:
        """Returns the policy as a hash table, for a game that cannot be unrolled; None if it has no table."""
        del game, environment
        return None

    def to_function(self, named: game_spec.ResolvedGame) -> function_policies.PolicyFunction | None:
        """Returns the policy as a function, for a game that cannot be unrolled; None if that is not possible."""
        del named
        return None


class PolicyFile(PolicySource):
    """A file or folder of a format of `policy_files`."""

    def __init__(self, path: pathlib.Path) -> None:
        policy_files.require_policy(path)  # before the long work
        self.name, self.path = str(path), path

    def tabulate(self, named: game_spec.ResolvedGame, task: tasks.TreeTask) -> TabulatedPolicies:
        policies = policy_files.load_policies(self.path, named.game, task.tree)
        return TabulatedPolicies(policies, policy_files.find_missing(self.path, named.game, task.tree))

    def to_table(self, game: game_spec.GameSpec, environment: env.Env) -> table_policy.TablePolicy:
        return policy_files.load_table_policy(self.path, game, environment)


class SparsePolicy(PolicySource):
    """A policy that may have NaN where it is missing."""

    @abc.abstractmethod
    def probabilities(
        self, named: game_spec.ResolvedGame, task: tasks.TreeTask
    ) -> Sequence[tabular_policies.Policy]: ...

    def tabulate(self, named: game_spec.ResolvedGame, task: tasks.TreeTask) -> TabulatedPolicies:
        with _explained(self.name, task.tree):
            return fill_missing(task.tree, self.probabilities(named, task))


class FunctionPolicy(SparsePolicy):
    """A function of information sets: `function_policies.PolicyFunction`."""

    def __init__(self, function: function_policies.PolicyFunction, name: str) -> None:
        self.name, self._function = name, function

    def probabilities(self, named: game_spec.ResolvedGame, task: tasks.TreeTask) -> Sequence[tabular_policies.Policy]:
        del named
        return function_policies.tabulate(self._function, self.name, task.tree)

    def to_function(self, named: game_spec.ResolvedGame) -> function_policies.PolicyFunction:
        del named
        return self._function


class OpenSpielPolicy(SparsePolicy):
    """A policy of OpenSpiel."""

    def __init__(self, policy: Any, name: str) -> None:
        self.name, self._policy = name, policy

    def probabilities(self, named: game_spec.ResolvedGame, task: tasks.TreeTask) -> Sequence[tabular_policies.Policy]:
        return open_spiel_policies.read(named, task.tree, self._policy)


class ArrayPolicy(SparsePolicy):
    """The probability of every sequence, for each player, as in `Solution.policies`."""

    def __init__(self, policies: Sequence[npt.ArrayLike], name: str = "the policy", digest: str | None = None) -> None:
        self.name, self._policies, self._digest = name, policies, digest

    def probabilities(self, named: game_spec.ResolvedGame, task: tasks.TreeTask) -> Sequence[tabular_policies.Policy]:
        del named
        players = task.tree.players
        if len(self._policies) != len(players):
            raise PolicyError(f"it has {len(self._policies)} players, and the game has {len(players)}")
        if self._digest is not None and self._digest != task.digest:
            raise PolicyError("it is a solution of other rules or payoffs")
        return [
            np.array(tabular_policies.validate_shape(player, policy))
            for player, policy in zip(players, self._policies, strict=True)
        ]


class JsonPolicy(SparsePolicy):
    """A table as `policy_tables.to_json` returns it, which may be partial."""

    def __init__(self, table: Mapping[str, Any], name: str = "the policy") -> None:
        self.name, self._table = name, table

    def probabilities(self, named: game_spec.ResolvedGame, task: tasks.TreeTask) -> Sequence[tabular_policies.Policy]:
        del named
        return policy_tables.from_json_sparse(task.tree, self._table)


def find(policy: Any) -> PolicySource:
    """Makes a source of anything that is a policy.

    Args:
      policy: the path of a result folder or policy file, `"uniform"`, `module:name` of one of the following, a policy
        function, a policy of OpenSpiel, a `Solution`, arrays as in `Solution.policies`, or a table of
        `policy_tables.to_json`.

    Raises:
      UserError: it is none of these.

    >>> find(lambda infosets: infosets.legal / infosets.legal.sum(axis=1, keepdims=True)).name
    '<lambda>'
    """
    if isinstance(policy, PolicySource):
        return policy
    if isinstance(policy, str) and not pathlib.Path(policy).exists():
        if policy == UNIFORM:
            return FunctionPolicy(_play_uniformly, UNIFORM)
        name = user_modules.parse(policy)
        if name is not None:
            return _of_object(_import(name, policy), policy)
        raise policy_files.PolicyFileError(
            f"{diagnostics.shorten(policy)} does not exist: {policy_files.ACCEPTED_FORMATS}; or the folder of a "
            f"training, `module:function`, or `{UNIFORM}`"
        )
    if isinstance(policy, str | os.PathLike):
        return PolicyFile(pathlib.Path(policy))
    return _of_object(policy, str(getattr(policy, "__name__", type(policy).__name__)))


def _play_uniformly(infosets: function_policies.InformationSets) -> npt.NDArray[np.float64]:
    probabilities: npt.NDArray[np.float64] = infosets.legal / infosets.legal.sum(axis=1, keepdims=True)
    return probabilities


def _of_object(policy: Any, name: str) -> PolicySource:
    if isinstance(policy, PolicySource):
        return policy
    if isinstance(policy, solution.Solution):
        return ArrayPolicy(policy.policies, f"{policy.algorithm} solution", tasks.tree_digest(policy.tree))
    if open_spiel_policies.is_policy(policy):
        return OpenSpielPolicy(policy, name)
    if isinstance(policy, Mapping):
        return JsonPolicy(policy, name)
    if isinstance(policy, list | tuple):
        return ArrayPolicy(policy, name)
    if _may_be_policy(policy):
        return FunctionPolicy(policy, name)
    kind = "a class, not an instance of one" if isinstance(policy, type) else f"of type {type(policy).__name__}"
    raise PolicyError(
        f"{name} is {kind}: a policy is a file, a result folder, a function of information sets, a policy of "
        "OpenSpiel, a Solution, arrays of probabilities, or a table"
    )


def _import(name: user_modules.QualifiedName, text: str) -> Any:
    module = user_modules.import_module(name.module, f"file {text} of a policy", PolicyError)
    if not hasattr(module, name.attribute) or name.options:
        rest = f"{name.attribute}:{name.options}" if name.options else name.attribute
        there = sorted(key for key, value in vars(module).items() if not key.startswith("_") and _may_be_policy(value))
        raise PolicyError(f"{name.module} has no {rest}; it has {', '.join(there) or 'no policy'}")
    return getattr(module, name.attribute)


def _may_be_policy(value: Any) -> bool:
    return open_spiel_policies.is_policy(value) or (callable(value) and not isinstance(value, type))


@contextlib.contextmanager
def _explained(name: str, tree: game_tree.GameTree) -> Iterator[None]:
    """Adds the policy and the game to errors."""
    try:
        yield
    except (PolicyError, open_spiel_policies.TwinError) as error:
        raise PolicyError(f"{name} is not a policy of {tree.name}: {error}") from None


def fill_missing(tree: game_tree.GameTree, sparse: Sequence[tabular_policies.Policy]) -> TabulatedPolicies:
    """Replaces NaN by uniform policies."""
    policies, missing = [], []
    for player, policy in zip(tree.players, sparse, strict=True):
        is_missing = np.isnan(policy)
        policy = np.where(is_missing, tabular_policies.uniform(player), policy)
        policy[0] = 1
        policies.append(tabular_policies.validate(player, policy))
        is_missing[0] = False
        missing.append(np.unique(np.searchsorted(player.first, np.flatnonzero(is_missing), side="right") - 1))
    return TabulatedPolicies(tuple(policies), tuple(missing))
