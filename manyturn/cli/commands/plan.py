"""``manyturn plan``: time and memory of a run, before it or during it, or of a step on a graphics card."""

from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

CARD = Parameter(group=Group.create_ordered("A graphics card"))


def plan(
    run: str,
    *words: Annotated[str, Parameter(allow_leading_hyphen=True, show=False)],
    recipe: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    steps: int | None = None,
    first: int | None = None,
    staleness: Annotated[tuple[int, ...], Parameter(negative="", show_default=False)] = (),
    places: Annotated[tuple[int, ...], Parameter(negative="", show_default=False)] = (),
    gpu: Annotated[str | None, CARD] = None,
    turns: Annotated[int | None, CARD] = None,
    prompt_tokens: Annotated[int | None, CARD] = None,
    reply_tokens: Annotated[int | None, CARD] = None,
    distinct: Annotated[float | None, CARD] = None,
    turn_seconds: Annotated[float | None, CARD] = None,
) -> None:
    """Say how long a whole run will take, or what a step would take on a graphics card.

    Of an environment or a recipe: from a trial of a few updates and steps, as train --dry does, with options as for
    train. Of a run's folder: from what its first steps took, also in other orders. With --gpu, a step of a recipe is
    predicted from counted operations, with further options as for train: manyturn plan
    household-gigpo-qwen2.5-1.5b --gpu h100 --learner.lora-rank 16. Not verified on a card.

    Parameters
    ----------
    run
        Environment or recipe of a run that has not begun, or folder of one that has; with --gpu a recipe.
    words
        Options of a run that has not begun.
    recipe
        Recipes of such a run, as for train.
    steps
        Of the whole run. Default: as many as its configuration says.
    first
        Look at so many of its first steps alone. Default: at all that it has made.
    staleness
        Orders to plan for: 0 is the synchronous one. May be given several times.
    places
        Episodes open together. May be given several times. Default: as many as the run has.
    gpu
        Card, such as h100, h200, a100, l40s or rtx-4090.
    turns
        Turns of an episode. Default: as many as the recipe allows.
    prompt_tokens
        Tokens of a prompt, in the mean. Default: as many as agent.max-context allows.
    reply_tokens
        Tokens of a reply, in the mean. Default: sampling.max-tokens.
    distinct
        Share of the tokens of all rows that is left where common beginnings count once. Default: 1.
    turn_seconds
        Seconds that an environment takes for a turn. Default: 0.
    """
    if gpu is not None:
        from manyturn.api.estimates.card_forecast import StepLengths, plan_step

        if steps or first or staleness or places or recipe:
            raise ValueError("--gpu plans one step: leave --recipe, --steps, --first, --staleness and --places out")
        plan_step(
            run,
            words,
            gpu,
            StepLengths(turns, prompt_tokens, reply_tokens, 1.0 if distinct is None else distinct, turn_seconds or 0.0),
        )
        return
    if any(value is not None for value in (turns, prompt_tokens, reply_tokens, distinct, turn_seconds)):
        raise ValueError("lengths of episodes belong to --gpu: give that too, or leave them out")
    from manyturn.recipes import names

    if not Path(run).is_dir() and ({"/", ":"} & set(run) or run.endswith(".toml") or run in names()):
        if first or staleness or places:
            raise ValueError(f"{run} is no folder of a run, whose steps --first, --staleness and --places are about")
        from manyturn.api.estimates.training_estimate import estimate_named

        estimate_named(run, recipe, [*words, *([] if steps is None else ["--steps", str(steps)])])
        return
    if others := [*words, *(f"--recipe {name}" for name in recipe)]:
        raise ValueError(f"{others[0]!r} is of a run that has not begun, and {run} has its options: leave it out")
    from manyturn.api.estimates.resource_estimate import plan_run

    plan_run(Path(run), steps, first, staleness, places)
