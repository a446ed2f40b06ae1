"""Freezing: from a plan, which says what was chosen and why, to a suite, which holds the tasks and the hashes."""

import contextlib
from pathlib import Path
from typing import Any

from pydantic import Field

import manyturn
from manyturn.envs.contract.options.options import Options
from manyturn.envs.contract.tasks.panel import make_panel
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.suites import find_suite
from manyturn.suites.suite import NEEDS, Suite, SuiteError, SuitePanel
from manyturn.suites.transcript_hash import answers_of, recorded
from manyturn.trainers.recipe.config import read_toml


class PlannedPanel(Options):
    """An entry of a plan."""

    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    env: str
    args: dict[str, Any] = {}
    split: str = "test"
    tasks: int = Field(ge=1)
    need: str = ""
    replays: int = Field(default=2, ge=0)
    """Episodes whose answers are hashed. 0 where answers hang on programs of the machine."""


class Plan(Options):
    """A plan's file."""

    name: str
    extends: str = ""
    """A suite, by name or file, whose panels come first, as they were frozen. Their environments need not be ready."""
    panels: list[PlannedPanel] = Field(min_length=1)


def freeze(plan_file: Path, out: Path) -> Suite:
    """Make a suite from a plan; an existing file is replaced only if nothing that decides results differs.

    Every environment of the plan's own panels has to be ready on this machine.

    Raises:
        SuiteError: a name comes twice, a need is unknown, or the file holds another suite.
    """
    plan = Plan.model_validate(read_toml(plan_file))
    inherited = find_suite(plan.extends)[0].panels if plan.extends else ()
    names = [one.name for one in (*inherited, *plan.panels)]
    for one in plan.panels:
        if names.count(one.name) > 1:
            where = f", {plan.extends} included" if plan.extends else ""
            raise SuiteError(f"{plan_file} names the panel {one.name} twice{where}: give each a name of its own")
        if one.need not in ("", *NEEDS):
            raise SuiteError(f"{one.name} needs {one.need!r}: {', '.join(NEEDS)} are known")
    suite = Suite(plan.name, (*inherited, *map(_frozen, plan.panels)), manyturn.__version__)
    if out.exists() and (there := Suite.load(out)).hash != suite.hash:
        old = {one.name: one.identity for one in there}
        changed = [one.name for one in suite if old.get(one.name) != one.identity]
        raise SuiteError(
            f"{out} holds another suite, on which results may rest (it differs in {', '.join(changed) or 'order'}): "
            "name another file, or remove it"
        )
    suite.save(out)
    return suite


def _frozen(planned: PlannedPanel) -> SuitePanel:
    with contextlib.closing(EnvHandle(planned.env, planned.args)) as handle:
        panel = make_panel(handle.tasks(planned.split), planned.env, planned.split, planned.tasks, planned.args)
        if len(panel) < planned.tasks:
            raise SuiteError(f"{planned.name}: {planned.split} has {len(panel)} different tasks, not {planned.tasks}")
        tasks = panel.find(handle.tasks(planned.split))
        replays = tuple(
            recorded(handle, task, by_expert=handle.has_expert and number % 2 == 0)
            for number, task in enumerate(tasks[: planned.replays])
        )
        return SuitePanel(planned.name, planned.need, panel, replays, answers_of(handle, tasks, replays))
