"""Where a search would change the policy's plain play, overspend, look at the truth, or play what it never tried."""

import asyncio
import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from manyturn.agents.records.episode_rows import read_turns

DOORS = (Path(__file__).parents[1] / "trainers" / "doors.py").read_text()
BUDGET = 280
METHODS = ("best_of_n", "beam", "tree")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run on Doors that has learnt next to nothing: each turn it opens one of five doors."""
    from manyturn.trainers.recipe.config import configure
    from manyturn.trainers.run.loop.loop import train

    folder = tmp_path_factory.mktemp("searching")
    (folder / "doors.py").write_text(DOORS)
    sizes = {
        "env": {"id": f"{folder}/doors.py:Doors", "args": {"max_turns": 14}},
        "model": {"width": 16, "layers": 1, "heads": 2},
        "agent": {"max_context": 256, "only_admissible": True},
        "sampling": {"max_tokens": 8},
        "warmup": {"episodes": 0},
        "rollout": {"tasks": 2, "group": 2},
        "credit": {"advantage": {"name": "gae"}},
        "value": {"fit": "least_squares"},
        "evaluation": {"limit": 2},
        "steps": 1,
        "device": "cpu",
    }
    asyncio.run(train(configure({}, sizes), folder / "run"))
    return folder / "run"


def evaluated(command, run: Path, out: Path, *words: object, limit: int = 12) -> dict:
    ended = command("evaluate", run, "--limit", limit, "--out", out, *words)
    assert ended.code == 0, ended.err
    return json.loads((out / "summary.json").read_text())


def spoken(out: Path) -> list[tuple]:
    return [(row["task"], row["turn"], row["reply"], row["observation"]) for row in read_turns(out / "turns.parquet")]


def test_searches_choose_better_paths_within_their_tokens(run, tmp_path, command):
    plain = evaluated(command, run, tmp_path / "plain")
    assert "search" not in plain and plain["measures"] == {}
    for name in METHODS:
        summary = evaluated(command, run, tmp_path / name, "--search", name, "--search.tokens", BUDGET)
        spent = {row: summary["measures"][f"search_{row}"]["mean"] for row in ("reply_tokens", "prompt_tokens", "ends")}
        assert summary["success"]["mean"] >= plain["success"]["mean"] + 0.2, name
        assert 0 < spent["reply_tokens"] <= BUDGET and summary["search"]["name"] == name
        assert summary["tokens"]["reply_mean"] == pytest.approx(spent["reply_tokens"])
        assert summary["tokens"]["prompt_mean"] == pytest.approx(spent["prompt_tokens"])
        assert summary["lost"]["reply_tokens"] in (0, None)


@pytest.mark.deep
def test_one_try_is_the_plain_episode_and_workers_change_nothing(run, tmp_path, command):
    evaluated(command, run, tmp_path / "plain")
    words = ("--search.name", "best_of_n", "--search.tokens", 400)
    evaluated(command, run, tmp_path / "one", *words, "--search.n", 1)
    assert spoken(tmp_path / "one") == spoken(tmp_path / "plain")
    for name in ("tree", "beam"):
        for place, workers in (("here", 0), ("workers", 2)):
            words = ("--search", name, "--search.tokens", BUDGET, "--workers", workers)
            evaluated(command, run, tmp_path / f"{name}-{place}", *words)
        assert spoken(tmp_path / f"{name}-here") == spoken(tmp_path / f"{name}-workers")


def test_values_say_which_path_is_played(run, tmp_path, command):
    words = ("--search", "best_of_n", "--search.tokens", BUDGET, "--search.value")
    oracle = evaluated(command, run, tmp_path / "oracle", *words, "oracle")
    progress = evaluated(command, run, tmp_path / "progress", *words, "progress")
    likely = evaluated(command, run, tmp_path / "likelihood", *words, "likelihood")
    assert oracle["success"]["mean"] == progress["success"]["mean"] > likely["success"]["mean"]
    assert likely["measures"]["search_reply_tokens"]["mean"] > progress["measures"]["search_reply_tokens"]["mean"]


def test_a_judge_prefers_what_its_rule_prefers(run, tmp_path, command):
    words = ("--search", "best_of_n", "--search.tokens", BUDGET, "--search.value", "judge", "--search.value.rule")
    evaluated(command, run, tmp_path / "plain")
    evaluated(command, run, tmp_path / "judged", *words, "repetition")
    repeats = {}
    for name in ("plain", "judged"):
        turns = [(row["task"], row["anchor"], row["action"]) for row in read_turns(tmp_path / name / "turns.parquet")]
        repeats[name] = len(turns) - len(set(turns))
    assert repeats["judged"] < repeats["plain"] - 12  # one of each episode
    ended = command("evaluate", run, *words, "expert")
    assert ended.code != 0 and "repetition" in ended.err


def mean_of(summary: dict, name: str) -> float:
    return summary["measures"][f"search_{name}"]["mean"]


def test_what_a_value_reads_is_counted_and_a_critic_with_rewards_sees_the_end(run, tmp_path, command):
    words = ("--search", "best_of_n", "--search.tokens", BUDGET, "--search.value")
    oracle = evaluated(command, run, tmp_path / "oracle", *words, "oracle", limit=3)
    reread = evaluated(command, run, tmp_path / "reread", *words, "rerank", limit=3)
    critic = evaluated(command, run, tmp_path / "critic", *words, "critic", "--search.value.rewards", "true", limit=3)
    assert "search_read_tokens" not in oracle["measures"]
    tokens = mean_of(reread, "prompt_tokens") + mean_of(reread, "reply_tokens")
    assert mean_of(reread, "read_tokens") == pytest.approx(tokens)
    assert critic["success"]["mean"] == oracle["success"]["mean"] >= reread["success"]["mean"]
    assert mean_of(critic, "read_tokens") > 0


def test_a_critic_and_a_reranker_say_what_the_weights_say(run, tmp_path):
    """By the library's own passes over the run's files; its critic, which saw no success, is given weights."""
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import AutoModelForCausalLM

    from manyturn.agents.engine.engine import Reply
    from manyturn.agents.search.place import DrawnReply, SearchPlace
    from manyturn.api.named_policy import find_policy

    def value(name: str, **options):
        search = {"name": "tree", "tokens": 99, "value": {"name": name, **options}}
        return find_policy(str(copy), {"search": search}).policy.value

    copy = shutil.copytree(run, tmp_path / "copy")
    first, last = (copy / "checkpoints" / name for name in ("step_000000", "step_000001"))
    learnt, manifest = last / "learner.safetensors", json.loads((last / "manifest.json").read_text())
    tensors = load_file(learnt)
    solved = tensors["value.solved.weights"] = torch.linspace(-1, 1, 17, dtype=torch.float64)
    save_file(tensors, learnt)
    manifest["files"][learnt.name]["sha256"] = hashlib.sha256(learnt.read_bytes()).hexdigest()
    manifest["files"][learnt.name]["bytes"] = learnt.stat().st_size
    (last / "manifest.json").write_text(json.dumps(manifest))
    prompt, replies = [5, 6, 7, 8, 9], [[11, 12, 2], [13, 2]]
    root = place = SearchPlace(None, None)
    for reply in replies:
        place = SearchPlace(None, None, place, DrawnReply(None, Reply(reply, [], "stop", 0), prompt))
    place.prompt = prompt
    model = AutoModelForCausalLM.from_pretrained(last / "model")
    state = model.get_decoder()(torch.tensor([prompt])).last_hidden_state[0, -1].detach().double()
    expected = float(state @ solved[:-1] + solved[-1])
    assert abs(expected) > 1e-4 and asyncio.run(value("critic").of(place)) == pytest.approx(expected, rel=1e-4)
    place.read_tokens = 0
    for folder, options in ((last, {"temperature": 0.7}), (first, {"model": str(first / "model")})):
        model, numbers = AutoModelForCausalLM.from_pretrained(folder / "model"), []
        for reply in replies:
            logits = model(torch.tensor([prompt + reply])).logits[0, len(prompt) - 1 : -1].detach()
            shares = torch.log_softmax(logits / options.get("temperature", 1.0), -1)
            numbers += [float(row[token]) for row, token in zip(shares, reply, strict=True)]
        read = asyncio.run(value("rerank", **options).of(place))
        assert read == pytest.approx(sum(numbers) / 5, rel=1e-4) and place.read_tokens == 15
        for one in (place, place.parent):
            one.likelihoods, one.read_tokens = None, 0
    assert root.likelihoods is None


def test_values_that_cannot_be_read_name_the_fix(run, tmp_path, command):
    plain = tmp_path / "plain"
    shutil.copytree(run / "checkpoints" / "step_000001" / "model", plain)
    other = tmp_path / "other"
    shutil.copytree(plain, other)
    text = json.loads((other / "tokenizer.json").read_text())
    words = text["model"]["vocab"]
    one, two = sorted(words, key=words.get)[-2:]
    words[one], words[two] = words[two], words[one]
    (other / "tokenizer.json").write_text(json.dumps(text))
    own = shutil.copytree(run, tmp_path / "own")
    config = (own / "config.toml").read_text()
    (own / "config.toml").write_text(re.sub(r"(?s)\[value\]\n.*?(?=\n\[)", '[value]\nbody = "own"\n', config))
    ended = command("evaluate", own, "--search", "tree", "--search.tokens", 99, "--search.value", "critic")
    assert ended.code != 0 and "value.body = 'policy'" in " ".join(ended.err.split()), ended.err
    search = ("--env", f"{run.parent}/doors.py:Doors", "--limit", 1, "--search", "tree", "--search.tokens", 99)
    for value, fix in (
        (("critic",), "section [value]"),
        (("rerank",), "--search.value likelihood"),
        (("rerank", "--search.value.model", run), "RUN/checkpoints/STEP/model"),
        (("rerank", "--search.value.model", other), "made from the same one"),
    ):
        ended = command("evaluate", plain, "--sampling.max-tokens", 8, *search, "--search.value", *value)
        assert ended.code != 0 and fix in " ".join(ended.err.split()), ended.err


def test_an_interrupted_search_continues_and_another_one_is_refused(run, tmp_path, command):
    words = ("--search", "tree", "--search.tokens", BUDGET)
    first = evaluated(command, run, tmp_path / "out", *words)
    journal = tmp_path / "out" / "episodes.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:-4]))
    again = evaluated(command, run, tmp_path / "out", *words)
    assert {**again, "seconds": 0, "lost": 0} == {**first, "seconds": 0, "lost": 0}
    ended = command("evaluate", run, "--limit", 12, "--out", tmp_path / "out", *words[:-1], BUDGET + 1)
    assert ended.code != 0 and "search.tokens" in ended.err


@pytest.mark.parametrize(
    "words, fix",
    [
        (("--search", "tree"), "search.tokens"),
        (("--search.tokens", 100), "--search.name"),
        (("--search", "three", "--search.tokens", 100), "tree"),
        (("--search", "tree", "--search.tokens", 7), "8 at least"),
        (("--search", "tree", "--search.tokens", 100, "--search.value", "truth"), "oracle"),
        (("--search", "tree", "--search.tokens", 100, "--search.n", 4), "best_of_n"),
        (("--search", "tree", "--search.tokens", 100, "--sampling.temperature", 0), "--sampling.temperature 1"),
    ],
)
def test_searches_that_cannot_be_name_the_fix(run, command, words, fix):
    ended = command("evaluate", run, *words)
    assert ended.code != 0 and fix in ended.err.replace("\n", " ")


def test_policies_without_tokens_cannot_search(command):
    for policy in ("expert", "openai:model"):
        ended = command("evaluate", policy, "--env", "manyturn/Maze-v0", "--search", "tree", "--search.tokens", 50)
        assert ended.code != 0 and "--search.name has no effect" in ended.err


def test_an_improvement_refuses_a_search(run, tmp_path, command):
    ended = command("improve", run, "--method", "cases", "--search", "tree", "--out", tmp_path / "better")
    assert ended.code != 0 and "--search.name has no effect" in ended.err and "evaluate" in ended.err


def test_worlds_without_progress_and_worlds_that_stray_are_no_score(run, tmp_path, command):
    silent = DOORS.replace("def progress", "def share")
    stray = DOORS.replace('"It stays shut."', 'f"It stays shut, now {next(COUNT)}."')
    stray = stray.replace("COLOURS =", "from itertools import count\nCOUNT = count()\nCOLOURS =", 1)
    for name, text, fix in (("silent", silent, "--search.value"), ("stray", stray, "manyturn check")):
        (tmp_path / f"{name}.py").write_text(text)
        world = ("--env", f"{tmp_path}/{name}.py:Doors", "--env.args.max_turns", 14)
        ended = command("evaluate", run, "--limit", 4, "--search", "tree", "--search.tokens", BUDGET, *world)
        assert ended.code != 0 and fix in ended.err.replace("\n", " ")
