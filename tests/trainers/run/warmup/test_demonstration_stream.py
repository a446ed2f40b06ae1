"""Streamed demonstrations: new ones for each update, labelled by the expert where the policy has led to."""

import asyncio
import json

import pytest
from short_runs import short_run

from manyturn.cli.app import app
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.run_builder import open_run
from manyturn.trainers.run.warmup.demonstrations import play_demonstrations
from manyturn.trainers.run.warmup.imitation_samples import imitation_samples

# The shown word is asked for. Any other is counted, and the next word depends on the count: states of errors differ.
ERRANDS = """
import random

import manyturn as mt

WORDS = ("tea", "milk", "salt", "rice", "corn", "oats", "rye", "figs")

class Errands(mt.TextEnv):
    max_turns = 6

    def tasks(self, split):
        return [mt.Task(f"{split}/{i}", split, {"split": split, "i": i}) for i in range(64)]

    def begin(self, task, rng):
        self.words, self.errors, self.done = random.Random(task.id).sample(WORDS, k=8), 0, 0
        return f"Say {self.word()}."

    def word(self):
        return self.words[(self.done + self.errors) % 8]

    def respond(self, action):
        if action == self.word():
            self.done += 1
        else:
            self.errors += 1
        if self.done == 2:
            return self.succeed("Yes.")
        return self.go_on(f"Say {self.word()}.")

    def admissible(self):
        return list(WORDS)
"""
EXPERT = "    def expert(self):\n        return self.word()\n"
DAGGER = {"episodes": "stream", "labels": "expert", "policy_share": 1.0, "noise": 0.0}


def errands(folder, expert=EXPERT, **changes):
    """A run of DAgger without steps, where a policy errs nearly always at first."""
    (folder / "errands.py").write_text(ERRANDS + "\n" + expert)
    warmup = {**DAGGER, "batch": 8, "lr": 1e-2, "check_every": 20, "check_episodes": 16, **changes.pop("warmup", {})}
    world = {"env": {"id": f"{folder}/errands.py:Errands"}, "sampling": {"max_tokens": 4}}
    return short_run(**{**world, "warmup": warmup, "steps": 0, "evaluation": {"limit": 8}, **changes})


def test_labels_are_the_experts_in_the_states_that_the_policy_has_led_to(tmp_path):
    async def played():
        async with open_run(errands(tmp_path)) as run, run.drawing():
            decode = run.only.language.template.decode
            return decode, await play_demonstrations(run, list(range(8)), "demonstration", 1.0)

    decode, episodes = asyncio.run(played())
    errors = 0
    for episode in episodes:
        for number, turn in enumerate(episode.turns):
            shown = turn.observation.removeprefix("Say ").removesuffix(".").rpartition("Say ")[2]
            label = episode.ledger.labels.get(number)
            errors += label is not None
            assert shown == (turn.action if label is None else decode(label.ids).strip()), "of the state, not of a plan"
    assert errors > 8, "an untaught policy errs"
    learnt = [decode(s.ids[s.reply_mask].tolist()) for s in imitation_samples(episodes) if s.reply_mask.any()]
    assert len(learnt) >= errors and not any(word in "".join(learnt) for word in ("Say", "Yes"))


def test_a_policy_learns_where_only_it_has_been(tmp_path, capsys):
    """From the command to the summary: it says what it is shown, also after errors, which no expert makes."""
    errands(tmp_path)
    options = {"labels": "expert", "policy-share": 1, "episodes": "stream", "max-updates": 100, "until-success": 0.9}
    given = [text for name, value in options.items() for text in (f"--warmup.{name}", str(value))]
    sizes = ["--warmup.lr", "1e-2", "--warmup.check-every", "20", "--model.width", "32", "--steps", "0"]
    out = ["--out", str(tmp_path / "run"), "--sampling.max-tokens", "4", "--evaluation.limit", "8"]
    with pytest.raises(SystemExit) as ended:
        app(["train", f"{tmp_path}/errands.py:Errands", *given, *sizes, *out])
    assert not ended.value.code
    warmup = json.loads((tmp_path / "run/summary.json").read_text())["warmup"]
    assert warmup["success"] >= 0.9 and warmup["demonstrations"] >= 8 * warmup["updates"]
    assert f"imitating {warmup['demonstrations']:,} demonstrations" in capsys.readouterr().out


def test_an_expert_is_asked_for_where_there_is_none(tmp_path):
    with pytest.raises(ConfigError, match=r"needs an expert, which .* does not have: override expert\(\)"):
        asyncio.run(train(errands(tmp_path, expert=""), tmp_path / "run"))


def test_a_warm_up_ends_where_success_stands(tmp_path):
    """Choices are right now and then; nothing is learnt at such a rate, so that success stands at once."""
    stands = {"lr": 1e-9, "plateau": 3, "max_updates": 200, "check_every": 5}
    config = errands(tmp_path, warmup=stands, agent={"only_admissible": True})
    summary = asyncio.run(train(config, tmp_path / "run"))
    successes = [line["success"] for line in read_metrics(tmp_path / "run") if line["phase"] == "warmup"]
    assert summary["warmup"]["updates"] == 5 * len(successes) < 200
    assert 0 < max(successes) == successes[-4] and max(successes[:-4], default=0.0) < successes[-4]


@pytest.mark.parametrize("among", ["admissible", "vocabulary"])
def test_a_name_that_no_other_could_replace_is_learnt_among_all_words(tmp_path, among):
    """Each turn lists the one right word, so that a limited policy has nothing to learn; then it may say any word."""
    lists_one = "    def admissible(self):\n        return [self.word()]\n"
    errands(tmp_path, expert=EXPERT + "\n" + lists_one)
    options = {"among": among, "episodes": "stream", "noise": 0, "lr": "1e-2", "max-updates": 80, "check-every": 80}
    given = [text for name, value in options.items() for text in (f"--warmup.{name}", str(value))]

    def success(out, *words):
        sizes = ["--model.width", "32", "--sampling.max-tokens", "4", "--evaluation.limit", "16", "--steps", "0"]
        with pytest.raises(SystemExit) as ended:
            app(["train", f"{tmp_path}/errands.py:Errands", "--out", str(tmp_path / out), *sizes, *words])
        assert not ended.value.code
        return json.loads((tmp_path / out / "summary.json").read_text())["before_greedy"]["success"]

    assert success("limited", "--agent.only-admissible", "true", *given) == 1
    free = success("free", "--warmup.from-run", str(tmp_path / "limited"))
    assert free > 0.8 if among == "vocabulary" else free < 0.2
