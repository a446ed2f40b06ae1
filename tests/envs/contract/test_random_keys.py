"""Keys: equal content, equal bytes in every process; unequal content, unequal bytes."""

import enum
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.contract.random_keys import digest, generator, seed_of

pytestmark = pytest.mark.versions

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def canonical(value):
    """The value with its types, so that 1, 1.0 and True differ as they do as keys."""
    if isinstance(value, list):
        return ("list", tuple(map(canonical, value)))
    if isinstance(value, dict):
        return ("dict", frozenset((key, canonical(item)) for key, item in value.items()))
    return (type(value).__name__, repr(value))


@given(PLAIN, PLAIN)
def test_keys_are_equal_exactly_when_contents_are(one, two):
    assert (digest(one) == digest(two)) == (canonical(one) == canonical(two))


@given(st.lists(st.text(), min_size=2, max_size=4))
def test_parts_do_not_run_into_each_other(parts):
    assert digest(*parts) != digest("".join(parts))
    assert digest(*parts) != digest(parts)


@given(st.dictionaries(st.text(), st.integers(), min_size=2), st.randoms())
def test_the_order_of_a_dict_or_set_does_not_matter(mapping, random):
    items = list(mapping.items())
    random.shuffle(items)
    assert digest(dict(items)) == digest(mapping)
    assert digest({key for key, _ in items}) == digest(frozenset(mapping))


def test_numpy_values_equal_their_plain_ones_and_arrays_are_told_apart_by_shape():
    assert digest(np.int64(3), np.float64(0.5), np.str_("a")) == digest(3, 0.5, "a")
    assert digest((1, 2)) == digest([1, 2])
    assert digest(np.zeros((2, 3))) != digest(np.zeros((3, 2)))
    assert digest(np.zeros(2)) != digest(np.zeros(2, dtype=np.float32))


def test_lone_surrogates_can_be_keys_and_objects_cannot():
    assert digest("\ud83d") != digest("\ude00")
    for value in (object(), np.longdouble(1)):
        with pytest.raises(TypeError, match=f"cannot build a key from {type(value).__name__}"):
            digest(value)


def test_subclasses_of_numbers_are_their_numbers():
    class Level(enum.IntEnum):
        HARD = 3

    assert digest(Level.HARD) == digest(3)


def test_every_process_gets_the_same_numbers():
    code = (
        "from manyturn.envs.contract.random_keys import *\n"
        "print(digest({'b': {'x', 'y', 'z'}, 'a': (1, 2.5, None)}), seed_of('a', 1), generator(7).integers(10**9))"
    )
    outs = {
        subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    here = f"{digest({'b': {'x', 'y', 'z'}, 'a': (1, 2.5, None)})} {seed_of('a', 1)} {generator(7).integers(10**9)}\n"
    assert outs == {here}


def test_generators_of_neighbouring_keys_are_not_related():
    draws = np.array([generator("run", i).random(200) for i in range(50)])
    correlation = np.corrcoef(draws) - np.eye(50)
    assert np.abs(correlation).max() < 0.35
    assert all(0 <= seed_of(i) < 2**63 for i in range(100))
