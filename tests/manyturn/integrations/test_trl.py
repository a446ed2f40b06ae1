"""TRL's real trainer: credit that does not reach the loss, or reaches it at the wrong tokens."""

import json
import math
import re
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from needs_host import host

import manyturn.credit as mc
from manyturn.trainers.credit.external_layout import runs_of
from manyturn.trainers.learn.objective.epo import EpoConfig

ROOT = Path(__file__).parents[3]
GIGPO = {"name": "gigpo", "gamma": 0.95}
GATED = {"rewards": ({"name": "gated", "gates": ({"threshold": 1},)},), "advantage": GIGPO}


@pytest.fixture(autouse=True)
def _trl(monkeypatch: pytest.MonkeyPatch) -> None:
    host("trl")
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")


@pytest.fixture(scope="module")
def page(maze_model: Path) -> str:
    """The page's script up to its trainer."""
    host("trl")
    text = (ROOT / "docs" / "credit-in-trl.md").read_text(encoding="utf-8")
    [script] = re.findall(r"hosts/test_trl.py -->\n```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return script.replace('"your-model"', f'"{maze_model}"')


class Watched:
    """What a trainer was given to learn from, in the order of its updates."""

    def __init__(self, page: str, folder: Path, **changes: Any):
        import torch
        from trl import GRPOConfig

        from manyturn.integrations.trl import CreditGRPOTrainer

        (folder / "play.py").write_text(page.split("trainer = CreditGRPOTrainer(")[0], encoding="utf-8")
        names = runpy.run_path(str(folder / "play.py"))
        self.played: list[dict[str, Any]] = []
        self.learnt: list[tuple[dict[str, Any], float]] = []
        self.remembered: list[dict[str, Any]] = []
        watched = self

        look, judge, shares = changes.pop("look", None), changes.pop("judge", None), changes.pop("shares", False)

        def play(prompts: list[str], trainer: Any) -> dict[str, Any]:
            if look is not None:
                look(trainer)
            played = names["play"](prompts, trainer)
            # A random policy hardly ever moves: rewards and anchors are made up, so that there is something to compare.
            draw = np.random.default_rng(len(watched.played))
            for place, one in enumerate(played["rollout"]):
                turns = len(one.rewards)
                rewards = {
                    "outcome": [0.0] * (turns - 1) + [float(place % 2)],
                    "step": draw.normal(size=turns).tolist(),
                }
                anchors = draw.integers(0, 3, turns).tolist()
                columns = {"contribution": draw.uniform(size=turns).tolist()} if shares else {}
                told = {"rewards": rewards, "anchors": anchors, "columns": columns}
                played["rollout"][place] = replace(one, truncated=place == 0, **told)
            watched.played.append(played)
            return played

        class Recording(CreditGRPOTrainer):
            def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
                watched.remembered.append(dict(self.credit_memory))
                return super()._generate_and_score_completions(inputs)

            def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
                loss = super()._compute_loss(model, inputs)
                if judge is not None:
                    judge(self, model, inputs, loss)
                copied = {name: value.clone() for name, value in inputs.items() if isinstance(value, torch.Tensor)}
                watched.learnt.append((copied, float(loss.detach())))
                return loss

        options = {"num_generations": 4, "per_device_train_batch_size": 8, "max_steps": 2, "save_strategy": "no"}
        options |= {"bf16": False, "report_to": "none", "use_cpu": True, "disable_tqdm": True, "logging_steps": 1}
        credit, resumed = changes.pop("credit", mc.CreditConfig(**GATED)), changes.pop("resumed", None)
        epo = changes.pop("epo", None)
        model = re.search(r'model="(.*?)"', page)[1]
        self.trainer = Recording(
            model=model,
            credit=credit,
            rollout_func=play,
            epo=epo,
            train_dataset=names["Dataset"].from_dict({"prompt": [str(number) for number in range(8)]}),
            args=GRPOConfig(str(folder / "out"), **{**options, **changes}),
        )
        self.trainer.train(resume_from_checkpoint=resumed)


@pytest.fixture(scope="module")
def run(page: str, tmp_path_factory: pytest.TempPathFactory) -> Watched:
    return Watched(page, tmp_path_factory.mktemp("trl"), save_strategy="steps", save_steps=2)


def expected(played: dict[str, Any], config: mc.CreditConfig) -> dict[tuple[int, ...], tuple[list[float], bool]]:
    """Completion -> its advantages token by token, and whether it is learnt from; from the library alone."""
    rollouts, masks = played["rollout"], played["env_mask"]
    width = max(map(len, masks))
    padded = np.array([mask + [0] * (width - len(mask)) for mask in masks])
    given = [replace(one, mask=mask) for one, mask in zip(rollouts, masks, strict=True)]
    earned = mc.credit_rollouts(given, config)
    placed = mc.on_mask(earned.advantage_T, earned.batch, padded)
    kept = mc.learnt_mask(earned, padded).any(1)
    return {
        tuple(ids): (placed[row, : len(ids)].tolist(), bool(kept[row]))
        for row, ids in enumerate(played["completion_ids"])
    }


def compare(run: Watched, config: mc.CreditConfig) -> int:
    """Hold every row that reached the loss against the library; the number of rows with more than one credit."""
    varied = 0
    assert len(run.learnt) == 2
    for (inputs, loss), played in zip(run.learnt, run.played, strict=True):
        wanted, lengths = expected(played, config), {tuple(ids): len(ids) for ids in played["completion_ids"]}
        assert inputs["advantages"].shape == inputs["completion_ids"].shape
        mask = (inputs["completion_mask"] * inputs["tool_mask"]).numpy()
        total = 0.0
        for row, ids in enumerate(inputs["completion_ids"].tolist()):
            length = int(inputs["completion_mask"][row].sum())
            advantages, kept = wanted[tuple(ids[:length])]
            np.testing.assert_allclose(inputs["advantages"][row, :length].numpy(), advantages, rtol=1e-6, atol=1e-7)
            assert not inputs["advantages"][row, length:].any() and length in lengths.values()
            assert mask[row].any() == kept
            total += sum(np.array(advantages) * mask[row, :length])
            varied += len(set(np.round(advantages, 6)) - {0.0}) > 1
        # The ratio is 1 in the first pass, so that TRL's default loss is minus the mean advantage of what is learnt.
        assert int(inputs["num_items_in_batch"]) == mask.sum()
        assert loss == pytest.approx(-total / mask.sum(), rel=1e-4, abs=1e-6)
    return varied


def test_every_token_that_reaches_the_loss_has_the_credit_of_the_library(run):
    assert compare(run, mc.CreditConfig(**GATED)) >= 8


def test_an_episode_that_the_method_leaves_out_has_no_token_in_the_loss(page, tmp_path):
    config = mc.CreditConfig(advantage=GIGPO, truncated="left_out")
    left_out = Watched(page, tmp_path, credit=config)
    assert compare(left_out, config)
    masks = [inputs["completion_mask"] * inputs["tool_mask"] for inputs, _ in left_out.learnt]
    assert [int((mask.sum(1) == 0).sum()) for mask in masks] == [1, 1]


@pytest.mark.parametrize("recomputes", [True, False])
def test_a_model_that_plays_has_read_all_that_came_before(page, tmp_path, recomputes):
    import torch

    agreed = []

    def look(trainer: Any) -> None:
        ids = torch.tensor([trainer.processing_class("The amber room . New exits : east , west .")["input_ids"]])
        said = trainer.model.generate(ids, max_new_tokens=8, do_sample=False)
        while ids.shape[1] < said.shape[1]:
            ids = torch.cat([ids, trainer.model(ids).logits[:, -1:].argmax(-1)], 1)
        agreed.append(ids.shape[1] > 14 and torch.equal(said, ids))

    Watched(page, tmp_path, look=look, gradient_checkpointing=recomputes)
    assert agreed == [True, True]


def test_trls_log_has_the_figures_of_credit(run):
    first = run.trainer.state.log_history[0]
    assert 0 < first["credit/open_gates"] < 1 and "rewards/episode_return/mean" in first


def test_a_run_goes_on_from_a_checkpoint_with_what_its_methods_remember(run, page, tmp_path):
    folder = Path(run.trainer.args.output_dir) / "checkpoint-2"
    saved = json.loads((folder / "credit_memory.json").read_text(encoding="utf-8"))
    assert saved and saved == run.trainer.credit_memory and run.remembered[0] == {}
    longer = Watched(page, tmp_path, max_steps=3, resumed=str(folder))
    assert longer.remembered == [saved] and longer.trainer.state.global_step == 3


def test_the_script_of_the_page_runs_as_it_stands(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.py").write_text(page, encoding="utf-8")
    trainer = runpy.run_path("page.py")["trainer"]
    assert trainer.state.global_step == 2 and len(trainer.state.log_history) > 0


def test_spas_shares_and_g_ras_gates_reach_the_tokens(page, tmp_path):
    config = mc.CreditConfig(rewards=({"name": "gated", "gates": ({"threshold": 1},)}, "spa"), advantage=GIGPO)
    assert compare(Watched(page, tmp_path, credit=config, shares=True), config) >= 8


def entropies(trainer: Any, model: Any, inputs: dict[str, Any]) -> list[list[Any]]:
    """Of each row, by turn, the entropy of each token at the sampling temperature, with its gradient."""
    import torch

    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
    there = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
    logits = model(input_ids=ids, attention_mask=there).logits[:, :-1][:, -inputs["completion_ids"].shape[1] :]
    entropy = torch.distributions.Categorical(logits=logits / trainer.temperature).entropy()
    masks = (inputs["completion_mask"] * inputs["tool_mask"]).tolist()
    return [[entropy[row, begin:end] for begin, end in runs_of(mask)] for row, mask in enumerate(masks)]


def test_epo_is_in_the_loss_and_in_its_gradient(page, tmp_path):
    import torch
    from trl import GRPOTrainer

    config = EpoConfig(coef=0.5, alpha=0.7, kappa_l=0.5, kappa_r=0.9)
    means, differences = list[float](), list[tuple[float, float]]()

    def judge(trainer: Any, model: Any, inputs: dict[str, Any], loss: Any) -> None:
        rows = [row for row in entropies(trainer, model, inputs) if row]
        weight = 1 + math.exp(-len(means) / 1)  # a schedule of two steps
        reference = np.mean(means) if means else None

        def held(entropy: Any) -> Any:
            if reference is None:
                return -config.coef * entropy
            out = (config.kappa_l * reference - entropy).relu() + (entropy - config.kappa_r * reference).relu()
            return -config.coef * (entropy - weight * config.alpha * out)

        wanted = torch.stack([torch.stack([held(turn).mean() for turn in row]).mean() for row in rows]).mean()
        plain = GRPOTrainer._compute_loss(trainer, model, inputs)
        parameters = list(model.parameters())
        differences.append((float((loss - plain).detach()), float(wanted.detach())))
        ours = torch.autograd.grad(loss - plain, parameters, retain_graph=True, allow_unused=True)
        theirs = torch.autograd.grad(wanted, parameters, retain_graph=True, allow_unused=True)
        for one, other in zip(ours, theirs, strict=True):
            if other is not None:
                assert one is not None
                torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-6)
        means.append(float(torch.cat([turn for row in rows for turn in row]).mean().detach()))

    options = {"gradient_checkpointing": False, "learning_rate": 1e-3, "lr_scheduler_type": "constant"}
    options |= {"save_strategy": "steps", "save_steps": 2}
    run = Watched(page, tmp_path, epo=config, judge=judge, **options)
    assert len(differences) == 2 and means[0] != means[1]
    for got, wanted in differences:
        assert got == pytest.approx(wanted, rel=1e-4)
    first, second = run.trainer.state.log_history[:2]
    assert first["epo/weight"] == 2 and "epo/reference" not in first
    assert second["epo/reference"] == pytest.approx(means[0], rel=1e-5)
    assert (first["epo/outside"], second["epo/outside"]) == (0, 1)
    folder = Path(run.trainer.args.output_dir) / "checkpoint-2"
    (tmp_path / "more").mkdir()
    more = Watched(page, tmp_path / "more", epo=config, max_steps=3, resumed=str(folder), **options)
    assert more.trainer.state.log_history[-2]["epo/reference"] == pytest.approx(np.mean(means), rel=1e-5)


@pytest.mark.parametrize(
    ("epo", "options", "said"),
    [
        ({}, {"entropy_coef": 0.01}, "entropy_coef = 0.01 rewards entropy, as EPO does itself by its coef"),
        ({"form": "released"}, {}, "EPO's form = 'released' wants entropies before a generation's first update"),
        ({"horizon": 9}, {}, "EPO's horizon = 9 is a schedule of 9 generations, of which a run of 2 sees the start"),
    ],
)
def test_what_trl_cannot_do_of_epo_is_refused_by_its_name(page, tmp_path, epo, options, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        Watched(page, tmp_path, epo=EpoConfig(**epo), **options)


@pytest.mark.parametrize(
    ("options", "credit", "said"),
    [
        ({}, {"advantage": "gae"}, "gae learns a critic, and TRL has none: take another advantage"),
        ({"loss_type": "vespo"}, {}, "loss_type = 'vespo' weighs a sequence by the sign of its one advantage"),
        ({"importance_sampling_level": "sequence"}, {}, "importance_sampling_level = 'sequence' averages over"),
        ({"off_policy_mask_threshold": 0.5}, {}, "off_policy_mask_threshold drops sequences by the sign"),
        ({"mask_truncated_completions": True}, {}, "mask_truncated_completions = True goes by the last token"),
    ],
)
def test_what_trl_cannot_carry_is_refused_by_its_name(page, tmp_path, options, credit, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        Watched(page, tmp_path, credit=mc.CreditConfig(**({"advantage": GIGPO} | credit)), **options)


def test_other_sources_of_rewards_are_refused():
    from manyturn.integrations.trl import CreditGRPOTrainer

    for options, said in (
        ({"environment_factory": dict}, "TRL's loop for environment_factory does not say what a turn earned"),
        ({"tools": [len]}, "TRL's loop for tools does not say what a turn earned"),
        ({"reward_funcs": len}, "reward_funcs judge a completion as one: give rewards in each Rollout"),
    ):
        with pytest.raises(ValueError, match=re.escape(said)):
            CreditGRPOTrainer(credit=mc.CreditConfig(advantage=GIGPO), rollout_func=len, **options)


def test_rollouts_that_are_missing_are_named():
    from manyturn.integrations.trl import episode_return

    with pytest.raises(ValueError, match="return a field 'rollout' with a manyturn"):
        episode_return(completions=["north"])


def test_a_trl_that_has_no_place_for_credit_of_tokens_is_refused():
    from trl import GRPOTrainer

    from manyturn.integrations.trl import lacks

    class Older(GRPOTrainer):
        def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
            return -(inputs["advantages"].unsqueeze(1) * inputs["ratio"]).mean()

    class Oldest(GRPOTrainer):
        def __init__(self, model: Any, reward_funcs: Any):
            super().__init__(model, reward_funcs)

    assert lacks(GRPOTrainer) is None
    assert lacks(Older) == "knows one advantage for each completion only"
    assert lacks(Oldest) == "takes no rollout_func"
