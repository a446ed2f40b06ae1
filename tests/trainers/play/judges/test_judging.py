"""Verdicts that are lost, asked for twice, taken for rewards of 0, or trusted although they are wrong."""

import asyncio
import json
import re
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from needs_endpoint import completion, endpoint_server, reading  # noqa: F401  a fixture
from short_runs import figures
from strict_endpoints import message
from two_steps import SMALL, TEACHING, TINY

from manyturn.agents.play.error_limit import TooManyErrors
from manyturn.agents.records.episode_rows import read_episodes, read_turns
from manyturn.envs.contract.options.options import ConfigError
from manyturn.recipes.stack import stacked
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.play.judges.agreement import agreement, without_length
from manyturn.trainers.play.judges.endpoint_judge import VerdictUnreadable, read_verdict
from manyturn.trainers.play.judges.rubric import CriterionConfig, rubric_score
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

RUN = stacked(
    [
        SMALL,
        {
            "model": TINY,
            "warmup": {**TEACHING, "max_updates": 40},
            "rollout": {"tasks": 4, "group": 4},
            "credit": {"advantage": "capo"},
            "learner": {"lr": 1e-2, "minibatch": 8},
            "judge": {},
            "steps": 2,
            "checkpoint_every": 5,
        },
    ]
)
RIGHT = {"name": "right", "question": "Was it right?"}
ASKED = {"by": "openai:m", "criteria": [RIGHT]}
ONE = {"price_in": 1.0, "price_out": 2.0, "concurrency": 1}  # request at a time
PRICED = {**ASKED, "endpoint": ONE}


def judged_run(path, judge, **changes):
    report = changes.pop("report", lambda line: None)
    return asyncio.run(
        train(configure(stacked([{**RUN, "judge": {}}, {"judge": judge}, changes])), path, report=report)
    )


def right(request):
    """The verdict that knows the lamps: in each turn the first colour of those that still wait."""
    record = request["messages"][1]["content"]
    order = re.search(r"observation:\n([a-z ]+?) the lamp", record)[1].split()
    lit, verdicts = 0, []
    for said in re.findall(r"\] agent:\n(.*)\n", record):
        verdicts.append(float(lit < len(order) and said.strip() == order[lit]))
        lit += int(verdicts[-1])
    return completion(json.dumps({"right": verdicts}), prompt=100, reply=10)


def turns(path, step=1):
    return list(read_turns(path / f"turns/step_{step:06d}.parquet"))


# ---- what a verdict is


def test_the_verdicts_of_a_rule_are_a_part_of_the_reward_of_each_turn(command, tmp_path):
    (tmp_path / "run.toml").write_text(__import__("tomli_w").dumps(RUN))
    ended = command("train", "--recipe", tmp_path / "run.toml", "--out", tmp_path / "run", "--steps", "1")
    assert ended.code == 0, ended.err
    rows = turns(tmp_path / "run")
    parts = [row["reward_parts"] for row in rows]
    assert {part["judge"] for part in parts} == {0.0, 1.0}
    for row, part in zip(rows, parts, strict=True):
        assert row["reward"] == pytest.approx(sum(part.values()))
    line = read_metrics(tmp_path / "run")[-1]
    assert line["judge_agreement"] > 0.6 and line["judge_abstained"] == 0 and "judge_tokens" not in line


def test_an_endpoint_that_judges_as_the_rule_does_leads_to_the_same_weights(endpoint_server, tmp_path):  # noqa: F811
    endpoint_server.script = [reading(right)]
    asked = judged_run(tmp_path / "asked", PRICED)
    ruled = judged_run(tmp_path / "ruled", {})
    assert asked["weights"] == ruled["weights"]
    line = read_metrics(tmp_path / "asked")[-1]
    assert line["judge_tokens"] == 16 * 110 and line["judge_cost"] == pytest.approx(16 * 120 / 1e6)
    body = endpoint_server.requests[-1]["body"]
    assert body["temperature"] == 0 and "light the lamps" in body["messages"][0]["content"]


def test_verdicts_are_asked_for_once_though_the_run_is_killed_in_the_middle_of_judging(endpoint_server, tmp_path):  # noqa: F811
    calm, killed, requests, twice = tmp_path / "calm", tmp_path / "killed", list[str](), list[str]()
    answered = set[str]()

    def answer(request):
        body = json.dumps(request, sort_keys=True)
        twice.extend([body] if body in answered else [])
        requests.append(body)
        if len(requests) == 16 + 8:  # half of the second step's
            shutil.copytree(calm, killed, ignore=shutil.ignore_patterns(".*.writing"))
        return right(request)

    endpoint_server.script = [reading(answer)]
    judged_run(calm, PRICED)
    answered.update(requests[: 16 + 7])  # the next one was under way
    asyncio.run(train(None, killed, resume=True))
    assert figures(killed) == figures(calm)
    assert len(requests) == 32 + 9 and not twice


def test_what_cannot_be_read_is_an_error_or_leaves_its_group_and_never_0(endpoint_server, tmp_path):  # noqa: F811
    def odd(request):
        fails = request["messages"][1]["content"].count("] agent:") % 2 == 0
        return completion('{"right": "yes"}') if fails else right(request)

    endpoint_server.script = [reading(odd)]
    with pytest.raises(TooManyErrors, match=r"no verdict .*judge\.unreadable = 'abstain'.*--resume"):
        judged_run(tmp_path / "error", ASKED)
    read = [request["body"]["messages"] for request in endpoint_server.requests]
    assert "could not be read" in next(messages for messages in read if len(messages) == 4)[-1]["content"]
    judged_run(tmp_path / "abstains", {**ASKED, "unreadable": "abstain", "readings": 1}, steps=1)
    rows = turns(tmp_path / "abstains")
    unjudged = [bool(np.isnan(row["reward_parts"]["judge"])) for row in rows]
    assert any(unjudged) and not all(unjudged)
    assert all(row["advantage"] == 0 for row, is_unjudged in zip(rows, unjudged, strict=True) if is_unjudged)
    line = read_metrics(tmp_path / "abstains")[-1]
    assert 0 < line["judge_abstained"] < 1 and line["unscorable_episodes"] > 0
    finished = list(read_episodes(tmp_path / "abstains/episodes/step_000001.parquet"))
    assert any(row["return"] is None and row["success"] is not None for row in finished)


@pytest.mark.parametrize(
    "text", ["", "[1]", "{", '{"a": 1}', '{"right": [1]}', '{"right": [1, 2]}', '{"right": [1, NaN]}']
)
def test_no_answer_is_taken_for_a_verdict_that_it_is_not(text):
    with pytest.raises(VerdictUnreadable):
        read_verdict(text, ["right"], 2, by_turn=True)


# ---- whether it is trusted


def test_a_run_does_not_learn_from_a_judge_that_disagrees_with_outcomes(tmp_path):
    with pytest.raises(
        LearningFailed, match=r"agrees with outcomes at 0\.\d\d over 16 episodes .*judge\.min_agreement"
    ):
        judged_run(tmp_path / "run", {"noise": 0.95})
    assert not [line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    judged_run(tmp_path / "trusting", {"noise": 0.95, "min_agreement": 0.0}, steps=1)
    assert read_metrics(tmp_path / "trusting")[-1]["judge_agreement"] < 0.5


def test_agreement_that_cannot_be_measured_is_no_agreement(tmp_path):
    never = {"env": {"args": {"limit": 1}}, "tasks": ["train/0/4", "train/0/5"], "rollout": {"tasks": 2}}
    with pytest.raises(LearningFailed, match=r"cannot be measured: all 8 .* failed: .*judge\.min_agreement = 0"):
        judged_run(tmp_path / "run", {}, warmup={"episodes": 0}, model={"sample_tasks": 9}, **never)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=12))
def test_agreement_is_the_share_of_pairs_in_order(episodes):
    pairs = [(a, b) for a, good in episodes if good for b, other in episodes if not other]
    share = agreement([float(v) for v, _ in episodes], [good for _, good in episodes])
    if not pairs:
        assert np.isnan(share)
    else:
        assert share == pytest.approx(np.mean([1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs]))


# ---- rubrics, position, length, budget


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 9), st.booleans()), min_size=1, max_size=5))
def test_a_rubric_is_a_weighted_mean_behind_its_gates(drawn):
    criteria = [CriterionConfig(name=f"c{n}", weight=1 if g else w, gate=g) for n, (_, w, g) in enumerate(drawn)]
    values = {f"c{n}": np.array([v]) for n, (v, _, _) in enumerate(drawn)}
    [score] = rubric_score(values, criteria)
    weighed = [(v, w) for v, w, g in drawn if not g]
    mean = sum(v * w for v, w in weighed) / sum(w for _, w in weighed) if weighed else 1.0
    assert score == pytest.approx(mean * all(v >= 0.5 for v, _, g in drawn if g))
    one = next(iter(values))
    assert np.isnan(rubric_score({**values, one: np.array([np.nan])}, criteria)).all()


def test_each_criterion_is_asked_for_in_each_place(endpoint_server, tmp_path):  # noqa: F811
    orders = set()

    def answer(request):
        names = re.findall(r"^- (\w+):", request["messages"][0]["content"], re.M)
        orders.add(tuple(names))
        count = len(re.findall(r"\] agent:", request["messages"][1]["content"]))
        good = json.loads(json.loads(right(request))["choices"][0]["message"]["content"])["right"]
        assert len(good) == count
        return completion(json.dumps({name: good for name in names}))

    endpoint_server.script = [reading(answer)]
    criteria = [{"name": name, "question": f"{name}?"} for name in ("a", "b", "c")]
    judged_run(tmp_path / "run", {"by": "openai:m", "criteria": criteria, "votes": 2}, steps=1)
    assert len(orders) == 6 and len(endpoint_server.requests) == 2 * 16


def test_a_judge_at_another_protocol_gives_the_same_verdicts(endpoint_server, tmp_path, monkeypatch):  # noqa: F811
    def answer(request):
        assert request["messages"][0]["role"] == "user" and "temperature" not in request
        shown = [{}, {"content": request["messages"][0]["content"][0]["text"]}]
        verdict = json.loads(right({"messages": shown}))["choices"][0]["message"]["content"]
        return message({"type": "text", "text": verdict})

    monkeypatch.setenv("ANTHROPIC_BASE_URL", endpoint_server.url)
    endpoint_server.script = [reading(right)]
    judged_run(tmp_path / "chat", ASKED, steps=1)
    endpoint_server.script = [reading(answer)]
    judged_run(tmp_path / "messages", {**ASKED, "by": "anthropic:m"}, steps=1)
    assert [row["reward_parts"] for row in turns(tmp_path / "messages")] == [
        row["reward_parts"] for row in turns(tmp_path / "chat")
    ]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(0, 0.1))
def test_a_verdict_without_length_does_not_follow_it(seed, slope):
    rng = np.random.default_rng(seed)
    lengths = [rng.integers(1, 200, 3).astype(float) for _ in range(8)]
    scores = [0.4 + slope * np.log1p(length) + 0.01 * rng.random(3) for length in lengths]
    flat = np.concatenate(without_length(scores, lengths))
    assert abs(np.polyfit(np.log1p(np.concatenate(lengths)), flat, 1)[0]) < 1e-9
    assert flat.mean() == pytest.approx(np.concatenate(scores).mean())


def test_a_budget_that_is_spent_stops_the_run_and_counts_across_a_resume(endpoint_server, tmp_path):  # noqa: F811
    endpoint_server.script = [reading(right)]
    tight = {**PRICED, "budget": {"tokens": 20 * 110}}
    with pytest.raises(TooManyErrors, match=r"judge\.budget\.tokens = 2200"):
        judged_run(tmp_path / "run", tight, checkpoint_every=1)
    with pytest.raises(TooManyErrors, match=r"judge\.budget\.tokens = 2200"):
        asyncio.run(train(None, tmp_path / "run", resume=True))
    config = tmp_path / "run/config.toml"
    config.write_text(config.read_text().replace("tokens = 2200", "tokens = 9999"))
    asyncio.run(train(None, tmp_path / "run", resume=True, accept=["config"]))
    assert read_metrics(tmp_path / "run")[-1]["judge_tokens"] == 16 * 110


def test_a_judge_judges_in_asynchronous_order_too(tmp_path):
    judged_run(tmp_path / "run", {"verdicts": "episode"}, order={"kind": "asynchronous"}, credit={"advantage": "grpo"})
    rows = turns(tmp_path / "run", 2)
    last = {(row["task"], row["member"]): row for row in rows}
    parts = [row["reward_parts"] for row in last.values()]
    assert len(parts) == 16 and all(0 <= part["judge"] <= 1 for part in parts)


@pytest.mark.parametrize(
    ("judge", "option"),
    [
        ({"criteria": [RIGHT]}, "rule"),
        ({"by": "openai:m", "criteria": [{"name": "a", "rule": "valid"}]}, "question"),
        ({"noise": 0.1, **ASKED}, "noise"),
        ({"unreadable": "abstain"}, "unreadable"),
        ({"votes": 3}, "votes"),
        ({"vote": "majority"}, "vote"),
        ({"criteria": [{"name": "a", "rule": "valid"}, {"name": "a", "rule": "expert"}]}, "two criteria"),
    ],
)
def test_an_option_without_effect_is_refused(judge, option):
    with pytest.raises(ConfigError, match=option):
        configure(stacked([RUN, {"judge": judge}]))
