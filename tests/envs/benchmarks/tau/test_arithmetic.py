"""The calculator says what ``eval`` says, and no sum hangs it."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.benchmarks.tau.arithmetic import SIGNS, calculated, has_other_signs


def evaluated(expression: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return str(round(float(eval(expression, {"__builtins__": None}, {})), 2))  # noqa: S307  # signs are checked
        except Exception as error:
            return f"Error: {error}"


def ours(expression: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return calculated(expression)
        except Exception as error:
            return f"Error: {error}"


@given(
    st.text(alphabet=sorted(SIGNS - {"*"}), max_size=12)
    | st.from_regex(r"[1-9]\d?( ?[-+*/] ?\(?[1-9]\.?\d?\)?){0,5}", fullmatch=True)
)
def test_no_sum_is_worked_out_otherwise_than_by_eval(expression: str) -> None:
    assert ours(expression) == evaluated(expression)


@pytest.mark.parametrize(
    "expression",
    ["2**8", "2**0.5", "(-8)**0.5", "0**-1", "7//2", "10**400/10**399", "9**-2", "()", "0(-())", "0((1)(2))"],
)
def test_powers_and_odd_sums_are_worked_out_as_by_eval(expression: str) -> None:
    assert ours(expression) == evaluated(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "9**9**9**9",
        "9**999999999",
        "*".join(["9" * 400] * 4),
        "(" * 1900,
        "-" * 1900 + "1",
        "1+" * 900 + "1",
        "1" * 5000,
    ],
)
@pytest.mark.timeout(60)
def test_no_sum_hangs_the_calculator(expression: str) -> None:
    ours(expression)


def test_letters_are_refused_at_sight() -> None:
    assert has_other_signs("__import__('os')") and not has_other_signs("(1 + 2.5) * 3 / -4")
