"""Output of `gdlx evaluate --bound`."""

from typing import TYPE_CHECKING, Any

from gdlx.cli import console

if TYPE_CHECKING:
    from gdlx.solvers import evaluate_requests
    from gdlx.solvers.bounds import estimates

_RESPONSES = {"learnt": "approximate best response", "local": "local best response"}


def as_json(bounded: "evaluate_requests.BoundResult") -> dict[str, Any]:
    """Fields that `--bound` adds to the JSON output of `evaluate`."""
    bound = bounded.bound
    return {
        "exploitability_bound": bound.exploitability,
        "exploitability_bound_interval": None if bound.interval is None else list(bound.interval),
        "bound": {
            "seconds": bound.seconds,
            "interrupted": bounded.interrupted,
            "players": {improvement.player: _improvement_as_json(improvement) for improvement in bound.improvements},
        },
    }


def _improvement_as_json(improvement: "estimates.Improvement") -> dict[str, Any]:
    return {
        "improvement": improvement.improvement,
        "improvement_interval": list(improvement.interval),
        "response": None if improvement.chosen is None else improvement.chosen.method,
        "value": improvement.value,
        "responses": {
            response.method: {
                "payoff": response.payoff,
                "standard_error": response.standard_error,
                "matches": response.matches,
            }
            for response in improvement.responses
        },
        "batches": improvement.batches,
        "information_sets": improvement.sets,
    }


def show(bounded: "evaluate_requests.BoundResult") -> None:
    bound = bounded.bound
    numbers = ("payoff", *_RESPONSES.values(), "lower bound on improvement")
    rows = []
    for improvement in bound.improvements:
        payoffs = {
            response.method: f"{response.payoff:.4g} ± {response.standard_error:.2g}"
            for response in improvement.responses
        }
        low, high = improvement.interval
        rows.append(
            (
                improvement.player,
                f"{improvement.value:.4g}",
                *(payoffs.get(method, "unknown") for method in _RESPONSES),
                f"{improvement.improvement:.4g}"
                if improvement.chosen is None
                else f"{improvement.improvement:.4g} ({low:.4g} to {high:.4g})",
            )
        )
    console.say("")
    console.show_table(("player", *numbers), rows, numbers)
    if bound.exploitability is not None and bound.interval is not None:
        low, high = bound.interval
        console.say(
            f"lower bound on exploitability {bound.exploitability:.4g} (95 % interval {low:.4g} to {high:.4g}); "
            f"with 95 % confidence it is at least {max(low, 0.0):.4g}"
        )
    end = ", then interrupted" if bounded.interrupted else ""
    console.say(
        "payoffs are means over matches with standard errors, improvements have 95 % intervals; "
        f"{bound.seconds:.3g} s of play{end}"
    )
