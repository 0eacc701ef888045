"""Output of `gdlx solve --dry-run`, and the line that says what was chosen."""

import math
from typing import TYPE_CHECKING, Any

from gdlx.cli import console

if TYPE_CHECKING:
    from gdlx.solvers import plan


def as_json(choice: "plan.Choice") -> dict[str, Any]:
    """Fields of the JSON output of `solve` that say what was chosen."""
    return {"method": choice.method, "algorithm": choice.algorithm, "reason": choice.reason}


def say_choice(options: console.Options, choice: "plan.Choice") -> None:
    """Print in one line what was chosen and why, unless `--quiet` or `--json`."""
    from gdlx.solvers import plan

    if not options.json and not options.quiet:
        console.say(f"chosen: {plan.describe(choice)}")


def show(options: console.Options, planned: "plan.Plan") -> None:
    """Print a plan."""
    from gdlx.solvers import plan

    if options.json:
        console.emit(planned.to_json())
        return
    choice = planned.choice
    console.say(f"{planned.game}: {plan.describe(choice, planned.algorithm)}")
    width = max(map(len, planned.sizes), default=0)
    console.say(*(f"  {name:{width}}  {interval}" for name, interval in planned.sizes.items()))
    if choice.method is not None:
        console.say(f"memory: {_range(planned.memory, 2**30)} GiB", f"time: {_time(planned)}")
    if choice.fallback is not None:
        console.say(f"if that is too large after all: {plan.describe_method(choice.fallback)}")
    if planned.problem:
        console.say(f"problem: {console.in_options(planned.problem)}")
    elif choice.advice:
        console.say(f"to know: {console.in_options(choice.advice)}")
    console.say("estimates are from random play, with their intervals; nothing was solved or written")


def _time(planned: "plan.Plan") -> str:
    seconds = _range(planned.seconds, 1)
    if planned.choice.method == "sampling":
        return f"{seconds} s of sampling and of looking for a bound; --time changes that"
    if planned.iteration is None:
        return f"{seconds} s"
    return f"{seconds} s until the first iteration, then {_range(planned.iteration, 1)} s for each"


def _range(interval: "plan.Interval", unit: float) -> str:
    low, estimate, high = (f"{number / unit:.2g}" for number in (interval.low, interval.estimate, interval.high))
    if low == high:
        return estimate
    return f"about {estimate} ({low} to {high if math.isfinite(interval.high) else 'unknown'})"
