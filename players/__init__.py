"""Agents that choose actions during a match, and matches between them.

May import `gdlx.nets` and the packages below it.
"""

from typing import TYPE_CHECKING

from gdlx.propnet.common import lazy

if TYPE_CHECKING:
    from gdlx.players.agents.agent import Agent as Agent
    from gdlx.players.agents.agent import Arena as Arena
    from gdlx.players.agents.agent import Clock as Clock
    from gdlx.players.agents.agent import Player as Player
    from gdlx.players.agents.agent import PlayerContext as PlayerContext
    from gdlx.players.agents.agent import PolicyAgent as PolicyAgent
    from gdlx.players.agents.agent_registry import make_agent as make_agent
    from gdlx.players.matches.arenas import make_arena as make_arena
    from gdlx.players.matches.contest import compete as compete
    from gdlx.players.matches.match import Match as Match
    from gdlx.players.matches.match import MatchSettings as MatchSettings
    from gdlx.players.matches.scores import MatchResult as MatchResult
    from gdlx.players.matches.tournament import Tournament as Tournament
    from gdlx.players.matches.tournament import TournamentResult as TournamentResult

_MODULES = {
    "Agent": "gdlx.players.agents.agent",
    "Arena": "gdlx.players.agents.agent",
    "Clock": "gdlx.players.agents.agent",
    "Match": "gdlx.players.matches.match",
    "MatchResult": "gdlx.players.matches.scores",
    "MatchSettings": "gdlx.players.matches.match",
    "Player": "gdlx.players.agents.agent",
    "PlayerContext": "gdlx.players.agents.agent",
    "PolicyAgent": "gdlx.players.agents.agent",
    "Tournament": "gdlx.players.matches.tournament",
    "TournamentResult": "gdlx.players.matches.tournament",
    "compete": "gdlx.players.matches.contest",
    "make_agent": "gdlx.players.agents.agent_registry",
    "make_arena": "gdlx.players.matches.arenas",
}
__all__ = [
    "Agent",
    "Arena",
    "Clock",
    "Match",
    "MatchResult",
    "MatchSettings",
    "Player",
    "PlayerContext",
    "PolicyAgent",
    "Tournament",
    "TournamentResult",
    "compete",
    "make_agent",
    "make_arena",
]
__getattr__, __dir__ = lazy.attach(__name__, _MODULES)
