"""From a game to the Arena that its matches are played in."""

from gdlx.envs import env, game_facts, game_spec
from gdlx.envs.packed import packed_env
from gdlx.players import defaults
from gdlx.players.agents import agent
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import limits


def make_arena(
    game: game_spec.GameSpec | str,
    *,
    max_steps: int = 0,
    start_seconds: float = defaults.START_SECONDS,
    net: propnet.PropNet | None = None,
    within: limits.Limits = limits.Limits(),
) -> agent.Arena:
    """Matches end after `max_steps` joint moves; after several times as many as random ones last, if that is 0.

    >>> make_arena("kuhn_poker").env.players
    ('player1', 'player2')
    """
    named = game if isinstance(game, game_spec.GameSpec) else game_spec.GameSpec(game)
    if net is None:
        net = named.compile(within)
    steps = max_steps or game_facts.probe(net).step_capacity
    made = env.Env(net, game_facts.probe(net).payoffs(named.payoff), max_steps=steps)
    return agent.Arena(named, made, packed_env.PackedEnv(made), steps, start_seconds)
