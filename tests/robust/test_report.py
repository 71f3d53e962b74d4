"""Pages, notebooks and terminal output without a browser: what is in them, what is escaped, what is refused."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import definetti as dft
from definetti import show
from definetti.cli.main import run
from definetti.errors import FAILURES, Notice
from definetti.inference.trace import MOST
from definetti.model.verdict import WORDS, verdict
from definetti.pages.fragments import text
from definetti.store.writing import document
from definetti.symmetry.picture import group_answers, picture

EXAMPLES = Path(__file__).parents[2] / "examples"
RING = dft.factor_graph([2] * 4, [([i, (i + 1) % 4], [[3, 1], [1, 2]]) for i in range(4)])
TABLE = np.arange(1.0, 13.0).reshape(2, 3, 2)
MIXED = dft.factor_graph({"a": 2, "b": 3, "<b>c</b>": 2}, [(["a", "b", "<b>c</b>"], TABLE)])
SECTIONS = ["verdict", "marginals", "symmetry", "convergence", "comparison", "model", "reproduce"]


class Page(HTMLParser):
    """The elements of a page, in order."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "script":
            self.scripts.append(data)


@pytest.fixture(scope="module")
def sampled() -> dft.Marginals:
    return dft.marginals(RING, ["X0", "X0=1 ^ X1=1"], sampler="gibbs", sweeps=100, chains=8, seed=1)


def test_sections_are_in_the_order_a_reader_asks(sampled: dft.Marginals, tmp_path: Path) -> None:
    page = Page(sampled.report(tmp_path / "p.html", exact=dft.exact(RING, ["X0"])))
    assert [a["id"] for tag, a in page.elements if tag == "section"] == SECTIONS
    data = json.loads(page.scripts[0])
    assert [one["name"] for one in data["convergence"]["series"]][-1] == "X0=1 ^ X1=1"
    assert len(data["comparisons"][0]["rows"]) >= 1


def test_the_policy_allows_this_script_alone(sampled: dft.Marginals, tmp_path: Path) -> None:
    page = Page(sampled.report(tmp_path / "p.html"))
    policy = next(a["content"] for tag, a in page.elements if tag == "meta" and "http-equiv" in a)
    assert policy is not None and "default-src 'none'" in policy and "unsafe" not in policy
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert not [a for _, a in page.elements if "style" in a or any(key.startswith("on") for key in a)]
    assert "eval(" not in page.scripts[1] and "innerHTML" not in page.scripts[1]


def test_names_cannot_leave_their_place(tmp_path: Path) -> None:
    path = dft.exact(MIXED).report(tmp_path / "p.html")
    assert "<b>c" not in path.read_text(encoding="utf-8")
    evil = dft.markov_logic('Smokes(person)\n1 Smokes(x)', evidence='Smokes("</script><script>alert(1)</script>")',
                            domain={"person": 3})  # fmt: skip
    p = dft.marginals(evil, sampler="gibbs", sweeps=20, seed=1)
    assert [tag for tag, _ in Page(p.report(tmp_path / "q.html")).elements].count("script") == 2
    assert "<script>alert" not in p._repr_html_() and "<script>alert" not in dft.symmetries(evil)._repr_html_()
    assert text("a\u202eb<") == "a\\u202eb&lt;"


def test_every_model_has_a_page(tmp_path: Path) -> None:
    """Several values, wide factors, evidence, three arguments, exclusive blocks, ground models, nothing at all."""
    three = dft.markov_logic("R(a,a,a)\nT(a,b!)\n0.5 R(x,y,z)\n1 T(x,+w)", evidence="T(A1,B1)", domain={"a": 2, "b": 3})
    empty = dft.factor_graph([2], [([0], [1, 2])]).condition({"X0": 1})
    answers = [
        dft.exact(MIXED),
        dft.marginals(MIXED.condition({"a": 1}), sampler="gibbs", sweeps=30, chains=4, seed=1),
        dft.marginals(three, sampler="gibbs", sweeps=20, chains=2, seed=1),
        dft.exact(three, symmetries="literals"),
        dft.exact(empty),
        dft.marginals(np.zeros((2, 10, 4), int), model=RING),
    ]
    for p in answers:
        assert len([1 for tag, _ in Page(p.report(tmp_path / "p.html")).elements if tag == "section"]) == 7
        assert "definetti" in p._repr_html_()


def test_files_without_data_say_so(sampled: dft.Marginals, tmp_path: Path) -> None:
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps(sampled.to_json()))
    for file in (bare, dft.save(sampled, tmp_path / "p.csv")):
        page = Page(dft.report(file, tmp_path / "p.html"))
        assert sum("missing" in (a.get("class") or "") for _, a in page.elements) >= 4


def test_a_saved_run_makes_the_same_page(sampled: dft.Marginals, tmp_path: Path) -> None:
    one = sampled.report(tmp_path / "one.html").read_text(encoding="utf-8")
    two = dft.report(dft.save(sampled, tmp_path / "p.json"), tmp_path / "two.html").read_text(encoding="utf-8")
    assert one == two


def test_damaged_files_are_refused(sampled: dft.Marginals, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    good = dft.save(sampled, tmp_path / "p.json").read_text()
    broken = tmp_path / "broken.json"
    changes = (('"series":[', '"series":[3,'), ('"kind":"graph"', '"kind":"logic"'), ('"formulas":[]', '"formulas":4'))
    for old, new in changes:
        assert old in good
        broken.write_text(good.replace(old, new, 1))
        assert run(["report", str(broken), "-o", str(tmp_path / "x.html")]) == 2
        assert "changed by hand" in capfd.readouterr().err and not (tmp_path / "x.html").exists()
    assert run(["report", str(tmp_path / "p.json"), "-o", str(tmp_path / "x.txt")]) == 2
    assert run(["report", str(tmp_path / "none.json"), "-o", str(tmp_path / "x.html")]) == 2
    with pytest.raises(dft.ModelError, match=r"a \.html file"):
        sampled.report(tmp_path / "x.txt")


def test_the_command_writes_a_page(sampled: dft.Marginals, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    dft.save(sampled, tmp_path / "p.json"), dft.save(dft.exact(RING), tmp_path / "t.csv")
    words = [str(tmp_path / "p.json"), str(tmp_path / "p.json"), "--exact", str(tmp_path / "t.csv")]
    assert run(["report", *words, "-o", str(tmp_path / "p.html")]) == 0
    assert "p.html" in capfd.readouterr().out
    assert (tmp_path / "p.html").read_text(encoding="utf-8").count('class="against"') == 2


# --- what a run keeps ------------------------------------------------------------------------------------------------


def test_a_file_that_is_not_trusted_is_not_shown_as_trusted(sampled: dft.Marginals, tmp_path: Path) -> None:
    content = {**document(sampled), "trusted": False, "warnings": []}
    page = dft.report(content, tmp_path / "p.html").read_text(encoding="utf-8")
    assert "Not trusted" in page and "✓ Trusted" not in page and "not why" in page
    del content["orbits"][0]["half_width"]
    (tmp_path / "p.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(dft.ParseError, match="'half_width' is missing"):
        dft.report(tmp_path / "p.json", tmp_path / "p.html")


def test_curves_of_a_mixture_end_at_the_answer() -> None:
    """Each region has its own batches; at every time their mixture is drawn."""
    text = "P(t)\nQ(t)\n0.12 P(x) <=> P(y)\n0.02 P(x)\n0.3 P(x) <=> Q(x)"
    p = dft.marginals(dft.markov_logic(text, domain={"t": 30}), ["P(T1) ^ Q(T1)"], sweeps=100, seed=3)
    shares = [region["share"] for region in p.run["regions"]]
    assert len(shares) == 2 and min(shares) > 0.2
    curves = p.trace.curves
    for k, name in enumerate(p.trace.names):
        found = p.queries.get(name) or next(row for row in p.orbits if row.representative == name)
        assert curves.value[-1, k] == pytest.approx(found.probability, abs=found.half_width / 5)
        assert curves.half_width[-1, k] == pytest.approx(found.half_width, rel=0.5)
        assert p.trace.orbit[k] >= 0.9 * found.half_width
    assert (np.diff(curves.sweeps) > 0).all() and (curves.rhat[-1] < 1.2).all()
    assert curves.half_width[-1, 0] > 0.001  # the weights' uncertainty does not go away with sweeps
    content = document(p)
    assert content["page"]["convergence"]["series"][0]["final"][2] is None
    json.dumps(content, allow_nan=False)


def test_predicates_of_three_arguments_are_drawn_by_slices() -> None:
    """Constant by constant, or class by class; what is too much is named instead."""
    text = "P(t)\nR(t,t,u)\n0.5 P(x)\n0.4 R(x,y,z) => P(x)"
    for sizes in ({"t": 3, "u": 2}, {"t": 60, "u": 90}):
        group = dft.symmetries(dft.markov_logic(text, evidence="P(A)\nR(A,B,C)", domain=sizes))
        found = picture(group_answers(group))
        grids = [one for one in found["predicates"] if one["name"] == "R"]
        assert [one["sorts"] for one in grids] == [["t", "t", "C"], ["t", "t", "U1" if sizes["u"] == 2 else "U1 +88"]]
        assert grids[0]["cells"][0][1] == -1  # R(A,B,C) is observed
        orbits = sorted(group.orbits, key=lambda orbit: -orbit.size)
        last = grids[1]["cells"][-1][-1]
        assert orbits[last].representative.startswith("R(") and found["left_out"] == []
    wide = dft.symmetries(dft.markov_logic("S(t,t,t,t)\n0.5 S(x,y,z,w)\n0.1 S(x,x,A,B)", domain={"t": 30}))
    assert picture(group_answers(wide))["left_out"] == ["S"]


def test_curves_end_at_the_answer(sampled: dft.Marginals) -> None:
    trace, curves = sampled.trace, sampled.trace.curves
    row = sampled.orbits[0]
    at = trace.names.index(row.representative)
    assert curves.sweeps[-1] == 100 and curves.value[-1, at] == pytest.approx(row.probability, abs=1e-12)
    assert curves.rhat[-1, at] == pytest.approx(row.rhat)
    assert trace.half_width[at] == row.half_width
    assert trace.warm_lengths.sum() == sampled.run["burn_in"]


def test_at_most_two_hundred_orbits_are_kept() -> None:
    model = dft.factor_graph([2] * 300, [([i], [1.0, 1.0 + i]) for i in range(300)])
    p = dft.marginals(model, ["X7", "X299"], sampler="gibbs", symmetries=None, sweeps=20, chains=4, seed=1)
    kept = p.trace
    assert len(kept.names) == MOST == len(set(kept.names)) and {"X7", "X299"} <= set(kept.names)
    widest = max(p.orbits, key=lambda row: row.half_width or 0)
    assert widest.representative in kept.names


# --- terminal --------------------------------------------------------------------------------------------------------


def test_a_verdict_says_why_and_what_next() -> None:
    assert set(WORDS) >= FAILURES
    assert verdict([("a", 0.01), ("b", [0.02, 0.03, None])]).line == "trusted: half-widths are not known"
    assert verdict([("a", 0.0)]).line == "trusted: every number is exact"
    assert verdict([("a", 0.0)], method="lifted").line == "trusted: exact by lifted"
    doubt = verdict(
        [("a", 0.5)],
        [Notice("few-samples", "…"), Notice("note", "…")],
        None,
        {"sweeps": 50, "advice": "try --sweeps 200"},
    )
    assert not doubt.trusted and doubt.half_width == 0.5
    assert doubt.line.startswith("NOT TRUSTED: there are too few draws") and doubt.line.endswith("try --sweeps 200")


@pytest.mark.parametrize("command", ["marginals", "exact"])
def test_the_verdict_is_the_last_line(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    more = ["--sampler", "gibbs", "--sweeps", "3", "--seed", "1", "--plot"] if command == "marginals" else []
    code = run([command, str(EXAMPLES / "grid.uai"), "--query", "X0", *more])
    last = capfd.readouterr().out.splitlines()[-1]
    assert last.startswith("trusted: exact by" if command == "exact" else "NOT TRUSTED: ")
    assert code == (0 if command == "exact" else 1)


def test_effective_draws_are_never_more_than_draws() -> None:
    assert show.effective(4e9, 16_000) == "16,000" and show.gain(4e9, 16_000) == "×250,000"
    assert show.effective(120.4, 16_000) == "120" and show.gain(120.4, 16_000) == ""
    assert show.effective(None, 10) == "–" and show.gain(None, 10) == "" and show.gain(25.0, 10) == "×2.5"


@pytest.mark.parametrize("width", [30, 44, 70, 200])
def test_tables_fit(width: int) -> None:
    head = ["orbit of", "size", "probability", "± 95 %", "R-hat", "eff. draws", "gain"]
    rows = [["Friends(Alexander,Bartholomew)", "1", "0.4312", "0.0003", "1", "16,000", "×92"]] * 3
    lines = show.table(head, rows, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert ("gain" in lines[0]) == (width >= 70) and ("Friends(Alexander,Bartholomew)" in lines[2]) == (width == 200)


def test_a_plot_shows_every_interval(capfd: pytest.CaptureFixture[str]) -> None:
    from definetti.cli.interval_plot import draw

    rows = dft.marginals(MIXED, sampler="gibbs", sweeps=50, chains=4, seed=1).orbits
    draw([(row.representative, row.size, row) for row in rows])
    out = capfd.readouterr().out
    assert out.count("●") == 5 and "b=2" in out and "linear axis" in out and "\x1b" not in out
    rare = dft.exact(dft.factor_graph([2, 2], [([0], [1, 1e-5]), ([1], [1, 1])]))
    draw([(row.representative, row.size, row) for row in rare.orbits])
    assert "logit axis" in capfd.readouterr().out


# --- notebooks -------------------------------------------------------------------------------------------------------


def test_charts_save(sampled: dft.Marginals, tmp_path: Path) -> None:
    from definetti.pages.style import save_chart

    town = dft.read(EXAMPLES / "smokers.mln", evidence=EXAMPLES / "town.db")
    charts = [sampled.plot(), sampled.plot(scale="logit"), sampled.plot_convergence(), dft.symmetries(RING).plot(),
              dft.symmetries(town).plot(), dft.quotient(RING).plot()]  # fmt: skip
    for chart in charts:
        save_chart(chart, tmp_path / "chart.svg")
        assert (tmp_path / "chart.svg").read_text(encoding="utf-8").startswith("<svg")
    save_chart(charts[0], tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(dft.ModelError, match="linear or logit"):
        sampled.plot(scale="log")
    with pytest.raises(dft.ModelError, match="not sampled"):
        dft.exact(RING).plot_convergence()


def test_nouns_have_one_line_and_html(sampled: dft.Marginals, tmp_path: Path) -> None:
    saved = dft.load(dft.save(sampled, tmp_path / "p.json"))
    draws = dft.sample(RING, sampler="gibbs", chains=2, draws=3, seed=1)
    for noun in (sampled, sampled["X0"], saved, RING, dft.symmetries(RING), dft.quotient(RING), draws):
        assert "\n" not in repr(noun) and noun._repr_html_().startswith('<div class="definetti">')
    assert re.search(r"largest half-width 0\.\d", repr(sampled))


def test_a_notebook_draws_its_own_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for IPython: what is sent to the cell."""
    import sys
    import types

    class ZMQInteractiveShell: ...

    class Handle:
        sent: list[str] = []  # noqa: RUF012

        def update(self, html: str) -> None:
            self.sent.append(html)

    top, below = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    top.get_ipython = ZMQInteractiveShell  # type: ignore[attr-defined]
    below.HTML, below.display = str, lambda html, display_id: Handle()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", top)
    monkeypatch.setitem(sys.modules, "IPython.display", below)
    dft.marginals(RING, sampler="gibbs", sweeps=50, chains=4, seed=1, progress=True)
    assert "<progress" in Handle.sent[0] and Handle.sent[-1] == ""
