"""States and action-observation histories as text, with the names of the rulesheet. On the host, for one match."""

import itertools
from collections.abc import Iterable, Sequence

import jax
import numpy as np
import numpy.typing as npt

from gdlx.envs import env as envs


def move_name(env: envs.Env, player: int, action: int) -> str:
    """The name of a player's action, `-` if there is none.

    >>> from gdlx.envs import make_env
    >>> move_name(make_env.make("kuhn_poker"), 0, 0)
    'bet'
    """
    moves = env.propnet.players[player].moves
    return moves[action] if 0 <= action < len(moves) else "-"


def chance_name(env: envs.Env, action: int) -> str:
    """The name of an action of chance, `-` if there is none."""
    moves = next((role.moves for role in env.propnet.roles if role.is_random), ())
    return moves[action] if 0 <= action < len(moves) else "-"


def legal_names(env: envs.Env, state: envs.State, player: int) -> tuple[str, ...]:
    """A player's legal actions in a state."""
    return _named(env.propnet.players[player].moves, state.legal_mask[player])


def legal_chance_names(env: envs.Env, state: envs.State) -> tuple[str, ...]:
    """The legal actions of chance in a state."""
    moves = next((role.moves for role in env.propnet.roles if role.is_random), ())
    return _named(moves, state.chance_mask)


def percept_names(env: envs.Env, state: envs.State, player: int) -> tuple[str, ...]:
    """A player's percepts of the joint action that led to a state."""
    return _named(env.propnet.players[player].percepts, state.percepts[player])


def fluent_names(env: envs.Env, state: envs.State) -> tuple[str, ...]:
    """The fluents that are true in a state."""
    values = np.concatenate([[False], np.asarray(state.registers)])
    literals = env.propnet.fluent_literals
    return _named(env.propnet.fluents, values[literals >> 1] ^ (literals & 1).astype(bool))


def state_text(env: envs.Env, state: envs.State) -> str:
    """The step, the true fluents, and the legal actions or the result.

    >>> from gdlx.envs import make_env
    >>> game = make_env.make("rps")
    >>> print(state_text(game, game.init()))
    rps, step 0
      choosing
    player1: paper rock scissors
    player2: paper rock scissors
    """
    lines = [f"{env.name}, step {int(state.step)}"]
    lines += [f"  {fluent}" for fluent in fluent_names(env, state)]
    if bool(state.terminated):
        lines.append(
            "unplayable: no legal move for some role, or too many steps" if bool(state.unplayable) else "the end"
        )
        goals = np.asarray(state.goals).tolist()
        lines += [f"{name}: goal {goal}" for name, goal in zip(env.players, goals, strict=True)]
        return "\n".join(lines)
    lines += [f"{name}: {' '.join(legal_names(env, state, n))}" for n, name in enumerate(env.players)]
    if env.num_chance_actions:
        lines.append(f"random: {' '.join(legal_chance_names(env, state))}")
    return "\n".join(lines)


def history_text(env: envs.Env, states: Iterable[envs.State], player: int) -> str:
    """A player's actions and percepts, from the states of a match since the initial one."""
    states = list(states)
    lines = [f"{env.players[player]} in {env.name}"]
    for number, (_, after) in enumerate(itertools.pairwise(states), 1):
        move = move_name(env, player, int(after.actions[player]))
        seen = percept_names(env, after, player)
        lines.append(f"{number:>3}. {move}" + (f", sees {' '.join(seen)}" if seen else ""))
    if states and not bool(states[-1].terminated):
        lines.append(f"may {' '.join(legal_names(env, states[-1], player))}")
    return "\n".join(lines)


def unstack_states(states: envs.State) -> list[envs.State]:
    """Splits states along the first axis, as lax.scan stacks them, into separate states on the host."""
    host: envs.State = jax.device_get(states)
    return [jax.tree.map(lambda field, n=n: field[n], host) for n in range(len(host.step))]


def _named(names: Sequence[str], bits: npt.ArrayLike | jax.Array) -> tuple[str, ...]:
    return tuple(name for name, bit in zip(names, np.asarray(bits).tolist(), strict=False) if bit)
