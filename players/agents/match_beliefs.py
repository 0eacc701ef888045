"""The states that a match may be in, for agents that search from them."""

import numpy as np

from gdlx.envs import host
from gdlx.envs.packed import packed_env
from gdlx.envs.views import history, public
from gdlx.players.agents import agent
from gdlx.solvers.search import beliefs

EFFORT = beliefs.BeliefBudget(
    size=2**12, states=2**12
)  # as many lanes whether enumerated or sampled: one program for both
_REHEARSED = 2  # matches


class MatchBeliefs:
    """Of one player in one match. Others are taken to play at random."""

    def __init__(self, seat: agent.PlayerContext) -> None:
        self._context = seat
        self._tracker: beliefs.BeliefTracker | None = None

    def at(self, view: history.ActionObservationHistory) -> beliefs.Belief:
        if self._tracker is None:
            seed = int(self._context.random.integers(2**31))
            self._tracker = beliefs.BeliefTracker(self._context.arena.packed, view, effort=EFFORT, seed=seed)
        return self._tracker.update(view)

    def sample(self, view: history.ActionObservationHistory, count: int) -> packed_env.PackedState:
        """So many of the games, each as often as it is probable."""
        return self.at(view).sample(self._context.arena.packed, count, self._context.random)


def warm_up(arena: agent.Arena, count: int) -> None:
    """Follow a few random matches, so that all programs that following needs are compiled; `count` is for `drawn`."""
    for seed in range(_REHEARSED):
        random = np.random.default_rng(seed)
        for view in play_random_match(arena, random):
            belief = MatchBeliefs(agent.PlayerContext(arena, view.player, random))
            try:
                belief.sample(view, count)
            except beliefs.NoConsistentStateError:  # a match that is hard to follow, whoever plays it
                continue


def play_random_match(arena: agent.Arena, random: np.random.Generator) -> list[history.ActionObservationHistory]:
    """What every player has seen of it at the end."""
    nodes = host.HostEnv(arena.env.net, arena.env.payoffs, arena.steps)
    position = nodes.position(arena.env.net.initial.tobytes())
    views = [history.ActionObservationHistory(arena.env, player, legal) for player, legal in enumerate(position.legal)]
    for step in range(arena.steps):
        if position.terminal or position.unplayable:
            break
        joint = tuple(int(random.choice(own)) for own in position.legal)
        chance = int(random.choice(position.chance)) if position.chance else 0
        registers, percepts = nodes.transition(position.registers, joint, chance)
        position = nodes.position(registers)
        is_over = step + 1 == arena.steps
        views = [
            view.after(history.Event(move, seen, () if is_over else legal))
            for view, move, seen, legal in zip(views, joint, percepts, position.legal, strict=True)
        ]
    return views


def is_fully_observable(arena: agent.Arena) -> bool:
    """Whether everybody sees every move and nothing is left to chance: then everybody knows the state."""
    shown = public.find_public_info(arena.env.net).moves
    return not arena.env.num_chance_actions and all(own.any(axis=1).all() for own in shown)
