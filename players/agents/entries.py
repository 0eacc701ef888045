"""Which agents there are. To add one, write its file and a line here; nothing heavy is imported before it is used."""

from collections.abc import Mapping
from typing import NamedTuple


class AgentEntry(NamedTuple):
    """The class is a frozen dataclass whose fields are `name` and the agent's options, with their defaults."""

    module: str  # of gdlx.players.agents
    class_name: str  # the class in it
    about: str


ENTRIES: Mapping[str, AgentEntry] = {
    "random": AgentEntry("uniform", "UniformAgent", "every legal move with the same probability"),
    "solution": AgentEntry(
        "saved_policies", "SolutionAgent", "the average policies of a result folder of `gdlx solve`"
    ),
    "fixed": AgentEntry(
        "saved_policies",
        "PolicyFileAgent",
        "a policy.npz, or a table, .csv or .json, of `gdlx evaluate RESULT -o FILE`",
    ),
    "net": AgentEntry("network_agent", "NetworkAgent", "networks of `gdlx train`: net:FOLDER"),
    "mccfr": AgentEntry(
        "mccfr_agent", "MccfrAgent", "samples the game into a hash table before the matches, then plays the average"
    ),
    "oos": AgentEntry("oos_agent", "OosAgent", "goes on sampling for every move, aimed at where the match is"),
    "uct": AgentEntry("uct_agent", "UctAgent", "UCT for simultaneous moves, from states that the match may be in"),
    "pimc": AgentEntry("pimc_agent", "PimcAgent", "searches sampled states as if everything were known"),
    "cfr": AgentEntry("subtree_cfr_agent", "SubtreeCfrAgent", "CFR+ on a small tree, with random play below it"),
    "human": AgentEntry("human", "HumanAgent", "somebody at the terminal"),
}
