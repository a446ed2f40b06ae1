"""An expert's episode in this process, with which the tests of other people's trainers compare theirs."""

from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import Answer, EnvHandle
from manyturn.export.exported_env import Exported, episode_seed


def episode(world: Exported, task: Task, garbage: bool) -> tuple[list[str], list[Answer]]:
    """Actions and answers of the expert, who may say something meaningless at first."""
    here = EnvHandle(world.name, world.args, world.wrappers)
    steps, actions = [here.reset(task, episode_seed(task))], list[str]()
    while not steps[-1].ended:
        actions.append("nonsense é" if garbage and not actions else here.expert().strip())
        steps.append(here.step(actions[-1]))
    here.close()
    return actions, steps
