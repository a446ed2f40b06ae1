"""An environment that is slow must not hold a check up for an hour."""

from pathlib import Path

from manyturn.envs.conformance import probe_episodes
from manyturn.envs.conformance.probe_episodes import Subject

MISTAKES = Path(__file__).parents[1] / "mistakes.py"


def test_where_turns_are_slow_less_is_played_and_that_is_said(monkeypatch):
    monkeypatch.setattr(probe_episodes, "_SLOW_SECONDS", 0.1)
    monkeypatch.setattr(probe_episodes, "_POLICY_SECONDS", 0.05)
    monkeypatch.setattr(probe_episodes, "_EPISODE_SECONDS", 0.1)
    slow, quick = (Subject(f"{MISTAKES}:{cls}", {}, 8, 0) for cls in ("Waits", "Walk"))
    assert [len(slow.a_few_tasks()), len(quick.a_few_tasks())] == [3, 6]
    assert slow.most_turns == 2 and quick.most_turns == 200
    assert [len(found) for found in slow.expert_episodes.values()] == [1, 1, 1]
    assert slow.shortened(3) == "3 of 24 episodes, since turns are slow" and quick.shortened(24) == ""
    assert all(played.success for found in slow.expert_episodes.values() for played in found)
