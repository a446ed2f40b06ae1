"""A key of this machine that an environment repeats: it stands in no line of metrics, no table and no export."""

import gzip
import json

import pytest
from needs_endpoint import Server, completion
from pyarrow.parquet import read_table

from manyturn.envs.contract import credential_mask

KEY = "sk-q1W2e3R4t5Y6u7I8o9P0aSdF"
FILE = f"""
import manyturn as mt


class Says(mt.TextEnv):
    max_turns = 2

    def tasks(self, split):
        return [mt.Task(f"{{split}}/{KEY}/{{n}}", split, {{"n": n, "of": split}}) for n in range(4)]

    def begin(self, task, rng):
        return "The key is {KEY}. Say it."

    def respond(self, action):
        return self.succeed("Yes: {KEY}") if "{KEY}" in action else self.fail("No.")

    def expert(self):
        return "{KEY}"
"""


@pytest.fixture(autouse=True)
def no_secrets_of_other_tests(monkeypatch):
    monkeypatch.setattr(credential_mask, "_typed", set())


@pytest.fixture
def env(tmp_path):
    (tmp_path / "says.py").write_text(FILE)
    return f"{tmp_path}/says.py:Says"


def texts(*places):
    """All that files hold, tables and packed ones too."""
    for path in [file for place in places for file in (place.rglob("*") if place.is_dir() else [place])]:
        if path.suffix == ".parquet":
            yield str(read_table(path).to_pylist())
        elif path.suffix == ".gz":
            yield gzip.decompress(path.read_bytes()).decode()
        elif path.is_file():
            yield path.read_text(errors="replace")


def test_metrics_and_their_table_have_no_key(command, env, tmp_path, monkeypatch):
    monkeypatch.setenv("OTHER_API_KEY", KEY)
    sizes = {"model.width": 16, "model.layers": 1, "model.heads": 2, "agent.max-context": 512, "warmup.episodes": 0}
    sizes |= {"sampling.max-tokens": 4, "rollout.tasks": 2, "rollout.group": 2, "steps": 1, "evaluation.limit": 1}
    words = [word for name, value in sizes.items() for word in (f"--{name}", value)]
    run = tmp_path / "run"
    ended = command("train", env, *words, "--env.workers", 1, "--loggers", '["csv"]', "--out", run)
    assert ended.code == 0, ended.err
    written = [(run / name).read_text() for name in ("metrics.jsonl", "metrics.csv")]
    assert all("/***/" in text and KEY[:9] not in text for text in written)


@pytest.mark.parametrize("kind", ["atif", "chat", "datasets", "inspect"])
def test_exports_of_what_was_written_elsewhere_have_no_key(command, env, tmp_path, monkeypatch, kind):
    played, out = tmp_path / "played", tmp_path / "out"
    assert command("evaluate", "expert", "--env", env, "--limit", 2, "--out", played).code == 0
    assert command("trajectories", "export", played, "--as", "atif", "--out", tmp_path / "raw").code == 0
    assert any(KEY in text for text in texts(tmp_path / "raw"))  # it was no secret there
    monkeypatch.setenv("OTHER_API_KEY", KEY)
    ended = command("trajectories", "export", played, "--as", kind, "--out", out)
    assert ended.code == 0, ended.err
    assert command("trajectories", "import", tmp_path / "raw", "--out", tmp_path / "imported").code == 0
    assert command("export", env, "--as", "dataset", "--out", tmp_path / "rows").code == 0
    written = [*texts(out), *texts(tmp_path / "imported"), *texts(tmp_path / "rows" / "data")]
    assert any("***" in text for text in written) and not any(KEY[:9] in text for text in written)


IMPROVE = ("--method", "cases", "--pool.limit", 1, "--validation.limit", 1, "--rounds", 1)
BY_MEANING = ("--retrieval", "embedding", "--retrieval.model", "openai:e")
COMMANDS = {
    "/messages": ("evaluate", "anthropic:m", "--limit", 1),
    "/responses": ("evaluate", "openai-responses:m", "--limit", 1),
    "/completions": ("improve", "openai:m", *IMPROVE, *BY_MEANING),
}


def echo(handler):
    """An answer of each protocol that says all headers of its request back, in each entry that has words."""
    heard = " ".join(handler.headers.values())
    text = {"type": "text", "text": heard}
    thought = {"type": "thinking", "thinking": heard, "signature": heard}
    items = [{"type": "reasoning", "id": heard, "summary": [text], "encrypted_content": heard}]
    items.append({"type": "message", "content": [{"type": "output_text", "text": heard}]})
    vectors = [{"index": n, "embedding": [1.0]} for n, _ in enumerate(handler.asked.get("input", ()))]
    answers = {
        "/messages": {"content": [thought, text], "stop_reason": "end_turn"},
        "/responses": {"status": "completed", "output": items},
        "/embeddings": {"data": vectors, "model": heard},
        "/completions": json.loads(completion(heard, reasoning_content=heard)),
    }
    return 200, json.dumps(answers[next(path for path in answers if handler.path.endswith(path))]).encode(), {}


@pytest.mark.parametrize("path", COMMANDS)
def test_a_server_that_says_headers_back_puts_no_key_into_a_folder(
    command, endpoint_server: Server, tmp_path, monkeypatch, path
):
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_API_KEY", KEY)
        monkeypatch.setenv(f"{name}_BASE_URL", endpoint_server.url)
    endpoint_server.script = [echo]
    ended = command(*COMMANDS[path], "--env", "manyturn/GuessNumber-v0", "--out", tmp_path / "out")
    assert ended.code == 0, ended.err
    written = [*texts(tmp_path / "out"), ended.out, ended.err]
    assert any("***" in text for text in written) and not any(KEY[:9] in text for text in written)
    assert any(KEY in str(one["headers"]) for one in endpoint_server.requests if one["path"].endswith(path))
