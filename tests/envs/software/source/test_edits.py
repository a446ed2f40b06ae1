import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.software.source.edits import Edit, Places, applied


def edit(start: int, end: int, *pieces) -> Edit:
    return Edit("operator", "f", (start, end), pieces)


def test_pieces_are_texts_of_ours_and_of_the_unchanged_file():
    swapped = edit(2, 6, (5, 6), (3, 5), (2, 3))
    assert applied(b"f(a, b)", [swapped]) == b"f(b, a)"
    assert applied(b"f(a, b)", [swapped, edit(0, 1, "g")]) == b"g(b, a)"


def test_edits_that_overlap_are_refused():
    with pytest.raises(ValueError, match="overlap"):
        applied(b"abcdef", [edit(0, 3, "x"), edit(2, 4, "y")])


@given(st.binary(max_size=40), st.lists(st.integers(0, 40), max_size=8), st.randoms())
def test_what_stands_between_the_edits_is_kept(source, cuts, random):
    cuts = sorted(min(cut, len(source)) for cut in cuts)
    spans = list(zip(cuts[::2], cuts[1::2], strict=False))
    edits = [edit(start, end, "<", (start, end), ">") for start, end in spans]
    shuffled = random.sample(edits, len(edits))
    changed = applied(source, shuffled)
    assert len(changed) == len(source) + 2 * len(edits)
    assert changed.replace(b"<", b"").replace(b">", b"") == source.replace(b"<", b"").replace(b">", b"")


def test_places_are_bytes_where_letters_take_several():
    source = "é = 'ä'  # ö\r\nvalue = é\n".encode()
    places, tree = Places(source), ast.parse(source)
    assert places.text(places.span(tree.body[1].value)) == "é".encode()
    assert places.text(places.lines(tree.body[0])) == "é = 'ä'  # ö\r\n".encode()


def test_a_line_with_two_statements_is_not_taken_for_one():
    source = b"a = 1; b = 2\n"
    places = Places(source)
    assert [places.lines(statement) for statement in ast.parse(source).body] == [None, None]
