"""What the page shows and lets people do, chart by chart, in a real browser."""

import itertools
import math
import xml.etree.ElementTree as ET

import pytest
from helpers.programs import needs
from helpers.report.views import choose, downloaded, take
from playwright.sync_api import Page

from fedlasso.report.records import Results
from fedlasso.theory import CorrelatedPair

pytestmark = needs("browser")
# Words of a picture that its right edge cuts.
CUT = """picture => {
    const place = document.createElement("div");
    place.innerHTML = picture;
    document.body.append(place);
    const edge = place.firstChild.getBoundingClientRect().right;
    const cut = [...place.querySelectorAll("text")].filter(
        (words) => words.getBoundingClientRect().right > edge + 1);
    place.remove();
    return cut.map((words) => words.textContent);
}"""
CHARTS = ("overview", "tradeoff", "uploads", "means", "contrast", "spread", "ledger", "theory")


def test_a_finding_leads_to_the_view_that_it_titles(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 700})
    links = page.locator(".findings li")
    assert links.count() >= 5
    for i in range(links.count()):
        item = links.nth(i)
        item.locator("a").click()
        address = str(item.locator("a").get_attribute("href"))
        at = address.partition("at=")[2].partition("&")[0]
        title = str(page.text_content(f"#{at}-chart-title")).strip()
        assert str(item.text_content()).strip().startswith(title)
        # What it leads to is in view, and not under the bar that stays.
        place = page.locator(f"#{at} h2").bounding_box()
        bar = page.locator("#controls").bounding_box()
        assert place is not None
        assert bar is not None
        assert bar["y"] + bar["height"] <= place["y"] < 700
        page.click("#reset")


def test_a_chart_is_titled_by_what_it_holds_when_that_is_no_finding(page: Page) -> None:
    before = page.inner_text("#overview-chart-title")
    choose(page, "metric", "recall")
    assert page.inner_text("#overview-chart-title").startswith("Mean recall in every scenario")
    choose(page, "metric", "f1")
    assert page.inner_text("#overview-chart-title") == before


def test_words_keep_clear_of_error_bars_and_lines(page: Page) -> None:
    # What names the pooled Lasso stands beside its line, clear of every mark.
    for metric in ("f1", "test_mse", "coef_error"):
        choose(page, "metric", metric)
        covered = page.evaluate("""() => {
            const name = document.querySelector("#means-chart text.words").getBoundingClientRect();
            return [...document.querySelectorAll("#means-chart .mark")]
                .map((mark) => mark.getBoundingClientRect())
                .filter((mark) => Math.min(mark.right, name.right) > Math.max(mark.left, name.left)
                    && Math.min(mark.bottom, name.bottom) > Math.max(mark.top, name.top)).length;
        }""")
        assert covered == 0, metric
    # Words beside marks keep clear of a line that leads from one place to another.
    places = page.evaluate("along({ x1: 0, y1: 0, x2: 30, y2: 60 }).map(({ x, y }) => [x, y])")
    assert places[0] == [0, 0]
    steps = [math.dist(a, b) for a, b in itertools.pairwise([*places, [30, 60]])]
    assert max(steps) <= 8


def test_labels_of_groups_are_broken_between_words_that_can_stand_apart(page: Page) -> None:
    lines = page.evaluate("""() => {
        const y = { values: ["averaging + ST, E = 10"] };
        const drawn = panel({ width: 260, height: 90, x: { domain: [0, 1] }, y, marks: [] });
        const label = drawn.querySelector("[aria-label='y-axis tick label'] text");
        return [...label.querySelectorAll("tspan")].map((line) => line.textContent);
    }""")
    assert [line.replace("\u00a0", " ") for line in lines] == ["averaging + ST,", "E = 10"]


TICKS = """([domain, width, kind]) => {
    const drawn = panel({ width: 62 + width, height: 90, x: { domain, kind }, y: { values: ["a"] },
        left: 46, marks: [] });
    const ticks = [...drawn.querySelectorAll("[aria-label='x-axis tick label'] text")];
    return ticks.map((tick) => Number(tick.getAttribute("transform").match(/[\\d.]+/)[0]));
}"""


def test_every_scale_has_two_labels(page: Page) -> None:
    for domain in ([22.1, 29.3], [-0.09, 0.04], [0, 1.04], [3386, 3631]):
        for width in (90, 160, 700):
            assert len(page.evaluate(TICKS, [domain, width, "linear"])) >= 2


def test_means_are_titled_by_who_is_best(page: Page, results: Results) -> None:
    rows = results.at(scenario="baseline", **results.primary)
    for metric, sign, side in (("f1", -1, "Highest"), ("test_mse", 1, "Lowest")):
        choose(page, "metric", metric)
        means = rows.groupby(["method", "epochs"])[metric].mean() * sign
        alike = means[(means - means.min()).abs() <= 1e-3 * means.abs().min()]
        title = page.inner_text("#means-chart-title")
        assert title.startswith(f"{side} mean ")
        named = [f"{method}, E = {epochs}" for method, epochs in alike.index]
        assert any(name in title.partition("; next")[0] for name in named), title


def test_the_overview_has_every_scenario_and_chooses_one(page: Page, results: Results) -> None:
    assert page.locator("#overview-chart .small").count() == 2
    cells = results.at(**results.primary).groupby(["scenario", "method", "epochs"]).ngroups
    assert page.locator("#overview-chart .point").count() == cells == 24
    page.locator("#overview-chart .small[data-scenario=other] rect").click(
        position={"x": 3, "y": 3}
    )
    assert page.input_value("#scenario") == "other"


def test_the_trade_off_has_arrows_from_rule_to_rule(page: Page, results: Results) -> None:
    rows = results.at(scenario="baseline", budget=100, panel="joint")
    means = rows.groupby(["method", "epochs", "rule"])[["f1", "test_mse"]].mean().unstack("rule")
    moved = (means["f1"]["min"] != means["f1"]["1se"]) | (
        means["test_mse"]["min"] != means["test_mse"]["1se"]
    )
    assert page.locator("#tradeoff-chart .arrow").count() == moved.sum() > 0
    marks = page.locator("#tradeoff-chart .point").count()
    assert marks == len(means) + moved.sum() + 1  # and the pooled Lasso


@pytest.mark.parametrize("width", [1400, 390])
def test_words_on_charts_do_not_cover_each_other(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.reload()
    page.wait_for_selector("body[data-ready]")
    for chart in CHARTS:
        covered = page.locator(f"#{chart}-chart text").evaluate_all("""all => {
            const boxes = all.map((e) => [e.textContent, e.getBoundingClientRect()]);
            const found = [];
            boxes.forEach(([one, a], i) => boxes.slice(i + 1).forEach(([two, b]) => {
                const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                if (wide > 4 && high > 4) found.push(`${one} | ${two}`);
            }));
            return found;
        }""")
        assert covered == [], chart


def test_gaps_are_drawn_on_logarithmic_axes(page: Page, results: Results) -> None:
    choose(page, "epochs_shown", "all")
    table = downloaded(page, "uploads")
    assert len(table) == 4 * 3 * 2  # methods, epochs and budgets
    assert page.locator("#uploads-chart .point").count() == len(table)
    rows = results.at(scenario="baseline", method="CD", epochs=5, panel="joint", rule="min")
    expected = rows.groupby("budget")["relative_gap"].median().tolist()
    found = [float(r["gap"]) for r in table if (r["method"], r["epochs"]) == ("CD", "5")]
    assert found == pytest.approx(expected)
    # Equal ratios are equal distances.
    places = page.evaluate(TICKS, [[1e-4, 1], 400, "log"])
    assert [place - places[0] for place in places] == pytest.approx([0, 100, 200, 300, 400])
    choose(page, "metric", "relative_gap")
    texts = page.locator("#means-chart text").all_text_contents()
    assert any("e−" in text or text.startswith("0.0") for text in texts)


def test_axes_of_shares_end_at_0_and_1(page: Page) -> None:
    for metric in ("f1", "precision", "recall"):
        choose(page, "metric", metric)
        heights = page.evaluate("""() => {
            const ticks = "#means-chart .plot-y-axis-tick-label text";
            const texts = [...document.querySelectorAll(ticks)];
            return texts.map((t) => [t.textContent, t.getBoundingClientRect().top]);
        }""")
        numbers = {text: y for text, y in heights if text.replace(".", "").isdigit()}
        assert numbers["0"] == max(numbers.values())
        assert numbers["1"] == min(numbers.values())


def test_the_legend_isolates_a_method_everywhere(page: Page) -> None:
    page.locator("#means-chart-legend [data-only=DA]").click()
    for chart in ("overview", "means", "spread", "uploads"):
        dimmed = page.locator(f"#{chart}-chart .mark.dim").evaluate_all(
            "all => all.map((e) => e.dataset.method)"
        )
        assert dimmed
        assert "DA" not in dimmed
    assert "only=DA" in page.url
    page.locator("#spread-chart-legend [data-only=DA]").click()
    assert page.locator(".dim").count() == 0


def test_tips_are_written_for_people(page: Page) -> None:
    point = page.locator("#means-chart .point[data-method=DA]").first
    point.scroll_into_view_if_needed()
    point.hover()
    tip = page.inner_text("#tip")
    assert tip.startswith("DA, E = 1\nF1 0.")
    assert "95% of the mean" in tip
    assert "4 replicates" in tip
    assert max(len(word) for word in tip.split()) < 12  # no sixteen digits
    ticks = page.locator("#ledger-chart text").all_text_contents()
    sizes = [tick.split()[0] for tick in ticks if tick.endswith(("KiB", "MiB", " B"))]
    assert all(len(size) <= 4 for size in sizes)
    bar = page.locator("#ledger-chart .bar").first
    bar.scroll_into_view_if_needed()
    bar.hover()
    assert "KiB" in page.inner_text("#tip")


def test_every_chart_can_be_taken_away(page: Page, results: Results) -> None:
    marks = (str(results.manifest.study["seed"]), results.manifest.code["hash"])
    for chart in CHARTS:
        picture = page.evaluate("name => picture(name)", chart)
        assert "var(--" not in picture
        text = "".join(ET.fromstring(picture).itertext())
        assert str(page.text_content(f"#{chart}-chart-title")).strip()[:20] in text
        entry = page.evaluate("name => bibtex(name)", chart)
        assert entry.startswith("@misc{")
        for mark in marks:
            assert mark in text
            assert mark in entry
        table = page.evaluate("name => toCsv(kept[name])", chart)
        assert table.count("\n") > 4
        # Whoever gets the picture alone sees all its words and can tell what its marks are.
        assert page.evaluate(CUT, picture) == [], chart
        for words in page.locator(f"#{chart}-chart-legend > *").all_text_contents():
            assert words in text
    # As files, which say in their names what they hold.
    beginnings = {"svg": b"<svg", "png": b"\x89PNG", "csv": b"scenario,", "bib": b"@misc"}
    for kind, beginning in beginnings.items():
        name, content = take(page, kind, "means")
        assert name == f"paper-means-f1-baseline-100-joint-min.{kind}"
        assert content.startswith(beginning)


def test_a_link_of_the_menu_leads_back_to_the_view(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    choose(page, "metric", "recall")
    button = page.locator("[data-take=link][data-of=spread]")
    button.evaluate("button => button.click()")
    page.wait_for_function(
        "[...document.querySelectorAll('button')].some((b) => b.textContent === 'Copied')"
    )
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.endswith("#at=spread&metric=recall")


def test_a_replicate_leads_to_its_row_and_its_rerun(page: Page, results: Results) -> None:
    dot = page.locator("#spread-chart .dot[data-method=DA][data-replicate='2']").first
    dot.dispatch_event("click")
    assert page.input_value("#row-method") == "DA"
    assert page.locator("#rows-table tr.marked td").first.inner_text() == "2"
    assert page.inner_text("#rerun").endswith('"baseline", 2))\'')


def test_the_two_sites_move_as_the_formulas_say(page: Page) -> None:
    for r, a, d, epochs in ((0.8, 2.0, 1.0, 2), (0.3, 1.0, 2.5, 5), (0.95, 4.0, 0.1, 1)):
        pair = CorrelatedPair(r=r, a=a, d=d)
        values = {"r": r, "a": a, "d": d, "E": epochs}
        for name, value in values.items():
            page.locator(f"#theory-{name}").fill(f"{value:g}")
        limit, gap, ends = page.evaluate("""() => {
            const pair = readTheory();
            return [limitOf(pair), gapOf(pair), iterate(pair, 400).at(-1).next];
        }""")
        assert limit == pytest.approx(pair.limit(epochs).tolist())
        assert ends == pytest.approx(pair.limit(epochs).tolist())
        assert gap == pytest.approx(pair.gap(epochs))
        table = downloaded(page, "theory")
        assert [float(row["gap"]) for row in table] == pytest.approx(
            [pair.gap(e) for e in range(1, 11)]
        )
        best = min(range(1, 11), key=pair.gap)
        assert f"is at E = {best}." in page.inner_text("#theory-words")
    before = page.inner_html("#theory-chart")
    page.locator("#theory-E").fill("7")
    assert page.inner_html("#theory-chart") != before


def test_what_to_use_is_what_does_best_in_the_nearest_scenario(
    page: Page, results: Results
) -> None:
    page.fill("#use-sites", "2")
    page.fill("#use-columns", "20")
    page.fill("#use-budget", "50")
    answers = set()
    for aim, metric, sign in (("prediction", "test_mse", 1), ("selection", "f1", -1)):
        page.select_option("#use-aim", aim)
        rows = results.at(scenario="other", budget=30, panel="upload")
        cells = rows.groupby(["method", "epochs", "rule"])
        means = cells[metric].mean() * sign
        # Of what differs by a thousandth at most, the fewest uploads.
        equal = means[(means - means.min()).abs() <= 1e-3 * abs(means.min())]
        best = cells["upload_bytes"].mean()[equal.index].idxmin()
        method, epochs, _ = best
        answer = page.inner_text("#use-answer")
        assert f"{method}, E = {epochs}" in answer
        command = page.inner_text("#use-command")
        assert f"--procedure {method} --epochs {epochs}" in command
        own = rows.set_index(["method", "epochs", "rule"]).loc[best]["f1"]
        assert f"{float(f'{own.mean():.3g}'):g}" in answer
        answers.add(answer)
    assert len(answers) == 2
    page.fill("#use-budget", "3")
    assert "begin at 30 uploads" in page.inner_text("#use-answer")


def relative_luminance(colour: str) -> float:
    numbers = colour[colour.index("(") + 1 : -1].split(",")
    parts = [float(number) / 255 for number in numbers[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_paper_keeps_every_mark_and_every_word(page: Page, theme: str) -> None:
    if theme == "dark":
        page.click("#theme")
    count = {chart: page.locator(f"#{chart}-chart .mark").count() for chart in CHARTS}
    width = 688  # A4 between margins of 14 mm
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    for chart in CHARTS:
        marks = page.locator(f"#{chart}-chart .mark")
        assert marks.count() == count[chart] > 0
        boxes = marks.evaluate_all("all => all.map((e) => e.getBoundingClientRect().right)")
        assert max(boxes) <= width
        assert (
            page.locator(f"#{chart}-chart svg").evaluate("e => e.getBoundingClientRect().right")
            <= width
        )
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    inks = page.locator(".chart svg text, main p, main h2, main h3").evaluate_all(
        "all => [...new Set(all.map((e) => e instanceof SVGElement ? getComputedStyle(e).fill"
        " : getComputedStyle(e).color))]"
    )
    for ink in inks:
        assert 1.05 / (relative_luminance(ink) + 0.05) >= 4.5, ink
    assert page.locator("#controls").is_hidden()
    assert page.locator(".findings a").first.is_hidden()
    assert "r = 0.8" in page.inner_text("#theory-words")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(page: Page, theme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    if theme == "dark":
        page.click("#theme")
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    found = axe.Axe().run(page).response["violations"]
    serious = [
        (each["id"], [node["html"][:200] for node in each["nodes"]][:3])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_terms_are_explained_in_a_sentence_each(page: Page, results: Results) -> None:
    words = page.locator("#explain dt").all_text_contents()
    assert {*results.values("method"), "Local epochs", "Budget", "Panel", "Selection rule"} <= set(
        words
    )
    for sentence in page.locator("#explain dd").all_text_contents():
        assert len(sentence) > 20
    assert page.locator("#controls label[title]").count() >= 3
    assert page.locator("#means-chart-legend button[title]").count() == 4
    assert "2 sites" in str(page.text_content("#explain"))


def test_nothing_on_the_page_is_undefined(page: Page) -> None:
    body = page.inner_text("main")
    assert "undefined" not in body
    assert "NaN" not in body
    for chart in CHARTS:
        assert "NaN" not in page.inner_html(f"#{chart}-chart")
