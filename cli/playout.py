"""The command `playout`: simulate random play."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gdlx.cli import console, loading, shared_options
from gdlx.envs import devices
from gdlx.propnet.common import interrupts

if TYPE_CHECKING:
    from gdlx.envs.packed import sharded_playouts

_WORD = 32
_FIRST_STEPS = 8
_MAX_GAMES, _BYTES_PER_GAME = 2**28, 32
_ENOUGH = 20  # mean match lengths to play, so that matches still running at the end do not bias the means


def playout(
    context: typer.Context,
    game: shared_options.Game,
    batch: Annotated[
        int, typer.Option(min=1, help="Games played in parallel; rounded up to a multiple of 32.")
    ] = 262_144,
    seconds: Annotated[float, typer.Option(min=0.0, help="Approximate time of play, after compiling.")] = 5.0,
    payoff: shared_options.Payoff = "auto",
    max_steps: Annotated[int, typer.Option(min=1, help="Stop a game after this many joint actions.")] = 10_000,
    *,
    compiling: shared_options.Compiling,
) -> None:
    """Simulate random play at full speed: states per second, mean length, mean rewards.

    Means are over the matches that ended in time. If that is not much longer than a match, they are biased to short
    matches.
    """
    options = console.options(context)
    if batch > _MAX_GAMES:
        raise typer.BadParameter(
            f"--batch {batch:,} games would need about {batch * _BYTES_PER_GAME / 2**30:,.0f} GiB; "
            f"at most {_MAX_GAMES:,} are possible"
        )
    devices.use_one_device_per_core()
    started = time.perf_counter()
    propnet = loading.load_propnet(options, game, compiling.gdl, compiling.fold_case, compiling.limits)

    from gdlx.envs import compilation_cache, game_facts, payoffs
    from gdlx.envs.packed import sharded_playouts

    compilation_cache.enable()
    units = game_facts.probe(propnet, options.seed).payoffs(payoff)
    play = sharded_playouts.ShardedPlayout(propnet, max_steps, -(-batch // _WORD))
    stats = play.start(options.seed, steps=_FIRST_STEPS)
    ready = time.perf_counter() - started
    start, elapsed, interrupted = time.perf_counter(), 0.0, False
    try:
        with console.progress(options, f"playing {game}", None) as advance:
            while elapsed < seconds or not stats.states:
                # A tenth of the time per call: frequent enough for progress, rare enough to cost nothing.
                rate = stats.states / elapsed if stats.states else 0.0
                steps = max(_FIRST_STEPS, int(rate * min(seconds, 10.0) / 10 / (play.words * _WORD)))
                stats = play.advance(stats, max(1, min(steps, 2**31 // (play.words * _WORD))))
                elapsed = time.perf_counter() - start
                advance(f"{stats.states / elapsed / 1e6:.1f} million states/s")
    except KeyboardInterrupt:
        if not stats.states:
            raise
        interrupted = True
    if stats.contradicts_zero_sum(propnet, units):
        raise payoffs.PayoffError(
            f"the goals of {game} had the sum {2 * units.offset:g} in the first matches, but not in all; "
            "use --payoff goal"
        )
    result: dict[str, Any] = stats.summary(propnet, units) | {
        "game": game,
        "batch": play.words * _WORD,
        "states": stats.states,
        "seconds": elapsed,
        "states_per_second": stats.states / elapsed,
        "ready_seconds": ready,
        "interrupted": interrupted,
    }
    played = stats.states / result["batch"]
    is_biased = result["mean_length"] is None or played < _ENOUGH * result["mean_length"]
    result["biased_to_short_matches"] = is_biased
    if options.json:
        console.emit(result)
    else:
        _show(result, stats, max_steps)
        if batch != result["batch"]:
            console.say(
                f"  {result['batch']:,} games were played in parallel, not {batch:,}: a multiple of 32 on each core"
            )
        if is_biased:
            console.say(
                f"  means may be biased to short matches: only {played:,.0f} joint actions were played in each game; "
                "use more --seconds or a smaller --batch"
            )
    if interrupted:
        raise typer.Exit(interrupts.exit_code())


def _show(result: dict[str, Any], stats: "sharded_playouts.PlayoutStats", max_steps: int) -> None:
    console.say(
        f"{result['game']}: {result['states_per_second'] / 1e6:.1f} million states/s ({stats.states:,} states in "
        f"{result['seconds']:.1f} s, ready after {result['ready_seconds']:.1f} s)"
        + (", interrupted" if result["interrupted"] else "")
    )
    length = result["mean_length"]
    console.say(
        f"  matches      {stats.terminals:,}"
        + ("" if length is None or not stats.terminals else f", {length:.2f} joint actions on average")
    )
    for role, reward in result["mean_rewards"].items():
        shown = "-" if reward is None else f"{reward:.4f}"
        console.say(f"  {role:<12} mean {'payoff' if result['zero_sum'] else 'goal'} {shown}")
    for what, count in (
        ("states without a legal move for some role", stats.unplayable),
        (f"games stopped after {max_steps} joint actions", stats.truncated),
        ("terminal states with several goal values or none", stats.multiple_goals + stats.no_goal),
    ):
        if count:
            console.say(f"  {count:,} {what}")
    if stats.unplayable:
        console.say(f"  `gdlx check --play {result['game']}` shows such a state, and what to add to the rules")
