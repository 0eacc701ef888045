"""`gdlx.evaluate`: the exact judge of any policy, networks included."""

import os
import pathlib
from collections.abc import Sequence
from typing import Any

from gdlx.envs import game_spec
from gdlx.nets import checkpoints
from gdlx.nets.values import infoset_tables
from gdlx.propnet.common import limits
from gdlx.solvers import evaluate_requests, tabular_policies, tasks
from gdlx.solvers.policy_sources import function_policies, policy_source
from gdlx.solvers.runs import policy_files, result_folder


class NetworkPolicy(policy_source.SparsePolicy):
    """The networks of a training folder."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.name, self._folder = str(folder), folder

    def probabilities(self, named: game_spec.ResolvedGame, task: tasks.TreeTask) -> Sequence[tabular_policies.Policy]:
        return function_policies.tabulate(self.to_function(named), self.name, task.tree)

    def to_function(self, named: game_spec.ResolvedGame) -> function_policies.PolicyFunction:
        if named.game.is_open_spiel or named.tree is not None:
            raise policy_files.PolicyFileError(f"{self.name} has networks, which need the rules of {named.game.spec}")
        restored = checkpoints.restore_training(self._folder, named.compile())
        return infoset_tables.policy_function(restored.learner, restored.learner.policy_params(restored.state))


def find(policy: Any) -> policy_source.PolicySource:
    """Makes a source of anything that is a policy: a training folder, or what `policy_source.find` accepts."""
    if isinstance(policy, str | os.PathLike) and result_folder.is_training(pathlib.Path(policy)):
        return NetworkPolicy(pathlib.Path(policy))
    return policy_source.find(policy)


def evaluate(
    game: "game_spec.GameLike",
    policy: Any,
    *,
    max_nodes: int = limits.NODES,
    bound_seconds: float | None = None,
    seed: int = 0,
    symmetries: bool = False,
    within: limits.Limits = limits.Limits(),
) -> evaluate_requests.EvaluateResult:
    """Judges a policy of any kind: exactly if the game can be unrolled, else by sampled play.

    Args:
      game: whatever names it, as in `gdlx.solve`.
      policy: the path of a result folder, an .npz, .csv or .json file, or a folder of `gdlx train`; a function that
        takes `InformationSets` and returns the probability of every move; a policy of OpenSpiel; a `Solution`; arrays
        as in `Solution.policies`; a table of `policy_tables.to_json`; or `module:name` of one of these.
      max_nodes: refuse to unroll games with more joint actions in one step than this.
      bound_seconds: seconds of play, if the game is too large to unroll; 30 by default.
      seed: of that play.
      symmetries: whether to unroll the game without the information sets that symmetries of its rules exchange. The
        policy must be the same in all of them, which is checked.
      within: limits of compiling.

    Returns:
      Values and best-response improvements, in double precision. `missing` are the information sets for which there
      is no policy; they are played uniformly.

    Raises:
      PolicyError: the policy is one of another game, or none.
      NotInvariantError: with `symmetries`, the policy is one that symmetries change.
      TooLargeError: the game is too large to unroll, and this kind of policy cannot be judged by play.

    >>> import gdlx
    >>> gdlx.evaluate("kuhn_poker", lambda infosets: infosets.legal / infosets.legal.sum(axis=1, keepdims=True))
    EvaluateResult(kuhn_poker, <lambda>: exact, exploitability 0.458333)
    """
    source = find(policy)
    return evaluate_requests.execute(
        evaluate_requests.judge_request(
            game,
            source,
            max_nodes=max_nodes,
            bound_seconds=bound_seconds,
            seed=seed,
            symmetries=symmetries,
            within=within,
        )
    )
