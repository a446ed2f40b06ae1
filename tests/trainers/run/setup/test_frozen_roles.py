"""Roles of policies that do not learn in the run: each kind plays, is named in errors, and outlives a kill."""

import asyncio
import json
import re
import shutil

import numpy as np
import pytest
from duet_runs import DUET
from duet_runs import partnered_run as duet
from needs_endpoint import KEY, Server, completion, endpoint_server, reading  # noqa: F401  a fixture
from short_runs import figures

from manyturn.agents.records.episode_rows import read_episodes, read_turns
from manyturn.api.named_policy import find_policy
from manyturn.envs.contract.options.options import ConfigError
from manyturn.terminal import command_exit
from manyturn.trainers.recipe.config import parse_config, to_toml
from manyturn.trainers.record.checkpoint import newest_checkpoint, read_state, read_tensors
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.past_selves import copies_in

LIAR = """
def liar(observation, info):
    return "even" if "odd" in observation else "odd"

def broken(observation, info):
    raise RuntimeError("no idea")
"""


def run(path, liar, **changes):
    return asyncio.run(train(duet(liar, **changes), path))


def turns_of(path, role):
    return [
        row for file in sorted((path / "turns").glob("*.parquet")) for row in read_turns(file) if row["role"] == role
    ]


def lie(request):
    """The right reply of a liar, in the format that the model is asked for."""
    heard = re.search(r"You hear (\w+)", request["messages"][-1]["content"])
    word = {"odd": "even"}.get(heard[1], "odd") if heard else "odd"
    return completion(f"<action>{word}</action>", prompt=100, reply=10)


PRICED = {"policy": "openai:partner", "endpoint": {"price_in": 1.0, "price_out": 2.0}}


def test_an_endpoint_bargains_with_a_policy_that_learns(command, endpoint_server, tmp_path):  # noqa: F811
    def answer(request):
        offered = "The other side: offer" in request["messages"][-1]["content"]
        return completion(f"Fine. <action>{'accept' if offered else 'walk away'}</action>")

    endpoint_server.script = [reading(answer)]
    words = ("train", "manyturn/Talk-SelfPlay-v0", "--recipe", "bargain-tiny", "--roles", '{second = "openai:m"}')
    words += ("--roles.second.sampling.temperature", "0.5")
    sizes = {"rollout.tasks": 2, "rollout.group": 2, "steps": 1, "evaluation.limit": 2, "warmup.episodes": 24}
    sizes |= {"warmup.max_updates": 4, "warmup.check_every": 4, "warmup.check_episodes": 2}
    sizes |= {"warmup.must_succeed": "false", "model.sample_tasks": 8}
    for name, value in sizes.items():
        words += (f"--{name}", value)
    ended = command(*words, "--out", tmp_path / "run")
    assert ended.code == 0, ended.err
    asked = [request["body"] for request in endpoint_server.requests]
    assert asked and all(body["temperature"] == 0.5 and body["model"] == "m" for body in asked)
    theirs = turns_of(tmp_path / "run", "second")
    assert {row["action"] for row in theirs} <= {"accept", "walk away"} and turns_of(tmp_path / "run", "first")
    assert all(np.isnan(row["advantage"]) for row in theirs)
    assert not [path for path in (tmp_path / "run").rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize("when", ["turn", "start"])
def test_a_recipe_trains_an_adviser_of_an_actor_at_an_endpoint(command, endpoint_server, tmp_path, when):  # noqa: F811
    def answer(request):
        return completion(f"<action>{request['messages'][-1]['content'].rpartition('Advice: ')[2]}</action>")

    endpoint_server.script = [reading(answer)]
    words = ("train", "--recipe", "adviser-tiny", "--env.wrappers", f'[{{name = "adviser", when = "{when}"}}]')
    sizes = {"rollout.tasks": 2, "rollout.group": 2, "steps": 1, "evaluation.limit": 2, "warmup.episodes": 4}
    sizes |= {"warmup.max_updates": 1, "warmup.check_every": 1, "warmup.check_episodes": 1, "model.sample_tasks": 9}
    for name, value in sizes.items():
        words += (f"--{name}", value)
    ended = command(*words, "--out", tmp_path / "run")
    assert ended.code == 0, ended.err
    advised, acted = (turns_of(tmp_path / "run", role) for role in ("adviser", "actor"))
    assert {row["action"] for row in acted} <= {row["action"] for row in advised}
    assert len(advised) == (len(acted) if when == "turn" else 4)
    assert not np.isnan([row["advantage"] for row in advised]).any()


def test_a_partner_at_an_endpoint_is_counted_by_itself(endpoint_server, tmp_path):  # noqa: F811
    endpoint_server.script = [reading(lie)]
    summary = run(tmp_path / "run", PRICED, steps=1)
    assert set(summary["weights"]) == {"me"}
    line = read_metrics(tmp_path / "run")[-1]
    assert line["liar/invalid"] == 0.0 and line["liar/return"] == 1.0 and "me/entropy" in line
    assert line["liar/cost"] == pytest.approx(16 * (100 * 1.0 + 10 * 2.0) / 1e6)
    assert not [name for name in line if name.startswith("liar/") and name.endswith(("entropy", "kl", "loss"))]


@pytest.mark.parametrize(
    ("fault", "fix"),
    [
        ((400, b'{"error": {"message": "filtered"}}', {}), "filtered"),
        ((200, completion("<action>odd", finish="length"), {}), "sampling.max-tokens"),
    ],
)
def test_a_partner_that_fails_is_an_error_under_its_role_and_no_reward(endpoint_server, tmp_path, fault, fix):  # noqa: F811
    def answer(handler):
        return fault if len(endpoint_server.requests) % 4 == 3 else reading(lie)(handler)

    endpoint_server.script = [answer]
    liar = {**PRICED, "agent": {"cut": "end"}}
    run(tmp_path / "run", liar, steps=1, rollout={"error_share": 0.9}, evaluation={"limit": 1})
    rows = [row for row in read_episodes(tmp_path / "run/episodes/step_000001.parquet") if row["ending"] != "completed"]
    assert rows and all(row["ending"] == "infra_error" and "role liar: " in row["cause"] for row in rows)
    assert all(fix in row["cause"] for row in rows)
    failed = {(row["task"], row["member"]) for row in rows}
    spoiled = [row for row in turns_of(tmp_path / "run", "caller") if (row["task"], row["member"]) in failed]
    assert all(np.isnan(row["advantage"]) for row in spoiled)


def test_a_partner_of_two_roles_fails_under_the_one_that_it_plays(command, endpoint_server, tmp_path):  # noqa: F811
    def answer(handler):
        is_liar = "You lie" in handler.asked["messages"][-1]["content"]
        return (400, b"{}", {}) if is_liar else (200, completion("<action>odd</action>"), {})

    run(tmp_path / "run", "expert", steps=1)
    endpoint_server.script = [answer]
    roles = ("--roles.caller", "openai:m", "--roles.liar", "openai:m")
    ended = command("evaluate", tmp_path / "run", *roles, "--limit", 4, "--out", tmp_path / "out")
    assert ended.code == command_exit.TOO_MANY_ERRORS and "role liar: " in ended.err


def test_an_evaluation_goes_on_only_with_the_same_partner_and_counts_its_cost(command, endpoint_server, tmp_path):  # noqa: F811
    endpoint_server.script = [reading(lie)]
    run(tmp_path / "run", "expert", steps=1)
    prices = ("--roles.liar.endpoint.price-in", 1, "--roles.liar.endpoint.price-out", 2)
    words = ("evaluate", tmp_path / "run", "--roles.liar", "openai:m", *prices, "--out", tmp_path / "out", "--limit", 4)
    assert command(*words).code == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["priced"] and summary["cost"]["total"] == pytest.approx(4 * (100 * 1.0 + 10 * 2.0) / 1e6)
    liar = summary["roles"]["liar"]
    assert liar["sampling"]["temperature"] == 1.0 and liar["endpoint"].startswith("http://127.0.0.1")
    elsewhere = endpoint_server.url.replace("127.0.0.1", "localhost")
    for option, value, place in (
        ("--roles.liar.sampling.temperature", 0.5, "roles.liar.sampling.temperature was 1.0 and is 0.5"),
        ("--roles.liar.agent.system", "Lie.", "roles.liar.agent.system"),
        ("--roles.liar.endpoint.base-url", elsewhere, "roles.liar.endpoint"),
        ("--sampling.temperature", 0.5, "roles.caller.sampling.temperature"),
    ):
        refused = command(*words, option, value)
        assert refused.code == command_exit.BAD_INPUT and place in refused.err
    assert command(*words).code == 0


def test_experience_that_no_role_reads_is_refused(command, tmp_path):
    run(tmp_path / "run", "expert", steps=1, agent={"instructions": False})
    (tmp_path / "own.jsonl").write_text('{"text": "Lie."}')
    unread = command("evaluate", tmp_path / "run", "--experience", tmp_path / "own.jsonl", "--limit", 4)
    assert unread.code == command_exit.BAD_INPUT and "agent.instructions" in unread.err


def test_only_returns_of_roles_that_learn_judge_groups_and_tasks(tmp_path):
    """Where the policy always says the same, a partner's luck teaches it nothing, and makes no task instructive."""
    same = {"sampling": {"temperature": 1e-4}, "rollout": {"rounds": 2, "spread_share": 0.5}}
    run(tmp_path / "same", "random", steps=1, **same)
    line = read_metrics(tmp_path / "same")[-1]
    assert 0 < line["liar/return"] < 1 and line["rounds"] == 2 and line["least_spread"] == 0
    run(tmp_path / "run", "expert", steps=1)
    checkpoint, _ = newest_checkpoint(tmp_path / "run" / "checkpoints")
    taught = [feedback[4] for feedback in read_state(checkpoint)["feedback"]]
    learnt = np.abs([row["advantage"] for row in turns_of(tmp_path / "run", "caller")])
    assert np.mean(taught) == pytest.approx(learnt.mean(), rel=1e-5)


@pytest.mark.deep
def test_answers_are_asked_for_once_though_the_run_is_killed_in_the_middle_of_a_step(endpoint_server, tmp_path):  # noqa: F811
    """The killed run holds half of a step: its episodes are played again, with the answers that it has."""
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    requests, of_steps, twice = list[str](), set[str](), list[str]()

    def answer(request):
        body = json.dumps(request, sort_keys=True)
        if body in of_steps:
            twice.append(body)
            return completion("<action>odd</action>")  # asked again, this model says something else
        requests.append(body)
        return lie(request)

    def copy_in_the_middle(line):
        if line["phase"] == "train":
            counts.append(len(requests))
            if line["step"] == 2:
                shutil.copytree(calm, killed, ignore=shutil.ignore_patterns(".*.writing"))

    counts = list[int]()
    endpoint_server.script = [reading(answer)]
    asyncio.run(train(duet("openai:partner", checkpoint_every=5), calm, report=copy_in_the_middle))
    [journal] = (killed / "journal").glob("step_000002_*.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: len(lines) // 2]))
    of_steps |= set(requests[: counts[1]]) - set(requests[counts[2] :])  # but for held-out tasks, played at both ends
    assert len(of_steps) >= 2 * 16
    asyncio.run(train(None, killed, resume=True))
    assert figures(killed) == figures(calm) and not twice
    assert [path.name for path in (killed / "answers").iterdir()] == ["other.jsonl"], "held-out tasks"


def test_a_run_a_model_and_python_play_a_role(tmp_path):
    (tmp_path / "pol.py").write_text(LIAR)
    first = run(tmp_path / "first", f"{tmp_path}/pol.py:liar", steps=1)
    assert read_metrics(tmp_path / "first")[-1]["liar/return"] == 1.0
    seat = {"roles": {"caller": str(tmp_path / "first"), "liar": "me"}}
    second = run(tmp_path / "second", "me", steps=1, **seat)
    assert set(second["weights"]) == {"me"} and first["weights"] != second["weights"]
    newest, _ = newest_checkpoint(tmp_path / "first" / "checkpoints")
    model = {"policy": f"{newest}/model-me", "agent": {"format": "free_text"}, "sampling": {"max_tokens": 3}}
    assert turns_of(tmp_path / "second", "caller") and run(tmp_path / "third", model, steps=1)
    playing = find_policy(str(tmp_path / "second"), {})
    assert first["weights"]["me"][:16] in playing.policy.name and second["weights"]["me"][:16] in playing.policy.name
    longer = {**model, "agent": {"format": "free_text", "max_context": 99_999}}
    with pytest.raises(ConfigError, match=r"roles\.liar: agent\.max_context .* give at most"):
        run(tmp_path / "longer", longer, steps=1)
    with pytest.raises(Exception, match="no idea"):
        run(tmp_path / "fourth", f"{tmp_path}/pol.py:broken", steps=1)


def test_the_past_is_k_steps_old_and_comes_back_after_a_kill_to_the_bit(tmp_path):
    calm, killed = tmp_path / "calm", tmp_path / "killed"

    def copy_after_step(line):
        if line["phase"] == "train" and line["step"] == 6:
            shutil.copytree(calm, killed, ignore=shutil.ignore_patterns(".*.writing"))

    taught = {"warmup": {"episodes": 24, "max_updates": 6, "check_every": 6, "must_succeed": False}}
    config = duet("past:2", steps=7, keep_checkpoints=9, **taught)
    asyncio.run(train(config, calm, report=copy_after_step))
    asyncio.run(train(None, killed, resume=True))
    assert figures(killed) == figures(calm)
    steps = {step: calm / f"checkpoints/step_{step:06d}" for step in range(8)}
    assert [read_state(steps[step])["past"]["past:2"] for step in (0, 1, 3, 5, 7)] == [[0], [0], [0, 2], [2, 4], [4, 6]]
    copies = copies_in(read_tensors(steps[5], "me"), 2)
    for taken, copy in copies.items():
        from safetensors.torch import load_file

        weights = load_file(steps[taken] / "model-me/model.safetensors")
        assert all((weights[name] == tensor).all() for name, tensor in copy.items() if name in weights)
    played = find_policy(str(steps[5]), {}).policy
    ours, past = (played.roles[role] for role in ("caller", "liar"))
    assert past.name.startswith("past:2") and past.name.split()[-1] != ours.name.split()[-1]


@pytest.mark.parametrize(
    ("liar", "fix"),
    [
        ({"policy": "expert", "sampling": {"temperature": 0.5}}, "liar: sampling has no effect on expert"),
        ({"policy": "past:2", "agent": {"system": "x"}}, "liar: agent has no effect on past:2"),
        ({"policy": "./m", "endpoint": {"timeout": 3}}, "endpoint has no effect on ./m"),
        ({"policy": "./m", "sampling": {"top_p": 0.5}}, "sampling.top_p has no effect on ./m"),
        ({"policy": "openai:m", "endpoint": {"headers": {"X": "secret"}}}, "write \\$NAME"),
        ("past:0", "write past:K"),
        ("a policy", "is no policy"),
    ],
)
def test_options_without_effect_and_words_without_meaning_are_refused(liar, fix):
    with pytest.raises(ConfigError, match=fix) as refused:
        duet(liar)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("word", ["./nothing", "runs/nothing/here", "gone.py:liar"])
def test_what_is_not_there_names_its_role(tmp_path, word, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"roles\.liar: .*(give|name)"):
        run(tmp_path / "run", word)
    assert not (tmp_path / "run" / "config.toml").exists()


def test_the_past_of_several_policies_and_of_an_asynchronous_run_is_refused():
    with pytest.raises(ConfigError, match="give the roles that learn one name"):
        parse_config({"env": {"id": DUET}, "roles": {"a": "x", "b": "y", "c": "past:2"}})
    with pytest.raises(ConfigError, match=r"order\.kind"):
        duet("past:2", order={"kind": "asynchronous"})


def test_a_role_is_written_as_it_was_given():
    config = duet({"policy": "openai:m", "endpoint": {"headers": {"X": "$TOKEN"}, "timeout": 3.0}})
    text = to_toml(config)
    assert 'caller = "me"' in text and '"$TOKEN"' in text.replace("'", '"') and "price_in" not in text


def test_a_run_is_evaluated_against_its_own_past_and_other_partners(command, tmp_path):
    run(tmp_path / "run", "past:1", steps=2, keep_checkpoints=9)
    past = tmp_path / "run" / "checkpoints" / "step_000000"
    for word in (past, "expert", "me"):
        out = tmp_path / str(word).rpartition("/")[2]
        ended = command("evaluate", tmp_path / "run", "--roles.liar", word, "--limit", 4, "--out", out)
        assert ended.code == 0, ended.err
    assert json.loads((tmp_path / "expert" / "summary.json").read_text())["policy"].endswith("liar: expert")
    for words, fix in ((("--roles.lair", "expert"), "liar"), (("--roles.liar", "you"), "me")):
        refused = command("evaluate", tmp_path / "run", *words, "--limit", 4)
        assert refused.code == 2 and fix in refused.err
    assert command("evaluate", "expert", "--env", DUET, "--roles.liar", "random").code == 2


def test_a_past_without_weights_or_without_a_policy_names_a_checkpoint_in_its_place(command, tmp_path):
    run(tmp_path / "run", "past:1", steps=2, keep_checkpoints=9)
    evaluate = ("evaluate", tmp_path / "run", "--limit", 4)
    resume = ("train", "--resume", tmp_path / "run", "--steps", 3, "--accept-config")
    file, fix = tmp_path / "run" / "config.toml", f"{tmp_path}/run/checkpoints/step_000000"
    for words in ((*evaluate, "--roles.liar", "past:3"), (*evaluate, "--roles.caller", "expert"), resume):
        refused = command(*words)
        assert refused.code == command_exit.BAD_INPUT and fix in refused.err and "roles.liar" in refused.err, words
        file.write_text(file.read_text().replace("past:1", "past:3" if words[-1] == "expert" else "past:1"))
    file.write_text(file.read_text().replace("past:3", fix))
    assert command(*resume).code == 0


def test_a_run_on_disk_plays_from_the_checkpoint_that_it_began_with(tmp_path):
    first, calm = tmp_path / "first", tmp_path / "calm"
    run(first, "expert", steps=1)

    def copy_in_the_middle(line):
        if line["phase"] == "train" and line["step"] == 2:
            shutil.copytree(calm, tmp_path / "killed")

    config = duet("me", roles={"caller": str(first), "liar": "me"}, steps=2)
    asyncio.run(train(config, calm, report=copy_in_the_middle))
    shutil.copytree(tmp_path / "killed", tmp_path / "other")
    asyncio.run(train(None, first, resume=True, steps=2))
    asyncio.run(train(None, tmp_path / "killed", resume=True))
    assert figures(tmp_path / "killed") == figures(calm)

    shutil.rmtree(first / "checkpoints" / "step_000001")
    with pytest.raises(ConfigError, match=r"plays caller.* step 1, .* step 2, .*--accept-config"):
        asyncio.run(train(None, tmp_path / "other", resume=True))
    summary = asyncio.run(train(None, tmp_path / "other", resume=True, accept=["config"]))
    [change] = summary["config_changes"]
    was, now = change["entries"]["partner caller"]
    assert "step 1" in was and "step 2" in now and summary["partners"]["caller"]["name"] == now
    with pytest.raises(ConfigError, match=f"--roles.caller {first}"):
        find_policy(str(calm), {})
    assert now in find_policy(str(calm), {"roles": {"caller": str(first)}}).policy.name
