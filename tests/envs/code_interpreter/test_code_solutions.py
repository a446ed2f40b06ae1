"""What counts as right must be what the words ask for: each solution against another way to the same number."""

import heapq
import re
from functools import cache
from math import isqrt

from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.code_interpreter import solutions
from manyturn.envs.code_interpreter.families import FAMILIES
from manyturn.envs.code_interpreter.tasks import answer, cells, question, tasks
from manyturn.envs.contract.stable_random import Draws

N = st.integers(1, 120)
SMALL = st.integers(1, 40)
FEW = settings(max_examples=40, deadline=None)


def stream(n: int, a: int, c: int, m: int) -> list[int]:
    found = [1]
    for _ in range(n):
        found.append((found[-1] * a + c) % m)
    return found[1:]


@FEW
@given(st.integers(2, 400), st.integers(2, 30), SMALL)
def test_prime_sum(n: int, m: int, r: int) -> None:
    primes = [p for p in range(2, n) if all(p % k for k in range(2, isqrt(p) + 1))]
    assert solutions.prime_sum(n, m, r) == sum(p for p in primes if p % m == r)


@FEW
@given(N, SMALL, st.integers(1, 12), st.integers(1, 9))
def test_divisor_count(n: int, start: int, d: int, s: int) -> None:
    def divisors(k: int) -> int:
        return len([j for j in range(1, k + 1) if k % j == 0])

    asked = [k for k in range(start + 1, start + n + 1) if divisors(k) == d and sum(map(int, str(k))) % s == 0]
    assert solutions.divisor_count(n, start, d, s) == len(asked)


@FEW
@given(st.integers(2, 120), SMALL, SMALL, SMALL, SMALL, st.integers(50, 999))
def test_recurrence(n: int, a: int, b: int, p: int, q: int, m: int) -> None:
    @cache
    def y(i: int) -> int:
        return (a, b)[i] if i < 2 else (p * y(i - 1) + q * y(i - 2) + i) % m

    assert solutions.recurrence(n, a, b, p, q, m) == y(n)


@FEW
@given(N, st.integers(0, 3000))
def test_collatz(n: int, start: int) -> None:
    def steps(k: int) -> int:
        return 0 if k == 1 else 1 + steps(3 * k + 1 if k % 2 else k // 2)

    assert solutions.collatz(n, start) == max(range(start + 1, start + n + 1), key=lambda k: (steps(k), -k))


@FEW
@given(st.integers(1, 200), st.integers(1, 60), st.integers(1, 150))
def test_circle(n: int, k: int, s: int) -> None:
    last = 0
    for size in range(2, n + 1):  # Josephus' recursion
        last = (last + k) % size
    assert solutions.circle(n, k, s) == (last + s - 1) % n + 1


@FEW
@given(N, SMALL, SMALL, st.integers(50, 999), st.integers(1, 4))
def test_queue(n: int, a: int, c: int, m: int, counters: int) -> None:
    free, clock = [0] * counters, 0
    for x in stream(n, a, c, m):
        clock += x % 7
        heapq.heappush(free, max(heapq.heappop(free), clock) + 1 + x % 11)
    assert solutions.queue(n, a, c, m, counters) == max(free)


@FEW
@given(N, SMALL, st.sampled_from(["11", "12", "90", "1", "21"]))
def test_digit_row(n: int, start: int, pattern: str) -> None:
    row = "".join(map(str, range(start, start + n)))
    assert solutions.digit_row(n, start, pattern) == len(re.findall(f"(?={pattern})", row))


@FEW
@given(SMALL, SMALL, SMALL, st.integers(50, 999))
def test_palindromes(n: int, a: int, c: int, m: int) -> None:
    text = "".join("pqrs"[x // 7 % 4] for x in stream(n, a, c, m))
    parts = [text[i:j] for i in range(n) for j in range(i + 3, n + 1)]
    assert solutions.palindromes(n, a, c, m, "pqrs") == sum(part == part[::-1] for part in parts)


@FEW
@given(N, SMALL, st.integers(1, 9), SMALL)
def test_stock(n: int, amount: int, every: int, taken: int) -> None:
    served = 0
    for day in range(1, n + 1):
        served += amount * (1 + day // every) - served * taken >= taken
    in_store, in_vain = amount * (1 + n // every) - served * taken, (n - served) * taken
    assert solutions.stock(n, [["tar", amount, every, taken]]) == in_store + in_vain
    assert solutions.stock(1, [["tar", 5, 2, 6], ["wax", 5, 1, 6]]) == (5 + 6) + (10 - 6)


def test_ant_turns_as_langtons_does_and_builds_its_highway() -> None:
    assert [solutions.ant(n, 500, 500, 250, 250) for n in range(9)] == [0, 1, 2, 3, 4, 3, 4, 5, 6]
    assert solutions.ant(10_704, 500, 500, 250, 250) - solutions.ant(10_600, 500, 500, 250, 250) == 12


def test_coins() -> None:
    assert solutions.coins(100, [1, 5, 10, 25, 50, 100], 1000) == 293
    assert solutions.coins(100, [1, 5, 10, 25, 50, 100], 100) == 93


@FEW
@given(N, SMALL, SMALL, st.integers(50, 999))
def test_rising(n: int, a: int, c: int, m: int) -> None:
    found, lengths = stream(n, a, c, m), []
    for i, x in enumerate(found):
        lengths.append(1 + max((lengths[j] for j in range(i) if found[j] < x), default=0))
    assert solutions.rising(n, a, c, m) == max(lengths)


def test_square_chains() -> None:
    assert solutions.square_chains(1000, 0, 1) == 143  # happy numbers up to 1,000
    assert solutions.square_chains(1000, 0, 4) == 857


def test_every_word_of_a_family_that_stands_for_a_number_is_filled_in() -> None:
    for family in FAMILIES.values():
        params = family.draw(Draws("words", family.name))
        asked = question({"n": family.low, "steps": [[family.name, params]]})
        assert "{" not in asked and "}" not in asked and str(family.low) in asked
        assert all(str(v) in asked for v in params.values() if not isinstance(v, list)), family.name
        assert family.solve(family.low + family.span - 1, **params) >= 0


def test_a_result_goes_into_the_next() -> None:
    steps = [["circle", {"k": 3, "s": 1}], ["square_chains", {"start": 0, "goal": 1}]]
    assert solutions.circle(41, 3, 1) == 31  # Josephus' own
    assert answer({"n": 41, "steps": steps}) == solutions.square_chains(1000 + 31 % 4000, 0, 1)
    assert "Here n = 1000 + A % 4000." in question({"n": 41, "steps": steps})
    assert cells({"n": 41, "steps": steps})[1].endswith("B = square_chains(1000 + A % 4000, start=0, goal=1)\nprint(B)")


def test_no_thing_to_compute_occurs_in_two_splits_and_no_unseen_family_elsewhere() -> None:
    met: dict[str, set[str]] = {}
    for split in ("train", "validation", "test", "test_unseen"):
        steps = [
            step for level in ("easy", "hard") for task in tasks(split, level)[:400] for step in task.params["steps"]
        ]
        met[split] = {repr(step) for step in steps}
        unseen = {"ant", "coins", "rising", "square_chains"}
        assert {name for name, _ in steps} <= unseen if split == "test_unseen" else not {n for n, _ in steps} & unseen
    assert sum(map(len, met.values())) == len(set().union(*met.values()))
    assert all(len(found) > 400 for found in met.values())
