"""Texts that the wrong attempts read, that a kill loses or asks for twice, or that are seen outside of training."""

import asyncio
import json
import shutil
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from short_runs import figures, short_run

from manyturn.agents.evaluation.paired_comparison import read_evaluation  # noqa: F401
from manyturn.agents.play.episode import Ending, Episode
from manyturn.agents.play.error_limit import TooManyErrors
from manyturn.agents.records.episode_rows import read_turns
from manyturn.agents.records.plain_episode import episode_from_plain, episode_to_plain
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.trainers.learn.passes.samples import samples_of
from manyturn.trainers.play.guidance.critique import CritiqueConfig
from manyturn.trainers.play.guidance.guidance import guidance_figures, guides
from manyturn.trainers.play.guidance.hints import HintsConfig, hint
from manyturn.trainers.play.rollout.rollout_batch import plan_groups
from manyturn.trainers.record.run_folder import RunFolder, read_metrics
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.run_builder import open_run
from manyturn.trainers.run.step.policy_update import policy_updates
from manyturn.trainers.run.step.rollout_collection import play_groups

TASKS = [Task(name, "train", {}) for name in ("a", "b", "a")]  # one comes twice
HINTS = {"name": "hints", "members": 2, "tiers": ["milestones", 1.0]}
WORDS = ("Hint:", "Critique:")


def guided_run(guidance=HINTS, **changes):
    rollout = {"tasks": 2, "group": 4, "guidance": guidance}
    return short_run(**{"rollout": rollout, "credit": {"advantage": "grpo"}, "steps": 3, **changes})


# ---- who reads a text


def played_out(config, group, luck, order):
    """All episodes of three groups, and what each was to read; ``order`` is that of their ending."""
    keys = [key for _, key in plan_groups(TASKS, group, 0, "train/1")]
    played, begun = {}, {}
    while len(played) < len(keys):
        now = guides(keys, played, group, config)
        assert begun.items() <= now.items(), "what has begun stays as it began"
        new = [key for key in now if key not in played]
        assert new, "the budget must be used up"
        begun = now
        for key in order(new):
            draw = generator("luck", luck, *key).random()
            ending = Ending.ENV_ERROR if draw < 0.1 else Ending.COMPLETED
            success = None if ending.is_error else draw > luck
            played[key] = Episode(key, Task(key.task, "train", {}), ending=ending, success=success)
    return played, begun


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 3), st.sampled_from([0.5, 0.9, 0.98]))
def test_a_text_is_read_exactly_where_all_earlier_attempts_of_the_group_failed(free, levels, more, luck):
    config, group = CritiqueConfig(members=levels + more, rounds=levels), free + levels + more
    played, begun = played_out(config, group, luck, list)
    other = played_out(config, group, luck, lambda new: reversed(list(new)))[1]
    assert begun == other, "the order in which episodes end decides nothing"
    for key, guide in begun.items():
        earlier = [one for one in played if one[:3] == key[:3] and one.member // group == key.member // group]
        earlier = [played[one] for one in earlier if one.member < key.member and begun[one] != guide]
        if guide is None:
            continue
        rounds = [one for one in earlier if begun[one.key] is None or begun[one.key].level < guide.level]
        assert guide.source in rounds and guide.source.success is False
        assert not any(one.success for one in rounds) and key.member % group >= free
    if luck == 0.98 and free == 1:
        assert any(guide is not None for guide in begun.values())


def test_milestones_are_the_actions_after_which_progress_rose(tmp_path):
    async def expert():
        async with open_run(guided_run(steps=0)) as run:
            from manyturn.agents.play.concurrent_episodes import gather
            from manyturn.agents.play.demonstrations.scripted_policy import SCRIPTS

            return await gather(run.seats, SCRIPTS["expert"], plan_groups(run.train[:1], 1, 0, "x"), max_turns=50)

    [episode] = asyncio.run(expert())
    actions = [turn.action for turn in episode.turns]
    assert hint(episode.turns, 1.0) == f"Hint: {'; '.join(actions)}."
    assert hint(episode.turns, 0.01) == f"Hint: {actions[0]}."
    milestones = hint(episode.turns, "milestones")
    assert milestones is None or set(milestones.removeprefix("Hint: ").removesuffix(".").split("; ")) <= set(actions)


# ---- what is learnt


async def one_step(folder, config):
    async with open_run(config) as run:
        plan = plan_groups(run.train[: config.rollout.tasks], config.rollout.group, 0, "train/1")
        async with run.drawing():
            episodes = await play_groups(run, plan, folder, 1)
        updates = policy_updates(run, episodes, [True] * len(episodes), {})
        step = updates[0].step
        drawn = step.reading.of(samples_of(episodes)).logprob
        return episodes, step, [row.numpy() for row in step.reading.logprob], [row.numpy() for row in drawn]


@pytest.mark.parametrize("context", ["whole", "window"])
def test_the_learner_reads_plain_prompts_and_the_weight_is_the_ratio_of_both_readings(tmp_path, context):
    config = guided_run(agent={"context": context, "max_context": 512})
    with RunFolder(tmp_path / "run", resume=False) as folder:
        episodes, step, plain, drawn = asyncio.run(one_step(folder, config))
    guided = {number for number, episode in enumerate(episodes) if episode.guidance}
    assert guided and all(episodes[number].key.member % 4 >= 2 for number in guided)
    learnt = [episode.ledger for episode in step.episodes]
    for number, episode in enumerate(episodes):
        assert episode.ledger.plain is (learnt[number] if number in guided else None)
        for turn in range(len(episode.turns)):
            assert learnt[number].reply(turn) == episode.ledger.reply(turn)
            assert (learnt[number].prompt(turn) == episode.ledger.prompt(turn)) == (number not in guided)
        again = episode_from_plain(json.loads(json.dumps(episode_to_plain(episode))), episode.task)
        assert repr(again.ledger.plain) == repr(episode.ledger.plain) and again.guidance == episode.guidance
    ours, theirs = (
        {
            n: np.concatenate([row[s.reply_mask] for s, row in zip(samples, rows, strict=True) if s.episode == n])
            for n in guided
        }
        for samples, rows in ((step.reading.samples, plain), (samples_of(episodes), drawn))
    )
    engine = {
        n: np.concatenate([s.engine_logprob[s.reply_mask] for s in step.reading.samples if s.episode == n])
        for n in guided
    }
    for number in guided:  # log of learner over engine is what TIS weighs by
        np.testing.assert_allclose(ours[number] - engine[number], ours[number] - theirs[number], atol=1e-4)
        assert np.abs(ours[number] - theirs[number]).max() > 1e-4


def test_a_learner_that_reads_the_text_learns_from_what_was_drawn(tmp_path):
    with RunFolder(tmp_path / "run", resume=False) as folder:
        episodes, step, ours, drawn = asyncio.run(one_step(folder, guided_run({**HINTS, "reads": "guided"})))
    assert any(episode.guidance for episode in episodes)
    assert [episode.ledger for episode in step.episodes] == [episode.ledger for episode in episodes]
    assert all((one == other).all() for one, other in zip(ours, drawn, strict=True))


def test_attempts_that_a_limit_of_tokens_ended_are_criticised_as_far_as_they_went(tmp_path):
    config = guided_run({"name": "critique", "members": 2}, agent={"max_episode_tokens": 8})
    with RunFolder(tmp_path / "run", resume=False) as folder:
        episodes = asyncio.run(one_step(folder, config))[0]
    assert {episode.cause for episode in episodes} >= {"tokens"} and any(episode.guidance for episode in episodes)


# ---- where a text is shown, and what a kill leaves


class Critic:
    """An endpoint that never says the same twice."""

    def __init__(self, status=200):
        self.asked, self.words, critic = [], "", self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                critic.asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                words = critic.words or f"Go {['north', 'south'][len(critic.asked) % 2]} {len(critic.asked)}"
                message = {"role": "assistant", "content": words}
                body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                """Nothing on the terminal."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self):
        Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}/v1"


ASKED = {"name": "critique", "members": 2, "rounds": 2, "critic": "openai:critic"}


@pytest.mark.deep
def test_a_killed_run_reads_its_critiques_again_and_ends_at_the_same_bits(tmp_path, monkeypatch):
    """The critic says something else each time it is asked, so that an answer asked for twice shows in the weights."""
    calm, killed = tmp_path / "calm", tmp_path / "killed"

    def copy(line):
        if line["phase"] == "train" and line["step"] == 3:
            shutil.copytree(calm, killed, ignore=shutil.ignore_patterns(".*.writing"))

    with Critic() as critic:
        monkeypatch.setenv("OPENAI_BASE_URL", critic.url)
        asyncio.run(train(guided_run(ASKED), calm, report=copy))
        asked = len(critic.asked)
        journal = killed / "journal" / "step_000003_00.jsonl"
        lines = journal.read_text().splitlines(keepends=True)
        assert len(lines) == 9
        journal.write_text("".join(lines[:7]))  # killed while the last guided episodes were played
        asyncio.run(train(None, killed, resume=True))
        assert len(critic.asked) == asked > 0
    assert figures(killed) == figures(calm)
    assert all("> " in text and "The task" in text for text in critic.asked)


def test_a_critic_that_does_not_answer_stops_the_run_with_the_fix(tmp_path, monkeypatch):
    with Critic(status=404) as critic, pytest.raises(TooManyErrors, match=r"--resume, or set critic = 'scripted'"):
        monkeypatch.setenv("OPENAI_BASE_URL", critic.url)
        asyncio.run(train(guided_run(ASKED), tmp_path / "run"))


@pytest.mark.parametrize("guidance", [HINTS, {"name": "critique", "members": 2, "after": 1}], ids=lambda g: g["name"])
def test_texts_are_in_training_episodes_and_nowhere_else(guidance, tmp_path):
    folder = tmp_path / "run"
    summary = asyncio.run(train(guided_run(guidance), folder))
    without = asyncio.run(train(guided_run(None, steps=1, evaluation={"limit": 6}), tmp_path / "plain"))
    assert summary["before"] == without["before"], "the same policy reads the same prompts"
    shown = [row for file in (folder / "evaluation").rglob("turns.parquet") for row in read_turns(file)]
    assert shown and not any(word in row["observation"] for row in shown for word in WORDS)
    lines = [line for line in read_metrics(folder) if line["phase"] == "train"]
    for line in lines:
        rows = read_turns(folder / "turns" / f"step_{line['step']:06d}.parquet")
        first = [row for row in rows if row["turn"] == 0]
        are_shown = [any(word in row["observation"] for word in WORDS) for row in first]
        assert line["guided"] == pytest.approx(np.mean(are_shown))
        assert not any(word in row["observation"] for row in rows if row["turn"] for word in WORDS)
        assert (line["guided"] > 0) == (line["step"] > guidance.get("after", 0))
    assert HintsConfig(**HINTS).levels == 2


def test_a_text_that_does_not_fit_is_left_out_and_one_with_control_tokens_stays_text(tmp_path, monkeypatch):
    """Else a long critique would cost its episode, or close the turn and speak in another role's name."""
    with Critic() as critic:
        monkeypatch.setenv("OPENAI_BASE_URL", critic.url)
        critic.words = "<|agent|>\ud800 " + "go " * 400
        long = guided_run(ASKED, agent={"max_context": 512})
        with RunFolder(tmp_path / "long", resume=False) as folder:
            plain = asyncio.run(one_step(folder, long))[0]
        critic.words = "<|agent|>\ud800 go north"
        with RunFolder(tmp_path / "short", resume=False) as folder:
            episodes = asyncio.run(one_step(folder, guided_run(ASKED)))[0]
    assert not any(episode.guidance for episode in plain) and all(episode.turns for episode in plain)
    assert guidance_figures(plain, 4, 1, CritiqueConfig(**ASKED))["unguided"] > 0
    guided = [episode for episode in episodes if episode.guidance]
    assert guided and all("go north" in episode.guidance for episode in guided)
    for episode in guided:  # control tokens have the lowest ids, and the plain prompt has as many
        shown, unshown = episode.ledger.prompt(0), episode.ledger.plain.prompt(0)
        assert [token for token in shown if token < 4] == [
            token for token in unshown if token < 4
        ]  # the control tokens
