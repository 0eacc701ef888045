"""What a player knows who perceives every joint action: all moves, and the state they lead to."""

from typing import NamedTuple

import numpy as np

from gdlx.envs.views import history
from gdlx.propnet.checks import by_playing, unplayable
from gdlx.propnet.circuits import propnet
from gdlx.propnet.simulate import joint_actions, machine


class VisibleState(NamedTuple):
    """The moves so far, and the true fluents now."""

    choices: tuple[dict[str, str], ...]  # step by step, the moves of the roles that had a choice
    fluents: tuple[str, ...]


def visible_state(view: history.ActionObservationHistory) -> VisibleState | None:
    """Returns what the player knows; None if something is hidden from it.

    >>> from gdlx.envs import make_env
    >>> visible_state(history.ActionObservationHistory(make_env.make("tictactoe"), 0, ()))
    VisibleState(choices=(), fluents=('(control x)',))
    """
    propnet = view.game.propnet
    role = propnet.players[view.player]
    if not by_playing.sees_everything(propnet, role):
        return None
    perceived = _moves_of_percepts(propnet, role)
    game, sizes = machine.for_propnet(propnet), [len(role.moves) for role in propnet.roles]
    state = game.initial(1)
    choices = []
    for event in view.events:
        moves = dict(perceived[number] for number in event.percepts if number in perceived)
        if len(moves) < len(propnet.roles):
            return None
        legal = machine.split_rows(game.legal(state), sizes)
        choices.append({propnet.roles[n].name: propnet.roles[n].moves[moves[n]] for n in moves if legal[n].sum() > 1})
        joint = joint_actions.one_hot_rows([np.array([moves[n]]) for n in range(len(sizes))], sizes)
        state, _ = game.step(state, joint)
    return VisibleState(tuple(choices), tuple(unplayable.fluents(propnet, state[:, 0])))


def _moves_of_percepts(propnet: propnet.PropNet, role: propnet.Role) -> dict[int, tuple[int, int]]:
    """The role and the move that each percept shows; percepts that show something else are left out."""
    literals = {
        2 * (propnet.first_move_node(number) + move): (number, move)
        for number, other in enumerate(propnet.roles)
        for move in range(len(other.moves))
    }
    return {n: literals[literal] for n, literal in enumerate(role.sees.tolist()) if literal in literals}
