"""Turn-level rewards of a generated shop: how near the purchase is, as differences of a potential.

    found    0.1  the product stands on the page of results that the visit is at or came from
    opened   0.2  the product's page is open, or a page below it
    chosen   0.1  for each option that is chosen as asked for

A turn is paid what these have risen, and charged what they have fallen; at the end they fall to 0 (Ng, Harada and
Russell 1999). An episode's parts therefore sum to 0 without a discount, so that the best policy stays the best; with a
discount it may not. An episode cut from outside (agent.max_context, rollout.max_turns) keeps what was paid until then.
"""

from manyturn.envs.shop.catalogue.catalogue import Catalogue
from manyturn.envs.shop.catalogue.goals import Goal
from manyturn.envs.shop.pages.session import Session

PARTS = ("found", "opened", "chosen")


def potential(session: Session, catalogue: Catalogue, goal: Goal) -> dict[str, float]:
    """Part -> its potential in the present state."""
    opened = session.product is goal.product
    start = (session.number - 1) * session.window
    shown = catalogue.search(session.query)[start : start + session.window] if session.place != "home" else ()
    right = sum(session.chosen.get(name) == value for name, value in goal.options) if opened else 0
    return {"found": 0.1 * (goal.product in shown), "opened": 0.2 * opened, "chosen": 0.1 * right}
