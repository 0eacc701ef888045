"""What `gdlx evaluate --bound` shows."""

from typing import TYPE_CHECKING, Any

from gdlx.cli import console

if TYPE_CHECKING:
    from gdlx.solvers import evaluate_requests
    from gdlx.solvers.bounds import estimates

_RESPONDERS = {"learnt": "learns", "local": "looks a move ahead"}


def as_json(bounded: "evaluate_requests.BoundResult") -> dict[str, Any]:
    """What `--bound` adds to the result of `evaluate`."""
    found = bounded.bound
    return {
        "exploitability_bound": found.exploitability,
        "exploitability_bound_interval": None if found.interval is None else list(found.interval),
        "bound": {
            "seconds": found.seconds,
            "interrupted": bounded.interrupted,
            "players": {own.player: _gain_as_json(own) for own in found.improvements},
        },
    }


def _gain_as_json(own: "estimates.Improvement") -> dict[str, Any]:
    return {
        "gain": own.improvement,
        "gain_interval": list(own.interval),
        "response": None if own.chosen is None else own.chosen.method,
        "value": own.value,
        "responses": {
            response.method: {
                "payoff": response.payoff,
                "standard_error": response.standard_error,
                "matches": response.matches,
            }
            for response in own.responses
        },
        "batches": own.batches,
        "information_sets": own.sets,
    }


def show(bounded: "evaluate_requests.BoundResult") -> None:
    import rich.table

    found = bounded.bound
    table = rich.table.Table(box=None, pad_edge=False)
    table.add_column("player")
    for column in ("payoff", *(f"if it {does}" for does in _RESPONDERS.values()), "bound on its gain"):
        table.add_column(column, justify="right")
    for own in found.improvements:
        told = {response.method: f"{response.payoff:.4g} ± {response.standard_error:.2g}" for response in own.responses}
        low, high = own.interval
        table.add_row(
            own.player,
            f"{own.value:.4g}",
            *(told.get(method, "not known") for method in _RESPONDERS),
            f"{own.improvement:.4g}" if own.chosen is None else f"{own.improvement:.4g} ({low:.4g} to {high:.4g})",
        )
    console.say("")
    console.show(table)
    if found.exploitability is not None and found.interval is not None:
        low, high = found.interval
        console.say(
            f"lower bound on exploitability {found.exploitability:.4g} (95 %: {low:.4g} to {high:.4g}); "
            f"so it is {max(low, 0.0):.4g} or more, but for bad luck"
        )
    end = ", then interrupted" if bounded.interrupted else ""
    console.say(
        "payoffs are means of matches with standard errors, gains have 95 % intervals; "
        f"{found.seconds:.3g} s of playing{end}"
    )
