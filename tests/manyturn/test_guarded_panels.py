"""A panel is data: it names no program that is run, and no place that keys are sent to."""

import inspect
import json
import re

import pytest

from manyturn.envs.contract.registration.env_registry import (
    arguments_of,
    env_ids,
    guarded_arguments,
    load_env_creator,
    spec_of,
)
from manyturn.envs.contract.tasks.panel import Panel
from manyturn.envs.contract.wrappers.reward_wrapper import WRAPPERS

MAZE = "manyturn/Maze-v0"
# Arguments that name files, programs, images, places or keys of a machine: they never come from data.
REFUSED = (
    *("python", "root", "url", "confine", "engine", "image", "user", "judge", "record"),
    *("corpus", "questions", "data", "games", "rows", "source", "shop", "arguments", "make"),
)
MODEL = {"kind": "model", "model": "m"}
KEPT = """
import manyturn as mt

class Kept(mt.TextEnv):
    def __init__(self, split="train", word="yes"):
        super().__init__(split)
        self._word = word

    def tasks(self, split):
        return [mt.Task(f"{split}/{number}", split, {"number": number}) for number in range(2)]

    def begin(self, task, rng):
        return "?"

    def respond(self, action):
        return self.succeed(self._word)
"""


def panel_of(folder, env, args):
    file = folder / "panel.json"
    Panel(env, "test", ("a",), ("b",), args).save(file)
    return file


@pytest.mark.parametrize("words", ["evaluate random --panel", "panel verify"])
def test_a_panel_starts_no_program(command, tmp_path, words):
    evil, ran = tmp_path / "evil", tmp_path / "ran"
    evil.write_text(f"#!/bin/sh\ntouch {ran}\n")
    evil.chmod(0o755)
    args = {"python": str(evil), "root": str(tmp_path)}
    for name in ("train", "dev", "test_normal", "test_challenge"):
        (tmp_path / "data" / "datasets").mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / "datasets" / f"{name}.txt").write_text("a\n")
    panel = panel_of(tmp_path, "manyturn/AppWorld-v0", args)
    found = command(*words.split(), str(panel))
    told = f"--env.args '{{python = {json.dumps(str(evil))}, root = {json.dumps(str(tmp_path))}}}'"
    assert found.code == 2 and told in found.err and not ran.exists()
    given = command(*words.split(), str(panel), "--env.args", f'{{python = "{evil}"}}')
    assert "the arguments root, which may name files" in given.err


@pytest.mark.parametrize("words", ["evaluate random --panel", "panel verify"])
@pytest.mark.parametrize("cls", [":Evil", ""])
def test_a_panel_runs_no_file(command, tmp_path, words, cls):
    evil, ran = tmp_path / "evil.py", tmp_path / "ran"
    evil.write_text(f"open({str(ran)!r}, 'w')\n{KEPT}")
    panel = panel_of(tmp_path, f"{evil}{cls}", {})
    found = command(*words.split(), str(panel))
    assert found.code == 2 and "whose code would run" in found.err and not ran.exists(), found.err


def test_what_a_panel_must_not_give_comes_from_the_command_line(command, tmp_path):
    file, panel = tmp_path / "kept.py", tmp_path / "panel.json"
    file.write_text(KEPT)
    env = f"{file}:Kept"
    made = command("panel", "make", env, "--out", str(panel), "--env.args", "{word = 'right'}")
    assert made.code == 0, made.err
    words = ("evaluate", "random", "--env", env, "--panel", str(panel))
    assert "add --env.args '{word = \"right\"}'" in command(*words).err
    played = command(*words, "--env.args", "{word = 'right'}", "--out", str(tmp_path / "out"))
    assert played.code == 0, played.err
    assert command("panel", "verify", str(panel), "--env", env, "--env.args", "{word = 'right'}").code == 0


def test_arguments_of_a_world_are_the_files_alone(command, tmp_path):
    panel = tmp_path / "panel.json"
    assert (
        command("panel", "make", MAZE, "--limit", "2", "--out", str(panel), "--env.args", "{difficulty='hard'}").code
        == 0
    )
    words = ("evaluate", "random", "--panel", str(panel))
    assert "leave difficulty out" in command(*words, "--env.args", "{difficulty='easy'}").err
    assert command(*words, "--env.args", "{difficulty='hard'}").code == 0
    panel.write_text(panel.read_text().replace('hard"', 'easy"'))
    assert "was edited" in command(*words).err


def test_a_panel_without_arguments_keeps_its_text_and_its_hash():
    text = Panel(MAZE, "test", ("a",), ("b",)).to_json()
    assert "args_hash" not in text
    old = json.loads(Panel(MAZE, "test", ("a",), ("b",), {"difficulty": "hard"}).to_json())
    assert old["hash"] == json.loads(text)["hash"]
    del old["args_hash"]  # of an earlier release
    assert Panel.from_json(json.dumps(old)).args == {"difficulty": "hard"}


def test_every_argument_of_every_environment_has_a_verdict():
    """Refused, or harmless: a new argument that is neither fails here until somebody has decided."""
    entries = {name: spec_of(name).entry_point for name in env_ids()}
    makers = {name: load_env_creator(entry) for name, entry in entries.items() if isinstance(entry, str)}
    ours = {name: maker for name, maker in makers.items() if maker.__module__.startswith("manyturn.")}
    assert len(ours) > 20  # what other tests register is not looked at
    for name, maker in ours.items():
        arguments = set(arguments_of(maker) or inspect.signature(maker).parameters)
        harmless = {argument for argument in arguments if not guarded_arguments(name, {argument: 1})}
        assert harmless.isdisjoint(REFUSED) and arguments <= harmless.union(REFUSED), name
        assert set(guarded_arguments(name, {argument: {"path": "/dev/zero"} for argument in harmless})) == harmless, (
            name
        )
        for word in {"/dev/zero", "model", "replay"}:
            assert set(guarded_arguments(name, dict.fromkeys(arguments, word))) == arguments - harmless, name


# Texts of wrappers: what an attacker says, and names of tools and arguments. None is a file, program, place or key.
TEXTS = {"injection.calls", "privileges.allow", "privileges.deny"}


def test_options_of_wrappers_name_nothing_of_a_machine():
    """A driver names wrappers too: a new option that takes any text fails here until somebody has decided."""
    names = [name for name in WRAPPERS.names() if WRAPPERS.entry(name).function.__module__.startswith("manyturn.")]
    fields = {f"{name}.{key}": f for name in names for key, f in WRAPPERS.entry(name).config_type.model_fields.items()}
    plain = re.compile(r"<class '(bool|int|float)'>|(tuple\[)?typing\.Literal\[[^]]*\](, \.\.\.\])?")
    assert len(names) > 6
    assert {name for name, field in fields.items() if not plain.fullmatch(str(field.annotation))} == TEXTS


@pytest.mark.parametrize("user", ["model", "replay", MODEL, {**MODEL, "base_url": "http://x"}, {"record": "x"}])
def test_data_names_no_user_that_spends_a_key_or_opens_a_file(user):
    for extra in ({}, {"kind": "agenda", "record": "x"}):
        both = {**user, **extra} if extra and isinstance(user, dict) else user
        assert guarded_arguments("manyturn/Talk-Booking-v0", {"user": both}) == ["user"]
    plain = {"user": {"kind": "agenda", "noise": 0.1}, "difficulty": "easy"}
    assert guarded_arguments("manyturn/Talk-Booking-v0", plain) == []
    assert guarded_arguments("manyturn/Talk-Booking-v0", {"user": "agenda"}) == []
