"""What every dialogue environment must keep: the contract, bounds on luck, and disjoint splits by what matters."""

import pytest

from manyturn.envs.conformance.check_runner import check
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.registration.env_registry import make
from manyturn.envs.hosting.handle.env_handle import EnvHandle

IDS = [
    f"manyturn/Talk-{name}-v0"
    for name in ("Booking", "Negotiation", "SelfPlay", "TwentyQuestions", "GuessCity", "Support", "Tutor")
]
HARDER = [
    ("manyturn/Talk-Booking-v0", {"difficulty": "hard"}),
    ("manyturn/Talk-Booking-v0", {"difficulty": "medium", "rewards": "turns"}),
    ("manyturn/Talk-Negotiation-v0", {"difficulty": "hard"}),
    ("manyturn/Talk-Negotiation-v0", {"game": "split", "difficulty": "hard", "rewards": "turns"}),
    ("manyturn/Talk-SelfPlay-v0", {"game": "split"}),
    ("manyturn/Talk-Werewolf-v0", {}),
    ("manyturn/Talk-TwentyQuestions-v0", {"difficulty": "hard", "rewards": "turns"}),
    ("manyturn/Talk-GuessCity-v0", {"difficulty": "hard", "rewards": "turns"}),
    ("manyturn/Talk-Support-v0", {"difficulty": "hard", "rewards": "turns"}),
    ("manyturn/Talk-Tutor-v0", {"difficulty": "hard", "rewards": "turns"}),
]
FAST = (
    "made",
    "determinism",
    "odd actions",
    "snapshot",
    "rewards",
    "ends",
    "info",
    "expert",
    "random",
    "anchors",
    "close",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", IDS)
def test_the_whole_contract_is_kept(name):
    report = check(name)
    assert report.passed, str(report)


@pytest.mark.deep
@pytest.mark.parametrize(("name", "kwargs"), [(name, {}) for name in IDS] + HARDER)
def test_the_contract_is_kept_by_every_level_and_form_of_reward(name, kwargs):
    report = check(name, kwargs, samples=3, only=FAST)
    assert report.passed, str(report)


def rate(name: str, policy, kwargs=None, count: int = 50) -> float:
    """Share of test episodes that a policy wins; ``policy(handle, step, rng)`` gives the action."""
    handle, won = EnvHandle(name, kwargs), 0
    tasks, rng = handle.tasks("test"), generator("rate", name)
    for number in range(count):
        step = handle.reset(tasks[number], number)
        while not step.ended:
            step = handle.step(policy(handle, step, rng))
        won += bool(step.success)
    return won / count


@pytest.mark.parametrize("name", IDS)
def test_the_expert_wins_and_neither_silence_nor_chance_does(name):
    assert rate(name, lambda handle, step, rng: handle.expert()) >= 0.98
    assert rate(name, lambda handle, step, rng: "hm") == 0
    assert rate(name, lambda handle, step, rng: step.admissible[int(rng.integers(len(step.admissible)))]) <= 0.35


@pytest.mark.parametrize("name", IDS)
def test_a_wrong_level_or_reward_is_refused_with_what_there_is(name):
    with pytest.raises(ValueError, match=r"choose|takes no argument"):
        make(name, rewards="shaped")
    with pytest.raises(ValueError, match=r"has easy|has tiny, easy|takes no argument"):
        make(name, difficulty="esay")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("Booking", ("informed",)), ("Negotiation", ("concession",)), ("TwentyQuestions", ("information",)),
        ("Support", ("mood",)), ("Tutor", ("gain",)),
    ],
)  # fmt: skip
def test_turn_rewards_add_up_to_the_change_of_progress_and_leave_the_outcome(name, parts):
    name = f"manyturn/Talk-{name}-v0"
    plain, paid = EnvHandle(name), EnvHandle(name, {"rewards": "turns"})
    assert plain.part_names == () and paid.part_names == parts
    task = plain.tasks("train")[5]
    steps = [plain.reset(task, 1)]
    others = [paid.reset(task, 1)]
    while not steps[-1].ended:
        action = plain.expert()
        steps.append(plain.step(action))
        others.append(paid.step(action))
    gained = sum(step.parts.get(parts[0], 0.0) for step in others)
    assert gained == pytest.approx(steps[-1].progress - steps[0].progress) and gained > 0
    assert [step.parts.get("outcome") for step in others] == [step.parts.get("outcome") for step in steps]
