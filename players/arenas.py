"""From a game to the Arena that its matches are played in."""

from gdlx.envs import env, payoffs, trees, walk
from gdlx.players import agent, defaults
from gdlx.propnet import cache, limits, load, network
from gdlx.solvers import table_process


def of_game(
    game: trees.Game | str,
    *,
    max_steps: int = 0,
    start_seconds: float = defaults.START_SECONDS,
    net: network.PropNet | None = None,
    within: limits.Limits = limits.Limits(),
) -> agent.Arena:
    """Matches end after `max_steps` joint moves; after several times as many as random ones last, if that is 0.

    >>> of_game("kuhn_poker").env.players
    ('player1', 'player2')
    """
    named = game if isinstance(game, trees.Game) else trees.Game(game)
    if net is None:
        net = cache.compiled(load.load(named.spec, gdl=named.gdl, fold_case=named.fold_case), within)
    steps = max_steps or table_process.room_for_steps(net, seed=0)
    made = env.Env(net, payoffs.of(net, named.payoff), max_steps=steps)
    return agent.Arena(named, made, walk.Walk(made), steps, start_seconds)
