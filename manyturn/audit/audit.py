"""The audit of credit as a function: play, estimate each turn's true effect, score methods on it."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from manyturn.audit.methods import methods_of, methods_with_options
from manyturn.audit.page import audit_page
from manyturn.audit.plots import plots
from manyturn.audit.policy import audited_policy
from manyturn.audit.result import CreditAudit, plain
from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.contract.near_names import near_names
from manyturn.envs.contract.options.options import ConfigError, unknown
from manyturn.envs.contract.registration.env_name import env_name
from manyturn.trainers.credit.audit.turn_sample import OWN
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit_audit.audit_loop import Report, audited
from manyturn.trainers.credit_audit.config import AuditConfig
from manyturn.trainers.credit_audit.resume_log import claim, claimed
from manyturn.trainers.credit_audit.scoring_sample import ANCHORS, OF_CRITIC

if TYPE_CHECKING:
    import gymnasium


_ARGUMENTS = ("env", "policy", "methods", "anchors", "env_args", "workers", "out", "report")
_BOUNDS = {
    "greater_than_equal": "at least",
    "greater_than": "more than",
    "less_than": "less than",
    "literal_error": "one of",
}


def credit_audit(
    env: "str | type[gymnasium.Env]",
    policy: Any = "random",
    *,
    methods: Sequence[str] | Mapping[str, CreditConfig] = (),
    anchors: Sequence[str] = (OWN, *ANCHORS),
    env_args: Mapping[str, Any] | None = None,
    workers: int = 0,
    out: str | os.PathLike[str] | None = None,
    report: Report = lambda doing, done, of: None,
    **options: Any,
) -> CreditAudit:
    """Score methods of credit by how far their credit follows the true effect of each turn; nothing is trained.

    >>> audit = credit_audit("manyturn/Maze-v0", "expert:0.5", methods=["grpo", "gigpo"], tasks=2, group=4, steps=9000)
    >>> [score.method for score in audit.ranked]
    ['gigpo', 'grpo']

    Args:
        env: an id, ``FILE.py:Class`` or a class.
        policy: ``"random"``, ``"expert"``, ``"expert:0.5"`` with half random moves, ``"FILE.py:FUNCTION"``, a function
            of observation and info, or whatever ``manyturn evaluate`` takes that draws tokens here.
        methods: words as ``gigpo``, ``gra+gigpo`` or ``gigpo:turn_weight=2.0``, or configurations by name; none are
            all that are registered. Others are compared with the first.
        anchors: kinds by which situations are told apart: environment, text, history, clock.
        env_args: arguments of the environment's constructor.
        workers: processes that play; 0 plays in this one. The result has the same bits.
        out: folder for figures, plots and a page; an interrupted audit in it goes on.
        report: is called after every task with what is done, how much of it, and how much there is.
        options: those of ``AuditConfig``, such as ``tasks`` and ``reliability``.

    Raises:
        ValueError: there is no such environment, policy, method, anchor or option.
        EnvError: the environment raised.
    """
    name, config = env_name(env), _config(options)
    chosen = dict(methods) if isinstance(methods, Mapping) else methods_of(methods)
    folder = None if out is None else Path(out)
    kinds = _other_anchors(anchors)
    critic = any(OF_CRITIC & config.needs.keys() for config in chosen.values())
    with audited_policy(policy, name, env_args, workers, config) as playing:
        about = (name, dict(playing.env_args), playing.name)
        if folder is not None:
            critic = _claim(folder, about, chosen, config)
        played = audited(playing.jobs(config, critic), list(playing.tasks), config, folder, report)
    if not played.tasks:
        raise ValueError("no task was finished in the time: raise --seconds")
    audit = CreditAudit.of(about, config, played, chosen, kinds)
    if not methods:
        audit = replace(audit, skipped={**audit.skipped, **methods_with_options()})
    if folder is not None:
        write_audit(audit, folder)
    return audit


def write_audit(audit: CreditAudit, folder: Path) -> None:
    """Write ``summary.json``, the plots and ``report.html`` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    replace_text(folder / "summary.json", json.dumps(plain(audit.summary), indent=1, allow_nan=False) + "\n")
    for name, picture in plots(audit).items():
        replace_text(folder / f"{name}.svg", picture)
    replace_text(folder / "report.html", audit_page(audit))


def _claim(
    folder: Path, about: tuple[str, Mapping[str, Any], str], methods: Mapping[str, CreditConfig], config: AuditConfig
) -> bool:
    """Take a folder, or resume the audit in it; True where values of a critic are played in it.

    Raises:
        ValueError: another audit is in it, or one without the values that a method needs.
    """
    needing = [name for name, method in methods.items() if OF_CRITIC & method.needs.keys()]
    played = claimed(folder)
    critic = bool(needing) if played is None else bool(played["critic"])
    things = {"env": about[0], "env_args": about[1], "policy": about[2], "critic": critic}
    claim(folder, {**things, "options": config.model_dump(mode="json", exclude={"seconds"})})
    if needing and not critic:
        raise ValueError(
            f"{folder} holds an audit without values of a critic, which {', '.join(needing)} needs: name another "
            "folder with --out, or leave it out"
        )
    return critic


def _config(options: Mapping[str, Any]) -> AuditConfig:
    """Options of the audit. Raises ConfigError that names an argument by its value and its fix."""
    for name in options:
        near = near_names(name, _ARGUMENTS, n=1, cutoff=0.75)
        if name not in AuditConfig.model_fields and near:
            raise ConfigError(f"unknown argument {name!r}; did you mean {near[0]!r}?")
    try:
        return AuditConfig.model_validate(dict(options))
    except ValidationError as error:
        raise ConfigError("; ".join(map(_refusal, error.errors()))) from None


def _refusal(problem: Any) -> str:
    """Message about one option, under its name on the command line."""
    if problem["type"] not in _BOUNDS:
        return str(problem["msg"]).removeprefix("Value error, ")
    bound = next(iter(problem["ctx"].values()))
    name = str(problem["loc"][-1])
    return f"{name} = {problem['input']}: give {_BOUNDS[problem['type']]} {bound} (--{name.replace('_', '-')})"


def _other_anchors(anchors: Sequence[str]) -> list[str]:
    for kind in anchors:
        if kind not in (OWN, *ANCHORS):
            raise ConfigError(unknown("anchor", kind, [OWN, *ANCHORS]))
    return [kind for kind in anchors if kind != OWN]
