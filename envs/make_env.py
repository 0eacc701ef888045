"""From a game's name to its Env."""

from gdlx.envs import env, game_facts, payoffs
from gdlx.envs.lowering import lower
from gdlx.propnet import games
from gdlx.propnet.common import limits


def make(
    game: str,
    *,
    payoff: payoffs.PayoffMode = "auto",
    form: lower.LoweringMode = "auto",
    max_steps: int = 0,
    gdl: int | None = None,
    fold_case: bool = False,
    within: limits.Limits = limits.Limits(),
) -> env.Env:
    """The environment of a library game (`goofspiel:cards=4`) or of a rulesheet's path.

    >>> make("kuhn_poker").players
    ('player1', 'player2')
    """
    net = games.compile_game(game, gdl=gdl, fold_case=fold_case, within=within)
    return env.Env(net, game_facts.probe(net).payoffs(payoff), form, max_steps)
