"""The page in a real browser: hostile text stays text, nothing is fetched, and everything is reached by keyboard."""

import json
import statistics
import unicodedata
from typing import Any

import pytest

from manyturn.report.page import static_page
from manyturn.terminal.escape import visible

pytestmark = pytest.mark.versions

LAPTOP, PHONE = {"width": 1366, "height": 768}, {"width": 390, "height": 844}


@pytest.mark.deep
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_hostile_text_in_every_place_is_shown_as_text_and_does_nothing(opened, documents, payloads, every):
    """Payloads as ids, observations, replies, actions, causes, names of parts and columns, tokens, tags, cells."""
    payloads = payloads[::every]
    report = documents.hostile(payloads)
    seen = opened(documents.html(report))
    page = seen.page
    overview = page.locator("#overview").inner_text()
    elements = page.evaluate(
        "document.querySelectorAll('img,iframe,object,embed,base,video,audio,svg a,template').length"
    )
    for selector in (
        ".warnings li",
        ".facts dt",
        ".facts dd",
        ".figure dt",
        ".table h3",
        ".table th:first-child",
        ".table td:first-child",
    ):
        assert seen.texts(selector) == [visible(text) for text in payloads], selector
    assert elements == 0 and overview
    page.keyboard.press("e")
    for place, text in enumerate(payloads, start=1):
        page.keyboard.press("n")
        check_turn(page, text, place, 1)
        page.keyboard.press("j")
        check_turn(page, text, place, 2)
    assert page.evaluate("document.querySelectorAll('img,iframe,object,embed,base,video,audio,template').length") == 0
    isolated = "[...document.querySelectorAll('.said, .block')].map((node) => getComputedStyle(node).unicodeBidi)"
    assert set(page.evaluate(isolated)) == {"isolate", "plaintext"}
    assert seen.behaved()


def check_turn(page: Any, text: str, place: int, turn: int) -> None:
    """Wait for a turn of the episode at a place of the list, and compare every text that its page holds."""
    found = page.evaluate(
        """async ([place, turn]) => {
          const one = (selector) => document.querySelector(selector);
          const texts = (selector) => [...document.querySelectorAll(`#trace ${selector}`)]
            .map((node) => node.innerText);
          const there = () => one('.rows [aria-current]')?.parentNode.ariaPosInSet === String(place) &&
            one('.turn-head')?.textContent.startsWith(`Turn ${turn} of 2`) && one('.anchors');
          for (let k = 0; k < 1000 && !there(); k += 1) await new Promise((then) => setTimeout(then, 5));
          return { blocks: texts('.exchange .block'), names: texts('.numbers dt .said'), task: texts('h2 .said'),
            naming: texts('.naming p .said'), tokens: texts('.token'), shared: texts('.anchors td.text'),
            last: texts('.turn > .part > .block'), row: one('.rows [aria-current] .task').textContent,
            lanes: [...document.querySelectorAll('.lane-name.kind-credit')].map((node) => node.textContent) };
        }""",
        [place, turn],
    )
    expected = visible(text)
    assert found["blocks"] == [expected, expected, expected, visible(f"{text}!")]
    assert found["task"] == [expected] and found["row"] == expected and set(found["naming"]) == {expected}
    first, last = ["reward", expected, "return to go", "cumulative", "progress"], ["policy", "environment"]
    assert found["names"] == [*first, expected, *last] and found["lanes"] == [expected]
    assert found["tokens"] == ([expected.replace("\n", "\u21b5\n")] * 2 if turn == 1 else [])
    assert found["shared"] == [expected] * 2 and found["last"] == [expected] * (turn - 1)


def test_the_page_names_the_same_characters_as_the_terminal(opened, documents):
    """Unassigned characters apart: which those are changes with the Unicode version."""
    everything = [chr(code) for code in (*range(0x3000), *range(0xD7F0, 0xE010), *range(0xFDF0, 0x10000))]
    everything += map(chr, (*range(0x1D160, 0x1D180), *range(0xE0000, 0xE01F8)))
    assigned = [char for char in everything if unicodedata.category(char) != "Cn"]
    unseen = [char for char in assigned if visible(char) != char][:1900]
    assert len(assigned) > 10_000 and len(unseen) == 1900
    report = documents.hostile(["plain"])
    # The first text shows badges; the second holds so many that it goes without.
    report[1][0]["observations"] = [".".join(unseen), ".".join(assigned)]
    seen = opened(documents.html(report))
    page = seen.page
    page.keyboard.press("e")
    for key, text, badges in (("n", report[1][0]["observations"][0], True), ("j", ".".join(assigned), False)):
        page.keyboard.press(key)
        page.wait_for_selector(".turn-head")
        block = page.locator(".exchange .block").first
        assert block.text_content() == visible(text)
        assert (block.locator(".unseen").count() > 0) == badges


def test_keys_step_through_turns_and_episodes(opened, documents):
    report = documents.run_report()
    turns = report[0]["episodes"]["turns"]
    seen = opened(documents.html(report))
    page = seen.page
    page.keyboard.press("e")
    page.keyboard.press("n")
    page.wait_for_selector(".group")
    for key, turn in (
        ("j", 2),
        ("ArrowRight", 3),
        ("k", 2),
        ("ArrowLeft", 1),
        ("k", 1),
        ("End", turns[0]),
        ("j", turns[0]),
        ("Home", 1),
    ):
        page.keyboard.press(key)
        assert seen.turn() == turn, key
        assert page.locator("#trace .block").first.inner_text() == report[1][0]["observations"][turn - 1]
    for key, episode in (("ArrowDown", 1), ("n", 2), ("p", 1), ("ArrowUp", 0), ("p", 0)):
        page.keyboard.press(key)
        seen.until("(text) => document.querySelector('.naming p')?.textContent.includes(text)", f"member {episode} ")
    page.keyboard.press("?")
    assert "next turn" in page.locator("#help").inner_text()
    page.keyboard.press("j")  # the overlay keeps the keys to itself
    page.keyboard.press("Escape")
    assert page.locator("#help").is_hidden() and seen.turn() == 1
    page.keyboard.press("/")
    page.keyboard.type("jk")
    assert page.get_by_role("searchbox").input_value() == "jk" and seen.turn() == 1
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    assert seen.turn() == 2


def test_filters_list_what_passes_and_say_how_many(opened, documents):
    report = documents.run_report()
    episodes, traces = report[0]["episodes"], report[1]
    traces[3]["replies"][0] = "a Reply that stands nowhere else"
    seen = opened(documents.html(report))
    page = seen.page
    page.keyboard.press("e")
    count = page.locator(".more-line .hint")

    def listed() -> int:
        return int(count.inner_text().split(" of ")[0])

    failures = episodes["success"].count(False)
    page.get_by_role("button", name="failure").click()
    assert 0 < listed() == failures < len(traces) and set(seen.texts(".rows .sign")) == {"\u2717"}
    page.locator("summary").click()
    page.get_by_label("least return").fill("0.5")
    assert listed() == 0 and "No episode passes" in page.locator(".rows").inner_text()
    page.get_by_role("button", name="Clear").click()
    assert listed() == len(traces)
    page.get_by_label("ending", exact=True).select_option("truncated")
    assert listed() == episodes["ending"].count("truncated")
    page.get_by_role("button", name="Clear").click()
    page.get_by_role("searchbox").fill("STANDS nowhere")
    seen.until("document.querySelector('.progress').textContent.startsWith('All')")
    assert listed() == 1 and "1 found" in page.locator(".progress").inner_text()
    page.get_by_role("searchbox").fill(episodes["task"][-1])
    assert listed() == episodes["task"].count(episodes["task"][-1])


def test_sorting_orders_by_number_and_puts_the_unknown_last(opened, documents):
    document, traces = documents.run_report()
    document = json.loads(json.dumps(document))
    document["episodes"]["return"][5] = None
    seen = opened(documents.html((document, traces)))
    page = seen.page
    page.keyboard.press("e")
    turns = sorted(document["episodes"]["turns"])
    page.get_by_role("button", name="sort by turns").click()
    assert [int(text) for text in seen.texts(".rows .turns")] == turns[: page.locator(".rows .turns").count()]
    for _ in range(2):
        page.get_by_role("button", name="sort by return").click()
        assert page.locator(".rows .return").first.inner_text() != "\u2013"


def test_what_rounding_leaves_of_a_return_is_shown_as_nothing(opened, documents):
    """A narrow column cuts 2.78e-17 to 2.78."""
    document, traces = documents.hostile(["plain", "other", "third"])
    document["episodes"]["return"] = [2.78e-17, -5e-16, 0.002]
    seen = opened(documents.html((document, traces)))
    seen.page.keyboard.press("e")
    assert sorted(seen.texts(".rows .return")) == ["0", "0", "0.002"]


def test_an_address_leads_to_its_turn_and_is_what_copying_gives(opened, documents):
    report = documents.run_report()
    permissions = ["clipboard-read", "clipboard-write"]
    address = documents.address_of(report, 7, 4)
    seen = opened(documents.html(report), fragment=address, permissions=permissions)
    page = seen.page
    page.wait_for_selector(".group")
    assert seen.turn() == 4
    assert page.locator(".exchange .block").first.inner_text() == report[1][7]["observations"][3]
    page.keyboard.press("j")
    page.keyboard.press("c")
    page.wait_for_selector("#toast:not([hidden])")
    assert page.evaluate("navigator.clipboard.readText()") == seen.address + documents.address_of(report, 7, 5)
    page.keyboard.press("r")
    seen.until("document.querySelector('#toast').textContent.includes('JSON')")
    replay = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert replay["actions"] == report[1][7]["actions"] and replay["task"] == report[0]["episodes"]["task"][7]
    seen.until("(hash) => location.hash === hash", documents.address_of(report, 7, 5))
    page.reload()
    page.wait_for_selector(".group")
    assert seen.turn() == 5 and seen.behaved()


def test_an_address_of_another_report_says_so(opened, documents):
    seen = opened(documents.html(documents.run_report()), fragment="#e=x/y/z/0&t=3")
    page = seen.page
    page.wait_for_selector("#toast:not([hidden])")
    assert "does not hold" in page.locator("#toast").inner_text()


def test_a_situation_lists_the_turns_of_the_group_that_share_it(opened, documents):
    report = documents.run_report()
    columns, traces = report[0]["episodes"], report[1]
    seen = opened(documents.html(report))
    page = seen.page
    seen.follow(documents.address_of(report, 2, 1))
    group = [i for i, task in enumerate(columns["task"]) if task == columns["task"][2]]
    anchor = traces[2]["anchors"][0]
    sharing = [(i, turn) for i in group for turn, other in enumerate(traces[i]["anchors"]) if other == anchor]
    rows = page.locator(".anchors tbody tr")
    assert rows.count() == len(sharing) > 1
    for k, (i, turn) in enumerate(sharing):
        assert rows.nth(k).locator("td").first.inner_text() == f"member {columns['member'][i]}, turn {turn + 1}"
        assert rows.nth(k).locator("td.text").inner_text() == traces[i]["replies"][turn]
    rows.last.locator("a").click()
    seen.until("(hash) => location.hash === hash", documents.address_of(report, sharing[-1][0], sharing[-1][1] + 1))
    page.wait_for_selector(".anchors tr.here")
    assert seen.turn() == sharing[-1][1] + 1
    assert page.locator(".group tbody tr").count() == len(group)


def test_tokens_tell_their_numbers_and_kinds_can_be_hidden(opened, documents):
    report = documents.run_report()
    trace = report[1][0]
    seen = opened(documents.html(report))
    page = seen.page
    seen.follow(documents.address_of(report, 0, 1))
    page.locator(".token").first.focus()
    page.keyboard.press("ArrowRight")
    logprob = trace["logprobs"][0][1]
    assert f"{logprob:.4g}".lstrip("-0.").rstrip("0") in page.locator(".tokens + .readout").inner_text()
    assert seen.turn() == 1  # the arrows walked through the tokens, not the turns
    heat = page.evaluate(
        "[...document.querySelectorAll('.token')].map((one) => Number(one.style.getPropertyValue('--heat')))"
    )
    assert heat == pytest.approx([min(1, -one / 3) for one in trace["logprobs"][0]])
    for kind, selector in (
        ("tokens", ".tokens"),
        ("credit", ".anchors"),
        ("observation", ".exchange .kind-observation"),
    ):
        page.get_by_label(kind, exact=True).uncheck()
        assert page.locator(selector).is_hidden(), kind
    page.keyboard.press("j")
    assert page.locator(".tokens").is_hidden()


def test_two_episodes_stand_side_by_side_and_d_jumps_to_where_they_part(opened, documents):
    report = documents.comparison_report()
    columns, traces = report[0]["episodes"], report[1]
    half = len(traces) // 2

    def parting(i: int) -> int | None:
        one, two = traces[i], traces[i + half]
        pairs = zip(one["observations"], one["replies"], two["observations"], two["replies"], strict=False)
        return next((turn for turn, (a, b, c, d) in enumerate(pairs) if (a, b) != (c, d)), None)

    i = next(i for i in range(half) if (parting(i) or 0) > 0)
    seen = opened(documents.html(report))
    page = seen.page
    seen.follow(documents.address_of(report, i))
    page.keyboard.press("s")
    page.wait_for_selector(".pair-turn .turn-head")
    assert seen.texts("#sides .source-name") == ["a", "b"]
    assert seen.texts("#sides h2") == [columns["task"][i]] * 2
    page.keyboard.press("d")
    assert seen.turn() == parting(i) + 1
    assert "first difference" in page.locator(".pair-turn .turn-head").inner_text()
    assert seen.texts(".pair-turn .part .block") == [
        traces[k][kind][parting(i)] for kind in ("observations", "replies") for k in (i, i + half)
    ]
    assert page.locator(".differs").count() > 0
    seen.until("(end) => location.hash.includes(end)", f"&t={parting(i) + 1}&f=b/")
    page.reload()
    page.wait_for_selector(".pair-turn .turn-head")
    assert seen.turn() == parting(i) + 1


def test_any_two_episodes_can_be_pinned(opened, documents):
    report = documents.run_report()
    seen = opened(documents.html(report))
    page = seen.page
    seen.follow(documents.address_of(report, 1))
    page.keyboard.press("x")
    seen.follow(documents.address_of(report, 20))
    seen.until("(task) => document.querySelector('#trace h2').textContent === task", report[0]["episodes"]["task"][20])
    page.keyboard.press("s")
    page.wait_for_selector(".pair-turn")
    assert seen.texts("#sides h2") == [report[0]["episodes"]["task"][i] for i in (20, 1)]


def test_curves_tell_their_values_to_the_keyboard(opened, documents):
    seen = opened(documents.html(documents.run_report()))
    plot, readout = seen.page.locator(".plot").first, seen.page.locator(".curve .readout").first
    points = documents.curves()[0]["series"][1]["points"]
    plot.focus()
    assert "step 40" in readout.inner_text() and f"{100 * points[-1][2]:.1f}" in readout.inner_text()
    seen.page.keyboard.press("ArrowLeft")
    assert "step 39" in readout.inner_text()
    plot.hover(position={"x": 50, "y": 80})
    assert "step 1" in readout.inner_text()
    assert seen.page.locator(".curve .line").nth(2).get_attribute("d").count("M") == 2  # the gap is no line
    assert seen.behaved()


@pytest.mark.deep
@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_nothing_needs_horizontal_scrolling(opened, size, documents, payloads):
    long = ["x" * 400, "a b " * 200, "\u202e" * 80, *payloads[:4]]
    seen = opened(documents.html(documents.hostile(long * 2)), size)
    page = seen.page
    wide = """[...document.querySelectorAll('html, .view, .list, .rows, .trace')]
        .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.id + one.className)"""
    assert page.evaluate(wide) == []
    for key in ("e", "n", "n", "s"):
        page.keyboard.press(key)
        page.wait_for_timeout(60)
        assert page.evaluate(wide) == [], key


def test_a_phone_shows_the_list_or_the_episode(opened, documents):
    seen = opened(documents.html(documents.run_report()), PHONE)
    page = seen.page
    page.get_by_role("link", name="Episodes").click()
    second = page.locator(".rows a").nth(1).element_handle()
    page.set_viewport_size({**PHONE, "height": PHONE["height"] - 40})  # a phone's bars come and go
    page.wait_for_timeout(50)
    second.click()  # a list that drew its rows again lost a click that had begun
    page.wait_for_selector(".group")
    assert page.locator(".list").is_hidden()
    page.get_by_role("button", name="\u2190 Episodes").click()
    assert page.locator(".trace").is_hidden() and page.locator(".rows a").first.is_visible()


def test_an_episode_whose_turns_are_missing_says_so(opened, documents):
    document, traces = documents.run_report()
    seen = opened(documents.html((document, [{**traces[0], "replies": []}, *traces[1:]])))
    page = seen.page
    page.keyboard.press("e")
    page.keyboard.press("n")
    page.wait_for_selector("#trace .fault")
    page.keyboard.press("n")
    page.wait_for_selector("#trace .turn-head")


def _first_paint(page):
    """Milliseconds to the first paint of the page loaded anew; a busy machine may paint after the page has loaded."""
    page.reload()
    paint = "performance.getEntriesByName('first-contentful-paint')[0]"
    page.wait_for_function(f"() => {paint}")
    return page.evaluate(f"{paint}.startTime")


@pytest.mark.slow
def test_a_thousand_episodes_are_small_and_fast(opened, documents):
    episodes = documents.played("manyturn/Household-v0", 125, 8, 0.5, turns=10)
    page_text = documents.html((documents.document([("gigpo", episodes)]), documents.traces(episodes)))
    assert len(page_text.encode()) < 15e6
    seen = opened(page_text)
    page = seen.page
    assert min(_first_paint(page) for _ in range(3)) < 1000
    page.keyboard.press("e")
    page.keyboard.press("n")
    page.wait_for_selector(".group")
    times = page.evaluate(
        """() => Array.from({ length: 16 }, (_, k) => {
          const began = performance.now();
          document.body.dispatchEvent(new KeyboardEvent("keydown", { key: k % 8 < 4 ? "j" : "k", bubbles: true }));
          document.body.getBoundingClientRect();
          return performance.now() - began;
        })"""
    )
    assert statistics.median(times) < 50


def test_ten_thousand_episodes_draw_only_what_is_seen(opened, documents):
    document, _ = documents.run_report()
    times = 10_000 // len(document["episodes"]["task"]) + 1
    columns = {name: values * times for name, values in document["episodes"].items()}
    columns["member"] = list(range(len(columns["task"])))
    seen = opened(static_page({**document, "episodes": columns}, []))
    page = seen.page
    page.keyboard.press("e")
    assert f"of {len(columns['task'])}" in page.locator(".more-line .hint").inner_text()
    assert 10 < page.locator(".rows li").count() < 80
    page.locator(".rows").evaluate("(rows) => { rows.scrollTop = rows.scrollHeight; }")
    last = f"\u00b7 {len(columns['task']) - 1}"
    seen.until("(text) => [...document.querySelectorAll('.rows .place')].at(-1).textContent.endsWith(text)", last)
