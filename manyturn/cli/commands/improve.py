"""The command that improves a policy by experience."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from manyturn.cli.commands.played_env import (
    PLAYING,
    TASKS,
    AnswerTimeout,
    PlayedArgs,
    PlayedEnv,
    PlayedWrappers,
    Workers,
)
from manyturn.terminal import command_exit
from manyturn.terminal.task_option import TaskWords


def improve(
    policy: str,
    *options: Annotated[str, Parameter(allow_leading_hyphen=True, show=False)],
    out: Path,
    env: PlayedEnv = None,
    env_args: PlayedArgs = None,
    wrappers: PlayedWrappers = None,
    tasks: Annotated[TaskWords, TASKS] = None,
    workers: Workers = 0,
    timeout: AnswerTimeout = None,
    writer: Annotated[str | None, PLAYING] = None,
    experience: Annotated[Path | None, PLAYING] = None,
) -> None:
    """Improve a policy by experience, in words and without training.

    Each round makes attempts at training tasks, turns them into entries of an experience, and measures on held-out
    tasks what the policy gains from reading them. The same command continues an interrupted improvement, and with more
    --rounds one that has ended. See docs/experience.md.

    Options: --method NAME, and those of the method, such as --method.attempts 5; --rounds, --seed; --pool.limit,
    --pool.batch; --validation.limit, --validation.decoding; --retrieval; --budget.tokens, --budget.usd; and those of
    the policy, as evaluate takes them. manyturn options method lists the methods, and manyturn options pool those of a
    section.

    Parameters
    ----------
    policy
        openai:MODEL for an endpoint (OPENAI_BASE_URL), also openai-responses:MODEL and anthropic:MODEL,
        FILE.py:POLICY for a function or class of yours, a run's folder, a checkpoint, or a model's folder, GGUF
        file or id.
    options
        Options of the improvement and of the policy.
    out
        Folder for the experience, the rounds and their episodes; an interrupted improvement in it continues.
    tasks
        Tasks of the pool: ids, @FILE of ids, or tag=NAME. Default: the first of its split.
    writer
        The policy that writes the lessons, such as openai:MODEL. Default: the policy itself.
    experience
        Experience to begin with: the file or the folder of another improvement.
    """
    from manyturn.api.evaluation import Settings
    from manyturn.api.improvement import ImproveSettings, improve_policy
    from manyturn.terminal.improvement_progress import print_improvement
    from manyturn.terminal.overrides import parse_overrides

    world = Settings(env, env_args or {}, wrappers, workers=workers, timeout=timeout, out=out, tasks=tasks)
    settings = ImproveSettings(world, writer, experience)
    print_improvement(command_exit.run(improve_policy(policy, settings, parse_overrides(options))))
