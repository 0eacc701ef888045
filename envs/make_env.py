"""From a game's name to its Env."""

from collections.abc import Sequence

from gdlx.envs import env, game_facts, game_spec, payoffs
from gdlx.envs.lowering import lower
from gdlx.propnet.common import limits


def make(
    game: "game_spec.GameLike | None" = None,
    *,
    rules: str | None = None,
    payoff: payoffs.PayoffMode = "auto",
    form: lower.LoweringMode = "auto",
    max_steps: int = 0,
    track: str | Sequence[str] = (),
    gdl: int | None = None,
    fold_case: bool = False,
    within: limits.Limits = limits.Limits(),
) -> env.Env:
    """Compiles a game and returns its environment.

    Args:
      game: a library name, with parameters or without (`goofspiel:cards=4`), the path of a rulesheet, a `GameSpec`,
        `Rulesheet` or `PropNet`, or another `Env` of the game. `payoff`, `gdl` and `fold_case` override those of a
        `GameSpec`.
      rules: the text of the rulesheet, instead of `game`.
      payoff: `"zero-sum"` for payoffs that sum to zero, `"goal"` for goal values as they are, `"auto"` for zero-sum
        payoffs where the goal values of two players have a constant sum.
      form: how the propnet is lowered to JAX operations: `"rolled"`, `"levelled"`, `"straight"`, or `"auto"` for the
        one that suits the device.
      max_steps: joint actions after which a match is terminated as unplayable; 0 for no limit.
      track: what states keep of the past: `"info_key"`, `"percepts"`, `"actions"`, or several of them.
      gdl: 1 or 2 to read the rulesheet as GDL or GDL-II; None to decide it from the text.
      fold_case: whether names that differ only by case are the same.
      within: limits of compiling.

    Returns:
      An `Env`.

    Raises:
      GdlError: if the rulesheet is unusable, or a limit stops its grounding.
      PayoffError: if the goals contradict `payoff`.
      EnvError: if `form`, `max_steps` or `track` is invalid.

    >>> import gdlx
    >>> gdlx.make("kuhn_poker").players
    ('player1', 'player2')
    """
    named = game_spec.resolve(game, rules=rules)
    spec = named.game._replace(gdl=gdl or named.game.gdl, fold_case=fold_case or named.game.fold_case)
    propnet = named._replace(game=spec).compile(within)
    units = game_facts.probe(propnet).payoffs(spec.payoff if payoff == "auto" else payoff)
    return env.Env(propnet, units, form, max_steps, track)  # type: ignore[arg-type]
