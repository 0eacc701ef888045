"""Agents that play policies from files, in any format that `solvers.runs.policy_files` reads."""

import dataclasses
import pathlib

from gdlx.players.agents import agent, table_agent
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.runs import policy_files


@dataclasses.dataclass(frozen=True)
class SolutionAgent(table_agent.TableAgent):
    """Plays the average policies of a saved solution.

    Options:
      folder: written by `gdlx solve`.
    """

    folder: str

    def sources(self) -> list[pathlib.Path]:
        return [policy_files.policy_path(pathlib.Path(self.folder))]

    def learn(self, arena: agent.Arena) -> table_policy.TablePolicy:
        return policy_files.load_table_policy(pathlib.Path(self.folder), arena.game, arena.env)


@dataclasses.dataclass(frozen=True)
class PolicyFileAgent(table_agent.TableAgent):
    """Plays a policy table, and uniformly at information sets that are not in it.

    Options:
      file: a policy.npz, or a table in .csv or .json.
    """

    file: str

    def sources(self) -> list[pathlib.Path]:
        return [policy_files.policy_path(pathlib.Path(self.file))]

    def learn(self, arena: agent.Arena) -> table_policy.TablePolicy:
        return policy_files.load_table_policy(pathlib.Path(self.file), arena.game, arena.env)
