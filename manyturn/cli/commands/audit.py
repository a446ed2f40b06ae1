"""The command that audits credit."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from manyturn.terminal.env_args import EnvArgs

_WORDS = Parameter(negative="", consume_multiple=True, show_default=False)
PLAYING, EXACTNESS = (
    Parameter(group=group) for group in map(Group.create_ordered, ("Policy and tasks", "Exactness and cost"))
)


def credit_audit(
    env: str,
    *,
    methods: Annotated[tuple[str, ...], _WORDS] = (),
    anchors: Annotated[tuple[str, ...], _WORDS] = (),
    policy: Annotated[str, PLAYING] = "random",
    env_args: Annotated[EnvArgs, PLAYING] = None,
    split: Annotated[str | None, PLAYING] = None,
    tasks: Annotated[int | None, PLAYING] = None,
    group: Annotated[int | None, PLAYING] = None,
    seed: Annotated[int | None, PLAYING] = None,
    chance: Annotated[str | None, PLAYING] = None,
    reward: Annotated[str | None, PLAYING] = None,
    reliability: Annotated[float | None, EXACTNESS] = None,
    steps: Annotated[int | None, EXACTNESS] = None,
    seconds: Annotated[float | None, EXACTNESS] = None,
    critic: Annotated[int | None, EXACTNESS] = None,
    siblings: Annotated[int | None, EXACTNESS] = None,
    workers: Annotated[int, EXACTNESS] = 0,
    out: Path | None = None,
) -> None:
    """Score methods of credit by the true effect of each turn; nothing is trained.

    Groups are played, and continuations of their situations give Q(s, a) - V(s) of every turn, with its standard error.
    docs/credit-audit.md explains every column.

    Parameters
    ----------
    env
        Environment: an id, or FILE.py:Class.
    methods
        Methods such as grpo gigpo gra+gigpo gigpo:turn_weight=2.0 advantage=gigpo+modulation=empg: advantages, reward
        stages, modulations and recipes. Others are compared with the first. Default: all that are registered.
    anchors
        Kinds of keys for situations: environment, text, history, clock. Default: all.
    policy
        random, expert, expert:0.5 for an expert with half random moves, FILE.py:FUNCTION, a run's folder or a model.
    env_args
        Arguments of the environment's constructor as a TOML table; or one, as in --env.args.difficulty hard.
    split
        Split of the tasks. Default: train.
    tasks
        Tasks. Default: 24.
    group
        Episodes of each task. Default: 8.
    seed
        All randomness derives from it. Default: 0.
    chance
        redrawn: continuations draw the chance inside an environment again, so that luck does not count as skill;
        as_played: it happens as it did. Default: redrawn.
    reward
        return: effects are of all rewards; outcome: only of that of an episode's end, though methods see all. Default:
        return.
    reliability
        Continuations are added until this share of the variance of the estimated effects is true. Default: 0.8.
    steps
        Limit on the steps of all continuations. At least four of each situation, and two for a critic, are played even
        beyond it. Default: 2000000.
    seconds
        Seconds after which no further task starts; the result then depends on the machine.
    critic
        Continuations of each situation whose mean is a perfect critic's value. Default: 32.
    siblings
        How many of these are branches of each turn, for methods that compare branches. Default: 4.
    workers
        Processes that play; 0 plays in this one. The result is the same.
    out
        Folder for summary.json, plots and report.html, which shows every turn; an interrupted audit in it is resumed.
    """
    from rich.console import Console

    from manyturn.audit.audit import credit_audit as audit
    from manyturn.audit.progress import AuditBar
    from manyturn.audit.table import print_audit

    values = {"split": split, "tasks": tasks, "group": group, "seed": seed, "chance": chance, "reward": reward}
    values |= {"reliability": reliability, "steps": steps, "seconds": seconds, "critic": critic, "siblings": siblings}
    options: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    if anchors:
        options["anchors"] = anchors
    with AuditBar() as bar:
        result = audit(env, policy, methods=methods, env_args=env_args, workers=workers, out=out, report=bar, **options)
    print_audit(result, Console())
    if out is not None:
        print(f"{out / 'report.html'} shows every turn")
