"""`make_arena`: from a game to the arena of its matches."""

from gdlx.envs import env, game_facts, game_spec
from gdlx.envs.packed import packed_env
from gdlx.players import defaults
from gdlx.players.agents import agent
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import limits


def make_arena(
    game: game_spec.GameLike | None = None,
    *,
    rules: str | None = None,
    max_steps: int = 0,
    start_seconds: float = defaults.START_SECONDS,
    propnet: propnet.PropNet | None = None,
    within: limits.Limits = limits.Limits(),
) -> agent.Arena:
    """Builds the arena for matches of a game.

    Args:
      game: whatever names it, as in `gdlx.make`.
      rules: the text of its rulesheet, instead of `game`.
      max_steps: joint actions after which a match is stopped; 0: several times the length of random matches.
      start_seconds: the start clock.
      propnet: the compiled game; None: it is compiled here.
      within: limits of compilation.

    Returns:
      The arena.

    Raises:
      UserError: there is no such game, or its rules cannot be compiled.

    >>> make_arena("kuhn_poker").env.players
    ('player1', 'player2')
    """
    named = game_spec.resolve(game, rules=rules)
    spec = named.game
    if propnet is None:
        propnet = named.compile(within)
    steps = max_steps or game_facts.probe(propnet).step_capacity
    game_env = env.Env(propnet, game_facts.probe(propnet).payoffs(spec.payoff), max_steps=steps)
    return agent.Arena(spec, game_env, packed_env.PackedEnv(game_env), steps, start_seconds)
