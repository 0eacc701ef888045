"""How a belief is computed, within which limits, and what is reported of it; errors where there is none."""

from typing import Literal, NamedTuple

from gdlx.envs.packed import packed_env
from gdlx.envs.views import history
from gdlx.propnet.common import errors

BeliefMethod = Literal["auto", "enumerate", "guided", "sat", "particles", "rejection"]


class ImpossiblePerceptsError(errors.UserError, ValueError):
    """Percepts that are impossible under the rules."""


class TooManyStatesError(errors.UserError, ValueError):
    """More joint actions in a step than enumeration is allowed to consider."""


class NoConsistentStateError(errors.UserError, RuntimeError):
    """Sampling did not find a consistent state. One may exist."""


class BeliefBudget(NamedTuple):
    """Limits on the work of computing a belief."""

    size: int = 1_024  # games to sample
    states: int = 2**12  # maximal number of joint actions of a step to enumerate, or of histories to list
    tries: int = 2**20  # maximal number of games that sampling starts
    merged: int = 2**17  # maximal number of histories after a choice, where those with equal futures are merged
    seconds: float = 5.0  # of sampling with guidance, approximately, and of the SAT solver


class Report(NamedTuple):
    """How a belief was computed. `tried` counts joint actions of the last step for enumeration, else games started.

    Attributes:
      method: How the states were found.
      requested: Games that were asked for; for enumeration, the states that there are.
      tried: What was looked at.
      accepted: How many of those were consistent.
      likelihood: The probability of the player's observations, given its own actions.
      histories: How many histories are consistent, exactly; None if they were not counted.
      distinct: Distinct states with the information of all players in the belief.
      complete: Whether these are all there are.
      effective_sample_size: (sum of weights)^2 / sum of weights^2, over distinct states. Far below `requested` it
        shows that a sampled belief has collapsed.
      biased: Whether nothing is known of how the states were selected; so found by a SAT solver that did not finish.
    """

    method: BeliefMethod
    requested: int
    tried: int
    accepted: int
    likelihood: float
    histories: int | None = None
    distinct: int = 0
    complete: bool = False
    effective_sample_size: float = 0.0
    biased: bool = False

    @property
    def collapsed(self) -> bool:
        """Whether a sample is worth less than a sixteenth of its size, although there may be more states."""
        return not self.complete and self.effective_sample_size < min(self.requested, self.histories or 2**62) / 16

    def __str__(self) -> str:
        remarks = (", biased" if self.biased else "") + (", collapsed" if self.collapsed else "")
        return f"{self.method}: {self.accepted:,} of {self.tried:,}, probability {self.likelihood:.3g}{remarks}"


def describe_event(view: history.ActionObservationHistory, event: history.Event) -> str:
    """What a player did and perceived in one joint action, in words."""
    move, percepts = view.event_names(event)
    perceived = ", ".join(percepts) or "nothing"
    legal = ", ".join(view.game.propnet.players[view.player].moves[n] for n in event.legal)
    return f"it did {move}, perceived {perceived}, and then {f'may {legal}' if legal else 'has no legal move'}"


def impossible_message(view: history.ActionObservationHistory, event: history.Event) -> str:
    """Why an event after a view is impossible."""
    return (
        f"the rules of {view.game.name} do not allow what was reported to {view.game.players[view.player]} after joint "
        f"action {view.step + 1}: {describe_event(view, event)}. All earlier events are consistent with the rules; "
        "check that the match uses the same rules, and that no percepts were lost"
    )


def wrong_move_message(view: history.ActionObservationHistory, event: history.Event) -> str:
    """Why a player cannot have made a move."""
    role = view.game.propnet.players[view.player]
    legal = ", ".join(role.moves[n] for n in view.legal) or "none"
    return (
        f"{role.name} cannot have done {role.moves[event.move]} in joint action {view.step + 1} of {view.game.name}: "
        f"its legal moves were {legal}"
    )


def wrong_start_message(game: packed_env.PackedEnv, view: history.ActionObservationHistory) -> str:
    """Why a match cannot have started with these legal moves."""
    role = view.game.propnet.players[view.player]
    reported = ", ".join(role.moves[n] for n in view.first) or "none"
    return (
        f"the legal moves reported to {role.name} before joint action 1 of {game.env.name} are {reported}, which "
        "differs from the rules; check that the match uses the same rules"
    )


def no_state_message(view: history.ActionObservationHistory, tried: str) -> str:
    """What was tried without finding a state."""
    return (
        f"none of {tried} of {view.game.name} is consistent with the history of "
        f"{view.game.players[view.player]} after joint action {view.step} ({_last_event(view)}); this is improbable, "
        "but was not found to be impossible. Sample more games, or allow enumeration more states"
    )


def _last_event(view: history.ActionObservationHistory) -> str:
    return describe_event(view, view.events[-1]) if view.events else "before the first move"
