"""Werewolf in small: who may know what, how a game goes on and ends, and that its tasks can be won."""

import pytest

from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.registration.env_registry import make
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.talk.werewolf.env import Werewolf
from manyturn.trainers.record.run_folder import read_metrics

ROLES = ["seer", "werewolf", "first_villager", "second_villager", "third_villager"]
TASK = Task("one", "train", {"names": ["Ada", "Bram", "Cleo", "Dina", "Emil"], "roles": ROLES})
SILENT = ["say nothing"] * 5


def played(*actions: str) -> tuple[Werewolf, str, dict]:
    """A game of ``TASK`` after these actions, with the last observation and info."""
    env = Werewolf()
    text, info = env.reset(seed=1, options={"task": TASK})
    for action in actions:
        text, *_, info = env.step(action)
    return env, text, info


def votes(*names: str) -> list[str]:
    return [f"vote for {name}" for name in names]


def test_only_the_seer_learns_what_it_saw_and_only_the_werewolf_what_it_is():
    env = make("manyturn/Talk-Werewolf-v0")
    secrets = {"You looked at": "seer", "the werewolf. Alive": "werewolf", "the seer. Alive": "seer"}
    for seed in range(40):
        rng = generator("werewolf", seed)
        text, info = env.reset(seed=seed)
        ended = False
        while not ended:
            assert all(info["role"] == role for secret, role in secrets.items() if secret in text)
            action = info["admissible"][int(rng.integers(len(info["admissible"])))]
            text, _, ended, truncated, info = env.step(action)
            assert not truncated


def test_words_of_the_day_reach_each_seat_once_and_in_order():
    env, text, info = played("look at Bram")
    assert info["role"] == "seer" and "You looked at Bram: the werewolf." in text
    text, *_ = env.step("Listen. I am the seer and Bram is the werewolf.")
    assert "Ada: Listen. I am the seer and Bram is the werewolf." in text
    text, *_, info = env.step("say nothing")
    assert info["role"] == "first_villager" and "Ada: Listen." in text and "Bram: say nothing" in text
    env.step("accuse Bram")
    env.step("accuse Bram")
    text, *_, info = env.step("accuse Bram")
    assert info["role"] == "seer" and "Listen" not in text and text.count("accuse Bram") == 3


def test_the_villagers_win_by_voting_the_werewolf_out_and_all_of_them_are_paid():
    env, _, info = played("look at Bram", *SILENT, *votes("Bram", "Ada", "Bram", "Bram", "Ada"))
    assert info["success"] and set(info["reward_parts"]) == {f"{role}.outcome" for role in ROLES if role != "werewolf"}
    assert env.measures() == {"werewolf_wins": 0.0, "villagers_win": 1.0, "days": 1.0}


def test_the_werewolf_wins_when_one_other_is_left_and_it_alone_is_paid():
    first_day = ["look at Cleo", *SILENT, *votes("Cleo", "Cleo", "Dina", "Cleo", "Cleo")]
    env, text, info = played(*first_day)
    assert info["role"] == "seer" and "Cleo is voted out, and was a villager." in text
    text, *_, info = env.step("look at Emil")
    assert info["role"] == "werewolf" and "look" not in text
    text, *_, info = env.step("kill Ada")
    assert info["role"] == "werewolf" and "Ada was killed in the night, and was the seer." in text
    for action in ("accuse Dina", "accuse Bram", "say nothing", *votes("Dina", "Bram")):
        env.step(action)
    _, reward, ended, _, info = env.step("vote for Dina")
    assert ended and reward == 1.0 and info["reward_parts"] == {"werewolf.outcome": 1.0} and not info["success"]


def test_a_tied_vote_removes_nobody():
    _, text, info = played("look at Cleo", *SILENT, *votes("Bram", "Ada", "Bram", "Ada", "Cleo"))
    assert "The vote is tied, and all stay." in text and text.count(",") >= 4 and info["role"] == "seer"


@pytest.mark.parametrize(
    "action", ["", "kill Bram", "look at Ada", "look at Zoe", "I will not look at Bram", "look at"]
)
def test_a_move_that_the_seat_may_not_make_is_answered_and_changes_nothing(action):
    env, text, info = played(action)
    assert (
        info["role"] == "seer" and not info["understood"] and "look at" in text and env.expert().startswith("look at")
    )


def test_a_snapshot_in_each_turn_continues_to_the_same_end():
    env, other = Werewolf(), Werewolf()
    env.reset(seed=3)
    ended = False
    while not ended:
        other.restore(env.snapshot())
        assert other.expert() == env.expert() and other.anchor() == env.anchor()
        action = env.expert()
        text, reward, ended, *_ = env.step(action)
        assert other.step(action)[:2] == (text, reward)


def test_no_game_is_twice_in_a_split_or_in_two():
    env = Werewolf()
    contents = [env.tasks(split)[n].content for split in env.splits for n in range(2000)]
    assert len(set(contents)) == len(contents)


@pytest.mark.deep
def test_a_werewolf_that_learns_beats_the_scripted_players_more_often(command, tmp_path):
    ended = command(
        "train", "--recipe", "werewolf-tiny", "--steps", "12", "--evaluation.limit", "50", "--out", tmp_path / "run"
    )
    assert ended.code in (0, None), ended.err
    earned = [line["werewolf/return"] for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    assert sum(earned[-3:]) / 3 > sum(earned[:2]) / 2 + 0.15
