"""What leaves in a format that can hold it comes back as it was, to the last digit of every number."""

import json
import math
import random
import tempfile
from pathlib import Path

import pytest
from drawn_trajectories import trajectories
from hypothesis import given, settings

from manyturn.agents.play.episode import Ending, Episode, TurnRecord
from manyturn.agents.records.episode_rows import episode_rows, turn_rows
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.agents.trajectories.folder_writer import write_folder
from manyturn.agents.trajectories.format_detection import read_any
from manyturn.agents.trajectories.formats import atif, hub, openenv_trace
from manyturn.agents.trajectories.trajectory import Trajectory, TrajectoryError, canonical, from_plain, to_plain
from manyturn.envs.contract.tasks.task import Task

pytestmark = pytest.mark.versions


def same(one: Trajectory, other: Trajectory) -> None:
    assert canonical(to_plain(one)) == canonical(to_plain(other))
    assert list(other.episode) == list(one.episode) or sorted(other.episode) == sorted(one.episode)


def through_json(value):
    return json.loads(canonical(value))


@given(trajectories())
def test_the_plain_form_loses_nothing(one):
    same(one, from_plain(through_json(to_plain(one))))


@given(trajectories())
def test_an_atif_document_loses_nothing(one):
    same(one, atif.of_document(through_json(atif.document(one)), "a.json"))


@given(trajectories())
def test_a_training_trace_loses_nothing_of_what_it_can_hold(one):
    if one.turns and (one.ledger is None or any(branch.allowed or branch.commands for branch in one.ledger.branches)):
        with pytest.raises(TrajectoryError, match="choose --as atif"):
            list(openenv_trace.lines_of([one]))
        return
    for line in openenv_trace.lines_of([one]):
        same(one, openenv_trace.of_line(line, "line 1"))
        turns = json.loads(line)["turns"]
        assert all(
            len(turn["loss_mask"]) == len(turn["prompt_token_ids"] + turn["completion_token_ids"]) for turn in turns
        )
        assert all(sum(turn["loss_mask"]) == len(turn["per_token_logps"]) > 0 for turn in turns)


@given(one=trajectories())
@settings(max_examples=30)
def test_a_folder_for_the_hub_loses_nothing(one):
    with tempfile.TemporaryDirectory() as folder:
        assert hub.write(Path(folder) / "set", [one, one]) == 2
        for back in read_any(Path(folder) / "set"):
            same(one, back)


@given(one=trajectories())
@settings(max_examples=20)
def test_an_imported_folder_loses_nothing(one):
    with tempfile.TemporaryDirectory() as folder:
        write_folder(Path(folder) / "imported", [one], "somewhere")
        [back] = read_any(Path(folder) / "imported")
        same(one, back)


def test_tokens_are_in_the_places_that_readers_of_atif_know():
    ledger = Ledger()
    ledger.record([1, 2], [3, 4], [-0.25, -0.5], 7, [0.1, 0.2])
    ledger.record([1, 2, 3, 4, 5], [6], [-1.0], 8)
    turns = [
        TurnRecord(f"see {n}", f"say {n}", f"do {n}", True, True, 0.5, {"step": 0.5}, "x", None, (0.0, 0.0))
        for n in range(2)
    ]
    task = Task("t", "train")
    episode = Episode(EpisodeKey(0, "train/1", "t", 0), task, turns, Ending.COMPLETED, "", True, "the end", ledger)
    one = Trajectory(episode_rows([episode])[0], turn_rows([episode]), ledger, {"system": "Be brief.", "policy": "p"})
    plain = atif.document(one)
    system, user, first, second = plain["steps"]
    assert (system["source"], system["message"]) == ("system", "Be brief.")
    assert (user["source"], user["message"]) == ("user", "see 0")
    assert first["message"] == "say 0" and first["observation"] == {"results": [{"content": "see 1"}]}
    assert second["observation"]["results"][0]["content"] == "the end"
    assert second["metrics"]["prompt_token_ids"] == [1, 2, 3, 4, 5]
    assert first["metrics"]["completion_token_ids"] == [3, 4] and first["metrics"]["logprobs"] == [-0.25, -0.5]
    assert plain["final_metrics"]["extra"] == {"reward": 1.0, "success": True, "ending": "completed"}
    assert "ledger" not in plain["extra"]["manyturn"]


@pytest.mark.slow
def test_a_thousand_episodes_with_tokens_come_back_byte_for_byte(tmp_path):
    rng = random.Random(5)
    found = [_random_trajectory(rng, number) for number in range(1000)]
    written = [canonical(to_plain(one)) for one in found]
    atif.write(tmp_path / "atif", found)
    hub.write(tmp_path / "hub", found)
    write_folder(tmp_path / "imported", found, "here")
    for name in ("atif", "hub", "imported"):
        assert [canonical(to_plain(one)) for one in read_any(tmp_path / name)] == written


def _random_trajectory(rng: random.Random, number: int) -> Trajectory:
    ledger, turns, history = Ledger(), [], [1]
    for turn in range(rng.randint(1, 12)):
        reply = [rng.randrange(50_000) for _ in range(rng.randint(1, 20))]
        history = [*history, *(rng.randrange(50_000) for _ in range(rng.randint(1, 40)))]
        ledger.record(history, reply, [math.log(rng.random()) for _ in reply], 3, [rng.random() for _ in reply])
        history = history + reply
        parts = {"outcome": rng.gauss(0, 1), "cost": -rng.random()}
        texts = (f"see {turn}", f"say {rng.random()}", "do")
        turns.append(TurnRecord(*texts, True, True, sum(parts.values()), parts, f"{turn}", None, (rng.random(), 0.0)))
    task, key = Task(f"t{number}", "train", {"n": number}), EpisodeKey(1, "train/1", f"t{number}", 0)
    episode = Episode(key, task, turns, Ending.COMPLETED, "", rng.random() < 0.5, "end", ledger)
    return Trajectory(episode_rows([episode])[0], turn_rows([episode], {"advantage": [0.1] * len(turns)}), ledger, {})
