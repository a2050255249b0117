"""The report as a person meets it: on a wide screen, on a phone, on paper, and when a filter fits nothing."""

from __future__ import annotations

import base64
import re
import struct
from pathlib import Path

import pytest

from tests.browser.chromium import Tab
from tests.browser.pictures import ROOT, WIDTH, make
from trimtab.cli import main

EXAMPLE = ROOT / "examples" / "three-brokers.json"
SHOWN = "document.querySelectorAll('#action-table > tbody > tr').length"
SPILLS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    skewed = ROOT / "examples" / "skewed-12-brokers.json.gz"
    options = ("--preset", "default", "--remove-broker", "3", "--max-moves", "120")
    assert main(["plan", "-q", "-s", str(skewed), *options, "-o", str(path)]) == 0
    return path


@pytest.fixture
def report(tab: Tab, page: Path) -> Tab:
    tab.open(page.as_uri())
    return tab


@pytest.mark.parametrize("width", [1400, 1000])
def test_every_table_fits_a_screen(tab: Tab, page: Path, width: int) -> None:
    tab.show_as(width)
    tab.open(page.as_uri())
    wide = "[...document.querySelectorAll('.scroll')].filter((s) => s.scrollWidth > s.clientWidth).length"
    assert tab.run(wide) == 0
    assert not tab.run(SPILLS)


def test_a_phone_shows_every_column_under_its_name(tab: Tab, page: Path) -> None:
    tab.show_as(390)
    tab.open(page.as_uri())
    assert not tab.run(SPILLS)
    status = "document.querySelector('.goals td .badge').getBoundingClientRect()"
    assert tab.run(f"{status}.right < 390 && {status}.width > 0")
    assert tab.run("getComputedStyle(document.querySelector('.goals td .badge').parentNode, '::before').content") == '"status"'
    lines = "Math.max(...[...document.querySelectorAll('.cards td.num')].map((c) => c.getBoundingClientRect().height))"
    assert tab.run(lines) < 40, "before and after stand on one line"
    charts = "[...document.querySelectorAll('#load figure svg')].filter((s) => s.getBoundingClientRect().right > 390).length"
    assert tab.run(charts) == 0, "every broker of every chart is in sight"


def test_a_filter_that_fits_nothing_says_so(report: Tab) -> None:
    report.type("form.filters input[name=text]", "no such topic")
    report.until("document.querySelector('td.none') !== null")
    assert "Nothing fits these filters" in report.text("td.none")
    assert report.text("form.filters output").startswith("0 of ")


def test_print_holds_every_action_and_the_names_of_the_columns(report: Tab) -> None:
    total = report.run("JSON.parse(document.querySelector('#goal-scores').textContent).actions")
    assert report.run(SHOWN) == 50 < len(total)
    report.run("window.dispatchEvent(new Event('beforeprint'))")
    assert report.run(SHOWN) == len(total)
    report.send("Emulation.setEmulatedMedia", media="print")
    assert report.run("getComputedStyle(document.querySelector('#action-table th[data-name]'), '::before').content") == '"#"'
    report.run("window.dispatchEvent(new Event('afterprint'))")
    assert report.run(SHOWN) == 50


def test_a_large_plan_prints_on_few_pages(report: Tab) -> None:
    actions = len(report.run("JSON.parse(document.querySelector('#goal-scores').textContent).actions"))
    paper = base64.b64decode(report.send("Page.printToPDF", printBackground=True)["data"])
    pages = len(re.findall(rb"/Type\s*/Page\b", paper))
    assert actions > 100
    assert pages <= 5 + actions / 25, "five for all but the actions"


def test_an_opened_action_leaves_out_what_does_not_change(report: Tab) -> None:
    report.click("#action-table button.more")
    rows = "[...document.querySelectorAll('tr.detail tbody tr')].map((r) => [...r.cells].slice(-2).map((c) => c.textContent))"
    pairs = report.run(rows)
    assert pairs
    assert all(before != after for before, after in pairs)


def test_pictures_of_the_docs_can_be_made(tab: Tab, tmp_path: Path) -> None:
    for picture in make(tab, tmp_path, ("plan", "-q", "--snapshot", str(EXAMPLE), "--preset", "default")):
        width, height = struct.unpack(">II", picture.read_bytes()[16:24])
        assert width == WIDTH
        assert height > 700
