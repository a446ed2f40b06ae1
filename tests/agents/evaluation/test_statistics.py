"""Statistics: intervals that would claim more than was measured."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri, stdtrit

from manyturn.agents.evaluation.statistics import (
    mean_interval,
    normal_quantile,
    paired_difference,
    pass_at_k,
    pass_hat_k,
    sign_flip_p,
    student_quantile,
)

pytestmark = pytest.mark.versions

outcomes = st.dictionaries(st.text(max_size=3), st.lists(st.booleans(), min_size=1, max_size=6), min_size=2, max_size=8)


def simulated(rng, tasks, repeats, a=0.6, b=0.9):
    """Outcomes of tasks whose difficulty is drawn from Beta(a, b)."""
    wins = rng.binomial(repeats, rng.beta(a, b, tasks))
    return {str(i): [1] * int(c) + [0] * (repeats - int(c)) for i, c in enumerate(wins)}


@pytest.mark.parametrize("p", [0.025, 0.5, 0.9, 0.975, 0.9995])
def test_quantiles_are_those_of_scipy_which_weighs_more_than_all_else(p):
    assert normal_quantile(p) == pytest.approx(ndtri(p), abs=1e-12)
    for freedom in (1, 2, 3, 4, 7, 16, 199, 2000):
        assert student_quantile(freedom, p) == pytest.approx(stdtrit(freedom, p), rel=1e-10, abs=1e-12)
    assert math.isnan(student_quantile(0, p))


@pytest.mark.parametrize("repeats", [1, 4, 8])
def test_the_interval_holds_the_truth_as_often_as_it_says(repeats):
    rng = np.random.default_rng(repeats)
    found = [mean_interval(simulated(rng, 50, repeats), proportion=True) for _ in range(3000)]
    assert 0.93 <= np.mean([low <= 0.4 <= high for _, low, high, *_ in found]) <= 0.97


@pytest.mark.parametrize("repeats", [4, 8])
def test_a_nearly_perfect_policy_gets_no_interval_that_is_too_narrow(repeats):
    # Student's interval holds the truth in 87 % and 90 % here.
    rng = np.random.default_rng(repeats)
    found = [mean_interval(simulated(rng, 50, repeats, 9, 0.3), proportion=True) for _ in range(2000)]
    assert np.mean([low <= 9 / 9.3 <= high for _, low, high, *_ in found]) >= 0.925


def test_returns_get_an_interval_that_holds_the_truth():
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(2000):
        values = rng.normal(3, 2, (20, 1)) + rng.normal(0, 1, (20, 4))
        _, low, high, *_ = mean_interval({str(i): row.tolist() for i, row in enumerate(values)})
        held += low <= 3 <= high
    assert 0.93 <= held / 2000 <= 0.97


def test_equal_policies_are_seldom_told_apart_and_pairing_narrows():
    rng = np.random.default_rng(0)
    false = 0
    for _ in range(2000):
        difficulty = rng.beta(0.6, 0.9, 50)
        a, b = ({str(i): row.tolist() for i, row in enumerate(rng.random((50, 8)) < difficulty[:, None])} for _ in "ab")
        _, low, high, *_ = paired_difference(a, b)
        false += not low <= 0 <= high
    assert 0.03 <= false / 2000 <= 0.07
    single = mean_interval(a, proportion=True)
    assert high - low < 0.7 * (single.high - single.low)


@given(outcomes)
def test_a_success_interval_stays_in_bounds_around_its_mean(values):
    mean, low, high, tasks, episodes = mean_interval(values, proportion=True)
    assert 0 <= low <= mean <= high <= 1 and low < high
    assert (tasks, episodes) == (len(values), sum(map(len, values.values())))


@given(outcomes, st.randoms())
def test_the_order_of_tasks_and_episodes_does_not_matter(values, random):
    tasks = list(values)
    random.shuffle(tasks)
    shuffled = {task: random.sample(values[task], len(values[task])) for task in tasks}
    assert np.allclose(mean_interval(values, proportion=True), mean_interval(shuffled, proportion=True))


def test_a_task_with_many_episodes_does_not_outweigh_the_others():
    assert mean_interval({"a": [1] * 97, "b": [0], "c": [0]}).mean == pytest.approx(1 / 3)


def test_more_repeats_of_the_same_tasks_do_not_pretend_more_tasks():
    few = mean_interval({str(i): [i % 2] for i in range(20)}, proportion=True)
    many = mean_interval({str(i): [i % 2] * 50 for i in range(20)}, proportion=True)
    assert few[:3] == many[:3]


def test_all_successes_do_not_prove_perfection():
    mean, low, high, *_ = mean_interval({str(i): [1, 1] for i in range(10)}, proportion=True)
    assert (mean, high) == (1, 1) and 0.7 < low < 0.73


def test_one_task_says_nothing_about_others_and_none_nothing_at_all():
    one = mean_interval({"a": [1, 0]}, proportion=True)
    assert one.mean == 0.5 and math.isnan(one.low) and math.isnan(one.high)
    assert all(map(math.isnan, mean_interval({})[:3]))


def test_what_is_no_number_is_refused_instead_of_averaged():
    for values in ([], [math.nan], [math.inf]):
        with pytest.raises(ValueError, match="'b'"):
            mean_interval({"a": [1], "b": values})
    with pytest.raises(ValueError, match="between 0 and 1"):
        mean_interval({"a": [2], "b": [0]}, proportion=True)


def test_a_comparison_over_other_tasks_is_refused():
    for compare in (paired_difference, sign_flip_p):
        with pytest.raises(ValueError, match="'b', which A has and B lacks"):
            compare({"a": [1], "b": [1]}, {"a": [1]})


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=7), st.integers(1, 8))
def test_pass_at_k_and_pass_hat_k_are_what_counting_all_choices_gives(tries, k):
    choices = list(itertools.combinations(tries, k))
    at_least_one, all_of_them = pass_at_k({"a": tries}, k), pass_hat_k({"a": tries}, k)
    if not choices:
        assert at_least_one is None and all_of_them is None
    else:
        assert at_least_one == pytest.approx(np.mean([any(choice) for choice in choices]))
        assert all_of_them == pytest.approx(np.mean([all(choice) for choice in choices]))


def test_a_task_with_too_few_attempts_is_left_out_of_pass_at_k():
    assert pass_at_k({"a": [True, False], "b": [False]}, 2) == 1
    with pytest.raises(ValueError, match="at least 1"):
        pass_at_k({"a": [True]}, 0)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8))
def test_the_sign_flip_p_is_what_counting_all_signs_gives(differences):
    a, b = {str(i): [d] for i, d in enumerate(differences)}, {str(i): [0] for i in range(len(differences))}
    sums = [abs(np.dot(signs, differences)) for signs in itertools.product((-1, 1), repeat=len(differences))]
    assert sign_flip_p(a, b) == pytest.approx(np.mean(np.array(sums) >= abs(sum(differences))))


def test_the_sampled_sign_flip_p_does_not_depend_on_order_and_is_never_zero():
    rng = np.random.default_rng(0)
    a = {f"task {i}": [float(v)] for i, v in enumerate(rng.normal(0.3, 1, 40))}
    b = {task: [0.0] for task in a}
    p = sign_flip_p(a, b)
    assert p == sign_flip_p(dict(reversed(a.items())), b)
    assert 0 < sign_flip_p({task: [9.0] for task in a}, b) < 0.001
    assert 0.01 < p < 0.9
