"""Pages as text, byte for byte as the original's observation modes ``text`` and ``text_rich`` give them.

The original parses its HTML and joins the pieces of text in it; here ``pieces`` lists the same pieces from the page.
"""

import json
from collections.abc import Callable

from manyturn.envs.shop.pages.pages import Home, Item, Page, Receipt, Results

_BLANK = " \n\t\f\r"
Piece = tuple[str, str]  # what it is (text, button, option, link) and the text


def plain(page: Page) -> str:
    """Mode ``text``: the pieces on one line. Which options were chosen is not shown."""
    return " [SEP] ".join([text.strip() for _, text in pieces(page)])


def rich(page: Page) -> str:
    """Mode ``text_rich``: a line for each piece; what can be clicked, and what was clicked, is marked."""
    chosen, lines = [], []
    here = address(page) if isinstance(page, Item) else ""
    for what, text in pieces(page):
        if what == "text":
            lines.append(text)
        elif what == "button":
            lines.append(_button(text, clicked=False))
        elif what == "link":
            lines.append("\n" + _button(text, clicked=isinstance(page, Results) and text in page.visited))
        else:
            marked = f'"{text}"' in here
            lines.append("  " + _button(text, clicked=marked))
            if marked:
                chosen.insert(0, f"You have clicked {text}.")
    return "".join(f"{line}\n" for line in chosen + lines)


def _button(text: str, *, clicked: bool) -> str:
    return f"[clicked button] {text} [clicked button_]" if clicked else f"[button] {text} [button_]"


MODES: dict[str, Callable[[Page], str]] = {"text": plain, "text_rich": rich}


def address(page: Item) -> str:
    """The end of the page's address, in which the original looks for chosen options.

    Therefore it misses values that JSON writes otherwise (quotation marks, accents) and takes a query's words between
    quotation marks, or an option's name, for chosen.
    """
    return f"{page.query.replace(' ', '+')}/{page.number}/{json.dumps(dict(page.chosen))}"


def pieces(page: Page) -> list[Piece]:
    """Text as the original's HTML parser reads the page: empty pieces vanish, blank ones shrink."""
    pieces = _written(page)
    if not any([text[:1] in _BLANK for _, text in pieces]):  # an empty text is in every text
        return pieces
    visible = [(what, text) for what, text in pieces if text.strip(_BLANK) or (text and "\n" not in text)]
    return [(what, text if text.strip(_BLANK) else " ") for what, text in visible]


def _written(page: Page) -> list[Piece]:
    if isinstance(page, Receipt):
        return _receipt(page)
    if isinstance(page, Home):
        return [("text", "WebShop"), ("text", "Instruction: "), ("text", page.instruction), ("button", "Search")]
    head = [("text", "Instruction:"), ("text", page.instruction), ("button", "Back to Search")]
    if isinstance(page, Results):
        return head + _results(page)
    head.append(("button", "< Prev"))
    if isinstance(page, Item):
        return head + _item(page)
    lead = " " if page.name == "features" else ""
    return head + [("text", lead + text) for text in page.body()]


def _results(page: Results) -> list[Piece]:
    pieces = [("text", f"Page {page.number} (Total results: {page.total})")]
    pieces += [("button", "< Prev"), ("button", "Next >")] if page.number > 1 else [("button", "Next >")]
    for product in page.products:
        pieces += [("link", product.id), ("text", product.title), ("text", product.price_tag)]
    return pieces


def _item(page: Item) -> list[Piece]:
    pieces: list[Piece] = []
    for name, values in page.product.options.items():
        pieces.append(("text", name))
        pieces += [("option", value) for value in values]
    pieces += [("text", page.product.title), ("text", f"Price: {page.product.price_tag}"), ("text", "Rating: N.A.")]
    return pieces + [("button", text) for text in ("Description", "Features", "Reviews", "Buy Now")]


def _receipt(page: Receipt) -> list[Piece]:
    """The original leaves most of this page empty."""
    options = json.dumps(dict(page.chosen), sort_keys=True)
    for mark, code in (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e"), ("'", "\\u0027")):
        options = options.replace(mark, code)  # safe inside HTML
    texts = ["Thank you for shopping with us!", "Your code: ", "None", " (Paste it in your MTurk interface.)"]
    texts += ["Purchased", "asin", page.product.id, "options", options, "attrs", "None", "category", "None"]
    texts += ["query", "None", "product category", "None", "Target", "asin", "options", "attrs", "price upper"]
    texts += ["instuction text", "category", "product category", "query", "Goal ", "None", "Reward"]
    texts += ["Your score (min 0.0, max 1.0)", str(page.reward), "Reward Details ", "None"]
    return [("text", text) for text in texts]
