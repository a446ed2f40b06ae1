"""Environments with a user: the argument swaps it, and results say who it was."""

import pytest

from manyturn.envs.contract.registration.env_registry import make


@pytest.mark.parametrize(
    ("user", "name"),
    [
        (None, "agenda"),
        ("agenda", "agenda"),
        ({"kind": "agenda", "noise": 0.25, "patience": 2}, "agenda(noise=0.25, patience=2)"),
        ({"kind": "model", "model": "m", "base_url": "http://127.0.0.1:1/v1"}, "model(m)"),
        (
            {"kind": "model", "model": "m", "temperature": 0.5, "base_url": "http://127.0.0.1:1/v1"},
            "model(m, temperature=0.5)",
        ),
    ],
)
def test_the_argument_names_the_user(user, name):
    env = make("manyturn/Talk-Booking-v0", user=user)
    assert env.unwrapped.user.name == name
    if "model" not in name:
        assert env.reset(seed=1)[1]["user"] == name
        assert env.step("Which day?")[4]["user"] == name


@pytest.mark.parametrize(
    ("user", "mend"),
    [
        ("agnda", "agenda"),
        ({"noise": 0.1}, "agenda, model, replay"),
        ({"kind": "agenda", "niose": 0.1}, "noise"),
        ({"kind": "agenda", "noise": 2}, "noise"),
        ({"kind": "model"}, "model"),
        ({"kind": "replay", "file": "/nowhere.jsonl"}, "record"),
    ],
)
def test_a_slip_in_the_argument_names_the_mend(user, mend):
    with pytest.raises(ValueError, match=mend):
        make("manyturn/Talk-Booking-v0", user=user)


@pytest.mark.parametrize("seed", range(8))
def test_another_user_leaves_the_worlds_own_chance_as_it_is(seed):
    """The pupil of a tutor learns and slips by chance; that chance must not depend on who speaks for it."""
    one, two = (make("manyturn/Talk-Tutor-v0").unwrapped for _ in range(2))
    one.reset(seed=seed)
    two.reset(seed=seed)
    two._user_rng.random(7)  # a user that draws more
    skill, results = one.task.params["skills"][0], [[], []]
    for _ in range(10):
        for env, seen in zip((one, two), results, strict=True):
            seen.append(env.step(f"exercise {skill}")[0].splitlines()[-1])
    assert results[0] == results[1]
