"""The texts that a tiny model's vocabulary is made from: what an environment says and what can be said to it."""

from collections.abc import Iterator

from manyturn.agents.agent import AgentConfig
from manyturn.envs.contract.keys import generator
from manyturn.envs.hosting.host import Host


def texts_of(host: Host, config: AgentConfig, tasks: int, seed: int, turns: int = 30) -> Iterator[str]:
    """Pieces of text from training tasks, each as it stands at the beginning of a message.

    Walks through training tasks by expert moves and random admissible commands in turn; held-out tasks are not touched.

    Args:
        tasks: how many training tasks are visited.
        turns: longest walk.
    """
    yield config.system(host.instructions)
    train = host.tasks("train")
    for number in generator("vocabulary", seed).choice(len(train), size=min(tasks, len(train)), replace=False):
        task = train[int(number)]
        rng = generator("vocabulary", seed, task.id)
        step = host.reset(task, seed)
        for _ in range(turns):
            yield config.view(step)
            for command in step.admissible or ():
                yield config.format.render(command)
            action = None
            if host.has_expert and rng.random() < 0.7:
                action = host.expert()
            elif step.admissible:
                action = step.admissible[int(rng.integers(len(step.admissible)))]
            elif host.has_expert:
                action = host.expert()
            if action is None:
                break
            yield config.format.render(action)
            step = host.step(action)
            if step.ended:
                yield config.view(step)
                break
