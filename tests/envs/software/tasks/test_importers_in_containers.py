"""A problem whose tests pass before the mend, or fail after it, gives rewards that mean nothing."""

import os

import pytest
import small_checkouts as small
from needs import absent
from needs_files import data

from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.containers.pool import lease
from manyturn.envs.software.grading.grader import RESOLVED, grade
from manyturn.envs.software.tasks.importers import humanevalfix, problems

pytestmark = pytest.mark.filterwarnings("ignore::manyturn.envs.software.tasks.importers.checkout_reader.OtherRelease")
SECONDS = 10.0


def assert_valid(sandbox, problem):
    """Tests to be mended fail, the others pass, and after the mend all do; a hang is a failure too."""
    before = grade(sandbox, problem, {}, SECONDS, seed=0)
    assert before.cause != RESOLVED and not before.fixed, problem.id
    assert not before.broken or before.cause == "timeout", (problem.id, before.broken)
    after = grade(sandbox, problem, dict(problem.fix), 6 * SECONDS, seed=0)
    assert after.cause == RESOLVED, (problem.id, after)


@pytest.fixture
def sandbox(engine):
    with lease(ContainerEngine(image=engine)) as sandbox:
        yield sandbox


@pytest.fixture
def rows():
    found = problems(f"humanevalfix:{data('humanevalfix', 'python.jsonl') / 'python.jsonl'}")
    assert len(found) == humanevalfix.COUNT
    return found


@pytest.mark.deep
def test_problems_of_our_own_in_each_layout_are_valid(sandbox, tmp_path):
    sources = [f"humanevalfix:{small.humanevalfix(tmp_path)}"]
    sources.append(f"quixbugs:{small.checkout(tmp_path / 'q', small.QUIXBUGS)}")
    sources.append(f"exercism:{small.checkout(tmp_path / 'e', small.EXERCISM)}")
    for problem in (problem for source in sources for problem in problems(source)):
        assert_valid(sandbox, problem)


def test_three_problems_of_humanevalfix_are_valid(sandbox, rows):
    for problem in rows[::55]:
        assert_valid(sandbox, problem)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_problem_of_humanevalfix_is_valid(sandbox, rows):
    for problem in rows:
        assert_valid(sandbox, problem)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("kind", "count"), [("quixbugs", 40), ("exercism", 138)])
def test_every_problem_of_a_checkout_is_valid(sandbox, kind, count):
    variable = f"MANYTURN_{kind.upper()}"
    if variable not in os.environ:
        absent(kind.upper(), f"no checkout of {kind}: set {variable} to one")
    found = problems(f"{kind}:{os.environ[variable]}")
    assert len(found) == count
    for problem in found:
        assert_valid(sandbox, problem)
