"""The card of a folder for the Hub, in which a name could pass for a link, a heading or a cell."""

import pytest

from manyturn.agents.trajectories.conversation import of_exchanges
from manyturn.agents.trajectories.formats import hub

pytestmark = pytest.mark.versions


@pytest.mark.parametrize("name", ["a|b`![x](http://e)", "a\n\n# b", "a: [b"])
def test_a_card_shows_a_hostile_name_as_text(name, tmp_path):
    one = of_exchanges([("see", "say")], "x", None)
    hub.write(tmp_path / "set", [type(one)(one.episode, one.turns, None, {"policy": name, "env": name})])
    card = (tmp_path / "set" / "README.md").read_text()
    assert card.startswith("---\npretty_name: ") and 'size_categories: ["n<1K"]' in card
    [row] = [line for line in card.splitlines() if "unknown" in line and line.startswith("| ")]
    assert row.count("|") == 6 and "\n# b" not in card
    assert all(cell.strip().startswith("`") and cell.strip().endswith("`") for cell in row.split("|")[1:4])
