"""Reports on invalid or hostile input, the command, and the page in a real browser."""

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from gdlx.experiments.reports import gather, report
from gdlx.experiments.reports.drawing import markup, style
from gdlx.tests.helpers import browser, commands, reports

GDLX = [sys.executable, "-m", "gdlx.cli"]


HOSTILE = """
(role <script>) (role b)
(<= (legal ?p <img/src=x>) (role ?p) (not (true <b>)))
(<= (legal ?p "onload="x) (role ?p) (not (true <b>)))
(<= (next <b>) (does b ?m))
(<= terminal (true <b>))
(<= (goal ?p 50) (role ?p))
"""


def write_hostile(folder: pathlib.Path) -> pathlib.Path:
    """Every name would have an effect if it were not escaped."""
    sheet = folder / "<script>alert(1);'&amp;.gdl"
    sheet.write_text(HOSTILE)
    run = reports.write_run(folder / "<img src=x onerror=alert(2)>", reports.make_metrics([0, 1, 10]), game=str(sheet))
    config = json.loads((run / "config.json").read_text())
    config["versions"] = {"<script>": "</style><script>alert(3)</script>"}
    config["settings"]["alpha"] = ["</pre><script>alert(4)</script>"]
    (run / "config.json").write_text(json.dumps(config))
    (folder / "</li><script>").mkdir(parents=True)
    (folder / "</li><script>" / "config.json").write_text('"<script>alert(5)</script>"')
    return folder


def test_names_are_escaped(tmp_path: pathlib.Path) -> None:
    page = reports.write_and_parse_report(write_hostile(tmp_path))
    for name in ("script", "img", "b", "link", "iframe"):
        assert not list(page.find(name)), name
    every = {attribute for element in page.find("div") for attribute in element.attributes}
    assert not {name for name in every if name.startswith("on")}
    (table, _) = page.find("table", "policy")
    assert {option.text.rpartition(">")[0] + ">" for option in table.find("div", "option")} >= {"<img/src=x>"}
    for text in ("role <script>", "<script>alert(1);'&amp;.gdl", "</style><script>alert(3)", "onerror=alert(2)"):
        assert text in page.text
    ((_, settings, *_),) = reports.rows_of(page)
    assert "</pre><script>alert(4)</script>" in settings
    (left_out,) = [section for section in page.find("section") if section.attributes.get("id") == "left_out"]
    assert "</li><script>" in left_out.text


@pytest.mark.parametrize(
    ("given", "escaped"), [("<&>", "&lt;&amp;&gt;"), ('"', "&quot;"), ("'", "&#x27;"), (markup.Markup("<b>"), "<b>")]
)
def test_only_markup_is_not_escaped(given: str, escaped: str) -> None:
    assert markup.element("p", given) == f"<p>{escaped}</p>"
    assert "<b>" not in markup.element("p", title=given)


def spoil_version(folder: pathlib.Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"format": 999}))


def cut(name: str, part: float) -> Any:
    def spoil(folder: pathlib.Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: int(len(data) * part)])

    return spoil


def put(name: str, data: bytes) -> Any:
    def spoil(folder: pathlib.Path) -> None:
        (folder / name).write_bytes(data)

    return spoil


SPOILT = {
    "another version": (spoil_version, "another version of gdlx"),
    "half a configuration": (cut("config.json", 0.5), "config.json cannot be read"),
    "a list": (put("config.json", b"[1]"), "config.json cannot be read"),
    "very deep": (put("config.json", b"[" * 100_000), "nested more than 50 deep"),
    "no settings": (reports.patch(settings=[]), "config.json cannot be read"),
    "a game that is not text": (reports.patch(game={"spec": [1]}), "its game is not a name"),
    "a game with a zero": (reports.patch(game={"spec": "a\0b/c"}), "its game is not a name"),
    "an unknown algorithm": (reports.patch(algorithm="magic"), "there is no algorithm 'magic'"),
    "half metrics": (cut("metrics.csv", 0.9), "metrics.csv cannot be read"),
    "no metrics": (lambda folder: (folder / "metrics.csv").unlink(), "has no metrics.csv"),
    "empty metrics": (put("metrics.csv", b""), "metrics.csv cannot be read"),
    "metrics in no code": (put("metrics.csv", b"\xff\xfe"), "metrics.csv cannot be read"),
    "only a head": (cut("metrics.csv", 0.3), "metrics.csv cannot be read"),
    "no rows": (put("metrics.csv", b"a,b,c,d,e,value_x,gain_x,value_error_x\n"), "has no metrics yet"),
    "half a policy": (cut("policy.npz", 0.5), "policy.npz cannot be read"),
    "a match": (reports.patch(agents=["uct", "uniform"]), "games between agents"),
}


@pytest.mark.parametrize("case", SPOILT)
def test_unreadable_runs_are_skipped_and_named(tmp_path: pathlib.Path, case: str) -> None:
    spoil, why = SPOILT[case]
    reports.write_run(tmp_path / "good", reports.make_metrics([0, 1, 10]))
    spoil(reports.write_run(tmp_path / "spoilt", reports.make_metrics([0, 1, 10], 2.0)))
    written = report.write([tmp_path], tmp_path / "report.html")
    assert written.runs == 1
    (left,) = written.skipped
    assert left.folder == tmp_path / "spoilt"
    assert why in left.reason
    page = reports.parse_page(tmp_path / "report.html")
    assert len(reports.rows_of(page)) == 1
    (section,) = [section for section in page.find("section") if section.attributes.get("id") == "left_out"]
    assert left.reason in section.text


def test_impossible_numbers(tmp_path: pathlib.Path) -> None:
    for number, row in enumerate(
        ["1,0.1,nan,0,,nan,0,0,nan,nan,,", "-1,0,1,0,,2,0,0,1,1,,", f"{10**400},0,1,0,,2,0,0,1,1,,"]
    ):
        folder = reports.write_run(tmp_path / f"{number}", reports.make_metrics([0, 1]))
        with open(folder / "metrics.csv", "a") as file:
            file.write(f"{row}\n")
    gathered = gather.gather_runs([tmp_path])
    assert not gathered.runs
    assert len(gathered.skipped) == 3


def test_a_run_is_reported_once(tmp_path: pathlib.Path) -> None:
    folder = reports.write_run(tmp_path / "a", reports.make_metrics([0, 1, 10]))
    assert len(gather.gather_runs([tmp_path, folder, tmp_path / "a" / ".." / "a"]).runs) == 1


def test_nothing_to_report(tmp_path: pathlib.Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(report.EmptyReportError, match=r"empty holds no result.*gone is not a folder"):
        report.write([tmp_path / "empty", tmp_path / "gone"], tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_a_run_without_policies_is_reported_without_them(tmp_path: pathlib.Path) -> None:
    (reports.write_run(tmp_path / "a", reports.make_metrics([0, 1, 10])) / "policy.npz").unlink()
    page = reports.write_and_parse_report(tmp_path)
    assert len(reports.rows_of(page)) == 1
    assert "No run has written its policies." in page.text


def test_a_game_that_no_longer_exists_or_has_changed(tmp_path: pathlib.Path) -> None:
    gone = reports.write_run(tmp_path / "gone", reports.make_metrics([0, 1, 10]))
    reports.patch(game={"spec": "nowhere/gone.gdl"})(gone)
    reports.patch(digest="0")(reports.write_run(tmp_path / "other", reports.make_metrics([0, 1, 10]), "cfr"))
    page = reports.write_and_parse_report(tmp_path)
    remarks = " ".join(remark.text for remark in page.find("p", "remark"))
    assert "The game cannot be loaded" in remarks
    assert "other rules than kuhn_poker has now" in remarks
    assert len(reports.charts_of(page)) == 4


def run(*arguments: str, cwd: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*GDLX, *arguments], capture_output=True, text=True, cwd=cwd, check=False)


def test_the_command(tmp_path: pathlib.Path) -> None:
    assert commands.run("solve", "kuhn_poker", "--iterations", "30", "--quiet", cwd=tmp_path).returncode == 0
    spoil_version(reports.write_run(tmp_path / "results" / "x", reports.make_metrics([0, 1, 10])))
    ran = run("report", "results", "--json", cwd=tmp_path)
    assert ran.returncode == 0
    output = json.loads(ran.stdout)
    assert output == {
        "report": "report.html",
        "runs": 1,
        "contests": 0,
        "trainings": 0,
        "games": ["kuhn_poker"],
        "left_out": [{"folder": "results/x", "why": output["left_out"][0]["why"]}],
        "bytes": (tmp_path / "report.html").stat().st_size,
    }
    assert ran.stderr.startswith("remark: skipped: results/x has the format of another version")
    ((name, _, error, iterations, *_),) = reports.rows_of(reports.parse_page(tmp_path / "report.html"))
    assert (name, iterations) == ("dcfr", "30")
    exploitability = reports.last_row(tmp_path / "results" / "kuhn_poker" / "dcfr")["exploitability"]
    assert float(error) == pytest.approx(exploitability, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["gone"], 1, "gone is not a folder"),
        (["."], 1, "there is nothing to report on"),
        ([".", "-o", "nowhere/report.html"], 2, "there is no folder nowhere to write report.html into"),
        ([".", "-o", "report.pdf"], 2, "must end in .html"),
        ([], 2, "RESULT"),
    ],
)
def test_wrong_use_of_the_command(tmp_path: pathlib.Path, arguments: list[str], code: int, says: str) -> None:
    ran = commands.run("report", *arguments, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (code, "")
    assert says in ran.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("dark", "width"), [(False, 1400), (True, 1400), (True, 500)])
def test_a_browser_shows_the_curves(tmp_path: pathlib.Path, dark: bool, width: int) -> None:
    browser.find()
    for n in range(3):
        reports.write_run(tmp_path / f"{n}", reports.make_metrics([0, 1, 4, 20, 100, 1000], 10.0**-n), alpha=float(n))
    report.write([tmp_path], tmp_path / "report.html")
    seen = browser.open_page(tmp_path / "report.html", tmp_path, dark=dark, width=width, height=1600)
    assert seen.console_messages == []
    colours = style.DARK if dark else style.LIGHT
    assert browser.count(seen.screenshot, colours["page"]) > seen.screenshot[..., 0].size / 2
    # Two lines across half a page each, more than a pixel thick; legends and tables have far fewer.
    least = [browser.count(seen.screenshot, colours[f"colour{n}"]) for n in range(3)]
    assert min(least) > width / 2
    assert browser.count(seen.screenshot, colours["colour3"]) == 0


def test_a_browser_finds_nothing_to_run_in_a_hostile_report(tmp_path: pathlib.Path) -> None:
    browser.find()
    report.write([write_hostile(tmp_path)], tmp_path / "report.html")
    assert (
        browser.open_page(tmp_path / "report.html", tmp_path, dark=False, width=800, height=600).console_messages == []
    )
    # A script that is not escaped is blocked, with a message.
    text = (tmp_path / "report.html").read_text()
    (tmp_path / "let_through.html").write_text(text.replace("</h1>", "</h1><script>alert(1)</script>", 1))
    (complaint,) = browser.open_page(
        tmp_path / "let_through.html", tmp_path, dark=False, width=800, height=600
    ).console_messages
    assert "Content Security Policy" in complaint
