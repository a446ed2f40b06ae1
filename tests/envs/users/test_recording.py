"""Recordings: what was said once is said again, and nothing is made up where the words differ."""

import json
from pathlib import Path

import pytest

from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.registration.env_registry import make
from manyturn.envs.hosting.handle.env_handle import EnvError, EnvHandle
from manyturn.envs.users.recording import ReplayOptions, ReplayUser

IDS = ("Booking", "Negotiation", "TwentyQuestions", "GuessCity", "Support", "Tutor")


def played(handle: EnvHandle, number: int, actions: list[str] | None = None) -> tuple[list, list[str]]:
    rng, task = generator("play", number), handle.tasks("train")[number]
    steps, said = [handle.reset(task, number)], []
    while not steps[-1].ended:
        able = steps[-1].admissible or []
        mixed = handle.expert() if rng.random() < 0.6 else able[int(rng.integers(len(able)))]
        said.append(actions[len(said)] if actions else mixed)
        steps.append(handle.step(said[-1]))
    return steps, said


@pytest.mark.parametrize("name", IDS)
def test_a_replayed_user_makes_the_same_episodes(name, tmp_path: Path):
    file = str(tmp_path / "users.jsonl")
    recorded = EnvHandle(f"manyturn/Talk-{name}-v0", {"user": {"kind": own_kind(name), "record": file}})
    replayed_steps = [played(recorded, number) for number in range(4)]
    replay = EnvHandle(f"manyturn/Talk-{name}-v0", {"user": {"kind": "replay", "file": file}})
    for number, (steps, actions) in enumerate(replayed_steps):
        assert played(replay, number, actions)[0] == steps


def own_kind(name: str) -> str:
    return next(iter(make(f"manyturn/Talk-{name}-v0").unwrapped.makers()))


def test_other_words_another_task_or_another_seed_have_no_answer(tmp_path: Path):
    file = str(tmp_path / "users.jsonl")
    handle = EnvHandle("manyturn/Talk-GuessCity-v0", {"user": {"kind": "rule", "record": file}})
    handle.reset(handle.tasks("train")[0], 1)
    handle.step("Is it old?")
    replay = EnvHandle("manyturn/Talk-GuessCity-v0", {"user": {"kind": "replay", "file": file}})
    assert replay.env.unwrapped.user.name == "replay of rule"
    replay.reset(replay.tasks("train")[0], 1)
    replay.step("Is it old?")
    with pytest.raises(EnvError, match=r"UserError.*record again"):
        replay.step("Is it old?")
    replay.reset(replay.tasks("train")[0], 1)
    with pytest.raises(EnvError, match="record again"):
        replay.step("Is it a capital?")
    for number, seed in ((1, 1), (0, 2)):
        with pytest.raises(EnvError, match="record again"):
            replay.reset(replay.tasks("train")[number], seed)


def test_a_snapshot_of_a_replayed_dialogue_continues(tmp_path: Path):
    file = str(tmp_path / "users.jsonl")
    asked = ("What is the day?", "What is the time?")
    recorded = make("manyturn/Talk-Booking-v0", user={"kind": "agenda", "record": file}).unwrapped
    recorded.reset(seed=1)
    said = [recorded.step(text)[0] for text in asked]
    one, two = (make("manyturn/Talk-Booking-v0", user={"kind": "replay", "file": file}).unwrapped for _ in range(2))
    one.reset(seed=1)
    assert one.step(asked[0])[0] == said[0]
    two.restore(one.snapshot())
    assert two.step(asked[1])[0] == said[1]


@pytest.mark.parametrize("text", ["", "nonsense", '{"user": "a"}', "[]"])
def test_a_file_that_is_no_recording_is_refused_in_one_line(text, tmp_path: Path):
    file = tmp_path / "bad.jsonl"
    file.write_text(text)
    with pytest.raises(ValueError, match="record") as caught:
        ReplayUser(ReplayOptions(file=file))
    assert "\n" not in str(caught.value)


def test_recordings_of_two_users_are_not_mixed(tmp_path: Path):
    file = tmp_path / "two.jsonl"
    line = {"key": "k", "utterance": "Hi.", "done": False, "parts": {}, "info": {}}
    file.write_text("".join(json.dumps({"user": name, **line}) + "\n" for name in ("agenda", "model(m)")))
    with pytest.raises(ValueError, match="2 users"):
        ReplayUser(ReplayOptions(file=file))
