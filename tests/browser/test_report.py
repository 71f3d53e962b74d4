"""The report in a real browser: it loads from disk alone, and its controls do what they say."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

import definetti as dft

pytestmark = pytest.mark.browser

EXAMPLES = Path(__file__).parents[2] / "examples"
EVIL = "<script>document.title='run'</script>"


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A grid with its truth, a town, a town whose names attack the page, and a run that is not to be trusted."""
    folder = tmp_path_factory.mktemp("pages")
    grid, town = dft.read(EXAMPLES / "grid.uai"), dft.read(EXAMPLES / "smokers.mln", evidence=EXAMPLES / "town.db")
    options: dict[str, Any] = {"sampler": "gibbs", "seed": 1}
    sampled = dft.marginals(grid, ["X0", "X0=1 ^ X1=1"], sweeps=300, **options)
    evil = dft.markov_logic(
        "Smokes(person)\nFriends(person,person)\n1 Smokes(x)\n0.5 Friends(x,y) ^ Smokes(x) => Smokes(y)",
        evidence=f'Smokes("{EVIL}")\nSmokes("\\"><img src=x onerror=alert(1)>")',
        domain={"person": 5},
    )
    third = dft.markov_logic("P(t)\nR(t,t,u)\n0.5 P(x)\n0.4 R(x,y,z) => P(x)", evidence="P(A)", domain={"t": 4, "u": 2})
    agree = dft.markov_logic("P(t)\nQ(t)\n0.12 P(x) <=> P(y)\n0.02 P(x)\n0.3 P(x) <=> Q(x)", domain={"t": 30})
    same = [[3.0, 1.0, 1.0], [1.0, 3.0, 1.0], [1.0, 1.0, 3.5]]
    colours = dft.factor_graph(
        {"first colour": 3, "second": 3, "third": 3}, [(["first colour", "second"], same), (["second", "third"], same)]
    )
    short = dft.marginals(dft.read(EXAMPLES / "grid.uai"), sweeps=4, **options)
    made = {
        "grid": sampled.report(folder / "grid.html", exact=dft.exact(grid, ["X0", "X0=1 ^ X1=1"])),
        "town": dft.marginals(town, sweeps=300, **options).report(folder / "town.html"),
        "evil": dft.marginals(evil, sweeps=100, **options).report(folder / "evil.html"),
        "doubtful": short.report(folder / "doubtful.html"),
        "three": dft.marginals(third, sweeps=100, **options).report(folder / "three.html"),
        "potts": dft.marginals(colours, sweeps=100, **options).report(folder / "potts.html"),
        "modes": dft.marginals(agree, sweeps=200, seed=1).report(folder / "modes.html"),
    }
    assert not short.trusted
    table = dft.save(sampled, folder / "grid.csv")
    made["table"] = dft.report(table, folder / "table.html")
    return made


def load(browser: Any, page: Path) -> None:
    browser.get_log("browser"), browser.get_log("performance")  # what was before is not ours
    browser.get(page.as_uri())
    assert browser.execute_script("return document.documentElement.dataset.ready") == "yes"


def hover(browser: Any, element: Any, lit: str) -> list[Any]:
    """Points at an element until something is lit; a scrolled page takes a moment to notice where the pointer is."""
    from selenium.webdriver import ActionChains
    from selenium.webdriver.support.wait import WebDriverWait

    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)

    def pointed(_: Any) -> list[Any]:
        ActionChains(browser).move_by_offset(1, 0).move_to_element(element).perform()
        return browser.find_elements("css selector", lit)

    return WebDriverWait(browser, 10).until(pointed)


def column(browser: Any, key: str) -> list[str]:
    rows = "[...document.querySelectorAll('#orbits tbody tr')].filter(r => !r.hidden)"
    return browser.execute_script(f"return {rows}.map(r => r.dataset[arguments[0]])", key)


@pytest.mark.parametrize("name", ["grid", "town", "evil", "doubtful", "table", "three", "modes"])
def test_a_page_needs_nothing_but_itself(browser: Any, pages: dict[str, Path], name: str) -> None:
    load(browser, pages[name])
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    sent = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [m["params"]["request"]["url"] for m in sent if m["method"] == "Network.requestWillBeSent"]
    assert {url.split(":")[0] for url in urls} <= {"file", "data"} and sum(u.startswith("file") for u in urls) == 1
    assert pages[name].stat().st_size < 2_000_000
    policy = browser.find_element("css selector", "meta[http-equiv]").get_attribute("content")
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy


def test_names_are_shown_and_not_run(browser: Any, pages: dict[str, Path]) -> None:
    load(browser, pages["evil"])
    assert browser.title.endswith("definetti")
    assert EVIL in browser.find_element("tag name", "body").text
    assert browser.find_elements("css selector", "img") == []
    source = pages["evil"].read_text(encoding="utf-8")
    assert "<script>document" not in source and "<img" not in source


def test_columns_sort_both_ways(browser: Any, pages: dict[str, Path]) -> None:
    load(browser, pages["grid"])
    button = browser.find_element("css selector", "th button[data-key=p]")
    button.click()
    down = [float(p) for p in column(browser, "p")]
    assert down == sorted(down, reverse=True) and len(down) == 21
    button.click()
    assert [float(p) for p in column(browser, "p")] == down[::-1]
    assert button.find_element("xpath", "..").get_attribute("aria-sort") == "ascending"
    browser.find_element("css selector", "th button[data-key=name]").click()
    assert column(browser, "name")[:4] == ["X0", "X1", "X2", "X3"]


def test_search_leaves_the_rows_that_match(browser: Any, pages: dict[str, Path]) -> None:
    load(browser, pages["town"])
    browser.find_element("id", "search").send_keys("cancer(c")
    assert column(browser, "name") == ["Cancer(Carl)"]
    assert browser.find_element("id", "found").text == "1 of 11 rows"


def test_hovering_an_orbit_lights_its_members(browser: Any, pages: dict[str, Path]) -> None:
    load(browser, pages["grid"])
    row = browser.find_element("css selector", "#orbits tbody tr[data-name=X1]")
    lit = hover(browser, row, ".picture .member.on")
    assert len(lit) == 8
    names = {e.find_element("css selector", "title").get_attribute("textContent").split(".")[0] for e in lit}
    assert names == {"X1", "X10", "X12", "X23", "X120", "X131", "X133", "X142"}  # the square's eight images
    dim = browser.find_element("css selector", ".picture .member:not(.on)")
    browser.execute_async_script("setTimeout(arguments[0], 200)")
    assert float(dim.value_of_css_property("opacity")) < 0.3
    assert "Orbit of X1: 8 variables" in browser.find_element("id", "said").text
    member = browser.find_element("css selector", ".picture .member")
    (lit_row,) = hover(browser, member, "#orbits tr[data-name=X0].on")
    assert lit_row.get_attribute("data-size") == "4"


def test_members_of_an_atom_orbit_light_up(browser: Any, pages: dict[str, Path]) -> None:
    load(browser, pages["town"])
    row = browser.find_element("css selector", "#orbits tbody tr")
    assert len(hover(browser, row, ".picture rect.member.on")) == int(row.get_attribute("data-size"))


def test_atoms_of_three_arguments_are_drawn_in_slices(browser: Any, pages: dict[str, Path]) -> None:
    load(browser, pages["three"])
    heads = [e.text for e in browser.find_elements("css selector", ".grids h3")]
    assert heads == ["P(t)", "R(t, t, U1)", "R(t, t, U2)"]
    rows = browser.find_elements("css selector", "#orbits tbody tr")
    for row in [r for r in rows if r.get_attribute("data-name").startswith("R(")][:2]:
        assert len(hover(browser, row, ".picture rect.member.on")) == int(row.get_attribute("data-size"))


def test_a_mixture_of_modes_has_curves(browser: Any, pages: dict[str, Path]) -> None:
    load(browser, pages["modes"])
    assert "2 modes were weighed" in browser.find_element("id", "verdict").text
    assert (
        browser.execute_script("return document.querySelector('#running path.line').getAttribute('d')").count("L") > 5
    )
    assert len(browser.find_elements("css selector", "#running path.band")) == 1
    assert len(browser.find_elements("css selector", "#estimators circle.e0")) >= 1


def test_the_axis_switches(browser: Any, pages: dict[str, Path]) -> None:
    load(browser, pages["town"])
    dots = "return [...document.querySelectorAll('#orbits .ci circle')].map(c => parseFloat(c.getAttribute('cx')))"
    logit = browser.execute_script(dots)  # rare events: logit from the start
    assert browser.find_element("css selector", "input[value=logit]").is_selected()
    browser.find_element("css selector", "input[value=linear]").click()
    linear = browser.execute_script(dots)
    assert linear != logit and all(0 <= x <= 100 for x in logit + linear)
    order = sorted(range(len(linear)), key=linear.__getitem__)
    assert [logit[k] for k in order] == sorted(logit)  # both are monotone
    ticks = browser.execute_script("return [...document.querySelectorAll('#axis text')].map(t => t.textContent)")
    assert len(ticks) >= 2


def test_the_keyboard_reaches_every_control(browser: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver import ActionChains, Keys

    load(browser, pages["grid"])
    seen = []
    script = (
        "const e = document.activeElement; return [e.tagName, e.id || e.name || e.dataset.key || e.dataset.name || '']"
    )
    for _ in range(60):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        seen.append(tuple(browser.execute_script(script)))
    assert {("INPUT", "search"), ("INPUT", "axis"), ("BUTTON", "p"), ("TR", "X1"), ("SELECT", "series")} <= set(seen)
    row = browser.find_element("css selector", "#orbits tbody tr[data-name=X5]")
    browser.execute_script("arguments[0].focus()", row)
    assert len(browser.find_elements("css selector", ".picture .member.on")) == 8
    assert float(row.value_of_css_property("outline-width").removesuffix("px")) >= 2
    row.send_keys(Keys.ENTER)
    assert "X5, orbit of 8" in browser.find_element("id", "picked").text


def test_curves_follow_the_choice(browser: Any, pages: dict[str, Path]) -> None:
    load(browser, pages["grid"])
    path = "return document.querySelector('#running path.line').getAttribute('d')"
    first = browser.execute_script(path)
    options = browser.find_elements("css selector", "#series option")
    assert len(options) == 22
    options[3].click()
    assert browser.execute_script(path) != first
    assert len(browser.find_elements("css selector", "#estimators circle.e0")) > 10
    assert len(browser.find_elements("css selector", "#running line.window")) >= 1  # the warm-up
    assert len(browser.find_elements("css selector", ".against circle")) == 22


CONTRAST = """
const linear = (v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
const lum = (c) => { const [r, g, b] = c.map(v => linear(v / 255));
  return .2126 * r + .7152 * g + .0722 * b; };
const parse = (t) => (t.match(/[\\d.]+/g) || []).map(Number);
const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
  if (c.length === 3 || c[3] > 0.99) return c.slice(0, 3); } return [255, 255, 255]; };
const bad = [];
const kinds = 'p, td, th, button, label, legend, h1, h2, h3, li, dt, dd, a, select, input, figcaption, text';
for (const e of document.querySelectorAll(kinds)) {
  if (!e.textContent.trim() || !e.getClientRects().length) continue;
  const style = getComputedStyle(e), of = parse(e.tagName === 'text' ? style.fill : style.color).slice(0, 3);
  const [a, b] = [lum(of), lum(behind(e))].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
  if (ratio < 4.5) bad.push([e.tagName, e.textContent.slice(0, 30), ratio.toFixed(2)]);
}
return bad;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["grid", "doubtful"])
def test_text_has_contrast(browser: Any, pages: dict[str, Path], screenshot: Any, name: str, scheme: str) -> None:
    load(browser, pages[name])
    screenshot(f"{name}-{scheme}", 1280, scheme)
    assert browser.execute_script(CONTRAST) == []


@pytest.mark.parametrize("name", ["grid", "town", "evil"])
def test_a_phone_needs_no_sideways_scrolling(browser: Any, pages: dict[str, Path], screenshot: Any, name: str) -> None:
    load(browser, pages[name])
    screenshot(f"{name}-phone", 390)
    load(browser, pages[name])  # charts are drawn for the width they have
    screenshot(f"{name}-phone", 390)
    wide = browser.execute_script("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide[0] <= wide[1]
    screenshot(f"{name}-desktop", 1280)


def test_values_of_a_variable_have_a_line_each(browser: Any, pages: dict[str, Path], screenshot: Any) -> None:
    """Beside their intervals, and nothing covers anything else, on a phone as on a desktop."""
    load(browser, pages["potts"])
    for width in (1280, 390):
        screenshot(f"potts-{width}", width)
        boxes = """return [...document.querySelectorAll('#orbits tbody tr')].map(r => [...r.children]
            .filter(c => c.getClientRects().length).map(c => [...c.querySelectorAll('.value, svg.ci')])
            .filter(c => c.length === 3).map(c => c.map(v => { const b = v.getBoundingClientRect();
            return [b.left, b.right, b.top + b.height / 2, v.scrollWidth - v.clientWidth]; })))"""
        for row in browser.execute_script(boxes):
            assert len(row) >= 3  # probability, half-width, interval
            for left, right in itertools.pairwise(row[:3]):
                assert all(a[1] <= b[0] + 1 and abs(a[2] - b[2]) < 4 for a, b in zip(left, right, strict=True))
            assert all(value[3] <= 0 for cell in row[:2] for value in cell)


@pytest.mark.parametrize("name", ["grid", "town"])
def test_paper_shows_rows_and_no_controls(browser: Any, pages: dict[str, Path], screenshot: Any, name: str) -> None:
    load(browser, pages[name])
    screenshot(f"{name}-narrow", 720)  # what A4 leaves between its margins
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    wide = browser.execute_script("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide[0] <= wide[1]
    shown = "return getComputedStyle(document.querySelector(arguments[0])).display"
    assert browser.execute_script(shown, ".controls") == "none"
    assert browser.execute_script(shown, "#orbits tbody tr:last-child") != "none"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_sections_without_data_say_so(browser: Any, pages: dict[str, Path]) -> None:
    load(browser, pages["table"])
    for section in ("symmetry", "convergence", "comparison", "model"):
        assert len(browser.find_elements("css selector", f"#{section} .missing")) == 1
    load(browser, pages["doubtful"])
    head = browser.find_element("id", "verdict").text
    assert head.startswith("✗ Not trusted") and "Next:" in head


def test_a_large_page_loads_quickly(browser: Any, tmp_path: Path) -> None:
    """A thousand rows and curves of two hundred orbits: the most that a page holds."""
    import time

    model = dft.factor_graph([2] * 1200, [([i], [1.0, 1.0 + i / 100]) for i in range(1200)])
    p = dft.marginals(model, sampler="gibbs", estimator="orbit", symmetries=None, sweeps=200, chains=64, seed=1)
    page = p.report(tmp_path / "large.html")
    assert page.stat().st_size < 2_000_000
    began = time.perf_counter()
    load(browser, page)
    seconds = time.perf_counter() - began
    assert len(column(browser, "name")) == 1000
    assert seconds < 10  # 2 s on a quiet machine
