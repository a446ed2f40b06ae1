"""A warm-up that another run has made: its weights at the end of it, where this run could have come to them itself.

What is taken is the policy and which tasks it was shown. Heads, the reference and momentum begin as after a warm-up of
one's own, so that two runs of one configuration come to the same bits, whoever of them made the warm-up.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from manyturn.envs.contract.options.config_diff import changes, shown
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.record.checkpoint import WARMED_UP, CheckpointError, beside, read_state, verify
from manyturn.trainers.record.config_edits import complete, plain
from manyturn.trainers.record.run_folder import no_run
from manyturn.trainers.run.setup.run_builder import Run
from manyturn.trainers.run.setup.trainee import Trainee

# What the policy is, and how it reads and speaks. Entries below learner change which weights there are.
_SAME = ("model", "agent", "roles", "learner.lora_rank", "learner.lora_alpha", "learner.lora_layers")
# Longer or shorter episodes are no other policy, and its weights serve whichever replies are possible.
FREE = ("agent.max_context", "agent.only_admissible", "agent.choices")
_HERE = "make them the same, or leave warmup.from_run out"


def take_warmup(run: Run) -> tuple[dict[str, Any], set[str]]:
    """Give the policies the weights of another run's warm-up.

    Returns:
        What happened there and where, and the contents of the tasks that were shown.

    Raises:
        ConfigError: there is no such run, its policy is another one, or it had no warm-up.
    """
    assert run.config.warmup.from_run is not None
    folder = Path(run.config.warmup.from_run)
    checkpoint = folder / "checkpoints" / WARMED_UP
    state = _state(folder, checkpoint)
    if state.get("warming"):
        raise ConfigError(f"the warm-up of {folder} is not over: let it end, or name another run as warmup.from_run")
    _refuse_another(run, folder, state)
    for trainee in run.trainees:
        refuse_another_tokenizer(trainee, folder, checkpoint, "warmup.from_run")
        trainee.language.load_weights(checkpoint / beside("model", trainee.name))
        trainee.learner.optimizer.updates = state[beside("learner", trainee.name)]["updates"]
    facts = {**state["warmup"], "from_run": str(folder), "weights": run.per_policy(lambda trainee: trainee.weights)}
    return facts, set(state["seen"])


def _state(folder: Path, checkpoint: Path) -> dict[str, Any]:
    if not (folder / "config.toml").is_file():
        raise ConfigError(f"warmup.from_run: {no_run(folder)}")
    if not checkpoint.is_dir():
        raise ConfigError(
            f"{folder} has no {checkpoint.relative_to(folder)}, which a run keeps from the end of its warm-up on: let "
            "its warm-up end, or name another run as warmup.from_run"
        )
    try:
        verify(checkpoint)
    except CheckpointError as error:
        raise ConfigError(f"warmup.from_run: {error}") from error
    state = read_state(checkpoint)
    if not state["warmup"].get("updates"):
        raise ConfigError(f"{folder} began without a warm-up: name another run as warmup.from_run")
    return state


def _refuse_another(run: Run, folder: Path, state: Mapping[str, Any]) -> None:
    """Raise ConfigError where the policy of the run is described in other words than that of the folder."""
    differ = {
        place: both
        for place, both in changes(complete(state["config"]), plain(run.config)).items()
        if any(f"{place}.".startswith(f"{part}.") for part in _SAME) and place not in FREE
    }
    if differ:
        raise ConfigError(f"the warm-up of {folder} is of another policy: {shown(differ)}; {_HERE}")


def refuse_another_tokenizer(trainee: Trainee, folder: Path, checkpoint: Path, place: str) -> None:
    """Raise ConfigError where a policy's tokenizer is not that of a checkpoint in a folder that an option names."""
    ours = trainee.language.tokenizer
    theirs = AutoTokenizer.from_pretrained(checkpoint / beside("model", trainee.name), trust_remote_code=False)
    if difference := _difference(theirs, ours):
        raise ConfigError(f"{folder} is of another policy: {difference}; make them the same, or leave {place} out")


def _difference(theirs: PreTrainedTokenizerBase, ours: PreTrainedTokenizerBase) -> str | None:
    """The difference of two tokenizers, in words."""
    if theirs.chat_template != ours.chat_template:
        return "its chat template is another one"
    apart = sorted(theirs.get_vocab().items() ^ ours.get_vocab().items(), key=lambda pair: (pair[1], pair[0]))
    if apart:
        return f"its tokenizer has other tokens, first {apart[0][0]!r} (a tiny model's come from env and seed)"
    if theirs.eos_token_id != ours.eos_token_id:
        return f"its tokenizer ends replies with {theirs.eos_token!r}, not {ours.eos_token!r}"
    return None
