"""A product's text that becomes markup, a button that does something else than it says, a page that loads anything."""

import importlib.util
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from manyturn.envs.shop.browser.page_html import CHOICE, POLICY, Document, document
from manyturn.envs.shop.catalogue.catalogue import Product
from manyturn.envs.shop.pages.pages import DETAILS, Detail, Home, Item, Receipt, Results
from manyturn.envs.shop.pages.session import Session
from manyturn.envs.shop.webshop.official_shop import load

TAGS = frozenset("html head meta title style body main p form input button ul li div span h1 fieldset legend a".split())
ATTRIBUTES = frozenset(
    "lang charset class method autocomplete type name aria-label maxlength required autofocus value aria-pressed "
    "disabled href".split()
)
_FILE = Path(__file__).parents[3] / "manyturn" / "report" / "payloads.py"
_SPEC = importlib.util.spec_from_file_location("report_payloads", _FILE)
_PAYLOADS = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_PAYLOADS)
PAYLOADS = _PAYLOADS.PAYLOADS


class Read(HTMLParser):
    """What a parser of HTML finds: tags, attributes, text, and the buttons with their labels."""

    def __init__(self, html: str):
        super().__init__()
        self.tags, self.attributes, self.buttons, self.text, self._inside = set(), set(), [], "", False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}
        if tag in ("button", "input"):
            self.buttons.append([dict(attributes), ""])
            self._inside = tag == "button"

    def handle_endtag(self, tag):
        self._inside = self._inside and tag != "button"

    def handle_data(self, data):
        self.text += data
        if self._inside:
            self.buttons[-1][1] += data


def visited(folder: Path, *actions: str) -> tuple[Session, Document]:
    """A session after some actions, and its page."""
    session = Session(load(folder, "synthetic").catalogue, "Buy <b>a lamp</b>.", lambda product, chosen: 0.5)
    for action in actions:
        assert session.act(action), action
    return session, document(session.page, session.clicks())


PLACES = [[], ["search[lamp]"], ["search[lamp]", "click[b000000000]"]]
PLACES += [[*PLACES[2], f"click[{what}]"] for what in ("description", "features", "buy now")]


@pytest.mark.parametrize("text", PAYLOADS)
def test_hostile_text_in_every_place_stays_text(text):
    product = Product(text, text, text, (text,), {text: (text, "large")}, (text,), 1.0, text, text, text, text)
    chosen = {text: text}
    everywhere = [Home(text), Results(text, text, 2, 1, (product,), {text}), Item(text, text, 1, product, chosen)]
    everywhere += [Detail(text, product, name) for name in DETAILS] + [Receipt(product, chosen, 0.5)]
    for page in everywhere:
        for clicks in ((), (f"click[{text.lower()}]", "click[large]", "click[buy now]")):
            read = Read(document(page, clicks).html)
            assert read.tags <= TAGS and read.attributes <= ATTRIBUTES
            # A parser leaves out NUL and makes one line end of two.
            said = re.sub(r"\s+", " ", read.text.replace("\0", "").replace("\ufffd", ""))
            assert re.sub(r"\s+", " ", text.replace("\0", "").replace("\ufffd", "")).strip() in said


@pytest.mark.parametrize("actions", PLACES)
def test_each_button_stands_for_the_click_that_it_names(shop_of, actions):
    sizes = [{"value": value} for value in ("Small", "X/L", "Features", "a[b]", "Search")]
    folder = shop_of({"customization_options": {"size": sizes, "style": [{"value": "small"}]}}, {})
    session, page = visited(folder, *actions)
    read = Read(page.html)
    assert len(read.buttons) == len(page.actions)
    for place, (attributes, label) in enumerate(read.buttons):
        action = page.actions[place]
        if attributes.get("name") == CHOICE:
            assert attributes["value"] == str(place) and ("disabled" in attributes) == (not action)
        if action and action != "search":
            assert action == f"click[{label.lower()}]" and action in session.clicks()
    clicked = {action for action in page.actions if action.startswith("click")}
    assert clicked == set(session.clicks())


def test_chosen_options_are_pressed(shop_of):
    values = {"size": [{"value": "small"}, {"value": "pro"}], "style": [{"value": "pro"}]}
    folder = shop_of({"customization_options": values}, {})
    _, page = visited(folder, "search[lamp]", "click[b000000000]", "click[small]", "click[pro]")
    pressed = {
        attributes["value"]: attributes["aria-pressed"]
        for attributes, _ in Read(page.html).buttons
        if "aria-pressed" in attributes
    }
    assert list(pressed.values()) == ["true", "false", "true"]  # a value that is offered twice sets the later option


def test_the_policy_allows_the_style_and_the_form_and_nothing_else():
    rules = dict(rule.strip().split(" ", 1) for rule in POLICY.split(";"))
    assert rules.pop("default-src") == "'none'" and rules.pop("form-action") == "'self'"
    assert rules.pop("style-src").startswith("'sha256-") and set(rules.values()) == {"'none'"}
