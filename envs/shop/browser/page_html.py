"""Pages as HTML: nothing but text, one form and its buttons; no scripts, nothing from elsewhere.

Each button stands for an action of the text pages. What the browser sends is the button's place on the page, so that
no text of a product has to survive a way through HTML and back.
"""

import base64
import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field
from html import escape

from manyturn.envs.shop.pages.pages import SEARCH, Detail, Home, Item, Page, Receipt, Results

WORDS, CHOICE = "words", "choice"  # the form's fields: what is searched for, and the button that was pressed
LONGEST = 2_000  # characters that can be searched for
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:50rem;padding:0 1rem}"
    "button{font:inherit;margin:.15rem .3rem .15rem 0;padding:.2rem .7rem}"
    "button[aria-pressed=true]{background:#135;color:#fff}"
    "input{font:inherit;width:70%;padding:.2rem}ul{list-style:none;padding:0}li{margin:.6rem 0}"
    "fieldset{border:1px solid #bbb;margin:.8rem 0}p,h1,legend,li{overflow-wrap:anywhere}"
    ".errand{background:#eef;padding:.6rem}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@dataclass
class Document:
    """A page as HTML.

    Attributes:
        html: the whole document.
        actions: what each control of the page does, in order, as a text action; "" for one that does nothing. The
            search bar is a control and does nothing by itself; the button next to it is called ``search``.
    """

    html: str = ""
    actions: list[str] = field(default_factory=list)


def document(page: Page, clicks: Collection[str]) -> Document:
    """A page as HTML.

    Args:
        page: what is shown.
        clicks: the text actions that do something there; other buttons are disabled.
    """
    writer = _Writer(clicks)
    body = writer.receipt(page) if isinstance(page, Receipt) else writer.page(page)
    head = f'<meta charset="utf-8"><title>Shop</title><style>{_STYLE}</style>'
    html = f'<!doctype html><html lang="en"><head>{head}</head><body><main>{body}</main></body></html>'
    return Document(html, writer.actions)


class _Writer:
    def __init__(self, clicks: Collection[str]):
        self._clicks = frozenset(clicks)
        self.actions: list[str] = []

    def page(self, page: Home | Results | Item | Detail) -> str:
        """Every page but the last."""
        match page:
            case Home():
                inside = self._home()
            case Results():
                inside = self._results(page)
            case Item():
                inside = self._item(page)
            case Detail():
                inside = self._buttons("Back to Search", "< Prev") + "".join(map(_paragraph, page.body()))
        errand = f'<p class="errand">Instruction: {escape(page.instruction)}</p>'
        return f'{errand}<form method="post" autocomplete="off">{inside}</form>'

    def receipt(self, page: Receipt) -> str:
        """Page of the purchase and its reward."""
        chosen = "".join(_paragraph(f"{name}: {value}") for name, value in page.chosen.items())
        score = _paragraph(f"Your score (min 0.0, max 1.0): {page.reward}")
        title = _paragraph(f"Purchased: {page.product.title}")
        return f"<h1>Thank you for shopping with us!</h1>{title}{_paragraph(page.product.id)}{chosen}{score}"

    def _home(self) -> str:
        self.actions.append("")
        bar = f'<input type="search" name="{WORDS}" aria-label="Search words" maxlength="{LONGEST}" required autofocus>'
        return bar + self._button("Search", SEARCH)

    def _results(self, page: Results) -> str:
        turning = ("< Prev", "Next >") if page.number > 1 else ("Next >",)
        head = self._buttons("Back to Search", *turning)
        count = _paragraph(f"Page {page.number} (Total results: {page.total})")
        items = ""
        for product in page.products:
            price = f"<span>{escape(product.price_tag)}</span>"
            items += f"<li>{self._click(product.id)}<div>{escape(product.title)}</div>{price}</li>"
        return f"{head}{count}<ul>{items}</ul>"

    def _item(self, page: Item) -> str:
        product, inside = page.product, self._buttons("Back to Search", "< Prev")
        inside += f"<h1>{escape(product.title)}</h1>"
        inside += _paragraph(f"Price: {product.price_tag}") + _paragraph("Rating: N.A.")
        for name, values in product.options.items():
            buttons = "".join(self._click(value, page.chosen.get(name) == value) for value in values)
            inside += f"<fieldset><legend>{escape(name)}</legend>{buttons}</fieldset>"
        return inside + self._buttons("Description", "Features", "Reviews", "Buy Now")

    def _buttons(self, *labels: str) -> str:
        return f"<p>{''.join(map(self._click, labels))}</p>"

    def _click(self, label: str, pressed: bool | None = None) -> str:
        action = f"click[{label.lower()}]"
        return self._button(label, action if action in self._clicks else "", pressed)

    def _button(self, label: str, action: str, pressed: bool | None = None) -> str:
        state = "" if pressed is None else f' aria-pressed="{str(pressed).lower()}"'
        state += "" if action else " disabled"
        self.actions.append(action)
        return f'<button name="{CHOICE}" value="{len(self.actions) - 1}"{state}>{escape(label)}</button>'


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>" if text.strip() else ""
