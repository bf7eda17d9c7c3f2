"""The explorer's page in a real browser. What takes time is waited for, never slept through."""

import base64
import csv
import time

import pytest

from fillrank.report.columns import limit_sides
from helpers.chromium import as_screen
from helpers.explorer_models import FOODS, HOSTILE, hostile, large, served, survey
from helpers.mixed_tables import mixed_model

pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::fillrank.ConvergenceWarning"),
]

WIDE = "who,tea,apple,milk\nZoe,4.1,,2\nAl,,,3.25\n"
PATIENCE = 20  # seconds, far more than anything here takes
DROP = """
const [name, bytes] = arguments;
const content = Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
const transfer = new DataTransfer();
transfer.items.add(new File([content], name));
const at = document.body;
for (const kind of ["dragenter", "dragover", "drop"]) {
  const event = new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true });
  at.dispatchEvent(event);
  if (kind === "dragenter") window.coverShown = !document.getElementById("drop").hidden;
}
"""
DROP_OF = """
const dataTransfer = new DataTransfer();
for (const file of [{}]) dataTransfer.items.add(file);
const how = {{ dataTransfer, bubbles: true, cancelable: true }};
document.body.dispatchEvent(new DragEvent("drop", how));
"""


class Page:
    """What a person does on the page, and sees."""

    def __init__(self, browser, server):
        self.browser, self.server = browser, server
        browser.get("about:blank")
        browser.get_log("browser")
        as_screen(browser, 1280, 900)
        browser.get(server.url)
        self.wait_for("main h1")

    def all(self, selector):
        return self.browser.find_elements("css selector", selector)

    def one(self, selector):
        return self.browser.find_element("css selector", selector)

    def until(self, holds, what):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                if found := holds():
                    return found
            except Exception as error:
                if "stale" not in str(error) and "no such element" not in str(error):
                    raise
            time.sleep(0.02)
        raise AssertionError(f"waited in vain for {what}; the page says:\n{self.one('body').text}")

    def wait_for(self, selector):
        return self.until(lambda: self.all(selector), selector)[0]

    def wait_for_text(self, selector, text):
        return self.until(lambda: text in self.one(selector).text, f"{text!r} in {selector}")

    def go(self, address):
        self.browser.execute_script("location.hash = arguments[0]", address)

    def search(self, text):
        box = self.one("#search")
        box.clear()
        box.send_keys(text)
        return box

    def options(self):
        return [item.text for item in self.all("#options li")]

    def values(self):
        self.wait_for("#values tbody tr")
        return self.all("#values tbody tr")

    def drop(self, name, content):
        content = content.encode() if isinstance(content, str) else content
        self.browser.execute_script(DROP, name, base64.b64encode(content).decode())

    def n_nodes(self):
        return self.browser.execute_script("return document.querySelectorAll('*').length")

    def complaints(self):
        return [entry["message"] for entry in self.browser.get_log("browser")]


@pytest.fixture(scope="module")
def survey_server():
    with served(survey()) as server:
        yield server


@pytest.fixture(scope="module")
def hostile_server():
    with served(hostile(), HOSTILE[0]) as server:
        yield server


@pytest.fixture(scope="module")
def large_server():
    with served(large()) as server:
        yield server


@pytest.fixture
def page(browser, survey_server):
    page = Page(browser, survey_server)
    yield page
    assert page.complaints() == []


def test_the_token_is_removed_from_the_address(page):
    assert page.server.token not in page.browser.current_url
    page.browser.refresh()
    page.wait_for(".facts")
    cookie = page.browser.get_cookie(page.server.cookie)
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert page.browser.execute_script("return document.cookie") == ""


def test_start_view_describes_the_model(page):
    text = page.one("main").text
    for words in ("survey", "80", "16", "GASR"):
        assert words in text
    page.until(lambda: len(page.all("a.chip")) == 16, "names to begin with")
    page.all("a.chip")[0].click()
    page.wait_for("#values tbody tr")


def test_search_and_keyboard(page):
    page.search("SON 1")
    page.until(lambda: page.options()[:2] == ["person 1", "person 10"], "matches")
    assert page.one("#search").get_attribute("aria-expanded") == "true"
    page.one("#search").send_keys("\ue015")  # arrow down
    chosen = page.one("#options li[aria-selected=true]")
    assert chosen.text == "person 10"
    assert page.one("#search").get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    page.one("#search").send_keys("\ue007")  # enter
    page.wait_for_text("main h1", "person 10")
    page.search("nobody")
    page.wait_for_text("#matches", "No row has this in its label")
    page.one("#search").send_keys("\ue00c")  # escape
    assert not page.one("#matches").is_displayed()


def test_columns_can_be_searched(page):
    page.one("#find-columns").click()
    page.search("te")
    page.until(lambda: page.options()[:1] == ["tea"], "tea")
    page.one("#options li").click()
    page.wait_for_text("main h1", "tea")
    assert len(page.values()) == 50
    assert not page.all("#recommendations")


def test_row_view_links_to_columns_and_back(page):
    page.go("#/rows/6")
    page.wait_for_text("main h1", "person 7")
    cells = {line.find_element("css selector", "th").text: line.text for line in page.values()}
    assert set(cells) == set(FOODS.split())
    known = [name for name, text in cells.items() if "observed" in text]
    data = survey().observations_
    assert set(known) == set(data.columns[data.rows == "person 7"])
    assert all(" to " in text for name, text in cells.items() if name not in known)
    page.all("#values tbody a")[0].click()
    page.wait_for_text(".title", "column")
    page.browser.back()
    page.wait_for_text("main h1", "person 7")


def test_order_choice_and_pages(page):
    page.go("#/columns/0")

    def numbers():
        return [float(n.text) for n in page.all("#values tbody .value .number")]

    page.values()
    highest = numbers()
    assert highest == sorted(highest, reverse=True)
    page.one("[data-choice=low]").click()
    page.until(lambda: numbers() != highest, "another order")
    assert numbers() == sorted(numbers())
    page.one("[aria-label='Next page']").click()
    page.wait_for_text(".pager", "51 to 80 of 80")
    assert len(numbers()) == 30
    page.one("[data-choice=known]").click()
    page.until(
        lambda: (
            page.all("#values tr.is-known")
            and len(page.all("#values tbody tr")) == len(page.all("#values tr.is-known"))
        ),
        "known ones",
    )


def test_recommendations(page):
    page.go("#/rows/6")
    page.wait_for("#recommendations tbody tr")

    def shown():
        return [line.text for line in page.all("#recommendations tbody tr")]

    expected = list(survey().recommend("person 7", n=10)["column"])
    names = [link.text for link in page.all("#recommendations tbody th a")]
    assert names == expected
    best = shown()
    page.one("#recommendations [data-choice=cautious]").click()
    page.wait_for_text("#recommendations", "10% quantile")
    page.until(lambda: shown() and shown() != best, "cautious values")
    page.one("#recommendations [data-choice=curious]").click()
    page.wait_for_text("#recommendations thead", "Drawn")
    drawn = shown()
    page.until(
        lambda: page.one("#recommendations .small").click() or shown() != drawn, "another draw"
    )


def test_similar_rows_are_links(page):
    page.go("#/rows/6")
    first = page.wait_for("#nearest li a")
    name = first.text
    first.click()
    page.wait_for_text("main h1", name)


def test_invalid_addresses_show_the_start_view(page):
    for address in ("#/rows/99999", "#/rows/x", "#/__proto__/0", "#/constructor/1"):
        page.go(address)
        page.wait_for(".facts")


def test_a_chosen_file_is_filled_and_downloaded(page, tmp_path, downloads):
    (tmp_path / "guests & friends.csv").write_text(WIDE)
    page.one("#to-fill").click()
    page.wait_for("#file").send_keys(str(tmp_path / "guests & friends.csv"))
    page.wait_for_text("#result", "3 missing values filled in")
    assert "Zoe" in page.one("#result tbody").text
    for link in page.all("#result a.button"):
        link.click()
    paths = [downloads / f"guests & friends-{what}.csv" for what in ("filled", "intervals")]
    page.until(lambda: all(path.exists() for path in paths), "downloads")
    page.until(lambda: paths[0].read_text().startswith("who,tea,apple,milk"), "the whole file")
    with paths[0].open(newline="") as file:
        lines = list(csv.reader(file))
    assert [len(line) for line in lines] == [4, 4, 4]
    assert all(all(line) for line in lines)
    assert lines[1][1] == "4.1"


def test_a_file_is_dropped_anywhere(page):
    page.go("#/rows/3")
    page.wait_for("#values tbody tr")
    page.drop("new.csv", WIDE)
    page.wait_for_text("#result", "3 missing values filled in")
    assert page.browser.execute_script("return window.coverShown")
    assert not page.one("#drop").is_displayed()
    assert page.browser.current_url.endswith("#/fill")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.csv", "", "empty.csv is empty"),
        ("picture.csv", bytes(range(256)) * 8, "not a text file"),
        ("cola.csv", "who,apple,cola\nZoe,1,\n", "'cola'"),
        ("full.csv", "who,apple\nZoe,1\n", "no value is missing"),
        ("book.xlsx", "PK", "Save it as CSV"),
        ("<img src=x onerror=alert(1)>.csv", "who,apple,<b>cola\nZoe,1,\n", "'<b>cola'"),
    ],
)
def test_wrong_files_get_a_clear_message(browser, survey_server, name, content, words):
    page = Page(browser, survey_server)
    page.drop(name, content)
    page.wait_for_text("#result [role=alert]", words)
    # The browser notes every answer that is a refusal, and nothing else.
    assert all("422" in text for text in page.complaints())
    page.drop("new.csv", WIDE)
    page.wait_for_text("#result", "3 missing values filled in")


def test_files_that_are_too_large_are_not_sent(page):
    page.go("#/fill")
    page.wait_for("#file")
    page.browser.execute_script(
        DROP_OF.format("new File([new Uint8Array(50 * 2 ** 20 + 1)], 'big.csv')")
    )
    page.wait_for_text("#result [role=alert]", "larger than 50 MB")


def test_two_files_at_once_are_refused(page):
    page.browser.execute_script(DROP_OF.format("new File([1], 'a.csv'), new File([2], 'b.csv')"))
    page.wait_for_text("#result [role=alert]", "drop one at a time")


def test_titles_are_shown_with_the_labels_and_found(browser):
    titles = {"tea": "Green tea", "milk": HOSTILE[0]}
    with served(survey(), column_titles=titles) as server:
        page = Page(browser, server)
        page.one("#find-columns").click()
        assert page.one("#search").get_attribute("aria-label") == "Search by label or title"
        page.search("gree")
        page.until(lambda: page.options() == ["Green tea tea"], "the title")
        page.one("#options li").click()
        page.wait_for_text("main h1", "Green tea tea")
        assert browser.title == "Green tea · survey"
        page.go("#/rows/6")
        page.wait_for_text("main h1", "person 7")
        page.wait_for("#recommendations tbody tr")
        names = {line.find_element("css selector", "th").text for line in page.values()}
        assert names == {*FOODS.split(), "Green tea\ntea", f"{HOSTILE[0]}\nmilk"} - {"tea", "milk"}
        page.drop("new.csv", WIDE)
        page.wait_for_text("#result tbody", "Green tea")
        assert browser.title != "run"
        assert page.complaints() == []


def test_hostile_names_are_text(browser, hostile_server):
    page = Page(browser, hostile_server)
    rows = hostile().observations_.row_labels.tolist()
    columns = hostile().observations_.column_labels.tolist()
    for name in HOSTILE:
        page.go(f"#/rows/{rows.index(name)}")
        said = name.strip() or "(blank)"
        page.until(lambda said=said: page.one("main h1").get_attribute("textContent") == said, said)
        page.wait_for("#recommendations tbody tr")
        page.wait_for("#nearest li")
        page.wait_for("#values tbody tr")
        page.go(f"#/columns/{columns.index(name)}")
        page.wait_for_text(".title", "column")
        page.wait_for("#values tbody tr")
    page.search("<img")
    page.until(lambda: HOSTILE[0] in page.options(), "the name as an option")
    lines = ['who,tea,"' + HOSTILE[0].replace('"', '""') + '"', f'"{HOSTILE[1]}",4,', "Al,,3", ""]
    page.drop("<b>.csv", "\n".join(lines))
    page.wait_for_text("#result", "2 missing values filled in")
    shown = page.one("#result tbody").text
    assert HOSTILE[0] in shown
    assert HOSTILE[1] in shown
    assert page.browser.title != "run"
    assert not page.all("main img, main script, main b")
    assert page.browser.execute_script("return document.scripts.length") == 1
    assert page.complaints() == []


def test_trusted_types_block_inner_html(page):
    refused = page.browser.execute_script(
        "const main = document.getElementById('main');"
        "try { main.innerHTML = '<b>x</b>'; return false; } catch { return true; }"
    )
    assert refused
    assert any("TrustedHTML" in text for text in page.complaints())


def test_the_page_of_a_large_model_stays_small(browser, large_server):
    page = Page(browser, large_server)
    assert page.n_nodes() < 300
    page.search("user 119")
    page.until(lambda: page.options()[:1] == ["user 11900"], "matches")
    assert len(page.options()) < 20
    assert "more: keep typing" in page.one("#more").text
    total = page.browser.execute_async_script(
        "const done = arguments[0];"
        "fetch('api/search?side=rows&part=user%20119').then((r) => r.json())"
        ".then((found) => done(found.total))"
    )
    assert total == 100
    page.one("#options li").click()
    page.wait_for_text("main h1", "user 11900")
    page.values()
    page.wait_for("#recommendations tbody tr")
    page.wait_for("#nearest li")
    assert page.n_nodes() < 1200
    page.go("#/columns/0")
    page.wait_for_text(".pager", "of 12,000")
    page.one("[aria-label='Last page']").click()
    page.wait_for_text(".pager", "11,951 to 12,000 of 12,000")
    assert page.n_nodes() < 1200


@pytest.mark.parametrize("width", [320, 390, 768])
def test_pages_fit_the_width_of_a_phone(browser, hostile_server, width):
    page = Page(browser, hostile_server)
    as_screen(browser, width, 844)

    def fits():
        return browser.execute_script(
            "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )

    rows = hostile().observations_.row_labels.tolist()
    for address in ("#/", f"#/rows/{rows.index(HOSTILE[4])}", "#/columns/2", "#/fill"):
        page.go(address)
        page.wait_for("main h1")
        if "/" in address[2:]:
            page.values()
            page.wait_for("#nearest li")
        assert fits(), address
    page.drop("n" * 150 + ".csv", "who,tea,apple\nZoe,4,\n")
    page.wait_for_text("#result", "1 missing value filled in")
    assert fits()
    assert len(browser.get_screenshot_as_png()) > 5000


def test_values_of_different_kinds(browser):
    model, _ = mixed_model()
    data = model.observations_
    side = limit_sides(data)
    with served(model) as server:
        page = Page(browser, server)
        assert not page.one("#to-fill").is_displayed()
        page.go(f"#/rows/{data.row_index[side < 0][0]}")
        page.values()
        page.wait_for(".cells .arrow")
        assert page.one(".cells .arrow").text == "←"
        assert "<" in page.one(".cells tr:has(.arrow) .value").text
        assert not page.all("#recommendations")
        page.go("#/columns/6")
        bars = page.wait_for(".cells .levels")
        shares = [
            int(line.split("%")[0].split()[-1]) for line in bars.text.split("\n") if "%" in line
        ]
        assert len(shares) == 3
        assert 98 <= sum(shares) <= 102
        assert not page.all("[data-choice=high]")  # of a category
        page.go("#/columns/0")
        page.wait_for("[data-choice=high]")
        assert page.browser.get_log("browser") == []


def test_the_page_reports_that_the_server_has_ended(browser):
    with served(survey()) as server:
        page = Page(browser, server)
    page.go("#/rows/3")
    page.wait_for_text("main [role=alert]", "start it again")
