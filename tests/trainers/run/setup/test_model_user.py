"""A user played by a model, in training: a killed run comes back to the bit, and a user that fails is no reward."""

import asyncio
from hashlib import sha256

import pytest
from needs_endpoint import completion, endpoint_server, reading  # noqa: F401 (a fixture)
from short_runs import resumed_to_the_bit, short_run

from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

MOVES = ("accept", "walk away", "offer 120", "offer 90")


def said(body: dict) -> bytes:
    """A move that depends on all of the dialogue."""
    return completion(MOVES[sha256(repr(body["messages"]).encode()).digest()[0] % len(MOVES)])


def run(url: str, **changes):
    user = {"kind": "model", "model": "m", "base_url": url, "attempts": 1}
    env = {"id": "manyturn/Talk-Negotiation-v0", "args": {"user": user, "max_turns": 3}, "workers": 1}
    return short_run(env=env, **changes)


@pytest.mark.deep
def test_a_run_with_a_model_user_is_resumed_to_the_bit(endpoint_server, tmp_path):  # noqa: F811
    endpoint_server.script = [reading(said)]
    calm = resumed_to_the_bit(run(endpoint_server.url), tmp_path)
    assert len(endpoint_server.requests) > 20 and all(
        not line["errors"] for line in read_metrics(calm) if "errors" in line
    )


@pytest.mark.deep
def test_a_model_user_that_does_not_answer_ends_the_run_and_is_no_reward(endpoint_server, tmp_path):  # noqa: F811
    endpoint_server.script = [(500, b"", {})]
    with pytest.raises(RuntimeError) as failed:
        asyncio.run(train(run(endpoint_server.url), tmp_path / "run"))
    assert endpoint_server.url in str(failed.value) and not (tmp_path / "run" / "summary.json").exists()
