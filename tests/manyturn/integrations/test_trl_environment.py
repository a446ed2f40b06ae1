"""An exported package in TRL's real trainer: other turns than ours, faults that count as rewards.

The model's replies are scripted: a small random one would never call a tool. All else is TRL's: its tool loop, its pool
of environments, its rewards and its update.
"""

import importlib
import json
import math
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from expert_episode import episode
from needs_host import host
from served import FAULTY, UNSCORABLE

from manyturn.envs.contract.tasks.panel import PanelError
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.export.exported_env import Exported, episode_seed

# It is no longer usable once it has raised, and raises when it is closed.
BRITTLE = """\
from pathlib import Path

import manyturn as mt


class Brittle(mt.TextEnv):
    def __init__(self, log, max_turns=None):
        super().__init__(max_turns=max_turns)
        self.log, self.broken = Path(log), False
        self.write("made")

    def write(self, word):
        with self.log.open("a") as file:
            file.write(f"{word} ")

    def tasks(self, split):
        return [mt.Task(f"{split}/{i}", split, {"n": 3 * self.splits.index(split) + i}) for i in range(3)]

    def begin(self, task, rng):
        return "broken" if self.broken else "whole"

    def respond(self, action):
        self.broken = True
        raise RuntimeError("broken on purpose")

    def close(self):
        self.write("closed")
        if self.broken:
            raise RuntimeError("cannot be closed")
"""
ANSWERS = re.compile(r"<tool_response>\n(.*?)\n</tool_response>", re.DOTALL)


@pytest.fixture(autouse=True)
def _trl(monkeypatch: pytest.MonkeyPatch) -> None:
    host("trl")
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """Bytes as tokens, and a chat template with tools that TRL knows."""
    host("trl")
    import trl
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    letters = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    core = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    core.pre_tokenizer, core.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=core, pad_token=special[0], eos_token=special[2])
    made.add_special_tokens({"additional_special_tokens": [special[1]]})
    made.add_tokens(["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"])
    made.chat_template = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text(encoding="utf-8")
    return made


class Trained:
    """An exported environment, installed by pip, and TRL's trainer with it."""

    def __init__(
        self, command: Any, monkeypatch: pytest.MonkeyPatch, tokenizer: Any, folder: Path, env: str, *words: str
    ):
        ended = command("export", env, "--as", "trl", "--out", folder / "package", "--limit", 3, *words)
        assert ended.code == 0, ended.err
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*pip, "--target", folder / "site", folder / "package"], check=True)
        [package] = (folder / "site").glob("manyturn_*[!o]/")
        monkeypatch.syspath_prepend(str(folder / "site"))
        monkeypatch.delitem(sys.modules, package.name, raising=False)
        module = importlib.import_module(package.name)
        [self.kind] = [
            kind for name, kind in vars(module).items() if name.endswith("Environment") and name != "ToolEnvironment"
        ]
        self.world, self.folder, self.tokenizer = Exported.read(package), folder, tokenizer
        self.rows = [json.loads(line) for line in (folder / "package" / "data" / "test.jsonl").read_text().splitlines()]

    def trainer(self, scripts: Mapping[str, Sequence[str]]) -> Any:
        """TRL's trainer, whose model says the actions of a script that the first observation names."""
        import torch
        from datasets import load_dataset
        from transformers import LlamaConfig, LlamaForCausalLM
        from trl import GRPOConfig, GRPOTrainer

        tokenizer, heard = self.tokenizer, self.heard = self.tokenizer, {}

        class Scripted(GRPOTrainer):
            def _generate_single_turn(self, prompt_ids: list[list[int]], *_: Any, **__: Any) -> Any:
                said = []
                for ids in prompt_ids:
                    text = tokenizer.decode(ids)
                    [first] = [first for first in scripts if f"<|im_start|>user\n{first}<|im_end|>" in text]
                    heard.setdefault(first, []).append(ANSWERS.findall(text))
                    turn = len(heard[first][-1])
                    call = (
                        {"name": "act", "arguments": {"action": scripts[first][turn]}}
                        if turn < len(scripts[first])
                        else None
                    )
                    words = f"<tool_call>\n{json.dumps(call)}\n</tool_call>" if call else "I am done."
                    said.append(tokenizer(f"{words}<|im_end|>")["input_ids"])
                return said, None

        torch.set_num_threads(1)
        torch.manual_seed(0)
        shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
        shape |= {"max_position_embeddings": 2**20}  # beyond it TRL takes a tool's answer back
        ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
        options = {"num_generations": 3, "per_device_train_batch_size": 3, "max_steps": 1, "save_strategy": "no"}
        options |= {"bf16": False, "report_to": "none", "use_cpu": True, "disable_tqdm": True, "logging_steps": 1}
        file = str(self.folder / "package" / "data" / "test.jsonl")
        return Scripted(
            model=LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **shape, **ends)),
            processing_class=tokenizer,
            environment_factory=self.kind,
            train_dataset=load_dataset("json", data_files=file, split="train", cache_dir=str(self.folder / "cache")),
            args=GRPOConfig(str(self.folder / "out"), max_completion_length=200_000, **options),
        )


@pytest.fixture
def exported(command, monkeypatch, tokenizer, tmp_path):
    return lambda env, *words: Trained(command, monkeypatch, tokenizer, tmp_path, env, *words)


@pytest.mark.parametrize("env", [f"manyturn/{name}-v0" for name in ("Desk", "Shop", "Household")])
def test_its_tool_loop_plays_our_episodes(env, exported):
    made = exported(env, "--env.wrappers", '[{name = "turn_cost", cost = 0.01}]')
    played = [episode(made.world, task, bool(n % 2)) for n, task in enumerate(made.world.tasks("test"))]
    trainer = made.trainer({steps[0].observation: actions for actions, steps in played})
    trainer._generate_and_score_completions(made.rows)
    for row, (actions, steps) in zip(made.rows, played, strict=True):
        assert row["prompt"][-1] == {"role": "user", "content": ""}
        answers = [step.observation for step in steps[1:]]
        assert made.heard[steps[0].observation][-1] == answers and len(answers) == len(actions)
    assert [one.get_reward() for one in trainer.environments] == pytest.approx(
        [sum(step.reward for step in steps) for _, steps in played]
    )
    assert list(trainer._logs["rewards"][made.kind.__name__]) == pytest.approx(
        [sum(step.reward for step in steps) for _, steps in played]
    )


def test_it_makes_an_update(exported):
    made = exported("manyturn/Maze-v0")
    played = [episode(made.world, task, False) for task in made.world.tasks("test")]
    trainer = made.trainer({steps[0].observation: actions[: 1 + n] for n, (actions, steps) in enumerate(played)})
    trainer.train()
    assert trainer.state.global_step == 1
    [line] = [line for line in trainer.state.log_history if "reward" in line]
    assert float(line["tools/failure_frequency"]) == 0 and float(line["tools/call_frequency"]) >= 1


@pytest.mark.parametrize("env, harm", [(FAULTY, "raise"), (UNSCORABLE, "win")])
def test_an_episode_that_is_lost_has_no_reward(env, harm, exported):
    made = exported(env)
    starts = [
        EnvHandle(made.world.name).reset(task, episode_seed(task)).observation for task in made.world.tasks("test")
    ]
    trainer = made.trainer({first: [harm] * 30 for first in starts})
    trainer._generate_and_score_completions(made.rows)
    assert [one.get_reward() for one in trainer.environments] == [None] * 3
    assert all(math.isnan(reward) for reward in trainer._logs["rewards"][made.kind.__name__])


def test_an_episode_that_our_recipe_ended_has_no_reward(exported):
    wrappers = '[{name = "turn_cost", cost = 0.5}, {name = "turn_cost", cost = 0.1}]'
    made = exported(FAULTY, "--env.wrappers", wrappers)
    starts = [
        EnvHandle(made.world.name).reset(task, episode_seed(task)).observation for task in made.world.tasks("test")
    ]
    trainer = made.trainer({first: ["say", "win"] for first in starts})
    trainer._generate_and_score_completions(made.rows)
    assert all("'turn' already" in made.heard[first][-1][-1] for first in starts)
    assert [one.get_reward() for one in trainer.environments] == [None] * 3


def test_after_a_fault_the_environment_is_closed_and_the_next_episode_has_another(exported, tmp_path):
    (tmp_path / "brittle.py").write_text(BRITTLE)
    log = tmp_path / "log"
    made = exported(f"{tmp_path / 'brittle.py'}:Brittle", "--env.args.log", str(log))
    one = made.kind()
    for row in made.rows:
        assert one.reset(**row) == "whole"
        assert "lost" in one.act("break") and one.get_reward() is None
    words = log.read_text().split()
    assert words.count("made") == words.count("closed") >= 4  # the export made some, too


@pytest.mark.parametrize("env, harm, why", [(FAULTY, "raise", "broken"), (UNSCORABLE, "win", "no number")])
def test_a_training_whose_episodes_are_all_lost_ends(env, harm, why, exported):
    made = exported(env)
    one, other = made.kind(), made.kind()
    for _ in range(20):
        one.reset(**made.rows[0])
        one.act(harm)
    other.reset(**made.rows[0])
    other.reset(**made.rows[0])  # an episode that TRL has cut off, and that has a reward
    for _ in range(32):
        one.reset(**made.rows[0])
        one.act(harm)
    with pytest.raises(RuntimeError, match=f"32 episodes one after the other were lost, .*{why}.*manyturn check"):
        one.reset(**made.rows[0])


def test_a_row_of_another_export_is_refused(exported):
    made = exported("manyturn/Maze-v0")
    one = made.kind()
    with pytest.raises(PanelError, match="is none of this export"):
        one.reset(**(made.rows[0] | {"content": "0" * 32}))
    with pytest.raises(ValueError, match="the row lacks content, seed, split, task"):
        one.reset(prompt=[])
    assert one.reset(**made.rows[0]) and one.get_reward() == 0.0
