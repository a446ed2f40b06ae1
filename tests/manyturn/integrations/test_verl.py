"""verl's real package: an agent loop that plays another episode, and credit that reaches other tokens.

verl's trainer is not run here: it needs GPUs. What it calls is: an agent loop made and run with verl's own builder of
tokens, and the function that calls its estimators, with a batch as its agent loop worker puts one together.
"""

import asyncio
import json
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from expert_episode import episode  # pyright: ignore[reportMissingImports]
from needs_host import host  # pyright: ignore[reportMissingImports]
from served import FAULTY, UNSCORABLE  # pyright: ignore[reportMissingImports]

import manyturn.credit as mc
from manyturn.envs.contract.tasks.panel import PanelError
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError
from manyturn.export.exported_env import Exported

PAGE = (Path(__file__).parents[3] / "docs" / "other-trainers.md").read_text(encoding="utf-8")
GIGPO = mc.CreditConfig(advantage={"name": "gigpo", "gamma": 0.9})


@pytest.fixture(autouse=True)
def _verl() -> None:
    host("verl")


def block(kind: str, has: str) -> str:
    """The page's block of a language that has these words."""
    [found] = [text for text in re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) if has in text]
    return found


class Server:
    """verl's client of a model's server, whose model says the lines of a script."""

    def __init__(self, tokenizer: Any, script: Sequence[str]):
        self.tokenizer, self.script, self.heard = tokenizer, list(script), list[str]()

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Any:
        from verl.workers.rollout.replica import TokenOutput

        assert sampling_params == {"temperature": 1.0}
        line = self.script[len(self.heard)]
        self.heard.append(self.tokenizer.decode(prompt_ids))
        ids = [*self.tokenizer.encode(f" {line}", add_special_tokens=False), self.tokenizer.eos_token_id]
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids))


class Rows:
    """A data set that the command line wrote, and verl's agent loop over it."""

    def __init__(self, command: Any, folder: Any, env: str, *words: str):
        from manyturn.agents.model.language_model import tiny_tokenizer

        self.folder = folder / "rows"
        ended = command("export", env, "--as", "dataset", "--out", self.folder, "--limit", 3, *words)
        assert ended.code == 0, ended.err
        self.world = Exported.read(self.folder)
        [file] = [path for path in self.folder.rglob("test*.jsonl") if path.stem == "test"]
        self.rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        self.tokenizer = tiny_tokenizer(["go north take key ."])

    def play(self, row: dict[str, Any], script: Sequence[str], response_length: int = 10_000) -> tuple[Any, Server]:
        """The output of an episode, made and run as verl's worker does."""
        import hydra
        from omegaconf import OmegaConf
        from verl.experimental.agent_loop.agent_loop import DictConfigWrap
        from verl.utils.dataset.rl_dataset import RLHFDataset

        rollout = {"prompt_length": 20_000, "response_length": response_length}
        config = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}, "data": {}})
        server = Server(self.tokenizer, script)
        columns = {name: np.array([value], dtype=object)[0] for name, value in row.items() if name != "prompt"}

        [named] = OmegaConf.create(block("yaml", "EpisodeLoop").replace("household-tasks", str(self.folder)))

        async def played() -> Any:
            loop = hydra.utils.instantiate(
                named,
                trainer_config=DictConfigWrap(config),
                server_manager=server,
                tokenizer=self.tokenizer,
                processor=None,
                dataset_cls=RLHFDataset,
                data_config=DictConfigWrap(config.data),
                hf_model_type=None,
                tools=None,
            )
            return await loop.run({"temperature": 1.0}, raw_prompt=row["prompt"], index=0, **columns)

        return asyncio.run(played()), server


@pytest.fixture
def rows(command, tmp_path):
    return lambda env, *words: Rows(command, tmp_path, env, *words)


def replies(output: Any) -> list[list[int]]:
    """Runs of tokens that the model said."""
    found, before = list[list[int]](), 0
    for token, said in zip(output.response_ids, output.response_mask, strict=True):
        if said and not before:
            found.append([])
        if said:
            found[-1].append(token)
        before = said
    return found


def told(steps: Sequence[Answer]) -> dict[str, Any]:
    """What credit has to be told of an episode that was played here."""
    parts = sorted({"outcome", *(part for step in steps[1:] for part in step.parts)})
    return {
        "rewards": {part: [step.parts.get(part, 0.0) for step in steps[1:]] for part in parts},
        "anchors": [step.anchor for step in steps[:-1]],
        "understood": [step.understood for step in steps[1:]],
        "format_valid": [step.format_valid for step in steps[1:]],
        "truncated": not steps[-1].terminated,
    }


@pytest.mark.parametrize("env", [f"manyturn/{name}-v0" for name in ("Desk", "Shop", "Household")])
def test_its_agent_loop_plays_our_episodes(env, rows):
    made = rows(env, "--env.wrappers", '[{name = "turn_cost", cost = 0.01}]')
    for number, (row, task) in enumerate(zip(made.rows, made.world.tasks("test"), strict=True)):
        actions, steps = episode(made.world, task, bool(number % 2))
        output, server = made.play(row, actions)
        assert len(server.heard) == len(actions)
        for turn, step in enumerate(steps[:-1]):
            assert step.observation in server.heard[turn] and (not turn or actions[turn - 1] in server.heard[turn])
        assert output.reward_score == pytest.approx(sum(step.reward for step in steps))
        credit = dict(output.extra_fields["credit"])
        assert credit.pop("tokens") == [len(reply) for reply in replies(output)] and credit == told(steps)
        ends = made.tokenizer.eos_token_id
        assert [made.tokenizer.decode([t for t in ids if t != ends]).strip() for ids in replies(output)] == actions
        logprobs = zip(output.response_logprobs, output.response_mask, strict=True)
        assert all(value == -0.5 * said for value, said in logprobs)


def batch_of(outputs: Sequence[Any], groups: Sequence[str]) -> Any:
    """As verl's worker puts outputs together, and its trainer the groups."""
    import torch
    from verl.protocol import DataProto

    width = max(len(output.response_mask) for output in outputs)
    mask = torch.tensor([output.response_mask + [0] * (width - len(output.response_mask)) for output in outputs])
    columns = {name: np.empty(len(outputs), dtype=object) for name in ("uid", "credit", "extras")}
    columns["uid"][:] = groups
    columns["credit"][:] = [output.extra_fields.get("credit") for output in outputs]
    rewards = torch.zeros(mask.shape)
    return DataProto.from_dict(
        tensors={"response_mask": mask, "token_level_rewards": rewards, "responses": mask}, non_tensors=columns
    )


@pytest.fixture
def place():
    from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY

    before = ADV_ESTIMATOR_REGISTRY["gdpo"]
    yield ADV_ESTIMATOR_REGISTRY
    ADV_ESTIMATOR_REGISTRY["gdpo"] = before


def test_every_token_of_its_batch_has_the_credit_of_the_library(rows, place):
    from verl.trainer.config import AlgoConfig
    from verl.trainer.ppo.ray_trainer import compute_advantage

    from manyturn.integrations.verl import take_place

    made = rows("manyturn/Maze-v0")
    [first, *_] = made.world.tasks("test")
    actions, steps = episode(made.world, first, False)
    scripts = [actions, ["nonsense", *actions], ["go nowhere"] * 30, actions]
    outputs = [made.play(made.rows[0], script)[0] for script in scripts]
    take_place(GIGPO)
    data = compute_advantage(batch_of(outputs, ["a"] * 4), adv_estimator="gdpo", config=AlgoConfig())
    given = [output.extra_fields["credit"] for output in outputs]
    assert given[0]["rewards"] == {"outcome": [step.reward for step in steps[1:]]}
    earned = mc.credit_rollouts([mc.Rollout(group="a", **one) for one in given], GIGPO)
    wanted = mc.on_mask(earned.advantage_T, earned.batch, data.batch["response_mask"].numpy())
    np.testing.assert_allclose(data.batch["advantages"].numpy(), wanted, rtol=1e-6, atol=1e-7)
    assert len(set(np.round(wanted[1][wanted[1] != 0], 6))) > 1  # turns of an episode differ
    assert data.batch["returns"].equal(data.batch["advantages"])


def test_the_options_of_the_page_are_verls_and_its_script_puts_credit_into_place(tmp_path, place):
    import yaml

    (tmp_path / "train.py").write_text(block("python", "CreditRunner"), encoding="utf-8")
    command = shlex.split(block("sh", "main_ppo").replace("\\\n", " "))
    assert command[:3] == ["python", "-m", "verl.trainer.main_ppo"]
    for script, more in (
        (command[1:3], []),
        (["train.py"], ["algorithm.adv_estimator=gdpo", "trainer.use_v1=False"]),
    ):
        words = [sys.executable, *script, "--cfg", "job", *command[3:], *more]
        ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr[-2000:]
        read = yaml.safe_load(ended.stdout[ended.stdout.index("actor_rollout_ref:") :])
        assert read["actor_rollout_ref"]["rollout"]["agent"]["default_agent_loop"] == "manyturn"
        assert read["data"]["train_files"] == "household-tasks/data/train.jsonl"
    assert read["algorithm"]["adv_estimator"] == "gdpo" and read["trainer"]["use_v1"] is False
    runner = runpy.run_path(str(tmp_path / "train.py"))["CreditRunner"]()
    with pytest.raises(Exception):  # noqa: B017  there is nothing to train with, but credit has its place by then
        runner.run(None)
    assert place["gdpo"].credit.advantage.name == "gigpo"


def test_a_response_that_is_cut_off_keeps_its_turns_and_its_tokens_apart(rows):
    made = rows("manyturn/Maze-v0")
    whole, _ = made.play(made.rows[0], ["go nowhere"] * 30)
    for length in range(1, len(whole.response_ids) + 1, 7):
        output, _ = made.play(made.rows[0], ["go nowhere"] * 30, response_length=length)
        credit, said = output.extra_fields["credit"], replies(output)
        assert (
            len(output.response_ids) <= length
            and output.response_ids == whole.response_ids[:length][: len(output.response_ids)]
        )
        assert credit["tokens"] == [len(reply) for reply in said] and len(credit["rewards"]["outcome"]) == len(said)
        assert credit["truncated"]


@pytest.mark.parametrize(("env", "harm", "said"), [(FAULTY, "raise", "on purpose"), (UNSCORABLE, "1", "not known")])
def test_an_episode_that_is_lost_has_no_reward(env, harm, said, rows):
    made = rows(env)
    with pytest.raises(EnvError, match=said):
        made.play(made.rows[0], [harm] * 30)


def test_a_row_of_another_export_and_what_verl_cannot_carry_are_refused(rows, place):
    from manyturn.integrations.verl import CreditEstimator, take_place

    made = rows("manyturn/Maze-v0")
    with pytest.raises(PanelError, match="is none of this export"):
        made.play(made.rows[0] | {"content": "0" * 32}, [])
    with pytest.raises(ValueError, match="gae learns a critic, and verl gives gdpo none"):
        take_place(mc.CreditConfig(advantage="gae"))
    assert not isinstance(place["gdpo"], CreditEstimator)
    place.pop("gdpo")
    with pytest.raises(ImportError, match="gdpo is not given the batch's columns"):
        take_place(GIGPO)
    place["gdpo"] = SimpleNamespace()
