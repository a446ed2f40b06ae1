"""A paper must be found by its title and number: a recipe of the same acronym is not it."""

from papers_page import AGAIN, ROOT, TITLES, page


def test_the_page_is_that_of_the_recipes():
    assert (ROOT / "docs/papers.md").read_text() == page(), AGAIN


def test_two_papers_of_one_acronym_have_recipes_of_their_own():
    rows = [line.split(" | ") for line in page().splitlines() if line.startswith("| ")]
    recipes = {row[1]: row[2] for row in rows}
    assert recipes["2510.08141"] != recipes["2510.14545"]
    assert TITLES.keys() <= recipes.keys(), "a title stands there that no recipe names"
    public = {row[1] for row in rows if row[2] == "`gigpo-spa-epo-gra`" and "no public code" not in row[3]}
    assert public == {"2505.10978", "2505.20732", "2509.22576"}, "only G-RA has no public code"
    assert "epo_released" in next(row[4] for row in rows if row[2] == "`epo`")
