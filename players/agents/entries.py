"""Which agents there are. To add one, write its file and a line here; nothing heavy is imported before it is used."""

from collections.abc import Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """The class is a frozen dataclass whose fields are `name` and the agent's options, with their defaults."""

    module: str  # of gdlx.players.agents
    kind: str  # the class in it
    about: str


ENTRIES: Mapping[str, Entry] = {
    "random": Entry("uniform", "Uniform", "every legal move with the same probability"),
    "solution": Entry("saved_policies", "SavedSolution", "the average policies of a result folder of `gdlx solve`"),
    "fixed": Entry(
        "saved_policies", "PolicyFile", "a policy.npz, or a table, .csv or .json, of `gdlx evaluate RESULT -o FILE`"
    ),
    "net": Entry("network_agent", "NetworkAgent", "networks of `gdlx train`: net:FOLDER"),
    "mccfr": Entry(
        "mccfr_agent", "Mccfr", "samples the game into a hash table before the matches, then plays the average"
    ),
    "oos": Entry("oos_agent", "Oos", "goes on sampling for every move, aimed at where the match is"),
    "uct": Entry("uct_agent", "Uct", "UCT for simultaneous moves, from states that the match may be in"),
    "pimc": Entry("pimc_agent", "PerfectInformation", "searches sampled states as if everything were known"),
    "cfr": Entry("subtree_cfr_agent", "DepthLimited", "CFR+ on a small tree, with random play below it"),
    "human": Entry("human", "Human", "somebody at the terminal"),
}
