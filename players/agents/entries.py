"""The list of agents. To add one, write its module and a line here; modules are imported when they are first used."""

from collections.abc import Mapping
from typing import NamedTuple


class AgentEntry(NamedTuple):
    """The class is a frozen dataclass whose fields are `name` and the agent's options, with their defaults."""

    module: str  # of gdlx.players.agents
    class_name: str  # the class in it
    about: str


ENTRIES: Mapping[str, AgentEntry] = {
    "random": AgentEntry("uniform", "UniformAgent", "chooses uniformly among legal moves"),
    "solution": AgentEntry(
        "saved_policies", "SolutionAgent", "the average policies of a result folder of `gdlx solve`"
    ),
    "fixed": AgentEntry(
        "saved_policies",
        "PolicyFileAgent",
        "a policy.npz, or a table, .csv or .json, of `gdlx evaluate RESULT -o FILE`",
    ),
    "network": AgentEntry("network_agent", "NetworkAgent", "networks of `gdlx train`: network:FOLDER"),
    "mccfr": AgentEntry(
        "mccfr_agent", "MccfrAgent", "MCCFR with a hash table before the matches, then plays the average policy"
    ),
    "oos": AgentEntry("oos_agent", "OosAgent", "online outcome sampling: MCCFR at every move, targeted at the match"),
    "uct": AgentEntry("uct_agent", "UctAgent", "UCT for simultaneous moves, from sampled states of the match"),
    "pimc": AgentEntry("pimc_agent", "PimcAgent", "perfect information Monte Carlo: searches sampled states"),
    "cfr": AgentEntry("subtree_cfr_agent", "SubtreeCfrAgent", "CFR+ on a small tree, with random play at its leaves"),
    "human": AgentEntry("human", "HumanAgent", "a person at the terminal"),
}

# Names of before: still read, so that recorded matches resume.
RENAMED: Mapping[str, str] = {"net": "network"}
RENAMED_OPTIONS: Mapping[str, Mapping[str, str]] = {"cfr": {"net": "network"}}
