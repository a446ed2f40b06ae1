"""Entries that are not found because a task has other words, and vectors that are paid for twice."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from needs_endpoint import Server, completion, reading
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

import manyturn as mt
from manyturn.agents.experience.retrieval.ranking import RETRIEVALS, retrieval_of
from manyturn.agents.experience.store import read_experience
from manyturn.terminal import command_exit

WORLD = """
import manyturn as mt

NAMES = {"crimson": "red", "azure": "blue", "emerald": "green", "ebony": "black", "ivory": "white"}
WORDS = dict(zip(NAMES, ("salt", "moon", "fire", "rain", "iron")))

class Gates(mt.TextEnv):
    instructions = "Say the word that opens."
    max_turns = 1

    def tasks(self, split):
        return [mt.Task(f"{split}/{name}", split, {"name": name, "split": split}) for name in NAMES]

    def begin(self, task, rng):
        name = task.params["name"]
        seen = {"train": f"{name} gate", "validation": f"{NAMES[name]} door", "test": f"{NAMES[name]} lid"}
        return f"{seen[task.split]}?"

    def respond(self, action):
        return self.succeed("Open.") if action == WORDS[self.task.params["name"]] else self.fail("Shut.")

def trier(observation, info):
    return info["instructions"].rpartition("1. ")[2].split()[0] if "1. " in info["instructions"] else "please"
"""
CONCEPTS = (("crimson", "red"), ("azure", "blue"), ("emerald", "green"), ("ebony", "black"), ("ivory", "white"))
ORDER = ("salt", "moon", "fire", "rain", "iron")
IMPROVE = ("improve", "openai:toy", "--env", "gates.py:Gates", "--method", "cases", "--method.failures", "false")
SIZES = ("--method.attempts", "16", "--method.shown", "1", "--rounds", "1", "--validation.decoding", "sampled")
BY_MEANING = ("--retrieval", "openai:meaning", "--retrieval.price", "2")


def vectors(texts: list[str]) -> bytes:
    rows = [[float(any(word in text for word in words)) for words in CONCEPTS] + [0.1] for text in texts]
    data = [{"index": n, "embedding": row} for n, row in enumerate(rows)]
    usage = {"prompt_tokens": 3 * len(texts), "total_tokens": 3 * len(texts)}
    return json.dumps({"data": data[::-1], "usage": usage}).encode()


def toy(body: dict[str, Any]) -> bytes:
    """The vectors of texts; or the word of the case in the system text; else, in an attempt, some word."""
    if "input" in body:
        return vectors(body["input"])
    system = body["messages"][0]["content"]
    word = system.rpartition("1. ")[2].split()[0] if "1. " in system else "please"
    is_attempt = "gate" in body["messages"][1]["content"]
    return completion(f"<action>{ORDER[body['seed'] % 5] if is_attempt else word}</action>", 20, 4)


def texts_asked(server: Server) -> Counter[str]:
    return Counter(text for one in server.requests for text in one["body"].get("input", ()))


def panel(out: str) -> list[float]:
    rounds = json.loads((Path(out) / "improvement.json").read_text())["rounds"]
    return [one["validation"]["sampled"]["mean"] for one in rounds]


@pytest.fixture
def server(endpoint_server: Server, tmp_path, monkeypatch) -> Server:
    monkeypatch.chdir(tmp_path)
    Path("gates.py").write_text(WORLD)
    endpoint_server.script = [reading(toy)]
    return endpoint_server


def test_meaning_finds_cases_where_words_differ_and_each_text_is_asked_for_once(command, server):
    assert command(*IMPROVE, *SIZES, "--out", "words").code == 0 and not texts_asked(server)
    assert panel("words") == [0.0, 0.0], "no word of a gate is a word of a door"
    ended = command(*IMPROVE, *SIZES, *BY_MEANING, "--out", "meaning")
    assert ended.code == 0, ended.err
    assert panel("meaning") == [0.0, 1.0]
    assert set(texts_asked(server).values()) == {1} and len(texts_asked(server)) == 10
    assert {one["path"] for one in server.requests if "input" in one["body"]} == {"/v1/embeddings"}
    assert max(len(one["body"].get("input", ())) for one in server.requests) > 1, "texts go together"
    [_, last] = json.loads(Path("meaning/improvement.json").read_text())["rounds"]
    assert last["spent"]["retrieval"] == {"prompt_tokens": 30, "reply_tokens": 0, "cost": pytest.approx(6e-5)}
    head = json.loads(Path("meaning/experience.jsonl").read_text().split("\n")[0])
    assert head["retrieval"] == {"name": "embedding", "model": "openai:meaning", "longest": 2000}

    words = ("evaluate", "openai:toy", "--env", "gates.py:Gates", "--experience", "meaning", "--out", "after")
    ended = command(*words)
    assert ended.code == 0 and "15 tokens" in ended.err, ended.err
    assert json.loads(Path("after/summary.json").read_text())["success"]["mean"] == 1.0
    assert len(texts_asked(server)) == 15 and set(texts_asked(server).values()) == {1}
    assert command(*words).code == 0 and texts_asked(server).total() == 15, "nor by one that is continued"
    other = command(*words, "--retrieval", "bm25")
    assert other.code == command_exit.BAD_INPUT, "an evaluation does not continue with another retrieval"
    by_words = mt.evaluate("gates.py:trier", "gates.py:Gates", experience="meaning", retrieval="bm25")
    assert by_words.summary["success"]["mean"] == 0.0
    with mt.load_policy("gates.py:trier", experience="meaning") as policy:
        assert mt.evaluate(policy, "gates.py:Gates").summary["success"]["mean"] == 1.0


@pytest.mark.parametrize("after", [1, pytest.param(2, marks=pytest.mark.deep)])
def test_one_that_is_killed_among_vectors_ends_the_same_and_asks_for_none_that_it_had(command, server, after):
    words = (*IMPROVE, *SIZES, *BY_MEANING, "--endpoint.concurrency", "1", "--out")
    assert command(*words, "whole").code == 0
    server.requests.clear()
    killed = subprocess.Popen([sys.executable, "-P", "-m", "manyturn", *words, "part"], stderr=subprocess.DEVNULL)

    def deadly(handler: Any) -> tuple[int, bytes, dict[str, str]]:
        if sum("input" in one["body"] for one in server.requests) > after:
            killed.kill()
            return 0, b"", {}
        return 200, toy(handler.asked), {}

    server.script = [deadly]
    assert killed.wait() == -9
    requests = [one["body"]["input"] for one in server.requests if "input" in one["body"]][:after]
    had = {text for texts in requests for text in texts}
    server.requests.clear()
    server.script = [reading(toy)]
    assert command(*words, "part").code == 0
    assert had and not had & texts_asked(server).keys()
    assert Path("part/experience.jsonl").read_bytes() == Path("whole/experience.jsonl").read_bytes()
    ends = [json.loads(Path(out, "improvement.json").read_text())["rounds"][-1] for out in ("whole", "part")]
    assert ends[0]["spent"]["retrieval"] == ends[1]["spent"]["retrieval"] and panel("part") == panel("whole")


@pytest.mark.parametrize("path", ["/chat/completions", "/embeddings/"])
def test_the_address_may_end_in_the_path_of_either_service(command, server, monkeypatch, path):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url + path)
    Path("one.jsonl").write_text('{"text": "1. salt", "about": "crimson gate?"}')
    words = ("evaluate", "gates.py:trier", "--env", "gates.py:Gates", "--limit", "1", "--experience", "one.jsonl")
    assert command(*words, *BY_MEANING).code == 0
    assert {one["path"] for one in server.requests} == {"/v1/embeddings"}


def test_vectors_count_against_the_budget(command, server):
    words = (*IMPROVE, *SIZES, *BY_MEANING, "--endpoint.price-in", "0", "--endpoint.price-out", "0", "--out", "out")
    ended = command(*words, "--budget.usd", "0.000001")
    assert ended.code == 0 and "budget.usd" in ended.out and panel("out") == [0.0]
    first = texts_asked(server)
    more = command(*words, "--budget.usd", "1")
    assert more.code == 0 and panel("out") == [0.0, 1.0] and set(texts_asked(server).values()) == {1} and first
    unpriced = (*IMPROVE, *SIZES, "--retrieval", "openai:meaning", "--budget.usd", "1", "--out", "other")
    refused = command(*unpriced)
    assert refused.code == command_exit.BAD_INPUT and "--retrieval.price" in refused.err


@pytest.mark.parametrize(
    ("answer", "fix", "ends"),
    [
        ((401, b'{"error": {"message": "no"}}', {}), "OPENAI_API_KEY", True),
        ((200, b'{"data": [{"index": 0, "embedding": [1]}]}', {}), "--retrieval.base-url", True),
        ((200, b'data: {"choices": []}\n\n', {}), "--retrieval.base-url", True),
        ((400, b'{"error": {"message": "maximum context length is 8"}}', {}), "--retrieval.longest", False),
        ((200, vectors(["a", "b"]).replace(b"0.0", b"0").replace(b"0.1", b"0"), {}), "--retrieval.model", False),
    ],
)
def test_an_endpoint_without_vectors_is_an_error_with_a_fix_and_never_a_failure(command, server, answer, fix, ends):
    def answering(handler: Any) -> tuple[int, bytes, dict[str, str]]:
        return answer if "input" in handler.asked else (200, toy(handler.asked), {})

    server.script = [answering]
    Path("one.jsonl").write_text('{"text": "1. salt", "about": "crimson gate?"}')
    words = ("evaluate", "openai:toy", "--env", "gates.py:Gates", "--limit", "1", "--experience", "one.jsonl")
    ended = command(*words, *BY_MEANING, "--retrieval.attempts", "1", "--out", "out")
    assert Path("out/summary.json").exists() != ends and (ended.code != 0) == ends, ended.err
    if ends:
        assert fix in ended.err
    else:
        assert json.loads(Path("out/summary.json").read_text())["success"]["mean"] is None
        assert fix in Path("out/episodes.jsonl").read_text()


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (("cases", "--retrieval", "embeding"), "embedding"),
        (("cases", "--retrieval", "embedding"), "model"),
        (("cases", "--retrieval", "openai:"), "openai:MODEL"),
        (("cases", "--retrieval", "./nowhere"), "--retrieval.model"),
        (("cases", "--retrieval", "./gates.py/x", "--retrieval.price", "1"), "leave it out"),
        (("cases", "--retrieval.model", "openai:m", "--retrieval.base-url", "example.org"), "--retrieval.base-url"),
        (("training_free_grpo", "--retrieval", "openai:meaning"), "leave it out"),
    ],
)
def test_a_retrieval_that_cannot_work_or_has_no_effect_is_refused_before_anything_is_asked(command, server, words, fix):
    ended = command("improve", "openai:toy", "--env", "gates.py:Gates", "--method", *words, "--out", "out")
    assert ended.code == command_exit.BAD_INPUT and fix in ended.err and not server.requests, ended.err
    plain = command("evaluate", "openai:toy", "--env", "gates.py:Gates", "--retrieval", "bm25")
    assert plain.code == command_exit.BAD_INPUT and "leave it out" in plain.err


class TestModelsInThisProcess:
    """Vectors of hidden states."""

    @staticmethod
    def vector(folder: Path, text: str) -> np.ndarray:
        ranking = RETRIEVALS.apply(retrieval_of({}, {"name": "embedding", "model": str(folder)}))
        assert ranking.vectors is not None
        return asyncio.run(ranking.vectors.of([text]))[0]

    def test_a_vector_is_the_mean_over_tokens_of_a_decoder_and_of_an_encoder(self, bare_model, tmp_path):
        encoder = tmp_path / "encoder"
        tokenizer = AutoTokenizer.from_pretrained(bare_model)
        size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
        torch.manual_seed(0)
        BertModel(BertConfig(vocab_size=len(tokenizer), **size)).save_pretrained(encoder)
        tokenizer.save_pretrained(encoder)
        for folder in (bare_model, encoder):
            text = "A red door."
            model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
            with torch.no_grad():
                mean = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0).numpy()
            np.testing.assert_allclose(self.vector(folder, text), mean / np.linalg.norm(mean), atol=1e-5)

    def test_other_weights_are_another_model_and_a_copy_is_the_same(self, bare_model, tmp_path, server):
        copied, changed = (shutil.copytree(bare_model, tmp_path / name) for name in ("same/copied", "other/copied"))
        [file] = changed.glob("*.safetensors")
        file.write_bytes(file.read_bytes()[:-1] + b"\x01")
        improving = {"method": {"name": "cases", "shown": 1}, "rounds": 1}
        solving = 'WORDS[observation.split()[0]] if "gate" in observation else ""'
        Path("gates.py").write_text(WORLD.replace('"please"', solving))
        folder = {"name": "embedding", "model": str(bare_model)}
        made = mt.improve("gates.py:trier", "gates.py:Gates", out="out", retrieval=folder, **improving)
        assert made.rounds[-1].spent["retrieval"].prompt_tokens and not server.requests
        lines = len(Path("out/embeddings.jsonl").read_text().splitlines())
        for place, new in ((copied, 5), (changed, 10)):
            out = f"after-{new}"
            retrieval = {"model": str(place)}
            after = mt.evaluate("gates.py:trier", "gates.py:Gates", experience="out", retrieval=retrieval, out=out)
            assert len(Path(out, "embeddings.jsonl").read_text().splitlines()) == 1 + new
            assert "by copied, weights" in after.summary["policy"]
        assert len(Path("out/embeddings.jsonl").read_text().splitlines()) == lines == 11
        assert read_experience(Path("out")).retrieval["model"] == str(bare_model)
