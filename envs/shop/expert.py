"""An expert that knows which product is meant, and finds and buys it through the pages."""

from collections.abc import Iterator

from manyturn.envs.shop.catalogue.catalogue import Catalogue
from manyturn.envs.shop.catalogue.goals import Goal
from manyturn.envs.shop.pages import pages
from manyturn.envs.shop.pages.session import Session
from manyturn.envs.shop.reward.reward import option_met

_NO_OPTION = {pages.SEARCH, pages.BACK, pages.PREVIOUS, pages.BUY, *pages.DETAILS}  # texts that do something else
_BRACKETS = str.maketrans("[]\n", "   ")


def next_action(session: Session, catalogue: Catalogue, goal: Goal) -> str:
    """The expert's action; from any page it leads to the purchase."""
    if session.product is goal.product and session.place == "item":
        missing = [v for name, v in _choices(session, goal).items() if session.chosen.get(name) != v]
        return f"click[{missing[0] if missing else pages.BUY}]"
    if session.product is goal.product and session.place == "detail":
        return f"click[{pages.PREVIOUS}]"
    query, number = _way(catalogue, goal, session.window)
    if session.place == "home":
        return f"search[{query}]"
    if session.place != "results" or session.query != query:
        return f"click[{pages.BACK}]"
    if session.number == number:
        return f"click[{goal.product.id.lower()}]"
    return f"click[{pages.NEXT if session.number < number else pages.PREVIOUS}]"


def wording(goal: Goal) -> str:
    """Search query: the goal's own, or its instruction without the price limit, which no text contains."""
    if goal.query is not None:
        return goal.query
    return goal.instruction.partition(", and price lower than")[0].translate(_BRACKETS).lower()


def _way(catalogue: Catalogue, goal: Goal, window: int) -> tuple[str, int]:
    """The query that brings the product on the earliest page, and that page; of equal ones the more natural query."""
    ways = []
    for query in _queries(goal):
        results = catalogue.search(query)
        if goal.product in results:
            ways.append((results.index(goal.product) // window + 1, query))
            if ways[-1][0] == 1:
                break
    number, query = min(ways, key=lambda way: way[0], default=(1, wording(goal)))
    return query, number


def _queries(goal: Goal) -> Iterator[str]:
    """From what the instruction says to what always finds the product."""
    yield wording(goal)
    if goal.query is not None:
        return
    for words in ((goal.product.kind, *goal.attributes), (goal.product.title,), ("<q>", goal.product.kind)):
        yield " ".join(words).translate(_BRACKETS).lower()


def _choices(session: Session, goal: Goal) -> dict[str, str]:
    """Option name -> value to choose: for each wanted option a value that is equal, else one that passes for it.

    Names are those that a click on the value sets.
    """
    clicks, options = set(session.clicks()), session.clickables.items()
    offered = [(v, name) for v, name in options if name and v not in _NO_OPTION and f"click[{v}]" in clicks]
    choices: dict[str, str] = {}
    for option in goal.options:
        target = option[1] if isinstance(option, tuple) else option
        fits = [(value, name) for value, name in offered if name not in choices and option_met((value,), option)]
        fits.sort(key=lambda fit: fit[0] != target)
        if fits:
            choices[fits[0][1]] = fits[0][0]
    return choices
