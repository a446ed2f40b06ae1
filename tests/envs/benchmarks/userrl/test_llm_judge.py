"""Whatever a judging model answers, it is a value of the form that was asked for, or a typed error, in time."""

import asyncio
import json
import time
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from manyturn.envs.users.llm_judge import Form, Judge, JudgeError, JudgeOptions
from manyturn.envs.users.protocol import UserError


class Mark(Form):
    """A mark."""

    reason: str
    mark: Annotated[int, Field(ge=1, le=6)]
    kind: Literal["good", "bad"]


GOOD = {"reason": "So.", "mark": 2, "kind": "good"}


def judge_at(endpoint: Any, **options: Any) -> Judge:
    return Judge(JudgeOptions(model="m", base_url=endpoint.url, wait=0, **options))


@pytest.mark.parametrize(
    "answer",
    [GOOD, {**GOOD, "more": [1]}, f"```json\n{json.dumps(GOOD)}\n```", f"Well: {json.dumps(GOOD)} That is it."],
)
def test_an_answer_that_fits_is_read_whatever_stands_around_it(answer, endpoint):
    endpoint.says(answer)
    assert judge_at(endpoint).ask("You mark.", "An essay.", Mark) == Mark(**GOOD)
    system, user = endpoint.requests[0]["messages"]
    assert system["content"].startswith("You mark.") and '"maximum": 6' in system["content"]
    assert user == {"role": "user", "content": "An essay."}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({**GOOD, "mark": 0}, "mark: "), ({**GOOD, "mark": 7}, "mark: "), ({**GOOD, "mark": "2"}, "mark: "),
        ({**GOOD, "mark": 2.5}, "mark: "), ({**GOOD, "mark": None}, "mark: "), ({**GOOD, "kind": "great"}, "kind: "),
        ({"mark": 2, "kind": "good"}, "reason: "), ([GOOD, GOOD], "JSON"), ("good", "JSON"), ("}{", "JSON"),
        ("{" * 50_000, "does not end"), ('{"a":' * 3000 + "1" + "}" * 3000, "JSON"), ("{\x00\x1b[2J}", "JSON"),
        ("x" * 3_000_000, "longer than"), (b"\x00", "not a chat completion"),
        ('{"reason": "", "mark": 1e999, "kind": "bad"}', "mark: "),
    ],
)  # fmt: skip
def test_every_other_answer_is_a_judge_error_after_the_given_attempts(answer, message, endpoint):
    endpoint.answer = lambda request: answer
    with pytest.raises(JudgeError, match="2 attempts") as caught:
        judge_at(endpoint, attempts=2).ask("You mark.", "An essay.", Mark)
    assert len(endpoint.requests) == 2 and isinstance(caught.value, UserError)
    assert message in str(caught.value) and str(caught.value).isprintable() and len(str(caught.value)) < 500


def test_what_was_wrong_is_told_with_the_next_attempt_and_only_the_last_fault_is_kept(endpoint):
    endpoint.says({**GOOD, "mark": 0}, {**GOOD, "mark": 9}, GOOD)
    assert judge_at(endpoint, seed=3).ask("You mark.", "An essay.", Mark).mark == 2
    first, second, third = endpoint.requests
    assert [len(one["messages"]) for one in endpoint.requests] == [2, 4, 4]
    assert [one["seed"] for one in endpoint.requests] == [3, 4, 5]
    assert "greater than or equal to 1" in second["messages"][3]["content"]
    assert "less than or equal to 6" in third["messages"][3]["content"]
    assert third["messages"][:2] == first["messages"]


def test_a_fault_of_the_endpoint_is_not_told_to_the_model(endpoint):
    endpoint.says(b"oops", GOOD)
    judge_at(endpoint).ask("You mark.", "An essay.", Mark)
    assert endpoint.requests[0]["messages"] == endpoint.requests[1]["messages"]


def test_all_attempts_share_the_time(endpoint):
    def slowly(request: dict) -> Any:
        time.sleep(0.4)
        return "nonsense"

    endpoint.answer = slowly
    with pytest.raises(JudgeError, match=r"no answer within 0\.\d+ s"):
        judge_at(endpoint, attempts=2, timeout=0.6).ask("You mark.", "An essay.", Mark)


def test_nobody_there_is_a_judge_error():
    judge = Judge(JudgeOptions(model="m", base_url="http://127.0.0.1:9/v1", attempts=2, wait=0, timeout=2))
    with pytest.raises(JudgeError, match="2 attempts"):
        judge.ask("You mark.", "An essay.", Mark)


def test_the_key_appears_in_no_error(endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1")
    endpoint.answer = lambda request: b"your key is sk-secret-1"
    with pytest.raises(JudgeError) as caught:
        judge_at(endpoint, attempts=1).ask("You mark.", "An essay.", Mark)
    assert "sk-secret" not in str(caught.value)


def test_it_answers_inside_an_event_loop_and_warns_of_it(endpoint):
    async def ask() -> Mark:
        return judge_at(endpoint).ask("You mark.", "\ud83d", Mark)

    endpoint.says(GOOD)
    with pytest.warns(RuntimeWarning, match="event loop"):
        assert asyncio.run(ask()).mark == 2
    assert endpoint.requests[0]["messages"][1]["content"] == "?"


@pytest.mark.parametrize(("options", "message"), [({"stop": "END"}, "leave out stop"), ({"modle": "x"}, "model")])
def test_a_slip_in_the_options_names_the_mend(options, message):
    with pytest.raises(ValueError, match=message):
        JudgeOptions(model="m", base_url="http://127.0.0.1:9/v1", **options)


def test_an_address_with_secrets_is_refused():
    with pytest.raises(ValueError, match="no secrets"):
        Judge(JudgeOptions(model="m", base_url="http://user:secret@127.0.0.1/v1"))
