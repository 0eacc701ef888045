"""Which names a misspelt one may have meant."""

import pytest

from gdlx.propnet import library
from gdlx.propnet.common.text import suggestions
from gdlx.solvers import algorithms
from gdlx.tests.helpers import paths


@pytest.mark.parametrize(
    ("typed", "known", "meant"),
    [
        ("kuhn", library.names(), "kuhn_poker"),
        ("Kuhn-Poker", library.names(), "kuhn_poker"),
        ("leduc", library.names(), "leduc_poker"),
        ("tictacto", library.names(), "tictactoe"),
        ("cfrplus", algorithms.ALGORITHMS, "cfr+"),
        ("CFR+", algorithms.ALGORITHMS, "cfr+"),
        ("DCFR", algorithms.ALGORITHMS, "dcfr"),
        ("mccfr", algorithms.ALGORITHMS, "os-mccfr"),
        ("os_mccfr", algorithms.ALGORITHMS, "os-mccfr"),
    ],
)
def test_the_likeliest_name_comes_first(typed: str, known: tuple[str, ...], meant: str) -> None:
    assert suggestions.near_names(typed, known)[0] == meant


def test_nothing_is_near_to_nonsense() -> None:
    assert suggestions.near_names("qzx", library.names()) == []
    assert suggestions.is_it("qzx", algorithms.ALGORITHMS) == ""


def test_errors_ask_for_the_name() -> None:
    with pytest.raises(algorithms.UnknownAlgorithmError, match=r"no algorithm 'cfrplus' \(is it cfr\+\?\)"):
        algorithms.find("cfrplus")
    with pytest.raises(library.LibraryError, match="did you mean kuhn_poker"):
        library.get("kuhn")


def test_the_advice_about_a_setting_can_be_followed() -> None:
    for name in ("dcfr", "es-mccfr"):
        with pytest.raises(algorithms.UnknownAlgorithmError, match="os-mccfr and vr-mccfr have it"):
            algorithms.configure(algorithms.find(name), None, {"table": 10})
    assert algorithms.configure(algorithms.find("os-mccfr"), None, {"table": 10}).sampling_config.table == 10


def test_near_names_are_found_in_one_place_only() -> None:
    layers = ("propnet", "envs", "solvers", "nets", "players", "experiments", "cli")
    sources = (path for layer in layers for path in (paths.ROOT / layer).rglob("*.py"))
    users = [path.stem for path in sources if "difflib" in path.read_text(encoding="utf-8")]
    assert users == ["suggestions"]
