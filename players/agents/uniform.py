"""An agent that chooses uniformly among legal moves."""

import dataclasses

from gdlx.players.agents import agent, table_agent
from gdlx.solvers.mccfr import table_policy


@dataclasses.dataclass(frozen=True)
class UniformAgent(table_agent.TableAgent):
    """Chooses uniformly among legal moves; has no options."""

    def learn(self, arena: agent.Arena) -> table_policy.TablePolicy:
        return table_policy.uniform_table_policy(arena.env.num_actions)
