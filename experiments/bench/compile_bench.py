"""Benchmark `compile`: from rulesheets to simplified propnets: time, memory, sizes, and how cost grows.

Published sheets are read from the folder in GDLX_CORPUS; without it their figures are skipped.
"""

import functools
import math
import os
import pathlib
import statistics
from collections.abc import Iterator

from gdlx.experiments.bench import harness
from gdlx.experiments.bench.measuring import host_machine
from gdlx.propnet import games, library
from gdlx.propnet.circuits import compiler
from gdlx.propnet.grounding import ground
from gdlx.propnet.simulate import straight_line
from gdlx.propnet.syntax import diagnostics, rulesheet

CORPUS = os.environ.get("GDLX_CORPUS", "")

_SECONDS = {"meier.gdl": 1.0, "reversi.kif": 5.0, "amazons_8x8.kif": 20.0, "ENDGAME_S.3357418313.kif": 60.0}
_SIZES = {  # upper bounds on gates and two-input operations
    "blindtictactoe.gdl": (238, 422),
    "connectFour.kif": (431, 814),
    "kriegTTT_5x5.gdl": (549, 767),
    "transit.gdl": (648, 1071),
    "meier.gdl": (467, 827),
}
_GROWING = {  # large enough that the bounded work of proving invariants does not hide the growth of the rest
    "goofspiel": [f"goofspiel:cards={cards}" for cards in (20, 28, 40)],
    "connect_four": [f"connect_four:width={n},height={n}" for n in (16, 28, 50)],
}


def compile_game(game: str) -> None:
    compiler.compile_rulesheet(games.load_rulesheet(game))


def figures() -> Iterator[harness.Figure]:
    yield from _library_figures()
    yield from _growth_figures()
    if os.path.isdir(CORPUS):
        yield from _corpus_figures(pathlib.Path(CORPUS))
    else:
        yield harness.Figure("published sheets", None, "", note="no folder GDLX_CORPUS: skipped")


def _library_figures() -> Iterator[harness.Figure]:
    names = library.names()
    done = sum(_compiles(name) for name in names)
    yield harness.Figure("library games compiled", done, "", better="higher", target=harness.Target(len(names)))


def _growth_figures() -> Iterator[harness.Figure]:
    """The slope of time over ground rules on logarithmic scales: 1 is linear."""
    for family, members in _GROWING.items():
        sheets = [games.load_rulesheet(game) for game in members]
        rules = [len(ground.ground(sheet).heads) for sheet in sheets]
        times = [
            host_machine.best_seconds(functools.partial(compiler.compile_rulesheet, sheet), repeats=2)
            for sheet in sheets
        ]
        slope = statistics.linear_regression(list(map(math.log, rules)), list(map(math.log, times))).slope
        name = f"growth of {family}, {rules[0]} to {rules[-1]} ground rules"
        yield harness.Figure(name, slope, "exponent", target=harness.Target(1.3))


def _corpus_figures(corpus: pathlib.Path) -> Iterator[harness.Figure]:
    for file, bound in _SECONDS.items():
        sheet = games.load_rulesheet(str(corpus / file))
        seconds = host_machine.best_seconds(functools.partial(compiler.compile_rulesheet, sheet), repeats=2)
        yield harness.Figure(f"compile {file}", seconds, "s", target=harness.Target(bound))
        yield from _against_direct(file, sheet)
    amazons = str(corpus / "amazons_8x8.kif")
    peak = max(host_machine.peak_mb(compile_game, amazons), ground.ground(games.load_rulesheet(amazons)).peak_mb)
    yield harness.Figure("memory to compile amazons_8x8.kif", peak, "MB", target=harness.Target(2_048))
    for file, (gates, operations) in _SIZES.items():
        propnet = compiler.compile_rulesheet(games.load_rulesheet(str(corpus / file)))
        yield harness.Figure(f"gates of {file}", propnet.gates, "", target=harness.Target(gates))
        shared = straight_line.share_operations(propnet.as_circuit())
        yield harness.Figure(f"operations of {file}", shared.operations, "", target=harness.Target(operations))
    files = sorted(path for path in corpus.iterdir() if path.suffix in (".gdl", ".kif"))
    done = sum(_compiles(str(path)) for path in files)
    yield harness.Figure("corpus sheets compiled", done, "", better="higher", target=harness.Target(len(files)))


def _against_direct(file: str, sheet: rulesheet.Rulesheet) -> Iterator[harness.Figure]:
    """Grounding of split rules, beside that of a direct translation."""
    split, direct = ground.ground(sheet), ground.ground(sheet, rewrite=False)
    peer = "direct translation"
    rules = len(split.heads), len(direct.heads)
    yield harness.Figure(f"ground rules of {file}", rules[0], "", peer=peer, peer_value=rules[1])
    yield harness.Figure(f"grounding {file}", split.seconds, "s", peer=peer, peer_value=direct.seconds)


def _compiles(game: str) -> bool:
    try:
        compile_game(game)
    except diagnostics.GdlError:
        return False
    return True
