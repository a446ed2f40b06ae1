"""An answer must be right and proven to count, whatever else is tried; the expert proves it, chance does not."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.conformance.check_runner import check
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.search.env import FOUND, SEARCHES, Search
from manyturn.envs.search.questions import HOPS
from manyturn.envs.tools.calls import call_text

ID = "manyturn/Search-v0"
CALLS = st.builds(
    lambda name, arguments: json.dumps({"name": name, "arguments": arguments}),
    st.sampled_from(["search", "answer", "find", ""]),
    st.dictionaries(
        st.sampled_from(["query", "text", "sources", "x"]),
        st.one_of(st.text(max_size=400), st.lists(st.text(max_size=9), max_size=6), st.none(), st.integers()),
    ),
)


@pytest.fixture
def hard() -> Search:
    env = Search(difficulty="hard", rewards="turns")
    env.reset(options={"task": "test/hard/3"})
    return env


def read_all(env: Search) -> None:
    while env.progress() < 1:
        env.step(env.expert())


def answered(env: Search, text: str, sources: list[str]) -> dict[str, Any]:
    *_, info = env.step(call_text("answer", text=text, sources=sources))
    return info


@pytest.mark.parametrize("level", HOPS)
def test_the_expert_proves_its_answers_and_chance_does_not(level: str) -> None:
    env, lucky, played = Search(difficulty=level), 0, 0
    rng = generator("by chance", level)
    for split in env.splits:
        for task in env.tasks(split)[:40]:
            env.reset(seed=0, options={"task": task})
            ended = False
            while not ended:
                _, reward, terminated, truncated, info = env.step(env.expert())
                ended = terminated or truncated
            assert info["success"] and reward == 1.0 and info["turn"] == HOPS[level] + 1, task.id
            _, info = env.reset(seed=0, options={"task": task})
            while "success" not in info:
                *_, info = env.step(info["admissible"][int(rng.integers(len(info["admissible"])))])
            lucky, played = lucky + info["success"], played + 1
    assert lucky <= 0.05 * played


def test_a_right_answer_counts_only_with_every_passage_that_proves_it(hard: Search) -> None:
    read_all(hard)
    params, start = hard.task.params, hard.snapshot()
    for missing in params["supports"]:
        hard.restore(start)
        info = answered(hard, params["answers"][0], [name for name in params["supports"] if name != missing])
        assert (info["success"], info["exact"], info["cited"], info["f1"]) == (False, True, False, 1.0)
        assert info["reward_parts"]["outcome"] == 0.0
    hard.restore(start)
    info = answered(hard, "nobody", params["supports"])
    assert (info["success"], info["exact"], info["cited"], info["f1"]) == (False, False, True, 0.0)
    hard.restore(start)
    assert answered(hard, f" the {params['answers'][0].upper()}. ", params["supports"][::-1])["success"]


def test_what_no_search_has_shown_cannot_be_cited(hard: Search) -> None:
    text, _, terminated, _, info = hard.step(hard.answer())
    assert "no search has returned" in text and not terminated and info["understood"]
    read_all(hard)
    assert hard.step(hard.answer())[-1]["success"]


def test_everything_that_was_found_cannot_be_cited_at_once(hard: Search) -> None:
    read_all(hard)
    everything = list(hard._research.passage_ids)
    assert len(everything) > 4
    assert "success" not in answered(hard, hard.task.params["answers"][0], everything)
    assert "cite at most 4" in hard.observation


def test_searches_run_out_and_refused_ones_do_not_count(hard: Search) -> None:
    hard.step(call_text("search", query="x" * 301))
    assert "at most 300" in hard.observation
    for left in range(SEARCHES - 1, -1, -1):
        text, *_ = hard.step(call_text("search", query="river"))
        assert f"(searches left: {left})" in text
    text, *_, info = hard.step(call_text("search", query="river"))
    assert "no searches left" in text and not any("search" in action[:20] for action in info["admissible"])


def test_a_needed_passage_pays_once(hard: Search) -> None:
    query, name = hard.task.params["queries"][0], hard.task.params["supports"][0]
    paid = [hard.step(call_text("search", query=query))[-1]["reward_parts"].get("found", 0.0) for _ in range(2)]
    assert name in hard._research.passage_ids and paid[0] >= FOUND and paid[1] == 0.0
    read_all(hard)
    assert hard.progress() == 1.0
    plain = Search(difficulty="hard")
    plain.reset(options={"task": hard.task})
    assert plain.step(plain.expert())[-1]["reward_parts"] == {}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=60), CALLS), max_size=6), st.integers(0, 2**40))
def test_any_text_is_answered_and_none_of_it_succeeds(actions: list[str], seed: int) -> None:
    env = Search(difficulty="medium")
    env.reset(seed=seed)
    for action in actions:
        text, reward, terminated, truncated, info = env.step(action)
        assert text and reward == 0.0 and not info.get("success")
        if terminated or truncated:
            break


@pytest.mark.deep
@pytest.mark.parametrize(
    "kwargs", [{}, pytest.param({"difficulty": "hard", "rewards": "turns"}, marks=pytest.mark.slow)], ids=str
)
def test_the_conformance_check_passes(kwargs: dict[str, Any]) -> None:
    report = check(ID, kwargs, samples=3)
    assert report.passed, str(report)


@pytest.mark.parametrize(
    ("kwargs", "kind", "told"),
    [
        ({"difficulty": "harder"}, ValueError, "Search has easy, medium, hard"),
        ({"rewards": "turn"}, ValueError, "did you mean 'turns'"),
        ({"corpus": "x.jsonl"}, ValueError, "belong together"),
        ({"corpus": "/no/x.jsonl", "questions": "/no/y.jsonl"}, NeedsSetup, "no corpus at /no/x.jsonl"),
        ({"corpus": "x", "questions": "y", "difficulty": "easy"}, ValueError, "neither difficulty nor world"),
    ],
)
def test_a_wrong_argument_is_told(kwargs: dict[str, Any], kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        Search(**kwargs)
