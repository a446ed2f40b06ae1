"""Snippets of the credit audit's page that do not fit what TRL and verl hold, and continuations that say nothing."""

import random
import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import manyturn as mt
import manyturn.credit as mc
from manyturn.envs.contract.random_keys import generator

PAGE = (Path(__file__).parents[2] / "docs" / "audit-your-trainer.md").read_text(encoding="utf-8")
TRL, VERL, BOTH = re.findall(r"test_audit_of_trainers.py -->\n```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
WORDS, MEMBERS = ("take red", "take blue", "take green"), 4


END = 0
IDS: Any = [7, 8]  # a prompt as a list, which is no group


class Characters:
    """A tokenizer of one token for each character, whose replies end with a token that is no text."""

    def encode(self, text, *, add_special_tokens=True):
        return [1] * add_special_tokens + [ord(one) for one in text]

    def decode(self, ids, *, skip_special_tokens=False):
        return "".join(chr(one) if one > 1 else "<end>" for one in ids if one > 1 or not skip_special_tokens)


def tokens(text):
    return Characters().encode(text, add_special_tokens=False)


class Walk:
    """An environment as a trainer has it, around one turn of luck and one that decides."""

    def __init__(self, row):
        self.env: Any = mt.make("manyturn/PivotLuck-v0").unwrapped
        self.text, _ = self.env.reset(seed=row, options={"task": f"train/easy/{row // MEMBERS}"})

    def seed(self, number):
        self.env.rng.bit_generator.state = generator("chance", number).bit_generator.state

    def step(self, text):
        seen, reward, terminated, truncated, _ = self.env.step(text)
        return seen, float(reward), terminated or truncated


def generate(contexts, seeds):
    return [[*tokens(random.Random(seed).choice(WORDS)), END] for seed in seeds]


def rollout_table():
    """Eight completions as a ``rollout_func`` of TRL returns them."""
    table = {name: [] for name in ("prompt_ids", "completion_ids", "env_mask", "env_reward")}
    for row in range(2 * MEMBERS):
        env, ids, mask, over, total = Walk(row), [], [], False, 0.0
        while not over:
            [said] = generate([ids], [10**6 + 100 * row + len(ids)])
            text, reward, over = env.step(Characters().decode(said, skip_special_tokens=True))
            seen = [] if over else tokens(text)
            ids, mask, total = ids + said + seen, mask + [1] * len(said) + [0] * len(seen), total + reward
        start = tokens(f"{row // MEMBERS} {Walk(row).text}")
        for column, value in zip(table.values(), (start, ids, mask, total), strict=True):
            column.append(value)
    return table


def padded(rows, *, left=False):
    """Rows as a tensor, with the mask of what is there."""
    torch = pytest.importorskip("torch")
    width = max(map(len, rows))
    fill = [[0] * (width - len(row)) for row in rows]
    return torch.tensor([f + row if left else row + f for f, row in zip(fill, rows, strict=True)])


def data_proto(table):
    """The same as the fields of a ``DataProto``: prompts padded on the left, responses on the right."""
    prompts, responses = padded(table["prompt_ids"], left=True), padded(table["completion_ids"])
    there = padded([[1] * len(ids) for ids in table["prompt_ids"]], left=True)
    ends = zip(table["completion_ids"], table["env_reward"], strict=True)
    scores = [[0.0] * (len(ids) - 1) + [reward] for ids, reward in ends]
    columns = {"prompts": prompts, "responses": responses, "attention_mask": there}
    columns |= {"response_mask": padded(table["env_mask"]), "rm_scores": padded(scores)}
    names = np.array([str(ids) for ids in table["prompt_ids"]], object)
    return SimpleNamespace(batch=columns, non_tensor_batch={"uid": names})


def test_rollouts_of_trl_and_verl_are_audited_by_the_snippets_of_the_page(tmp_path):
    table = rollout_table()
    names = {"tokenizer": Characters(), "generate": generate, "begin": Walk}
    audits = []
    for block, theirs in ((TRL, {"played": table}), (VERL, {"batch": data_proto(table)})):
        (tmp_path / "page.py").write_text(block + BOTH, encoding="utf-8")
        audits.append(runpy.run_path(str(tmp_path / "page.py"), {**names, **theirs})["audit"])
    effects = [audit.sample.effects.effect_K for audit in audits]
    assert np.array_equal(*effects) and 0.4 < np.abs(effects[0]).max() < 0.9, "one turn of six decides"
    assert audits[0].truth.reliability > 0.3 and {one.method for one in audits[0].scores} == {"grpo", "gigpo"}
    assert abs(audits[0].replayed.errors) < 3 and abs(audits[0].luck.errors) < 3
    assert audits[0].luck.turns == 48 and audits[0].luck.spread > 0.1, "one turn of six is luck"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("decode(ids, skip_special_tokens=True)", "decode(ids)"),
        ("encode(text, add_special_tokens=False)", "encode(text)"),
        ("in range(turns)", "in range(1, turns)"),
    ],
)
def test_a_replay_that_reads_something_else_ends_at_the_turn(tmp_path, right, wrong):
    assert right in BOTH
    (tmp_path / "page.py").write_text(TRL + BOTH.replace(right, wrong), encoding="utf-8")
    names = {"tokenizer": Characters(), "generate": generate, "begin": Walk}
    with pytest.raises(ValueError, match=r"rollout \d+, turn \d+"):
        runpy.run_path(str(tmp_path / "page.py"), {**names, "played": rollout_table()})


class Endless(Walk):
    """The same where the rollout loop ends an episode, and the environment never does."""

    def step(self, text):
        return (*super().step(text)[:2], False)


def test_the_limit_of_the_rollout_loop_ends_continuations_that_the_environment_does_not(tmp_path):
    assert "max_turns = 30" in BOTH
    (tmp_path / "page.py").write_text(TRL + BOTH.replace("max_turns = 30", "max_turns = 6"), encoding="utf-8")
    names = {"tokenizer": Characters(), "generate": generate, "played": rollout_table()}
    audits = [runpy.run_path(str(tmp_path / "page.py"), {**names, "begin": env})["audit"] for env in (Walk, Endless)]
    assert np.array_equal(*(audit.sample.effects.effect_K for audit in audits))


def test_continuations_that_earn_something_else_are_noticed():
    audits = [
        mc.audit_rollouts(coins((0.0, 1.0) * 4), lambda row, turns, number, worth=worth: worth(row, turns), ["grpo"], 4)
        for worth in (lambda row, turns: float(row % 2) if turns else 0.5, lambda row, turns: 0.0)
    ]
    assert [abs(audit.replayed.errors) > 3 for audit in audits] == [False, True]
    assert "chat template" in str(audits[1]) and "chat template" not in str(audits[0])


def coins(ends=(0.0, 1.0), first="start"):
    return [
        mc.Rollout(group=group, rewards=[0, end], anchors=[first if place else "start", end])
        for group in "ab"
        for place, end in enumerate(ends)
    ]


def test_a_rollout_that_was_not_scored_is_left_out_and_counted():
    audit = mc.audit_rollouts(coins((0.0, 1.0, float("nan"))), lambda *one: float(one[2] % 2), ["grpo"], 8)
    assert audit.unscorable == 2 and np.isfinite(audit.scores[0].correlation.mean) and "left out: 2" in str(audit)


@pytest.mark.parametrize(
    ("rollouts", "replay", "methods", "fix"),
    [
        (coins(), lambda *one: None, ["grpo"], "return the sum"),
        (coins(), lambda *one: float("nan"), ["grpo"], "return the sum"),
        (coins(first="elsewhere"), lambda *one: 1.0, ["grpo"], "group of its own"),
        (coins(), lambda *one: 1.0, ["gigpoo"], "gigpo"),
        (coins(), None, ["grpo"], "replay_many"),
        ([mc.Rollout(group=IDS, rewards=1.0)], lambda *one: 1.0, ["grpo"], "tuple"),
    ],
)
def test_what_cannot_be_audited_of_another_trainer_names_its_fix(rollouts, replay, methods, fix):
    with pytest.raises((ValueError, TypeError), match=fix):
        mc.audit_rollouts(rollouts, replay, methods, 4)


def test_methods_of_rollouts_are_named_as_on_the_command_line_and_a_missing_column_says_where_it_goes():
    audit = mc.audit_rollouts(coins(), lambda *one: float(one[2] % 2), ["grpo", "invalid_penalty+gigpo", "turn_gae"], 8)
    assert [one.method for one in audit.scores] == ["grpo", "invalid_penalty+gigpo"]
    assert "token_columns" in audit.skipped["turn_gae"]


def test_members_of_no_group_and_a_single_group_have_no_scores_and_no_intervals_without_a_word():
    members = [mc.Rollout(group=place, rewards=[0, place % 2], anchors=["start", place]) for place in range(4)]
    audit = mc.audit_rollouts(members, lambda *one: float(one[2] % 2), ["grpo", "reinforce_pp"], 4)
    assert "group of its own" in audit.skipped["grpo"]
    one_group = mc.audit_rollouts(coins()[:2], lambda *one: float(one[2] % 2), ["grpo"], 4)
    assert "[one group]" in str(one_group) and "nan" not in str(one_group)
