"""Agents that play policies from files, of any format that `solvers.policy_files` reads."""

import dataclasses
import pathlib

from gdlx.players.agents import agent, table_agent
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.runs import policy_files


@dataclasses.dataclass(frozen=True)
class SolutionAgent(table_agent.TableAgent):
    """Plays the average policies of a result."""

    folder: str

    def sources(self) -> list[pathlib.Path]:
        return [policy_files.policy_path(pathlib.Path(self.folder))]

    def learn(self, arena: agent.Arena) -> table_policy.TablePolicy:
        return policy_files.load_table_policy(pathlib.Path(self.folder), arena.game, arena.env)


@dataclasses.dataclass(frozen=True)
class PolicyFileAgent(table_agent.TableAgent):
    """Plays a policy table; information sets that are not in it have uniform policies."""

    file: str

    def sources(self) -> list[pathlib.Path]:
        return [policy_files.policy_path(pathlib.Path(self.file))]

    def learn(self, arena: agent.Arena) -> table_policy.TablePolicy:
        return policy_files.load_table_policy(pathlib.Path(self.file), arena.game, arena.env)
