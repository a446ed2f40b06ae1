"""What an action does, and what a page says, down to the quirks of the original."""

import json
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.shop.pages.page_text import pieces, plain, rich
from manyturn.envs.shop.pages.pages import Item, Results
from manyturn.envs.shop.pages.session import Session, parse
from manyturn.envs.shop.webshop.official_shop import load

ORIGINAL = re.compile(r"(.+)\[(.+)\]")
LAMP = "click[b000000000]"


def session_in(folder: Path, actions: Sequence[str] = (), reward: float = 0.5) -> Session:
    session = Session(load(folder, "synthetic").catalogue, "Buy [a lamp].", lambda product, chosen: reward)
    for action in actions:
        assert session.act(action), action
    return session


def opened(shop_of: Callable[..., Path], **options: list[str]) -> Session:
    """A session that looks at a lamp with these options."""
    values = {name: [{"value": value} for value in some] for name, some in options.items()}
    return session_in(shop_of({"customization_options": values}, {}), ["search[lamp]", LAMP])


@given(st.text("[]\nax ", max_size=12))
def test_an_action_is_read_as_the_original_reads_it(action: str) -> None:
    match = ORIGINAL.match(action)
    assert parse(action) == (match.groups() if match else None)


@pytest.mark.parametrize("action", ["[" * 100_000, "a[" * 50_000 + "]", "search[" + "a]" * 50_000, "x" * 100_000])
def test_a_long_action_takes_no_longer_than_its_length(action: str, small) -> None:
    session = session_in(small)
    start = time.process_time()
    session.act(action)
    rich(session.page)
    assert time.process_time() - start < 1


NO_ACTIONS = (
    *("", "buy", "search", "search[]", "search[a", "Search[a]", " search[a]", "search[a][b]", "search[a\nb]", "\ud800"),
    *("click[search]", "click[]", "click[buy now]", "click[nothing here]", "click[b000000000]", "click[\ud800]"),
)


@pytest.mark.parametrize("action", NO_ACTIONS)
def test_what_means_nothing_changes_nothing(action: str, small) -> None:
    session = session_in(small)
    before = session.save()
    assert not session.act(action) and session.save() == before


@pytest.mark.parametrize("action", ["search[a] and more", "search[\ud800]", "search[ ]", "search[🙂]", "search[a]]"])
def test_any_text_can_be_searched_for(action: str, small) -> None:
    assert session_in(small, [action]).place == "results"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 99), max_size=25),
    st.sampled_from(["lamp", "soft rain boots", "<r>", "search_results lamp"]),
)
def test_every_click_that_is_listed_does_something_and_the_state_can_be_saved(
    small, picks: list[int], query: str
) -> None:
    session = session_in(small, [f"search[{query}]"])
    for pick in picks:
        clicks = [text for text in session.clickables if text != "search"]
        if clicks:
            assert session.act(f"click[{clicks[pick % len(clicks)].upper()}]")
        elif not session.act(f"search[{query}]"):
            assert session.place == "done"
            break
        copy = session_in(small)
        copy.load(session.save())
        assert (copy.page, copy.clickables, copy.save()) == (session.page, session.clickables, session.save())
        assert "".join(text for _, text in pieces(session.page)) and plain(session.page) and rich(session.page)


def test_next_goes_on_past_the_end_and_prev_comes_back(small) -> None:
    session = session_in(small, ["search[kesso]"])
    sizes = []
    for _ in range(5):
        assert isinstance(session.page, Results)
        sizes.append(len(session.page.products))
        session.act("click[next >]")
    assert sizes == [10, 10, 4, 0, 0]
    for _ in range(5):
        assert session.act("click[< prev]")
    assert not session.act("click[< prev]") and session.number == 1


def test_a_search_and_a_return_to_the_results_clear_what_was_chosen(shop_of) -> None:
    session = opened(shop_of, size=["small", "large"])
    for leaving in (["click[< prev]"], ["click[features]", "search[lamp]"], ["click[back to search]", "search[lamp]"]):
        assert session.act("click[large]") and session.chosen == {"size": "large"}
        for action in leaving:
            assert session.act(action)
        assert session.chosen == {} and session.act(LAMP)
        assert isinstance(session.page, Item) and not session.page.chosen


def test_products_that_were_opened_are_marked_until_the_search_bar(shop_of) -> None:
    session = session_in(shop_of({}, {}), ["search[lamp]", LAMP, "click[< prev]"])
    assert "[clicked button] B000000000 [clicked button_]" in rich(session.page)
    assert "[button] B000000001 [button_]" in rich(session.page)
    for action in ("click[back to search]", "search[lamp]"):
        session.act(action)
    assert "clicked" not in rich(session.page)


def test_only_text_rich_shows_what_was_chosen(shop_of) -> None:
    session = opened(shop_of, size=["small", "large"])
    texts = plain(session.page), rich(session.page)
    session.act("click[large]")
    assert plain(session.page) == texts[0] and rich(session.page) != texts[1]
    assert rich(session.page).startswith("You have clicked large.\nInstruction:\nBuy [a lamp].\n")


@pytest.mark.parametrize("value", ['7.5" wide', "café", "★"])
def test_a_choice_that_json_writes_otherwise_is_not_shown(shop_of, value: str) -> None:
    session = opened(shop_of, size=[value, "large"])
    session.act(f"click[{value}]")
    assert session.chosen == {"size": value} and "clicked" not in rich(session.page)


def test_an_option_called_as_its_value_or_named_in_the_query_is_shown_as_chosen(shop_of) -> None:
    session = opened(shop_of, size=["size", "large"], colour=["red"])
    session.act("click[large]")
    assert rich(session.page).startswith("You have clicked large.\nYou have clicked size.\n")
    for action in ('search[lamp "red"]', LAMP):
        session.act(action)
    assert rich(session.page).startswith("You have clicked red.\nInstruction:")


def test_an_option_called_like_a_button_does_what_the_button_does(shop_of) -> None:
    session = opened(shop_of, size=["Features", "Buy Now", "Search"])
    assert session.act("click[features]") and session.place == "detail" and session.chosen == {}
    assert session.act("click[< prev]") and not session.act("click[search]")
    assert session.act("click[buy now]") and session.place == "done"


def test_a_click_that_cannot_be_written_is_not_listed(shop_of) -> None:
    session = opened(shop_of, size=["a[b]", "a]b", "a[", "a\nb", "", "Search"])
    listed = session.clicks()
    assert {"click[a]b]", "click[a[]", "click[buy now]"} < set(listed) and len(listed) == 8
    for action in listed[-2:]:
        assert session.act(action)


def test_a_value_offered_twice_sets_the_later_option(shop_of) -> None:
    session = opened(shop_of, size=["pro", "small"], style=["pro"])
    session.act("click[pro]")
    assert session.chosen == {"style": "pro"}


def test_prev_is_misled_by_a_page_name_in_the_query(shop_of) -> None:
    session = session_in(shop_of({}, {}), ["search[lamp search_results]", LAMP, "click[< prev]"])
    assert (session.place, session.number) == ("results", 0) and "Page 0 (Total" in plain(session.page)
    session = session_in(shop_of({}), ["search[lamp item_page]", LAMP, "click[features]", "click[< prev]"])
    assert (session.place, session.number) == ("results", 1)


def test_blank_texts_shrink_as_an_html_parser_shrinks_them(shop_of) -> None:
    folder = shop_of(
        {"full_description": "", "small_description": ["soft", "", "  ", "a\n"]}, {"full_description": " \n "}
    )
    session = session_in(folder, ["search[lamp]", LAMP, "click[features]"])
    assert plain(session.page).endswith("< Prev [SEP] soft [SEP]  [SEP]  [SEP] a")
    assert rich(session.page).endswith("[button] < Prev [button_]\n soft\n \n \n a\n\n")
    for product in ("b000000000", "b000000001"):
        for action in ("search[lamp]", f"click[{product}]", "click[description]"):
            session.act(action)
        assert plain(session.page).endswith("[SEP] < Prev")
    assert (
        session.act("click[< prev]") and session.act("click[reviews]") and plain(session.page).endswith("[SEP] < Prev")
    )


def test_the_receipt_names_the_purchase(shop_of) -> None:
    session = opened(shop_of, size=["<'7.5\"&"], colour=["é"])
    for text in ("<'7.5\"&", "é", "buy now"):
        assert session.act(f"click[{text}]")
    text = plain(session.page)
    shown = text.partition("options [SEP] ")[2].partition(" [SEP]")[0]
    assert json.loads(shown) == {"colour": "é", "size": "<'7.5\"&"} and not set("<>&'é") & set(shown)
    assert "Your score (min 0.0, max 1.0) [SEP] 0.5 [SEP]" in text and "B000000000" in text
    assert session.clickables == {} and not session.act("search[lamp]")
