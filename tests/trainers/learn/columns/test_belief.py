"""Beliefs are those of the policy that played, in the very words that it would use, and nobody shows it the answer."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
import torch
from learning import learns
from played_guesses import MOST_TURNS, guess_model, played, short_guesses
from short_runs import resumed_to_the_bit

from manyturn.agents.model.language_model import LanguageModel
from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.episode import Episode
from manyturn.agents.records.plain_episode import episode_from_plain, episode_to_plain
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.trainers.learn.passes.pass_budget import PassBudget
from manyturn.trainers.learn.reading.belief import Forced, Questions, believed
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

AGENTS = {
    "whole": AgentConfig(),
    "window": AgentConfig(context={"name": "window", "turns": 1}),
    "tagged": AgentConfig(format="tagged"),
}


@pytest.fixture(scope="module")
def language() -> LanguageModel:
    return guess_model(AGENTS["tagged"])


def asked_one_by_one(language: LanguageModel, episode: Episode, turn: int, forced: Forced, heat: float) -> float:
    """The definition: the prompt, the forced reply, one plain forward pass."""
    assert episode.ledger is not None
    prompt = episode.ledger.prompt(turn)
    ids = torch.tensor([[*prompt, *forced.ids]])
    with torch.no_grad():
        logits = language.model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1]
    scores = torch.log_softmax(logits / heat, -1).gather(-1, torch.from_numpy(forced.ids)[:, None])[:, 0]
    return float(scores[torch.from_numpy(forced.counted)].double().mean().exp())


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("heat", [1.0, 0.5])
def test_one_pass_over_a_branch_gives_what_each_question_alone_would(language, name, heat):
    config, rows, expected = AGENTS[name], [], []
    for episode in played(language, config):
        assert episode.ledger is not None and episode.answer is not None
        forced = Forced.of(episode.answer, config, language.template)
        for branch in range(len(episode.ledger.branches)):
            rows.append(Questions.of(episode.ledger, branch, forced))
            expected.append([asked_one_by_one(language, episode, turn, forced, heat) for turn in rows[-1].turns])
    assert sum(len(row.turns) for row in rows) > 3
    assert max(len(row.turns) for row in rows) == (1 if name == "window" else MOST_TURNS)
    for micro_tokens in (64, 10_000):
        for ours, theirs in zip(believed(language.model, rows, heat, PassBudget(micro_tokens)), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("name", AGENTS)
def test_the_words_of_the_answer_are_counted_and_those_around_it_are_not(language, name):
    template = language.template
    forced = Forced.of("guess 7", AGENTS[name], template)
    assert template.decode(forced.ids[forced.counted]) == "guess 7"
    reply = template.reply(AGENTS[name].reply_format.render("guess 7"))
    assert reply[: len(forced.ids)] == forced.ids.tolist()
    assert forced.counted.all() == (name != "tagged") and forced.tokens == len(reply)


def test_an_answer_of_nothing_is_refused(language):
    with pytest.raises(ValueError, match="return None if unknown"):
        Forced.of("", AGENTS["whole"], language.template)


def test_answers_that_no_reply_has_room_for_are_told(tmp_path):
    config = short_guesses(
        sampling={"max_tokens": 2}, warmup={"episodes": 0}, credit={"rewards": ["igpo"], "advantage": "igpo"}
    )
    with pytest.raises(ValueError, match=r"or no reply of sampling\.max_tokens = 2: .* raise max_tokens"):
        asyncio.run(train(config, tmp_path / "run"))


@pytest.mark.parametrize("workers", [0, 1])
def test_the_answer_reaches_the_trainer_and_not_the_policy(language, workers):
    for episode in played(language, AGENTS["whole"], workers):
        assert episode.answer == f"guess {episode.task.params['secret']}"
        assert all(episode.answer not in turn.observation for turn in episode.turns)
        assert episode_from_plain(episode_to_plain(episode), episode.task).answer == episode.answer


def test_an_answer_changes_nothing_of_what_is_played(language, monkeypatch):
    told = played(language, AGENTS["whole"])
    monkeypatch.setattr(
        "manyturn.envs.hosting.handle.env_handle.EnvHandle.reset", _reset_without_answer(EnvHandle.reset)
    )
    silent = played(language, AGENTS["whole"])
    assert [episode.answer for episode in silent] == [None] * 3
    for one, other in zip(silent, told, strict=True):
        assert one.ledger is not None and other.ledger is not None
        assert one.ledger.spans == other.ledger.spans
        for ours, theirs in zip(one.ledger.branches, other.ledger.branches, strict=True):
            assert (ours.ids, ours.logprobs) == (theirs.ids, theirs.logprobs)


def _reset_without_answer(reset):
    return lambda handle, task, seed: reset(handle, task, seed)._replace(answer=None)


def test_a_run_by_beliefs_goes_on_to_the_bit_after_a_kill(tmp_path):
    config = short_guesses(credit={"rewards": ["igpo"], "advantage": "igpo"})
    calm = resumed_to_the_bit(config, tmp_path)
    for line in (line for line in read_metrics(calm) if line["phase"] == "train"):
        assert 0 < line["prior"] < 1 and 0 < line["belief"] < 1 and line["belief_seconds"] >= 0


@pytest.mark.slow
def test_beliefs_teach(tmp_path_factory):
    """With the comparison that the authors' code makes, of returns at turns of the same number."""
    doors = f"{Path(__file__).parents[2] / 'told_doors.py'}:ToldDoors"
    credit = {"rewards": ["igpo"], "advantage": {"name": "igpo", "baseline": "turn", "std": False}}
    run = learns("beliefs", {"env": {"id": doors}}, {"credit": credit}, tmp_path_factory)
    lines = [line for line in read_metrics(run) if line["phase"] == "train"]
    assert lines[-1]["belief"] > lines[0]["belief"] + 0.1 and lines[-1]["belief"] > lines[-1]["prior"] + 0.3
