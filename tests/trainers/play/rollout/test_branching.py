"""Branches are decided by entropies and keys alone, use up the budget of their group, and train like other episodes."""

import asyncio
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from short_runs import resumed_to_the_bit, short_run

from manyturn.agents.engine.engine import EngineError
from manyturn.agents.play.episode import Ending, Episode, TurnRecord
from manyturn.agents.records.episode_rows import read_turns
from manyturn.agents.records.plain_episode import episode_to_plain
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.trainers.play.rollout.branching import (
    Branching,
    branch_score,
    drawn_tokens,
    repeats,
    start_entropy,
    starts,
)
from manyturn.trainers.play.rollout.rollout_batch import plan_groups
from manyturn.trainers.record.run_folder import RunFolder, read_metrics
from manyturn.trainers.run.setup.run_builder import open_run
from manyturn.trainers.run.step import rollout_collection
from manyturn.trainers.run.step.rollout_collection import play_groups, starts_of

VOCABULARY = 16
TASKS = [Task(name, "train", {}) for name in ("a", "b", "a")]  # one comes twice


def told(key, fork, turns, ending=Ending.COMPLETED):
    """An episode of which only entropies matter: two tokens a turn, drawn by its key, after its parent's."""
    episode, rng = Episode(key, Task(key.task, "train", {}), ending=ending, ledger=Ledger()), generator(*key)
    for turn in range(max(turns, fork.turn + 1 if fork else 1)):
        entropies = rng.uniform(0, math.log(VOCABULARY), 2).tolist()
        if fork and turn < fork.turn:
            entropies = fork.parent.ledger.reply_entropies(turn).tolist()
        episode.ledger.record([1], [2, 3], [-1.0, -1.0], 0, entropies)
        episode.turns.append(TurnRecord("", "", "", True, True, 0.0, {}, "", None, (0.0, 0.0)))
    return episode


def where(begun):
    """Of every episode whom it forks off, and at which turn."""
    return {key: fork and (fork.parent.key, fork.turn) for key, fork in begun.items()}


@st.composite
def groups(draw):
    """What a group may be like: its size, its branching, and how its episodes go."""
    group = draw(st.integers(2, 9))
    branching = Branching(
        initial=draw(st.integers(1, group - 1)),
        weight=draw(st.sampled_from([0.0, 0.2, 3.0])),
        threshold=draw(st.sampled_from([1e-9, 0.5, 1.0])),
    )
    return group, branching, draw(st.integers(0, 99)), draw(st.sampled_from([0.0, 0.3, 1.0]))


def played_out(group, branching, seed, errors, order):
    """All episodes, where each of them began, and how many began in each round; ``order`` is that of their ending."""
    keys = [key for _, key in plan_groups(TASKS, group, seed, "train/1")]
    played, began, rounds = {}, {}, []
    while len(played) < len(keys):
        begun = starts(keys, played, group, branching, VOCABULARY)
        assert {key: begun[key] for key in began} == began, "what has begun stays as it began"
        new = [key for key in begun if key not in played]
        assert new, "the budget must be used up"
        began = begun
        rounds.append(len(new))
        for key in order(new):
            rng = generator("length", *key)
            ending = Ending.ENV_ERROR if rng.random() < errors else Ending.COMPLETED
            played[key] = told(key, begun[key], int(rng.integers(1, 6)), ending)
    return played, began, rounds


@settings(max_examples=60, deadline=None)
@given(groups())
def test_every_group_uses_up_its_budget_by_the_rules(case):
    group, branching, *_ = case
    played, began, rounds = played_out(*case, order=list)
    assert len(began) == len(played) == 3 * group and rounds[0] == 3 * branching.initial
    forks = [(key, fork) for key, fork in began.items() if fork]
    assert len({(fork.parent.key, fork.turn) for _, fork in forks}) == len(forks), "one branch of a turn"
    for key, fork in forks:
        parent, above = fork.parent, began[fork.parent.key]
        assert (parent.key.task, parent.key.member // group) == (key.task, key.member // group)
        assert not parent.ending.is_error and 1 <= fork.turn < len(parent.turns) and parent.key.member < key.member
        assert above is None or fork.turn > above.turn, "what a branch repeats was its parent's to branch at"
        first, now = (start_entropy(parent.ledger.reply_entropies(k), VOCABULARY, 20) for k in (0, fork.turn))
        u = generator("branch", *parent.key, fork.turn).random()
        assert branch_score(u, now, first, branching.weight) <= branching.threshold


@settings(max_examples=30, deadline=None)
@given(groups())
def test_the_order_in_which_episodes_end_decides_nothing(case):
    one, other = (where(played_out(*case, order=order)[1]) for order in (list, lambda new: reversed(list(new))))
    assert one == other


def test_branches_go_turn_by_turn_and_then_member_by_member():
    keys = [EpisodeKey(0, "train/1", "a", member) for member in range(7)]
    always = Branching(initial=2, threshold=1.0)
    played = {key: told(key, None, turns) for key, turns in zip(keys, (3, 4), strict=False)}
    found = starts(keys, played, 7, always, VOCABULARY)
    assert [(fork.parent.key.member, fork.turn) for fork in found.values() if fork] == [
        (0, 1),
        (1, 1),
        (0, 2),
        (1, 2),
        (1, 3),
    ]


def test_what_cannot_branch_leaves_the_rest_to_begin_anew_at_once():
    keys = [EpisodeKey(0, "train/1", "a", member) for member in range(5)]
    always = Branching(initial=2, threshold=1.0)
    short = {key: told(key, None, 1) for key in keys[:2]}
    failed = {key: told(key, None, 4, Ending.INFRA_ERROR) for key in keys[:2]}
    for played in (short, failed):
        assert starts(keys, played, 5, always, VOCABULARY) == dict.fromkeys(keys)
        assert starts(keys, {keys[1]: played[keys[1]]}, 5, always, VOCABULARY) == dict.fromkeys(keys[:2])


@given(*[st.floats(0, 9)] * 3, st.floats(0, 1), st.floats(0, 2))
def test_a_rise_of_entropy_makes_a_branch_likelier(now, first, more, u, weight):
    score = branch_score(u, now, first, weight)
    assert 0 <= branch_score(u, now + more, first, weight) <= score <= 1
    assert branch_score(u, first, first, weight) == u


def test_an_engine_that_tells_no_entropies_is_an_error_with_its_mend():
    with pytest.raises(EngineError, match=r"does not return the entropies .* leave it out") as refusal:
        start_entropy([0.1, float("nan")], 8, 20)
    assert "\n" not in str(refusal.value)
    assert start_entropy([0.1, float("nan")], 8, 1) > 0


# ---- played by a real model


def branching_run(**changes):
    """A run of seconds with branches; its episodes have turns enough to fork."""
    rollout = {"tasks": 2, "group": 6, "max_turns": 8, "branching": {"initial": 2}}
    return short_run(**{"rollout": rollout, "credit": {"advantage": "grpo"}, "steps": 3, **changes})


async def one_step(folder, config):
    """A step's episodes, where they forked, and how many tokens the engine drew for them."""
    async with open_run(config) as run:
        plan = plan_groups(run.train[:2], config.rollout.group, 0, "train/1")
        episodes = await play_groups(run, plan, folder, 1)
        begun = starts_of(run, [key for _, key in plan], {episode.key: episode for episode in episodes})
        return episodes, begun, run.only.engine.drawn_tokens


def plain(episodes):
    """Episodes as text, in which NaN equals itself, without what a clock measured."""
    return [
        repr([{**episode_to_plain(e), "turns": [turn[:8] for turn in episode_to_plain(e)["turns"]]}]) for e in episodes
    ]


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    with RunFolder(tmp_path_factory.mktemp("calm") / "run", resume=False) as folder:
        yield folder, *asyncio.run(one_step(folder, branching_run()))


def test_branches_are_played_and_no_token_of_theirs_is_drawn_twice(calm):
    _, episodes, begun, drawn = calm
    forks = [fork for fork in begun.values() if fork]
    assert len(begun) == len(episodes) == 12 and forks
    assert drawn_tokens(episodes, begun) == drawn
    repeated_K = repeats(episodes, begun)
    assert len(repeated_K) == sum(len(episode.turns) for episode in episodes)
    assert np.count_nonzero(~np.isnan(repeated_K)) == sum(fork.turn for fork in forks)


def test_worker_processes_play_the_same_branches(calm, tmp_path):
    with RunFolder(tmp_path / "run", resume=False) as folder:
        episodes, begun, _ = asyncio.run(one_step(folder, branching_run(workers=2)))
    assert plain(episodes) == plain(calm[1])
    assert where(begun) == where(calm[2])


@pytest.mark.parametrize(
    ("kept", "reproducible", "drawn_again"),
    [(12, True, False), (12, False, False), (5, True, True), (9, False, True)],
    ids=["a whole step is taken", "in a running batch too", "a part of it is not", "nor in a running batch"],
)
def test_a_killed_step_counts_entirely_or_is_played_again_to_the_same_bits_where_those_are_kept(
    calm, tmp_path, monkeypatch, kept, reproducible, drawn_again
):
    """Branches are found again in the journal, or played again."""
    there, episodes, _, _ = calm
    config = branching_run(engine={"name": "transformers", "reproducible": reproducible})
    with RunFolder(tmp_path / "run", resume=False) as folder:
        lines = there.journal_file(1).read_text().splitlines(keepends=True)
        folder.journal_file(1).write_text("".join(lines[: 1 + kept]))
        again, _, drawn = asyncio.run(one_step(folder, config))
    assert (drawn > 0) == drawn_again
    if reproducible or not drawn_again:
        assert plain(again) == plain(episodes)


def test_errors_are_allowed_as_a_share_of_the_step_not_of_a_round(tmp_path, monkeypatch):
    """A round of few branches would stop a run at the second error."""
    allowed, gather = [], rollout_collection.gather

    async def noting(seats, policy, plan, **given):
        allowed.append(given["patience"].error_share * len(plan))
        return await gather(seats, policy, plan, **given)

    monkeypatch.setattr(rollout_collection, "gather", noting)
    with RunFolder(tmp_path / "run", resume=False) as folder:
        asyncio.run(one_step(folder, branching_run()))
    assert len(allowed) > 1 and allowed == pytest.approx([1.2] * len(allowed))


LEAVING = '''
import os
import manyturn as mt

class Leaving(mt.TextEnv):
    """Ends in success at its first turn, once the world outside has changed."""
    instructions = "Wait."
    max_turns = 4

    def tasks(self, split):
        return [mt.Task(f"{split}/{i}", split, {"i": i, "split": split}) for i in range(4)]

    def begin(self, task, rng):
        return "You wait."

    def admissible(self):
        return ["wait", "stay"]

    def respond(self, action):
        return self.succeed("Out.") if os.environ.get("CHANGED") else self.go_on("You wait.")
'''


def test_a_branch_that_cannot_follow_its_parent_is_an_error_and_no_success(tmp_path, monkeypatch):
    gather = rollout_collection.gather

    async def changing(*given, **told):
        episodes = await gather(*given, **told)
        monkeypatch.setenv("CHANGED", "1")
        return episodes

    monkeypatch.setattr(rollout_collection, "gather", changing)
    file = tmp_path / "leaving.py"
    file.write_text(LEAVING)
    rollout = {"tasks": 2, "group": 6, "branching": {"initial": 2, "threshold": 1.0}, "error_share": 1.0}
    with RunFolder(tmp_path / "run", resume=False) as folder:
        choosing = {"agent": {"only_admissible": True}, "sampling": {"max_tokens": 12}}
        config = branching_run(env={"id": f"{file}:Leaving"}, rollout=rollout, **choosing)
        episodes, begun, _ = asyncio.run(one_step(folder, config))
    ended = {episode.key: episode for episode in episodes}
    assert {ended[key].ending for key, fork in begun.items() if fork} == {Ending.ENV_ERROR}
    assert not any(ended[key].success for key, fork in begun.items() if fork)
    assert {ended[key].ending for key, fork in begun.items() if not fork} == {Ending.TRUNCATED}


def test_a_run_tells_its_branches_and_resumes_to_the_bit(tmp_path):
    calm = resumed_to_the_bit(branching_run(evaluation={"limit": 2}), tmp_path)
    for line in (line for line in read_metrics(calm) if line["phase"] == "train"):
        rows = read_turns(calm / "turns" / f"step_{line['step']:06d}.parquet")
        own = [row for row in rows if math.isnan(row["repeats_member"])]
        assert line["drawn_tokens"] == sum(row["reply_tokens"] for row in own)
        branches = {(row["task"], row["member"]) for row in rows if not math.isnan(row["repeats_member"])}
        assert line["branched"] == pytest.approx(len(branches) / 12)
    assert any(line.get("branched", 0) > 0 for line in read_metrics(calm))
