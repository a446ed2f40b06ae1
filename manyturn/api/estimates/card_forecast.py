"""Table of what a step of a recipe would take on a graphics card."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from manyturn.agents.engine.card.device_memory import size
from manyturn.agents.engine.card.gpu_table import Gpu, gpu_named
from manyturn.agents.model.models.pretrained import PretrainedModel
from manyturn.api.training import configured
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.options.overlay import overlay
from manyturn.terminal.escape import visible
from manyturn.terminal.overrides import parse_words
from manyturn.trainers.recipe.config import RunConfig

if TYPE_CHECKING:
    from manyturn.trainers.run.setup.step_changes import StepChange
    from manyturn.trainers.run.setup.step_forecast import StepEpisodes, StepForecast

UNVERIFIED = "Unverified: predicted from counted operations and assumed efficiencies, and never compared with a card."


class StepLengths(NamedTuple):
    """Lengths of the episodes of a step, as they are given; None: the longest that the recipe allows.

    Attributes:
        turns: of an episode.
        prompt, reply: tokens of a turn, in the mean.
        distinct: share of the tokens of all rows that is left where common beginnings count once.
        wait: seconds that an environment takes for a turn.
    """

    turns: int | None = None
    prompt: int | None = None
    reply: int | None = None
    distinct: float = 1.0
    wait: float = 0.0


def plan_step(
    recipe: str, words: Sequence[str], gpu: str, lengths: StepLengths, console: Console | None = None
) -> "StepForecast":
    """Print what a step of a recipe would take on a card.

    Args:
        words: further options, as for ``manyturn train``.
        gpu: name of a card in ``GPUS``.

    Raises:
        ConfigError: the recipe, the card or the model is not known, or learner and engine do not fit.
    """
    from manyturn.agents.model.model_shapes import model_config
    from manyturn.trainers.learn.learner.operation_count import EachOnce
    from manyturn.trainers.run.setup.step_changes import shorter_steps
    from manyturn.trainers.run.setup.step_forecast import step_forecast

    card = gpu_named(gpu)
    plain, options = parse_words(words)
    if plain:
        raise ConfigError(f"{plain[0]!r} is no option: write --section.name value")

    def changed(more: Mapping[str, Any]) -> RunConfig:
        return configured((recipe,), overlay({"device": "cuda", **options}, more))

    config, count = changed({}), EachOnce()
    if not isinstance(config.model, PretrainedModel):
        raise ConfigError("--gpu plans for a published model: add --model.path, such as --model.path Qwen/Qwen2.5-1.5B")
    if config.placement.ranks > 1 or config.placement.samplers:
        raise ConfigError("--gpu plans for one card: leave placement.learners and placement.samplers out")
    model = model_config(config.model.path)
    episodes = _episodes(config, lengths)
    forecast = step_forecast(config, model, card, episodes, count)
    fix = forecast.fix(card, config.learner, episodes.length)
    changes = shorter_steps(
        forecast, card.memory, changed, lambda other: step_forecast(other, model, card, episodes, count)
    )
    _show(config, card, forecast, fix, changes, console or Console(highlight=False))
    return forecast


def _episodes(config: RunConfig, lengths: StepLengths) -> "StepEpisodes":
    from manyturn.trainers.run.setup.step_forecast import StepEpisodes

    rollout, most = config.rollout, config.sampling.max_tokens
    for name, value in (("turns", lengths.turns), ("prompt-tokens", lengths.prompt), ("reply-tokens", lengths.reply)):
        if value is not None and value < 1:
            raise ConfigError(f"--{name} {value} is too small: give 1 or more")
    if lengths.wait < 0:
        raise ConfigError(f"--turn-seconds {lengths.wait:g} is less than nothing: give 0 or more")
    if not 0 < lengths.distinct <= 1:
        raise ConfigError(f"--distinct {lengths.distinct:g} is no share: give more than 0, and at most 1")
    reply = most if lengths.reply is None else lengths.reply
    if reply > most:
        raise ConfigError(f"--reply-tokens {reply} is more than sampling.max_tokens = {most}: give at most that")
    room, is_whole = config.agent.max_context - reply, config.agent.appends
    prompt = (room // 2 if is_whole else room) if lengths.prompt is None else lengths.prompt
    if prompt * (2 if is_whole else 1) > room:
        raise ConfigError(
            f"--prompt-tokens {prompt} does not fit in agent.max_context = {config.agent.max_context}: lower the one, "
            "or raise the other"
        )
    turns = rollout.max_turns if lengths.turns is None else lengths.turns
    return StepEpisodes(rollout.tasks * rollout.group, turns, prompt, reply, lengths.distinct, is_whole, lengths.wait)


def _show(
    config: RunConfig,
    card: Gpu,
    forecast: "StepForecast",
    fix: str | None,
    changes: "Sequence[StepChange]",
    console: Console,
) -> None:
    table = Table(title=f"a step of {visible(config.model.label)} on one {card.driver}", title_justify="left")
    for head in ("part", "seconds", "limited by"):
        table.add_column(head, justify="right" if head == "seconds" else "left")
    for part in forecast.parts:
        table.add_row(part.name, f"{part.seconds:,.1f}", part.limit)
    table.add_row("all", f"{forecast.seconds:,.1f}", "")
    console.print(table)
    longest = max(forecast.parts, key=lambda part: part.seconds)
    share = forecast.flops / forecast.seconds / card.flops
    lines = [
        f"limited by: {longest.name}, {longest.seconds / forecast.seconds:.0%} of the step, by {longest.limit}",
        *(f"shorter by {change.saved:,.1f} s with {change.text}" for change in changes),
        f"model FLOPs utilisation of the step: {share:.0%} of {card.flops / 1e12:,.0f} TFLOP/s",
        f"memory: {size(forecast.drawing)} while episodes are played, {size(forecast.learning)} while it learns, of "
        f"{size(card.memory)}",
        "it fits" if fix is None else f"it does not fit: {fix}",
        UNVERIFIED,
    ]
    for line in lines:
        console.print(Text(line))
