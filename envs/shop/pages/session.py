"""One visit to the shop: where the agent is, what it has chosen, and what its actions do."""

import json
from collections.abc import Callable, Mapping

from manyturn.envs.shop.catalogue.catalogue import Catalogue, Product
from manyturn.envs.shop.pages import pages
from manyturn.envs.shop.pages.pages import Detail, Home, Item, Page, Receipt, Results

_ADDRESS = {"results": "search_results", "item": "item_page", "detail": "item_sub_page"}


def parse(action: str) -> tuple[str, str] | None:
    """Name and argument of an action such as ``search[red shoes]``, or None.

    As the original's expression ``(.+)\\[(.+)\\]``, greedy and from the start of the first line, but in time that grows
    with the length only: the last bracket that leaves an argument splits, and what follows the last ``]`` is ignored.
    """
    line = action.partition("\n")[0]
    close = line.rfind("]")
    start = line.rfind("[", 1, close - 1) if close > 0 else -1
    return (line[:start], line[start + 1 : close]) if start > 0 else None


class Session:
    """A visit.

    Args:
        catalogue: the shop.
        instruction: what stands on every page.
        judge: the reward for a product with options, name -> value.
        window: products on a page of results.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        instruction: str,
        judge: Callable[[Product, Mapping[str, str]], float],
        window: int = pages.WINDOW,
    ):
        self._catalogue, self._instruction, self._judge, self.window = catalogue, instruction, judge, window
        self._return()

    def _return(self) -> None:
        """Stand at the search bar, everything forgotten."""
        self.place = "home"
        self.query, self.number = "", 0
        self.product: Product | None = None
        self.detail = ""
        self.chosen: dict[str, str] = {}
        self.visited: frozenset[str] = frozenset()
        self._show()

    def _show(self) -> None:
        self.page = self._page()
        self.clickables = self.page.clickables()

    def _page(self) -> Page:
        if self.place == "home":
            return Home(self._instruction)
        if self.place == "results":
            results = self._catalogue.search(self.query)
            shown = results[(self.number - 1) * self.window : self.number * self.window]
            return Results(self._instruction, self.query, self.number, len(results), shown, self.visited)
        assert self.product is not None
        if self.place == "item":
            return Item(self._instruction, self.query, self.number, self.product, dict(self.chosen))
        if self.place == "detail":
            return Detail(self._instruction, self.product, self.detail)
        return Receipt(self.product, dict(self.chosen), self._judge(self.product, self.chosen))

    def act(self, action: str) -> bool:
        """Take an action; False if it meant nothing here, and then nothing has changed.

        A search works on every page. Letters may be small or capital in an argument, not in ``search`` and ``click``.
        """
        parsed = parse(action)
        if parsed is None or self.place == "done":
            return False
        name, argument = parsed[0], parsed[1].lower()
        if name == "search":
            self._search(argument, 1)
        elif name == "click" and argument in self.clickables and argument != pages.SEARCH:
            self._click(argument)
        else:
            return False
        self._show()
        return True

    def clicks(self) -> list[str]:
        """The clicks that do something here; a text with certain brackets cannot be written as one."""
        texts = [text for text in self.clickables if text and text != pages.SEARCH]
        odd = {text for text in texts if "[" in text or "\n" in text}
        return [f"click[{text}]" for text in texts if text not in odd or parse(f"click[{text}]") == ("click", text)]

    def _search(self, query: str, number: int) -> None:
        self.place, self.query, self.number = "results", query, number
        self.product, self.chosen = None, {}

    def _click(self, text: str) -> None:
        """Effect of a text, decided by the text first: an option called ``buy now`` buys."""
        where = self._where() if text in (pages.NEXT, pages.PREVIOUS) else ""
        if text == pages.BUY:
            self.place = "done"
        elif text == pages.BACK:
            self._return()
        elif where == "results":
            self._search(self.query, self.number + (1 if text == pages.NEXT else -1))
        elif text == pages.PREVIOUS:
            if where == "item":
                self._search(self.query, self.number)
            else:
                self.place = "item"
        elif text in pages.DETAILS:
            self.place, self.detail = "detail", text
        else:
            self._open_or_choose(text)

    def _open_or_choose(self, text: str) -> None:
        option = self.clickables[text]
        if option is not None:
            self.chosen[option] = text
        else:
            assert isinstance(self.page, Results)
            self.product = next(product for product in self.page.products if product.id.lower() == text)
            self.visited |= {self.product.id}
        self.place = "item"

    def _where(self) -> str:
        """Page that ``next`` and ``prev`` start from.

        The original looks for a page's name in the address, which holds the query and the options too.
        """
        address = f"{_ADDRESS[self.place]}/{self.query}/{self.chosen}"
        return next(place for place, name in _ADDRESS.items() if name in address)

    # ---- state ----------------------------------------------------------------------------------------------

    def situation(self) -> tuple:
        """State that decides the rest of the visit, apart from the products that were looked at."""
        product = self.product.id if self.product else ""
        return self.place, self.query, self.number, product, self.detail, tuple(sorted(self.chosen.items()))

    def save(self) -> bytes:
        """Everything that actions have changed."""
        product = self.product.id if self.product else None
        state = [self.place, self.query, self.number, product, self.detail, self.chosen, sorted(self.visited)]
        return json.dumps(state).encode()

    def load(self, data: bytes) -> None:
        """Inverse of ``save``."""
        self.place, self.query, self.number, product, self.detail, self.chosen, visited = json.loads(data)
        self.product = None if product is None else self._catalogue[product]
        self.visited = frozenset(visited)
        self._show()
