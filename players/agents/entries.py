"""Which agents there are. To add one, write its file and a line here; nothing heavy is imported before it is used."""

from collections.abc import Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """The class is a frozen dataclass whose fields are `name` and the agent's options, with their defaults."""

    module: str  # of gdlx.players
    kind: str  # the class in it
    about: str


ENTRIES: Mapping[str, Entry] = {
    "random": Entry("uniform", "Uniform", "every legal move with the same probability"),
    "solution": Entry("saved", "SavedSolution", "the average policies of a result folder of `gdlx solve`"),
    "fixed": Entry("saved", "PolicyFile", "a policy.npz, or a table, .csv or .json, of `gdlx evaluate RESULT -o FILE`"),
    "net": Entry("network_agent", "NetworkAgent", "networks of `gdlx train`: net:FOLDER"),
    "mccfr": Entry("mccfr", "Mccfr", "samples the game into a hash table before the matches, then plays the average"),
    "oos": Entry("online", "Oos", "goes on sampling for every move, aimed at where the match is"),
    "uct": Entry("uct", "Uct", "UCT for simultaneous moves, from states that the match may be in"),
    "pimc": Entry("perfect_information", "PerfectInformation", "searches sampled states as if everything were known"),
    "cfr": Entry("depth_limited", "DepthLimited", "CFR+ on a small tree, with random play below it"),
    "human": Entry("human", "Human", "somebody at the terminal"),
}
