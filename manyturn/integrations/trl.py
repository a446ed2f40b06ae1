"""TRL: a ``GRPOTrainer`` whose loss gets an advantage for each token, run with trl 1.16.0.

``rollout_func`` plays the episodes and returns, beside what TRL asks for, a ``Rollout`` for each completion in the
field ``rollout``. TRL's loss takes advantages of shape (B, T) as they are; its own, one for each row, are replaced.
TRL computes entropies for it too, so EPO's regulariser has a place next to it.

What TRL cannot carry is refused: methods with a critic (it has none), losses that judge a sequence as one, and its own
tool loop, which does not say what a turn earned. ``docs/credit-in-trl.md`` shows a run.
"""

import inspect
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object
from numpy.typing import NDArray
from trl import GRPOTrainer  # pyright: ignore[reportMissingImports]
from trl.models import unwrap_model_for_generation  # pyright: ignore[reportMissingImports]

from manyturn.envs.contract.options.registry import Memory
from manyturn.integrations.trl_epo import EntropyTerm
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.external_layout import by_reply, learnt_mask, on_mask
from manyturn.trainers.credit.external_rollouts import Rollout, credit_rollouts
from manyturn.trainers.credit.pipeline import Credit
from manyturn.trainers.learn.objective.epo import EpoConfig

MEMORY = "credit_memory.json"
ENTROPY = "epo_history.json"
UNFIT = {
    "loss_type": (("vespo",), "weighs a sequence by the sign of its one advantage: take 'dapo' or 'grpo'"),
    "importance_sampling_level": (("sequence",), "averages over a sequence what its turns earned: take 'token'"),
    "use_liger_loss": ((True,), "knows one advantage for each completion only: leave it out"),
    "mask_truncated_completions": ((True,), "goes by the last token: mark rollouts as truncated and set "
                                   "CreditConfig(truncated='left_out')"),
}  # fmt: skip


def episode_return(rollout: Sequence[Rollout] | None = None, **_: Any) -> list[float | None]:
    """Return of each rollout, as TRL's logs show it; None where it could not be scored.

    >>> episode_return([Rollout(group=0, rewards=[0.5, 1.0]), Rollout(group=0, rewards=[None])])
    [1.5, None]
    """
    if not rollout or not all(isinstance(one, Rollout) for one in rollout):
        raise ValueError(
            "rollout_func gave no rollouts: return a field 'rollout' with a manyturn.credit.Rollout for each completion"
        )
    returns = [one.episode_return() for one in rollout]
    return [None if math.isnan(value) else value for value in returns]


class CreditGRPOTrainer(GRPOTrainer):  # pyright: ignore[reportGeneralTypeIssues]
    """TRL's trainer with credit for turns and tokens.

    Args:
        credit: which methods give credit.
        rollout_func: plays the episodes, as TRL describes it. Its output has the further field ``rollout``: for each
            completion a ``Rollout``. Without tokens or a mask of its own it has those of ``env_mask``.
        epo: EPO's regulariser, in its paper's form; None: the loss is without it.
        options: everything else that ``GRPOTrainer`` takes.

    Raises:
        ImportError: the installed TRL has no place for credit of tokens.
        ValueError: an option, a method or a rollout does not fit.
    """

    def __init__(
        self,
        *,
        credit: CreditConfig,
        rollout_func: Callable[..., dict[str, Any]],
        epo: EpoConfig | None = None,
        **options: Any,
    ):
        if lacking := lacks(GRPOTrainer):
            raise ImportError(f"trl {version('trl')} {lacking}, so it has no credit for tokens: install trl 1.16.0")
        if reason := _unfit(credit, epo, options):
            raise ValueError(reason)
        self._plays = rollout_func
        self._entropy_term = None if epo is None else EntropyTerm(epo)
        self._entropy_BT: torch.Tensor | None = None
        super().__init__(rollout_func=self._play, reward_funcs=[episode_return], **options)
        self.credit = credit
        self.credit_memory: Memory = {}

    def _play(self, prompts: list[Any], trainer: Any) -> dict[str, Any]:
        """Play the episodes of a step. A model that recomputes its activations, TRL's default, keeps no cache, and
        its ``generate`` then sees nothing but the last token. So that is off meanwhile, as in TRL's own rollouts."""
        if self.use_vllm:
            return self._plays(prompts, trainer)
        gathers = self.args.ds3_gather_for_generation
        options = {"gradient_checkpointing_kwargs": self.args.gradient_checkpointing_kwargs}
        with unwrap_model_for_generation(self.model_wrapped, self.accelerator, gathers, **options), torch.no_grad():
            return self._plays(prompts, trainer)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)
        # What rollout_func returned beside tokens, TRL has put into the rows for its reward functions.
        return self._credited(output, [row["rollout"] for row in inputs]) if self.model.training else output

    def _credited(self, output: dict[str, Any], own: list[Rollout]) -> dict[str, Any]:
        """The output with advantages (B, T), and without the tokens of rows that nothing is learnt from."""
        said_BT = output["completion_mask"] * output.get("tool_mask", 1)
        rows, width = len(own), said_BT.shape[1]
        own_masks = said_BT.tolist()
        # A group may be spread over processes: each has all rollouts, and takes its own rows.
        rollouts = gather_object([_with_mask(*row) for row in zip(own, own_masks, strict=True)])
        mask_ET = _rectangle(gather_object(own_masks))
        earned = credit_rollouts(rollouts, self.credit, self.credit_memory)
        self.credit_memory = dict(earned.memory)
        mine = slice(self.accelerator.process_index * rows, (self.accelerator.process_index + 1) * rows)
        advantage_BT = on_mask(earned.advantage_T, earned.batch, mask_ET)[mine, :width]
        learnt_BT = torch.as_tensor(learnt_mask(earned, mask_ET)[mine, :width]).to(said_BT)
        mask = "tool_mask" if "tool_mask" in output else "completion_mask"
        output[mask] = output[mask] * learnt_BT.any(1, keepdim=True)
        output["num_items_in_batch"] = self.accelerator.gather(learnt_BT.sum()).sum()
        output["advantages"] = torch.as_tensor(advantage_BT, dtype=torch.float32, device=said_BT.device)
        self._log_credit(earned)
        if self._entropy_term is not None:
            turn_T = earned.batch.turn_K[earned.batch.turn_of_T]
            reply_ET = np.where(learnt_mask(earned, mask_ET), on_mask(turn_T, earned.batch, mask_ET, fill=-1), -1)
            output["credit_reply"] = torch.as_tensor(reply_ET[mine, :width], dtype=torch.long, device=said_BT.device)
            output["credit_episodes"] = torch.tensor(float((reply_ET >= 0).any(1).sum()), device=said_BT.device)
            for name, figure in self._entropy_term.begin(self._generations(), self._summed).items():
                self._metrics["train"][name].append(figure)
        return output

    def _generations(self) -> int:
        """Number of times that this run plays."""
        batches = self.state.max_steps * self.args.gradient_accumulation_steps
        return math.ceil(batches / (self.args.steps_per_generation * self.num_iterations))

    def _summed(self, values: torch.Tensor) -> torch.Tensor:
        return self.accelerator.reduce(values, reduction="sum")

    def _get_per_token_logps_and_entropies(self, *arguments: Any, **options: Any) -> Any:
        output = super()._get_per_token_logps_and_entropies(*arguments, **options)
        if self._entropy_term is not None and options.get("compute_entropy"):
            self._entropy_BT = output[1]
        return output

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        loss = super()._compute_loss(model, inputs)
        entropy_BT, self._entropy_BT = self._entropy_BT, None
        if self._entropy_term is None or entropy_BT is None or not self.model.training:
            return loss
        # What is counted is of a generation; TRL adds up the batches of one update, and means over processes.
        share = self.current_gradient_accumulation_steps / self.args.steps_per_generation
        episodes = inputs["credit_episodes"].clamp(min=1) * share / self.accelerator.num_processes
        term, outside = self._entropy_term.term(entropy_BT, inputs["credit_reply"], episodes)
        self._metrics["train"]["epo/outside"].append(outside)
        return loss + term

    def _log_credit(self, earned: Credit) -> None:
        """Figures of credit beside TRL's, and in its table of completions an episode's mean advantage."""
        for name, figure in earned.diagnostics.items():
            self._metrics["train"][f"credit/{name}"].append(figure)
        episodes = by_reply(earned.advantage_T, earned.batch)
        tokens_E = [np.concatenate(replies) for replies in episodes]
        shown = self._logs["advantages"]
        for _ in range(min(len(shown), len(tokens_E))):
            shown.pop()
        shown.extend(float(tokens.mean()) if len(tokens) else 0.0 for tokens in tokens_E)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        history = None if self._entropy_term is None else self._entropy_term.plain(self._summed)
        if self.args.should_save:
            folder = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
            (folder / MEMORY).write_text(json.dumps(self.credit_memory), encoding="utf-8")
            if history is not None:
                (folder / ENTROPY).write_text(json.dumps(history), encoding="utf-8")

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None:
            self.credit_memory = json.loads((Path(checkpoint) / MEMORY).read_text(encoding="utf-8"))
            if self._entropy_term is not None:
                self._entropy_term.load_plain(json.loads((Path(checkpoint) / ENTROPY).read_text(encoding="utf-8")))


def lacks(trainer: type) -> str | None:
    """Missing feature of this TRL trainer version; None if it takes credit for tokens."""
    if "rollout_func" not in inspect.signature(trainer).parameters:
        return "takes no rollout_func"
    for method, words, lack in (
        ("_generate", "env_mask", "does not tell an environment's tokens from the model's in rollouts"),
        ("_generate_and_score_completions", "extra_fields", "passes on nothing else of a rollout"),
        ("_compute_loss", "advantages.dim()", "knows one advantage for each completion only"),
        ("_compute_loss", "compute_entropy=True", "computes no entropies"),
    ):
        function = getattr(trainer, method, None)
        if function is None or words not in inspect.getsource(function):
            return lack
    return None


def _unfit(credit: CreditConfig, epo: EpoConfig | None, options: dict[str, Any]) -> str | None:
    """The reason for which these options of TRL and credit for tokens do not go together; None if they do."""
    for name in ("tools", "environment_factory"):
        if options.get(name):
            return f"TRL's loop for {name} does not say what a turn earned: play the episodes in rollout_func"
    if options.get("reward_funcs"):
        return "reward_funcs judge a completion as one: give rewards in each Rollout, and leave reward_funcs out"
    if "value" in credit.needs:
        return f"{credit.needs['value']} learns a critic, and TRL has none: take another advantage, such as gigpo"
    for name in ("entropy_coef", "use_adaptive_entropy"):
        if epo is not None and (value := getattr(options.get("args"), name, None)):
            return f"{name} = {value!r} rewards entropy, as EPO does itself by its coef: leave one of them out"
    for name, (unfit, instead) in UNFIT.items():
        if (value := getattr(options.get("args"), name, None)) in unfit and value is not None:
            return f"{name} = {value!r} {instead}"
    if getattr(options.get("args"), "off_policy_mask_threshold", None) is not None:
        return "off_policy_mask_threshold drops sequences by the sign of their one advantage: leave it out"
    return None


def _with_mask(rollout: Rollout, mask: list[int]) -> Rollout:
    given = rollout.tokens is not None or rollout.mask is not None
    return rollout if given else replace(rollout, mask=mask)


def _rectangle(rows: list[list[int]]) -> NDArray[np.int64]:
    """Rows filled up with 0 to the longest."""
    width = max(map(len, rows))
    return np.array([row + [0] * (width - len(row)) for row in rows], np.int64)
