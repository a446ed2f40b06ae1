"""Episodes that were played before a run was killed are not played again, unless bits would depend on it."""

import asyncio

import pytest
from short_runs import short_run

from manyturn.agents.records.episode_log import Journal
from manyturn.agents.records.episode_rows import SCHEMA_VERSION
from manyturn.agents.records.plain_episode import episode_to_plain
from manyturn.trainers.play.rollout.rollout_batch import plan_groups
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.run.setup.run_builder import open_run
from manyturn.trainers.run.step import rollout_collection
from manyturn.trainers.run.step.rollout_collection import play_groups


async def _twice(path, keep, monkeypatch, **changes):
    """Play a step, cut its journal to ``keep`` episodes, play it again: both, and how many were played anew."""
    config = short_run(**changes)
    counted = []

    async def counting(seats, policy, plan, **told):
        counted.append(len(plan))
        return await gather(seats, policy, plan, **told)

    gather = rollout_collection.gather
    monkeypatch.setattr(rollout_collection, "gather", counting)
    with RunFolder(path, resume=False) as folder:
        async with open_run(config) as run:
            plan = plan_groups(run.train[:3], 3, 0, "train/1")
            first = await play_groups(run, plan, folder, 1)
            lines = folder.journal_file(1).read_text().splitlines(keepends=True)
            folder.journal_file(1).write_text("".join(lines[: 1 + keep]) + lines[-1][: len(lines[-1]) // 2])
            second = await play_groups(run, plan, folder, 1)
    return [episode_to_plain(e) for e in first], [episode_to_plain(e) for e in second], counted[1:]


def _seen(plain):
    """Key, ending and every turn up to its progress, without what a clock or a batch moves."""
    return plain["key"], plain["ending"], [turn[:8] for turn in plain["turns"]], plain["spans"]


@pytest.mark.parametrize(
    ("keep", "changes", "again"),
    [(9, {}, []), (5, {}, [9]), (5, {"engine": {"name": "transformers", "reproducible": False}}, [4])],
    ids=["a whole step is taken", "a part would move bits", "a part is taken where bits were given up"],
)
def test_finished_episodes_are_not_lost(tmp_path, monkeypatch, keep, changes, again):
    first, second, counted = asyncio.run(_twice(tmp_path / "run", keep, monkeypatch, **changes))
    assert counted == again
    assert [episode["key"] for episode in first] == [episode["key"] for episode in second]
    if keep == 9:
        assert first == second or repr(first) == repr(second)  # NaN differs from itself
    else:
        # Another batch moves the last digits of log-probabilities, and nothing else.
        assert [_seen(episode) for episode in first] == [_seen(episode) for episode in second]


def test_what_came_after_a_step_that_is_played_anew_is_of_other_weights(tmp_path):
    """The number of updates is the same, the weights need not be: an error that does not come again changes them."""

    async def play():
        with RunFolder(tmp_path / "run", resume=False) as folder:
            async with open_run(short_run()) as run:
                plan = plan_groups(run.train[:3], 3, 0, "train/1")
                later = [folder.journal_file(1, 1), folder.journal_file(2), folder.journal_file(11)]
                for file in later:
                    file.write_text("of an earlier life")
                folder.journal_file(0).write_text("of the step before")
                await play_groups(run, plan, folder, 1)
                return folder.journal_file(0).exists(), [file.exists() for file in later]

    assert asyncio.run(play()) == (True, [False, False, False])


def test_a_journal_of_other_weights_is_of_no_use(tmp_path):
    async def play():
        with RunFolder(tmp_path / "run", resume=False) as folder:
            async with open_run(short_run()) as run:
                plan = plan_groups(run.train[:3], 3, 0, "train/1")
                await play_groups(run, plan, folder, 1)
                run.only.learner.optimizer.updates = 7
                async with run.drawing():
                    return await play_groups(run, plan, folder, 1)

    episodes = asyncio.run(play())
    assert {span.version for episode in episodes for span in episode.ledger.spans} == {7}
    settings = {"policy_version": [7], "schema_version": SCHEMA_VERSION}
    with Journal(tmp_path / "run" / "journal" / "step_000001_00.jsonl", settings) as journal:
        assert len(journal.entries) == 9


def test_a_journal_of_an_earlier_schema_is_played_again(tmp_path):
    async def play():
        with RunFolder(tmp_path / "run", resume=False) as folder:
            async with open_run(short_run()) as run:
                plan = plan_groups(run.train[:3], 3, 0, "train/1")
                path = folder.journal_file(1)
                path.parent.mkdir(exist_ok=True)
                settings = {"policy_version": [run.only.engine.version], "schema_version": SCHEMA_VERSION - 1}
                with Journal(path, settings) as journal:
                    journal.append({"key": list(plan[0][1]), "turns": [["a turn of fewer fields"]]})
                async with run.drawing():
                    return await play_groups(run, plan, folder, 1)

    assert len(asyncio.run(play())) == 9
