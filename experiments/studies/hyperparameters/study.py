"""A sweep over each setting of CFR and of outcome sampling, beside the choices of Schlindenbuch (2019).

Section 5.1, Figures 5.1 to 5.12. The score of a choice is the exploitability of its average policies, divided by that
of the best choice on the same game, in the geometric mean over games: after the last iteration, and in the geometric
mean over the run.
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
CLOSE = 1.25  # scores up to this count as among the best
_BURN_IN = 10  # iterations that do not count
_PARTS = (0.01, 0.1, 1.0)  # fractions of the visits, or of the time, that all candidates have had

Floats = plots.Floats


class StudyGame(NamedTuple):
    spec: str
    source: str
    name: str  # in the thesis


class StudySize(NamedTuple):
    games: Sequence[StudyGame]
    iterations: int
    sampled_iterations: int  # of sampling algorithms
    batch: int  # trajectories per iteration
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
# The games of the thesis; iterations, batches and seeds are ours.
FULL_SIZE = StudySize(
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
    """The runs of one choice on one game. Axes: N measurements, R runs."""

    iterations: Floats  # [N]
    samples: Floats  # [N] trajectories, 0 for full CFR
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
        runs = run_sweep(size, [choice for figure in figures for choice in figure.choices.values()], setting)
        for figure in figures:
            yield _table(figure, size, runs)
        _draw_choices(setting.folder / picture, figures, size, runs)
    last = run_sweep(size, list(choices.FINAL_CANDIDATES.values()), setting)
    trees_of = {game.spec: game_spec.unroll_game(game_spec.GameSpec(game.spec)) for game in size.games}
    yield _last_table(size, last, trees_of)
    _draw_last(setting.folder / FIGURE_FILES[2], size, last, trees_of)


def scaled_size(setting: study_registry.StudyConfig) -> StudySize:
    """The size of the study, with iterations in proportion to its time."""
    size, default_minutes = (FULL_SIZE, FULL_MINUTES) if setting.is_full else (DEFAULT_SIZE, MINUTES)
    scale = setting.minutes / default_minutes
    iterations, rounds = (
        max(2 * _BURN_IN, round(scale * count)) for count in (size.iterations, size.sampled_iterations)
    )
    return size._replace(iterations=iterations, sampled_iterations=rounds)


def make_cells(size: StudySize, choice: choices.Choice, seed: int = 0) -> tuple[config.Cell, ...]:
    """The cells of a choice: every game, and for sampling every seed."""
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


def run_sweep(
    size: StudySize, requested: Sequence[choices.Choice], setting: study_registry.StudyConfig
) -> RunsByChoice:
    """Runs all choices on all games, and returns their curves. Finished cells do not run again."""
    by_choice = {choice: make_cells(size, choice, setting.seed) for choice in requested}
    cells = {cell.name: cell for choice_cells in by_choice.values() for cell in choice_cells}
    done = 0

    def report(count: int, note: str) -> None:
        nonlocal done
        done += count
        setting.report(f"{done} of {len(cells)} runs{f', {note}' if note else ''}")

    outcome = sweeping.run_sweep(config.Sweep("hyperparameters", tuple(cells.values())), _sweep(setting), report=report)
    for name, reason in outcome.failed:
        raise config.SweepError(f"{name} failed: {reason}")
    results = store.SweepStore(outcome.folder)
    runs = {}
    for game in size.games:
        low, high = game_spec.unroll_game(game_spec.GameSpec(game.spec)).payoff_range
        for choice, choice_cells in by_choice.items():
            game_cells = [cell for cell in choice_cells if cell.game == game.spec]
            runs[game.spec, choice] = _read(results, game_cells, high - low)
    return runs


def _sweep(setting: study_registry.StudyConfig) -> pathlib.Path:
    return setting.folder / "sweep"


def _read(results: store.SweepStore, cells: Sequence[config.Cell], payoff_range: float) -> RunCurves:
    rows = [result_folder.read_metrics(results.cell_folder(cell), 2) for cell in cells]
    errors, seconds = (
        np.array([[getattr(row, what) for row in run_rows] for run_rows in rows], float).T
        for what in ("error", "seconds")
    )
    iterations, samples = (
        np.array([getattr(row, what) for row in rows[0]], float) for what in ("iterations", "samples")
    )
    return RunCurves(iterations, samples, seconds, 100 / payoff_range * errors)


def final_error(runs: RunCurves) -> Floats:
    """[R] after the last iteration."""
    last: Floats = runs.error[-1]
    return last


def mean_error_over_run(runs: RunCurves) -> Floats:
    """[R] the geometric mean over measurements, which are evenly spaced on a logarithmic axis."""
    mean: Floats = np.exp(np.log(runs.error[runs.iterations >= _BURN_IN]).mean(axis=0))
    return mean


def scores(games: Sequence[Sequence[Floats]]) -> Scores:
    """The scores of choices from [R] exploitabilities for every game and choice."""
    statistics = [plots.mean_and_error(np.array(errors)) for errors in games]
    ratio = np.exp(np.mean([np.log(mean / mean.min()) for mean, _ in statistics], axis=0))
    relative = np.sqrt(np.sum([(error / mean) ** 2 for mean, error in statistics], axis=0)) / len(statistics)
    rank = np.empty(len(ratio), int)
    rank[np.argsort(ratio, kind="stable")] = np.arange(1, len(ratio) + 1)
    return Scores(ratio, ratio * relative, rank.tolist())


def _table(figure: choices.ThesisFigure, size: StudySize, runs_by_choice: RunsByChoice) -> study_registry.StudyTable:
    of_games = [[runs_by_choice[game.spec, choice] for choice in figure.choices.values()] for game in size.games]
    end, over_run = (
        scores([[judge(runs) for runs in game_runs] for game_runs in of_games])
        for judge in (final_error, mean_error_over_run)
    )
    rows, data = [], []
    for number, name in enumerate(figure.choices):
        statistics = [plots.mean_and_error(final_error(game_runs[number])) for game_runs in of_games]
        is_chosen = name in figure.chosen
        rows.append(
            (
                name,
                *(_shown(float(mean), float(error)) for mean, error in statistics),
                _shown(end.ratio[number], end.error[number]),
                str(end.rank[number]),
                f"{over_run.ratio[number]:.3g}",
                "chosen" if is_chosen else "",
            )
        )
        data.append(
            {
                "choice": name,
                "exploitability": [float(mean) for mean, _ in statistics],
                "standard_error": [float(error) for _, error in statistics],
                "times_best": float(end.ratio[number]),
                "rank": end.rank[number],
                "times_best_over_run": float(over_run.ratio[number]),
                "chosen": is_chosen,
            }
        )
    header = ("choice", *(game.name for game in size.games), "times the best", "rank", "over the run", "thesis")
    title = f"Figure {figure.number}, {figure.about}: % of the payoff range. {verdict(figure, end)}"
    return study_registry.StudyTable(title, header, rows, {figure.number: data})


def verdict(figure: choices.ThesisFigure, end: Scores) -> str:
    """Says whether the choices of the thesis are among the best here."""
    names = list(figure.choices)
    best = names[end.rank.index(1)]
    verdicts = []
    for name in figure.chosen:
        times = end.ratio[names.index(name)] / end.ratio.min()
        is_close = times <= CLOSE
        verdicts.append(
            f"{name} is {'' if is_close else 'not '}among the best" + (f" ({times:.2f})" if times > 1 else "")
        )
    return f"Best here: {best}; chosen by the thesis: {'; '.join(verdicts)}"


def _shown(mean: float, error: float) -> str:
    """
    >>> _shown(1.2345, 0.05), _shown(0.00012345, 0.0)
    ('1.23 ± 0.05', '0.000123')
    """
    return f"{mean:.3g} ± {error:.1g}" if error else f"{mean:.3g}"


def nodes_visited(runs: RunCurves, tree: game_tree.GameTree) -> Floats:
    """[N] nodes visited: all of them for every player, or for each trajectory the length of the longest match."""
    if runs.samples.any():
        return runs.samples * len(tree.counts.nodes)
    return runs.iterations * len(tree.players) * sum(tree.counts.nodes)


def seconds_spent(runs: RunCurves) -> Floats:
    """[N] seconds of a run at its mean speed: those of the first iterations are mostly overhead."""
    seconds: Floats = runs.iterations * (runs.seconds[-1].mean() / runs.iterations[-1])
    return seconds


def interpolate_log_log(x: Floats, y: Floats, target: float) -> float:
    """y at a value of x by linear interpolation on logarithmic axes; NaN before the first.

    >>> round(interpolate_log_log(np.array([1.0, 100.0]), np.array([1.0, 0.01]), 10.0), 6)
    0.1
    """
    return float(np.exp(np.interp(np.log(target), np.log(x), np.log(y), left=np.nan)))


def _last_table(
    size: StudySize, runs_by_choice: RunsByChoice, trees_of: Mapping[str, game_tree.GameTree]
) -> study_registry.StudyTable:
    rows, data = [], []
    for game in size.games:
        candidate_runs = {name: runs_by_choice[game.spec, choice] for name, choice in choices.FINAL_CANDIDATES.items()}
        amounts = [
            {name: nodes_visited(runs, trees_of[game.spec]) for name, runs in candidate_runs.items()},
            {name: seconds_spent(runs) for name, runs in candidate_runs.items()},
        ]
        for name, runs in candidate_runs.items():
            mean = runs.error.mean(axis=1)
            at = []
            for by in amounts:
                common = min(x[-1] for x in by.values())
                at += [interpolate_log_log(by[name], mean, part * common) for part in _PARTS]
            rows.append((game.name, name, *("none yet" if np.isnan(x) else f"{x:.3g}" for x in at)))
            errors = [None if np.isnan(x) else x for x in at]
            data.append({"game": game.spec, "candidate": name, "at_visits": errors[:3], "at_seconds": errors[3:]})
    parts = [f"{100 * part:g} %" for part in _PARTS]
    header = ("game", "candidate", *(f"{part} of visits" for part in parts), *(f"{part} of time" for part in parts))
    title = "Figure 5.12, four candidates: % of the payoff range after as many visits, and after the same time"
    return study_registry.StudyTable(title, header, rows, {"5.12": data})


def _draw_choices(
    path: pathlib.Path, figures: Sequence[choices.ThesisFigure], size: StudySize, runs_by_choice: RunsByChoice
) -> None:
    figure, axes = plots.make_panels(2, 3, width=4.6, height=3.6)
    for place, one in zip(axes, figures, strict=False):
        series = []
        for game in size.games:
            runs = [runs_by_choice[game.spec, choice] for choice in one.choices.values()]
            mean, error = plots.mean_and_error(np.array([final_error(choice_runs) for choice_runs in runs]))
            series.append(plots.Series(game.name, mean / mean.min(), error / mean.min()))
        plots.plot_choices(place, list(one.choices), series, one.chosen, title=f"{one.number} {one.about}")
    for place in axes[len(figures) :]:
        place.set_axis_off()
    figure.supylabel("exploitability, times that of the best (grey: the thesis's choice)")
    plots.legend_below(figure, axes[0], len(size.games))
    plots.save_figure(path, figure)


def _draw_last(
    path: pathlib.Path, size: StudySize, runs_by_choice: RunsByChoice, trees_of: Mapping[str, game_tree.GameTree]
) -> None:
    figure, axes = plots.make_panels(2, len(size.games), width=3.8, height=3.2)
    for number, game in enumerate(size.games):
        candidate_runs = {name: runs_by_choice[game.spec, choice] for name, choice in choices.FINAL_CANDIDATES.items()}
        visits = [
            plots.Line(name, nodes_visited(runs, trees_of[game.spec]), runs.error)
            for name, runs in candidate_runs.items()
        ]
        times = [plots.Line(name, seconds_spent(runs), runs.error) for name, runs in candidate_runs.items()]
        label = "% of the payoff range" if number == 0 else ""
        plots.plot_curves(axes[number], visits, title=game.name, x="visited nodes", y=label)
        plots.plot_curves(axes[len(size.games) + number], times, title="", x="seconds of a run, in batches", y=label)
    plots.legend_below(figure, axes[0], len(choices.FINAL_CANDIDATES))
    plots.save_figure(path, figure)
