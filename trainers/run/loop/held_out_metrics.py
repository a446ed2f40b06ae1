"""A run's figures on held-out tasks."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from manyturn.agents.evaluation.evaluate import Evaluation, EvaluationPlan, evaluate, held_out_guard
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.play.episode import Policy
from manyturn.envs.contract.tasks.env_identity import KEY
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.record.run_state import State
from manyturn.trainers.record.summary import measured, summarise_run
from manyturn.trainers.run.setup.run_builder import Run
from manyturn.trainers.run.setup.task_check import panels_of


async def held_out(
    run: Run, policy: Policy, seen: Collection[str] = (), out: Path | None = None
) -> dict[str, Evaluation]:
    """Evaluate a policy on the pinned panel of held-out tasks of each environment.

    Raises:
        NotHeldOut: ``seen`` holds one of them.
    """
    config, panels = run.config, panels_of(run.config, run.seats)
    evaluations = dict[str, Evaluation]()
    for _, panel in panels.values():
        held_out_guard(panel, seen)
    for name, (seats, panel) in panels.items():
        plan = EvaluationPlan(
            panel,
            repeats=config.evaluation.repeats,
            seed=config.seed,
            max_turns=config.rollout.max_turns,
            patience=run.patience,
            label=_labelled(run, policy) if out else policy.name,
        )
        place = out / name if out and config.envs else out
        evaluations[name] = await evaluate(seats, policy, plan, out=place)
    return evaluations


def _labelled(run: Run, policy: Policy) -> str:
    """The policy's name with its weights, by which an interrupted evaluation knows it again."""
    return f"{policy.name}, weights {' '.join(trainee.weights[:16] for trainee in run.trainees)}"


async def figures(run: Run, state: State, name: str, out: Path | None = None) -> dict[str, Any]:
    """Held-out success of the present policy as it samples, and as it takes the likeliest token if that is asked."""
    async with run.drawing():
        figures = {name: measured(await held_out(run, run.policy(), state.seen, out))}
        if run.config.evaluation.greedy:
            figures[f"{name}_greedy"] = measured(await held_out(run, run.policy(temperature=0.0)))
    return figures


async def conclude(run: Run, state: State, path: Path) -> dict[str, Any]:
    """Evaluate the final policy between floor and ceiling; returns the run's summary."""
    results = {**state.before, **await figures(run, state, "after", path / "evaluation")}
    results["random"] = measured(random := await held_out(run, Scripted(1.0)))
    if run.seats.facts.has_expert:
        results["expert"] = measured(await held_out(run, Scripted(0.0)))
    facts = {
        "env": run.config.env_title,
        "seed": run.config.seed,
        "device": str(run.trainees[0].language.model.device),
        "steps": state.step,
        "learned_steps": state.learned,
        "updates": run.per_policy(lambda trainee: trainee.learner.updates),
        "warmup": state.warmup,
        **({"exploration": state.explored} if state.explored else {}),
        "played": state.played,
        "config_changes": state.config_changes,
        **({"partners": partners} if (partners := run.frozen.plain_partners) else {}),
        KEY: state.env_identity,
        "env_changes": state.env_changes,
        "notices": state.notices,
        "weights": run.per_policy(lambda trainee: trainee.weights),
    }
    panels = {name: evaluation.panel.facts for name, evaluation in random.items()}
    return summarise_run(panels, results, {**facts, **_of_several(run.config)})


def _of_several(config: RunConfig) -> dict[str, Any]:
    """Id, arguments and weight of each of several environments, for the summary."""
    if not config.envs:
        return {}
    return {"envs": {env.name: {"env": env.id, "args": dict(env.args), "weight": env.weight} for env in config.envs}}
