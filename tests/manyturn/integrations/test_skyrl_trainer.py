"""SkyRL's real trainer class, registry and generator: credit that does not reach the batch, or reaches other tokens.

Its workers are not run here: they need CUDA. What is run is the way of a batch from the generator, with a model whose
replies are scripted, through the trainer's own methods to advantages and the mask of the loss.
"""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from expert_episode import episode  # pyright: ignore[reportMissingImports]
from exported_skyrl import Package  # pyright: ignore[reportMissingImports]
from needs_host import host  # pyright: ignore[reportMissingImports]

import manyturn.credit as mc

PAGE = (Path(__file__).parents[3] / "docs" / "credit-in-trainers.md").read_text(encoding="utf-8")
GIGPO = mc.CreditConfig(advantage={"name": "gigpo", "gamma": 0.9})
TEMPLATE = (
    "{% for message in messages %}<|im_start|> {{ message['content'] }} <|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>{% endif %}"
)


@pytest.fixture(autouse=True)
def _skyrl() -> None:
    host("skyrl")


class Engine:
    """SkyRL's client of inference engines, whose model says the lines of a script, one script for each session."""

    def __init__(self, tokenizer: Any, scripts: dict[str, Sequence[str]]):
        self.tokenizer, self.left = tokenizer, {name: list(lines) for name, lines in scripts.items()}

    async def generate(self, engine_input: Any, model: str | None = None) -> dict[str, Any]:
        [session] = engine_input["session_ids"]
        line = self.left[session].pop(0)
        ids = [*self.tokenizer.encode(line, add_special_tokens=False), self.tokenizer.eos_token_id]
        return {"responses": [line], "response_ids": [ids], "stop_reasons": ["stop"]}

    async def finish_session(self, session: str) -> None:
        pass


class Trained:
    """A batch of an exported environment, from SkyRL's generator through its trainer."""

    def __init__(self, package: Package, scripts: Sequence[Sequence[str]], credit: mc.CreditConfig, **algorithm: Any):
        from skyrl.train.config import SkyRLTrainConfig
        from skyrl.train.generators.base import TrajectoryID
        from skyrl.train.generators.skyrl_gym_generator import SkyRLGymGenerator
        from skyrl.train.trainer import RayPPOTrainer

        from manyturn.agents.model.language_model import tiny_tokenizer
        from manyturn.integrations.skyrl_trainer import credit_trainer, register

        tokenizer = tiny_tokenizer(["go north take key . <|im_start|> <|im_end|>"])
        tokenizer.chat_template = TEMPLATE
        cfg = SkyRLTrainConfig()
        cfg.trainer.algorithm.advantage_estimator = "manyturn"
        cfg.generator.max_turns, cfg.generator.n_samples_per_prompt = 100, len(scripts)
        cfg.generator.max_input_length = 100_000
        cfg.trainer.train_batch_size = cfg.trainer.policy_mini_batch_size = 1
        cfg.generator.inference_engine.enable_ray_prometheus_stats = cfg.trainer.enable_ray_gpu_monitor = False
        for name, value in algorithm.items():
            setattr(cfg.trainer.algorithm, name, value)
        register(credit)
        row = package.rows[0]
        extras = {key: value for key, value in row.items() if key not in ("prompt", "env_class")}
        engine = Engine(tokenizer, {f"a_{number}": script for number, script in enumerate(scripts)})
        generator = SkyRLGymGenerator(cfg.generator, cfg.environment.skyrl_gym, engine, tokenizer)
        asked = {
            "prompts": [row["prompt"]] * len(scripts),
            "env_classes": [row["env_class"]] * len(scripts),
            "env_extras": [dict(extras) for _ in scripts],
            "trajectory_ids": [TrajectoryID("a", number) for number in range(len(scripts))],
        }
        self.output = asyncio.run(generator.generate(asked, disable_tqdm=True))
        trainer = credit_trainer(RayPPOTrainer)(cfg, None, tokenizer, None, engine, generator)
        trainer.dispatch = SimpleNamespace(get_lcm_dp_size=lambda: len(scripts) + 1)  # so that there is padding
        output, uids = trainer.postprocess_generator_output(self.output, ["a"] * len(scripts))
        data = trainer.convert_to_training_input(output, uids)
        data["values"] = None  # as its forward pass leaves it where there is no critic
        self.data = trainer.compute_advantages_and_returns(data)
        self.told = [one["credit"] for one in self.output["env_metrics"]]


@pytest.mark.parametrize(
    "credit",
    [
        GIGPO,
        mc.CreditConfig(
            rewards=({"name": "gated", "gates": ({"threshold": 1},), "ungated": ("turn",)},), advantage="gigpo"
        ),
        mc.CreditConfig(advantage="gigpo", truncated="left_out"),
    ],
    ids=["gigpo", "gated", "left_out"],
)
def test_every_token_of_its_batch_has_the_credit_of_the_library(exported_skyrl, credit):
    package = exported_skyrl("manyturn/Maze-v0", "--env.wrappers", '[{name = "turn_cost", cost = 0.01}]')
    [task, *_] = package.world.tasks("test")
    actions, steps = episode(package.world, task, False)
    scripts = [actions, ["nonsense", *actions], ["go nowhere"] * 200, actions]
    trained = Trained(package, scripts, credit)
    assert trained.told[0]["anchors"] == [step.anchor for step in steps[:-1]]
    returns = [sum(map(sum, one["rewards"].values())) for one in trained.told]
    assert returns[0] == pytest.approx(sum(step.reward for step in steps)) and returns[0] > returns[2]
    rewards = [sum(row) for row in trained.output["rewards"]]
    assert rewards == pytest.approx(returns)
    masks, width = trained.output["loss_masks"], trained.data["response_mask"].shape[1]
    rollouts = [mc.Rollout(**{"group": "a", "mask": mask} | one) for mask, one in zip(masks, trained.told, strict=True)]
    earned = mc.credit_rollouts(rollouts, credit)
    right = np.array([[0] * (width - len(mask)) + mask for mask in masks])
    learnt = mc.learnt_mask(earned, right)
    wanted = mc.on_mask(earned.advantage_T, earned.batch, right) * learnt
    assert len(trained.data["advantages"]) == len(scripts) + 1  # SkyRL's padding
    np.testing.assert_allclose(trained.data["advantages"][:-1].numpy(), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(trained.data["loss_mask"][:-1].numpy(), learnt)
    assert not trained.data["loss_mask"][-1].any() and not trained.data["advantages"][-1].any()
    assert len(set(np.round(wanted[1][wanted[1] != 0], 6))) > 1  # turns of an episode differ
    assert learnt[2].any() == (credit.truncated == "as_ended")


def test_its_own_check_of_options_takes_the_registered_name_and_its_trainer_refuses_others(exported_skyrl):
    from skyrl.backends.skyrl_train.utils.ppo_utils import AdvantageEstimatorRegistry

    from manyturn.integrations.skyrl_trainer import register

    estimator = register(GIGPO)
    assert AdvantageEstimatorRegistry.get("manyturn") is estimator
    package = exported_skyrl("manyturn/Maze-v0")
    with pytest.raises(ValueError, match="use_kl_in_reward = True changes rewards that credit does not read"):
        Trained(package, [["x"] * 200] * 2, GIGPO, use_kl_in_reward=True)


def test_the_script_of_the_page_is_made_of_what_skyrl_has(tmp_path):
    [script] = re.findall(r"^```python\n(import sys\n\nimport ray\n.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(script, "page.py", "exec"), names)  # noqa: S102  the page's own words
    cfg = names["SkyRLTrainConfig"].from_cli_overrides(["trainer.algorithm.advantage_estimator=manyturn"])
    assert cfg.trainer.algorithm.advantage_estimator == "manyturn"
    assert callable(names["initialize_ray"]) and issubclass(names["CreditExp"], names["BasePPOExp"])
