"""Which settings of CFR and of outcome sampling win: a sweep over each, beside what Schlindenbuch (2019) chose.

Prague 2019, section 5.1, Figures 5.1 to 5.12. A choice is judged by the exploitability of the average policies, as a
multiple of the best choice's on the same game, in the geometric mean over games: after the last iteration, and in the
geometric mean over the run.
"""

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gdlx.envs import compilation_cache, game_spec
from gdlx.envs.trees import game_tree
from gdlx.experiments.studies import plots, study_registry
from gdlx.experiments.studies.hyperparameters import choices
from gdlx.experiments.sweeps import config, store
from gdlx.experiments.sweeps import run as sweeping
from gdlx.solvers.runs import result_folder

MINUTES, FULL_MINUTES = 20.0, 1_800.0
FIGURE_FILES = ("hyperparameters_cfr.png", "hyperparameters_mccfr.png", "hyperparameters_candidates.png")
CLOSE = 1.25  # times the best: still among the best
_BURN_IN = 10  # iterations after which a run counts
_PARTS = (0.01, 0.1, 1.0)  # of what all candidates have visited, or of the time all have had

Floats = plots.Floats


class StudyGame(NamedTuple):
    spec: str
    source: str
    name: str  # of the thesis


class StudySize(NamedTuple):
    games: Sequence[StudyGame]
    iterations: int
    sampled_iterations: int  # iterations of those that sample
    batch: int  # trajectories of each
    seeds: int


DEFAULT_SIZE = StudySize(
    (
        StudyGame("goofspiel:cards=5", "Table 5.5", "IIGoofspiel{5}"),
        StudyGame("leduc_poker:raises=4,fold=any,suits=hidden", "Table 5.4", "LeducPoker{100,100,4,3}"),
        StudyGame("leduc_poker:ranks=7,raises=1,fold=any,suits=hidden", "Table 5.4", "LeducPoker{100,100,1,7}"),
        StudyGame("princess_and_monster:turns=5", "Table 5.4", "PrincessAndMonster{5}"),
    ),
    iterations=1_000,
    sampled_iterations=3_000,
    batch=64,
    seeds=8,
)
ORIGINAL = StudySize(
    (
        StudyGame("latent_tictactoe:conflict=kept", "Table 5.1", "LatentTicTacToe{}"),
        StudyGame("goofspiel:cards=6", "Table 5.1", "IIGoofspiel{6}"),
        StudyGame("leduc_poker:ranks=30,raises=3,fold=any,suits=hidden", "Table 5.1", "LeducPoker{100,100,3,30}"),
        StudyGame("princess_and_monster:turns=8", "Table 5.1", "PrincessAndMonster{8}"),
    ),
    iterations=1_000,
    sampled_iterations=1_000,
    batch=4_096,
    seeds=20,
)


class RunCurves(NamedTuple):
    """Of one choice on one game. Axes: N measurements, R runs."""

    iterations: Floats  # [N]
    samples: Floats  # [N] trajectories, 0 of full iterations
    seconds: Floats  # [N, R]
    error: Floats  # [N, R] exploitability in % of the payoff range


RunsByChoice = Mapping[tuple[str, choices.Choice], RunCurves]


class Scores(NamedTuple):
    """Multiples of the best choice's exploitability, over all games. Axes: C choices."""

    ratio: Floats  # [C]
    error: Floats  # [C] its standard error
    rank: list[int]  # [C] from 1


def run(setting: study_registry.StudyConfig) -> Iterator[study_registry.StudyTable]:
    compilation_cache.enable()
    size = scaled_size(setting)
    for figures, picture in ((choices.FULL, FIGURE_FILES[0]), (choices.SAMPLING, FIGURE_FILES[1])):
        found = run_sweep(size, [choice for figure in figures for choice in figure.choices.values()], setting)
        for figure in figures:
            yield _table(figure, size, found)
        _draw_choices(setting.folder / picture, figures, size, found)
    last = run_sweep(size, list(choices.FINAL_CANDIDATES.values()), setting)
    trees_of = {game.spec: game_spec.unroll_game(game_spec.GameSpec(game.spec)) for game in size.games}
    yield _last_table(size, last, trees_of)
    _draw_last(setting.folder / FIGURE_FILES[2], size, last, trees_of)


def scaled_size(setting: study_registry.StudyConfig) -> StudySize:
    """More time is more iterations."""
    size, usual = (ORIGINAL, FULL_MINUTES) if setting.is_full else (DEFAULT_SIZE, MINUTES)
    part = setting.minutes / usual
    iterations, rounds = (
        max(2 * _BURN_IN, round(part * count)) for count in (size.iterations, size.sampled_iterations)
    )
    return size._replace(iterations=iterations, sampled_iterations=rounds)


def make_cells(size: StudySize, choice: choices.Choice, seed: int = 0) -> tuple[config.Cell, ...]:
    """On every game; those that sample with every seed."""
    entry = choices.sweep_entry(choice)
    described = {"games": [game.spec for game in size.games], "iterations": size.iterations, "algorithms": [entry]}
    if isinstance(choice, choices.OutcomeSamplingChoice):
        seeds = list(range(seed, seed + size.seeds))
        described |= {
            "iterations": size.sampled_iterations,
            "seeds": seeds,
            "algorithms": [{**entry, "batch": size.batch}],
        }
    return config.expand_cells(described)


def run_sweep(size: StudySize, wanted: Sequence[choices.Choice], setting: study_registry.StudyConfig) -> RunsByChoice:
    """All choices on all games. What has run before is not run again."""
    by_choice = {choice: make_cells(size, choice, setting.seed) for choice in wanted}
    cells = {cell.name: cell for own in by_choice.values() for cell in own}
    done = 0

    def heard(count: int, note: str) -> None:
        nonlocal done
        done += count
        setting.report(f"{done} of {len(cells)} runs{f', {note}' if note else ''}")

    outcome = sweeping.run_sweep(config.Sweep("hyperparameters", tuple(cells.values())), _sweep(setting), report=heard)
    for name, why in outcome.failed:
        raise config.SweepError(f"{name} failed: {why}")
    kept = store.SweepStore(outcome.folder)
    found = {}
    for game in size.games:
        low, high = game_spec.unroll_game(game_spec.GameSpec(game.spec)).payoff_range
        for choice, own in by_choice.items():
            found[game.spec, choice] = _read(kept, [cell for cell in own if cell.game == game.spec], high - low)
    return found


def _sweep(setting: study_registry.StudyConfig) -> pathlib.Path:
    return setting.folder / "sweep"


def _read(kept: store.SweepStore, cells: Sequence[config.Cell], payoff_range: float) -> RunCurves:
    rows = [result_folder.read_metrics(kept.cell_folder(cell), 2) for cell in cells]
    errors, seconds = (
        np.array([[getattr(row, what) for row in own] for own in rows], float).T for what in ("error", "seconds")
    )
    iterations, samples = (
        np.array([getattr(row, what) for row in rows[0]], float) for what in ("iterations", "samples")
    )
    return RunCurves(iterations, samples, seconds, 100 / payoff_range * errors)


def final_error(runs: RunCurves) -> Floats:
    """[R]"""
    last: Floats = runs.error[-1]
    return last


def mean_error_over_run(runs: RunCurves) -> Floats:
    """[R] the geometric mean over measurements, which are even on a logarithmic axis."""
    mean: Floats = np.exp(np.log(runs.error[runs.iterations >= _BURN_IN]).mean(axis=0))
    return mean


def scores(games: Sequence[Sequence[Floats]]) -> Scores:
    """Of [R] exploitabilities for every game and choice."""
    told = [plots.mean_and_error(np.array(errors)) for errors in games]
    ratio = np.exp(np.mean([np.log(mean / mean.min()) for mean, _ in told], axis=0))
    part = np.sqrt(np.sum([(error / mean) ** 2 for mean, error in told], axis=0)) / len(told)
    rank = np.empty(len(ratio), int)
    rank[np.argsort(ratio, kind="stable")] = np.arange(1, len(ratio) + 1)
    return Scores(ratio, ratio * part, rank.tolist())


def _table(figure: choices.ThesisFigure, size: StudySize, found: RunsByChoice) -> study_registry.StudyTable:
    of_games = [[found[game.spec, choice] for choice in figure.choices.values()] for game in size.games]
    end, whole = (
        scores([[judge(runs) for runs in own] for own in of_games]) for judge in (final_error, mean_error_over_run)
    )
    rows, data = [], []
    for number, name in enumerate(figure.choices):
        told = [plots.mean_and_error(final_error(own[number])) for own in of_games]
        is_chosen = name in figure.chosen
        rows.append(
            (
                name,
                *(_shown(float(mean), float(error)) for mean, error in told),
                _shown(end.ratio[number], end.error[number]),
                str(end.rank[number]),
                f"{whole.ratio[number]:.3g}",
                "chosen" if is_chosen else "",
            )
        )
        data.append(
            {
                "choice": name,
                "exploitability": [float(mean) for mean, _ in told],
                "standard_error": [float(error) for _, error in told],
                "times_best": float(end.ratio[number]),
                "rank": end.rank[number],
                "times_best_over_run": float(whole.ratio[number]),
                "chosen": is_chosen,
            }
        )
    header = ("choice", *(game.name for game in size.games), "times the best", "rank", "over the run", "thesis")
    title = f"Figure {figure.number}, {figure.about}: % of the payoff range. {verdict(figure, end)}"
    return study_registry.StudyTable(title, header, rows, {figure.number: data})


def verdict(figure: choices.ThesisFigure, end: Scores) -> str:
    """Whether what the thesis chose is among the best here."""
    names = list(figure.choices)
    best = names[end.rank.index(1)]
    told = []
    for name in figure.chosen:
        times = end.ratio[names.index(name)] / end.ratio.min()
        is_close = times <= CLOSE
        told.append(f"{name} is {'' if is_close else 'not '}among the best" + (f" ({times:.2f})" if times > 1 else ""))
    return f"Best here: {best}; chosen by the thesis: {'; '.join(told)}"


def _shown(mean: float, error: float) -> str:
    """
    >>> _shown(1.2345, 0.05), _shown(0.00012345, 0.0)
    ('1.23 ± 0.05', '0.000123')
    """
    return f"{mean:.3g} ± {error:.1g}" if error else f"{mean:.3g}"


def nodes_visited(runs: RunCurves, tree: game_tree.GameTree) -> Floats:
    """[N] nodes that were looked at: all of them for every player, or as many as the longest match has."""
    if runs.samples.any():
        return runs.samples * len(tree.counts.nodes)
    return runs.iterations * len(tree.players) * sum(tree.counts.nodes)


def seconds_spent(runs: RunCurves) -> Floats:
    """[N] seconds of a run, all iterations at the same speed: the first ones measure what it costs to begin."""
    seconds: Floats = runs.iterations * (runs.seconds[-1].mean() / runs.iterations[-1])
    return seconds


def interpolate_log_log(x: Floats, y: Floats, wanted: float) -> float:
    """y at a place of x, both on logarithmic axes; not a number before the first.

    >>> round(interpolate_log_log(np.array([1.0, 100.0]), np.array([1.0, 0.01]), 10.0), 6)
    0.1
    """
    return float(np.exp(np.interp(np.log(wanted), np.log(x), np.log(y), left=np.nan)))


def _last_table(
    size: StudySize, found: RunsByChoice, trees_of: Mapping[str, game_tree.GameTree]
) -> study_registry.StudyTable:
    rows, data = [], []
    for game in size.games:
        own = {name: found[game.spec, choice] for name, choice in choices.FINAL_CANDIDATES.items()}
        amounts = [
            {name: nodes_visited(runs, trees_of[game.spec]) for name, runs in own.items()},
            {name: seconds_spent(runs) for name, runs in own.items()},
        ]
        for name, runs in own.items():
            mean = runs.error.mean(axis=1)
            at = []
            for by in amounts:
                common = min(x[-1] for x in by.values())
                at += [interpolate_log_log(by[name], mean, part * common) for part in _PARTS]
            rows.append((game.name, name, *("none yet" if np.isnan(x) else f"{x:.3g}" for x in at)))
            told = [None if np.isnan(x) else x for x in at]
            data.append({"game": game.spec, "candidate": name, "at_visits": told[:3], "at_seconds": told[3:]})
    parts = [f"{100 * part:g} %" for part in _PARTS]
    header = ("game", "candidate", *(f"{part} of visits" for part in parts), *(f"{part} of time" for part in parts))
    title = "Figure 5.12, four candidates: % of the payoff range after as many visits, and after the same time"
    return study_registry.StudyTable(title, header, rows, {"5.12": data})


def _draw_choices(
    path: pathlib.Path, figures: Sequence[choices.ThesisFigure], size: StudySize, found: RunsByChoice
) -> None:
    figure, axes = plots.make_panels(2, 3, width=4.6, height=3.6)
    for place, one in zip(axes, figures, strict=False):
        series = []
        for game in size.games:
            runs = [found[game.spec, choice] for choice in one.choices.values()]
            mean, error = plots.mean_and_error(np.array([final_error(own) for own in runs]))
            series.append(plots.Series(game.name, mean / mean.min(), error / mean.min()))
        plots.plot_choices(place, list(one.choices), series, one.chosen, title=f"{one.number} {one.about}")
    for place in axes[len(figures) :]:
        place.set_axis_off()
    figure.supylabel("exploitability, times that of the best (grey: the thesis's choice)")
    plots.legend_below(figure, axes[0], len(size.games))
    plots.save_figure(path, figure)


def _draw_last(
    path: pathlib.Path, size: StudySize, found: RunsByChoice, trees_of: Mapping[str, game_tree.GameTree]
) -> None:
    figure, axes = plots.make_panels(2, len(size.games), width=3.8, height=3.2)
    for number, game in enumerate(size.games):
        own = {name: found[game.spec, choice] for name, choice in choices.FINAL_CANDIDATES.items()}
        visits = [plots.Line(name, nodes_visited(runs, trees_of[game.spec]), runs.error) for name, runs in own.items()]
        times = [plots.Line(name, seconds_spent(runs), runs.error) for name, runs in own.items()]
        label = "% of the payoff range" if number == 0 else ""
        plots.plot_curves(axes[number], visits, title=game.name, x="visited nodes", y=label)
        plots.plot_curves(axes[len(size.games) + number], times, title="", x="seconds of a run, in batches", y=label)
    plots.legend_below(figure, axes[0], len(choices.FINAL_CANDIDATES))
    plots.save_figure(path, figure)
