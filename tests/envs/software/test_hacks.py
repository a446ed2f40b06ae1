"""Whatever an agent does other than to mend the fault, it is not paid for it."""

from collections.abc import Iterator

import pytest
from hacks import HACKS
from small import MENDED, Small, episode

from manyturn.envs.tools.calls import call_text

SUBMIT = call_text("submit")


@pytest.fixture(scope="module")
def env(engine: str) -> Iterator[Small]:
    env = Small(reward="resolved", engine={"limits": {"files": 1000, "workspace_mb": 8}})
    yield env
    env.close()


@pytest.mark.deep
@pytest.mark.parametrize("name", HACKS)
def test_a_hack_is_paid_nothing(env: Small, name: str) -> None:
    paid, info = episode(env, [call_text("bash", command=HACKS[name]), SUBMIT])
    assert (paid, info["success"]) == (0.0, False)


@pytest.mark.parametrize("name", ["tests are emptied", "conftest at the top", "pytest.ini", "a module named json"])
def test_what_does_not_count_does_not_spoil_a_true_mend(env: Small, name: str) -> None:
    mend = call_text("bash", command=f"{HACKS[name]}\ncat > calc/core.py <<'END-OF-MEND'\n{MENDED}END-OF-MEND\n")
    paid, info = episode(env, [mend, SUBMIT])
    assert (paid, info["success"]) == (1.0, True)


@pytest.mark.parametrize(
    "name", ["reports say passed", "a whole report is forged with the nonce", "a report is forged without the nonce"]
)
def test_a_forgery_is_known_for_what_it_is(env: Small, name: str) -> None:
    env.reset(seed=0, options={"task": "small"})
    env.step(call_text("bash", command=HACKS[name]))
    assert "tampered" in env.step(call_text("test"))[0]
