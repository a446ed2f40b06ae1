"""A person at the terminal: nothing an environment says may act on it, and every move can be taken back."""

import io
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from rich.console import Console

from manyturn.cli.play import HELP, play
from manyturn.terminal.escape import visible

HOSTILE = "\x1b]0;owned\x07[bold]red[/bold] :smile: \u202egnp.exe\u200b\r\x9b2J \ud83d"
WORLD = f"""
import gymnasium
import manyturn as mt

class Hostile(mt.TextEnv):
    instructions = {HOSTILE!r}
    max_turns = 4
    def tasks(self, split):
        return [mt.Task(f"{{split}}/{{i}}", split, {{"of": split, "i": i}}) for i in range(3)]
    def begin(self, task, rng):
        self.said = 0
        return {HOSTILE!r}
    def respond(self, action):
        if action == "crash":
            raise OSError({HOSTILE!r})
        self.said += 1
        if action == "win":
            return self.succeed("won")
        return self.go_on(f"{{self.said}}: {{action}}", **{{{HOSTILE!r}: 0.5}})
    def admissible(self):
        return [{HOSTILE!r}]
    def anchor(self):
        return {HOSTILE!r}

class Plain(gymnasium.Env):
    observation_space = action_space = mt.TextSpace()
    def reset(self, *, seed=None, options=None):
        return "begun", {{}}
    def step(self, action):
        return "stepped", 1.0, True, False, {{}}
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    file = tmp_path_factory.mktemp("world") / "world.py"
    file.write_text(WORLD, encoding="utf-8")
    return file


def session(env: str, *lines: str, encoding: str = "utf-8", **options) -> tuple[str, bool]:
    """What is printed when a person types these lines."""
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding), highlight=False, width=100)
    waiting = iter(lines)

    def read(prompt: str) -> str:
        line = next(waiting, None)
        if line is None:
            raise EOFError
        console.file.write(f"{prompt}{line}\n")
        return line

    sound = play(env, options.pop("env_args", None), console=console, read=read, **options)
    console.file.flush()
    return raw.getvalue().decode(encoding), sound


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_an_environment_cannot_act_on_the_terminal(world, encoding):
    lines = ["go", "?", ":state", "crash", ":undo", ":quit"]
    shown, _ = session(f"{world}:Hostile", *lines, encoding=encoding)
    assert not [char for char in shown if char != "\n" and not char.isprintable()]
    assert "<U+001B>]0;owned<U+0007>[bold]red[/bold] :smile: <U+202E>gnp.exe<U+200B>" in shown


def test_unseen_characters_are_shown_and_others_kept():
    for char in "\x00\x7f\x9b\u200b\u200d\u2066\u202e\u2028\ufeff\u3164\ufe0f\U000e0041\U000e0101\ud800\ue000\r":
        assert visible(f"a{char}b") == f"a<U+{ord(char):04X}>b"
    kept = "clé\tà\n漢字 עברית 🙂 <U+001B> \\x1b"
    assert visible(kept) == kept
    assert visible("clé", "ascii") == visible("clé", "no such encoding") == "cl<U+00E9>"


def test_reward_parts_progress_and_turns_are_told():
    shown, sound = session("manyturn/Maze-v0", "nonsense", *["!!"] * 12)
    assert sound and "turn 1 of 12, reward 0, progress 0%, not understood" in shown
    assert "reward 1 (outcome +1)" in shown and "Success. Return 1 in" in shown


def test_the_last_turn_says_that_the_turns_are_used_up(world):
    shown, _ = session(f"{world}:Hostile", *"abcde")
    assert "turn 4 of 4" in shown and "used up. Return 2 in 4 turns" in shown and shown.count("has ended") == 1


def test_undo_brings_back_the_world_and_not_only_its_text():
    moves = ["!!", "!!", ":undo", ":undo", ":undo", "!!", "!!", "!!", "!!", "!!", "!!", "!!", "!!", "!!", ":undo", "!!"]
    shown, _ = session("manyturn/Maze-v0", *moves, task="train/easy/3")
    direct, _ = session("manyturn/Maze-v0", *["!!"] * 12, task="train/easy/3")
    assert "Back at turn 0." in shown and "Nothing to undo" in shown
    ends = [line for line in shown.splitlines() if line.startswith("Success")]
    assert len(ends) == 2 and ends[0] == ends[1] in direct, "an end that was taken back is reached again"


def test_the_hint_is_no_move():
    shown, _ = session("manyturn/Maze-v0", "!", "!", ":state", task="train/easy/3")
    assert "turn 1" not in shown and "turn 0, return 0" in shown and "anchor ('train/easy/3'" in shown


def test_commands_reach_the_environment_as_typed(world):
    shown, _ = session(f"{world}:Hostile", ":say :quit", " two  spaces ", "", ":undo it", ":say ?")
    assert "1: :quit" in shown and "2:  two  spaces \n" in shown and "3: ?" in shown
    assert "Nothing is sent" in shown and "There is no :undo it" in shown


def test_help_is_given_and_no_move():
    shown, _ = session("manyturn/Maze-v0", ":help", ":new")
    assert shown.count(f"[{HELP}]") == 2 and "There is no" not in shown and "turn 1" not in shown


def test_new_draws_another_task_and_the_seed_decides_which():
    one, two = (session("manyturn/Maze-v0", ":new", seed=5)[0] for _ in range(2))
    tasks = [line for line in one.splitlines() if line.startswith("Task ")]
    assert one == two and len(set(tasks)) == 2
    assert session("manyturn/Maze-v0", seed=6)[0] != session("manyturn/Maze-v0", seed=5)[0]


def test_an_environment_that_raises_loses_the_episode_and_not_the_session(world):
    shown, sound = session(f"{world}:Hostile", "go", "crash", "go", ":undo", "win")
    assert not sound and "the episode is lost" in shown and "has ended" in shown and "Success" in shown


def test_an_environment_without_extras_can_be_played(world):
    shown, _ = session(f"{world}:Plain", "?", "!", ":undo", ":state", "x", ":undo")
    for told in ("gives no instructions", "lists no commands", "no expert", "only a TextEnv", "Success. Return 1"):
        assert told in shown


@pytest.mark.parametrize(
    ("options", "mend"),
    [({"task": "train/9"}, "train/easy/0"), ({"split": "tset"}, "validation"), ({"env_args": {"rooms": 1}}, "rooms")],
)
def test_a_wrong_option_names_the_mend(options, mend):
    with pytest.raises((ValueError, TypeError), match=mend):
        session("manyturn/Maze-v0", **options)


RUN = "from manyturn.cli.play import play; print('sound', play('manyturn/Maze-v0', task='train/easy/3'))"


def test_a_pipe_gives_a_transcript_with_both_sides():
    found = subprocess.run([sys.executable, "-c", RUN], input="?\nxyzzy\n", capture_output=True, text=True, check=True)
    assert "> xyzzy\nYou cannot do that." in found.stdout and found.stdout.endswith("sound True\n")


def test_interrupting_leaves_without_a_traceback():
    code = textwrap.dedent(RUN)
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as child:
        seen = b""
        while not seen.endswith(b"> "):
            seen += os.read(child.stdout.fileno(), 4096) or pytest.fail(seen.decode())
        child.send_signal(signal.SIGINT)
        rest, _ = child.communicate(timeout=60)
    assert child.returncode == 0 and rest == b"\nsound True\n"
