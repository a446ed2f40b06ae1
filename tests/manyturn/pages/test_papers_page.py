"""A paper must be found by its title and number: a recipe of the same acronym is not it."""

from papers_page import AGAIN, ROOT, TITLES, page


def test_the_page_is_that_of_the_recipes():
    assert (ROOT / "docs/papers.md").read_text() == page(), AGAIN


def test_two_papers_of_one_acronym_have_recipes_of_their_own():
    rows = [line.split(" | ") for line in page().splitlines() if line.startswith("| ")]
    recipes = {row[1]: row[2] for row in rows}
    assert recipes["2510.08141"] != recipes["2510.14545"]
    assert TITLES.keys() <= recipes.keys(), "a title stands there that no recipe names"
