"""Check of environments and tasks before anything is learnt.

A fault that only the evaluation at the end would meet costs the whole training. A run may have several environments,
and one policy plays episodes of all. What belongs to an environment stays its own: instructions, limits of turns,
wrappers, workers, panel, figures. What is the run's is shared: model, vocabulary, reply format, context, credit.
"""

from collections.abc import Mapping, Sequence

from manyturn.agents.evaluation.evaluate import NotHeldOut
from manyturn.agents.model.model_config import has_tools
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.tasks.duplicate_tasks import id_fault
from manyturn.envs.contract.tasks.mixed_tasks import own_task
from manyturn.envs.contract.tasks.panel import Panel, make_panel
from manyturn.envs.contract.tasks.task import LazyTasks, Task
from manyturn.envs.contract.tasks.task_filter import chosen_tasks
from manyturn.envs.hosting.local.mixed_seats import MixedSeats
from manyturn.envs.hosting.local.seats import Seats
from manyturn.trainers.recipe.config import RunConfig

_MADE = 100  # training tasks looked at of a list that makes each when asked; of one in memory, all


def members_of(seats: Seats) -> Mapping[str, Seats]:
    """Name of each environment -> its seats; of one environment, its name in messages."""
    return seats.members if isinstance(seats, MixedSeats) else {seats.facts.name: seats}


def check_mixture(config: RunConfig, seats: Seats) -> None:
    """Raise ConfigError where a part that all environments share does not fit one of them.

    Args:
        config: fitted to the environments.
    """
    if not config.envs:
        return
    members = members_of(seats)
    plain = [name for name, own in members.items() if not has_tools(own.facts)]
    if config.agent.format.name == "tool_call" and plain and len(plain) < len(members):
        raise ConfigError(
            f"agent.format = 'tool_call' writes calls of tools, and {', '.join(plain)} of envs has none: set "
            "agent.format to tagged, or leave it out of envs"
        )
    mute = [name for name, own in members.items() if not own.facts.has_expert]
    if config.warmup.imitates and mute and len(mute) < len(members):
        raise ConfigError(
            f"the warm-up imitates experts, and {', '.join(mute)} of envs has none: give it an expert(), leave it out "
            "of envs, or set warmup.episodes = 0"
        )


def panels_of(config: RunConfig, seats: Seats) -> dict[str, tuple[Seats, Panel]]:
    """Name of each environment -> its seats, and the pinned panel of its held-out tasks. Raises PanelError."""
    evaluation, panels = config.evaluation, dict[str, tuple[Seats, Panel]]()
    for name, own in members_of(seats).items():
        env = config.environments[name] if config.envs else next(iter(config.environments.values()))
        tasks = own.tasks(evaluation.split)
        panel = make_panel(tasks, env.id, evaluation.split, evaluation.limit, env.args, own.identity)
        panels[name] = own, panel
    return panels


def check_tasks(config: RunConfig, seats: Seats) -> None:
    """Find what would stop the run, or spoil its figures, after hours. Of several environments each is looked at, and
    none may be tested on what another one teaches.

    Raises:
        ConfigError: a split is missing or empty, an id names two problems, or validation tasks are training tasks.
        NotHeldOut: tasks of the panel are training tasks.
        TaskChoiceError: the configuration names training tasks that there are not.
    """
    needed, members = _needed(config), members_of(seats)
    for own in members.values():
        _check_splits(own, needed)
    chosen = chosen_tasks(config.tasks, "train", seats.facts)
    learnt = dict[str, str]()
    checked: dict[str, dict[str, Sequence[Task]]] = {}
    for name, own in members.items():
        tasks_of = {split: _looked_at(own.tasks(split), config, split) for split in needed}
        if config.tasks is not None:
            tasks_of["train"] = [own_task(task) if task.env else task for task in chosen if task.env in (None, name)]
            if not tasks_of["train"]:
                raise ConfigError(f"tasks names no task of {name}: name some, or leave {name} out of envs")
        if fault := id_fault(tasks_of):
            raise ConfigError(f"{own.facts.name} has {fault}")
        learnt |= {task.content: task.id for task in tasks_of["train"]}
        checked[name] = tasks_of
    panels = panels_of(config, seats)
    for name, own in members.items():
        _check_held_out(panels[name][1], learnt)
        if "validation" in needed:
            _check_validation(own, checked[name]["validation"][: _validated(config)], learnt)


def _check_splits(seats: Seats, needed: Mapping[str, tuple[str, str]]) -> None:
    for split, (use, fix) in needed.items():
        if split not in seats.facts.splits:
            tasks_of = ", ".join(seats.facts.splits)
            raise ConfigError(f"{seats.facts.name} has no split {split!r}, {use}; it has {tasks_of}: {fix}")
        if not len(seats.tasks(split)):
            raise ConfigError(
                f"{seats.facts.name} has no task in its split {split!r}, {use}: tasks({split!r}) is empty"
            )


def _check_held_out(panel: Panel, learnt: Mapping[str, str]) -> None:
    pairs = zip(panel.tasks, panel.contents, strict=True)
    if both := [(task, learnt[content]) for task, content in pairs if content in learnt]:
        raise NotHeldOut(
            f"{len(both)} of the {len(panel)} tasks of {panel.id} are training tasks, first {both[0][0]!r}, which is "
            f"{both[0][1]!r}: success there would not show how the policy does on new tasks. Give the splits different "
            "problems (a task's params say which it is), or name another evaluation.split"
        )


def _check_validation(seats: Seats, checked: Sequence[Task], learnt: Mapping[str, str]) -> None:
    if both := [(task.id, learnt[task.content]) for task in checked if task.content in learnt]:
        raise ConfigError(
            f"{len(both)} of the first {len(checked)} validation tasks of {seats.facts.name} are training tasks, first "
            f"{both[0][0]!r}, which is {both[0][1]!r}: give the splits different problems (a task's params say which)"
        )


def _needed(config: RunConfig) -> dict[str, tuple[str, str]]:
    """Split -> what for, and what to do without it."""
    add = "return its tasks from tasks() and name it in splits"
    needed = {"train": ("which is learnt from", add)}
    if config.warmup.imitates:
        needed["validation"] = ("on which the warm-up is measured", f"{add}, or set warmup.episodes = 0")
    elif config.evaluation.every:
        needed["validation"] = ("which evaluation.every asks for", f"{add}, or set evaluation.every = 0")
    held_out = ("on which results are reported", "name one of them as evaluation.split")
    return {**needed, config.evaluation.split: needed.get(config.evaluation.split, held_out)}


def _validated(config: RunConfig) -> int:
    """The number of validation tasks that are played at most."""
    evaluation = config.evaluation
    return max(
        config.warmup.check_episodes if config.warmup.imitates else 0, evaluation.every_limit if evaluation.every else 0
    )


def _looked_at(tasks: Sequence[Task], config: RunConfig, split: str) -> Sequence[Task]:
    if not isinstance(tasks, LazyTasks):
        return tasks
    return tasks[: max(_MADE * (split == "train"), _validated(config) * (split == "validation"))]
