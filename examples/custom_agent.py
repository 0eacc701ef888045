"""An agent of your own against one of gdlx: python examples/custom_agent.py"""

import dataclasses

import gdlx
from gdlx import players


@dataclasses.dataclass(frozen=True)
class Cautious:
    """Folds whenever it can; otherwise plays the first legal move."""

    name: str = "cautious"

    def start_match(self, context: players.PlayerContext, clock: players.Clock) -> "CautiousPlayer":
        return CautiousPlayer(context.arena.env.propnet.players[context.player].moves)


@dataclasses.dataclass
class CautiousPlayer:
    """One player in one match. A history has the legal moves, and all that the player has done and perceived."""

    action_names: tuple[str, ...]

    def choose(self, history: gdlx.envs.ActionObservationHistory, clock: players.Clock) -> int:
        names = {self.action_names[action]: action for action in history.legal}
        return names.get("fold", history.legal[0])


def main() -> players.MatchResult:
    result = players.compete("kuhn_poker", [Cautious(), "random"], games=200)
    for score in result.scores:
        print(f"{score.agent}: mean payoff {score.overall.payoff}")
    return result


if __name__ == "__main__":
    main()
