"""Report section of a training run: curves over its steps, final held-out figures, its configuration."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from manyturn.envs.contract.env.roles import PARTS
from manyturn.envs.contract.tasks.panel import portable_name
from manyturn.report.evaluation import error_warnings, evaluation_tables, identity_fact, made_with
from manyturn.report.report_head import Head, Plain, ReportError, ends, figure, number, plain_text, read_json, table
from manyturn.trainers.recipe.config import read_toml
from manyturn.trainers.record.env_changes import env_change_lines
from manyturn.trainers.record.run_folder import RunFolderError, read_metrics
from manyturn.trainers.record.shown_metrics import CURVES, SHOWN, owned_keys

_PHASES = ("demonstrations", "imitation", "warmup", "exploration", "estimator", "critic", "train", "validation")
_TOLD = {"device": "device", "updates": "updates", "warmup": "warm-up", "weights": "weights", "seconds": "seconds"}
_WARMUP_COSTS = (
    ("demonstrations", "demonstrations", 1),
    ("CPU minutes of the warm-up", "cpu_seconds", 60),
    ("minutes of warm-up left, at most", "warmup_left_seconds", 60),
)
_SLOWEST = 8  # tasks that are named
_HELD_OUT = {
    "before": "success before",
    "after": "success after",
    "difference": "difference",
    "random": "random policy",
    "expert": "expert",
    "before_greedy": "greedy before",
    "after_greedy": "greedy after",
    "difference_greedy": "greedy difference",
}


def run_head(run: Path) -> Head:
    """The head of a run that may still go on.

    Raises:
        ConfigError, ReportError: its configuration, its metrics or its summary is damaged.
    """
    config = read_toml(run / "config.toml")
    lines = _lines(run)
    summary = read_json(run / "summary.json") if (run / "summary.json").is_file() else None
    folders = evaluations_in(run) if summary is not None else []
    evaluated = {_of(folder): read_json(folder / "summary.json") for folder in folders}
    name = run.resolve().name
    try:
        env = " + ".join(portable_name(one.get("name") or one["id"]) for one in _envs(config))
        return Head(
            kind="run",
            title=f"{name}: {env}",
            sources=[name],
            done=summary is not None,
            facts=_facts(config, lines["train"], summary) + (made_with(folders[0]) if folders else []),
            warnings=_warnings(config, lines["train"], summary, evaluated),
            figures=_held_out(summary) if summary is not None else _latest(lines),
            curves=[_success(lines, summary), *_by_env(lines["train"]), *_curves(lines["train"]), *_before(lines)],
            tables=[
                *(_of_each(summary["envs"]) if summary is not None and "envs" in summary else []),
                *(one for of, own in evaluated.items() for one in evaluation_tables(own, f"{of}Held-out ")),
                *_slowest(lines["train"]),
                _configuration(config),
            ],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ReportError(
            f"config.toml or summary.json of {run} lacks something ({type(error).__name__}: {error}): restore them, "
            "or train again"
        ) from None


def evaluations_in(run: Path) -> list[Path]:
    """The folders of a run's finished evaluation: one, or one for each of several environments."""
    files = [run / "evaluation" / "summary.json", *sorted((run / "evaluation").glob("*/summary.json"))]
    return [file.parent for file in files if file.is_file()]


def _of(folder: Path) -> str:
    """The environment that an evaluation is of, for titles; empty where the run has one."""
    return "" if folder.name == "evaluation" else f"{folder.name}: "


def _envs(config: Plain) -> list[Plain]:
    return config.get("envs") or [config["env"]]


def _of_each(envs: Mapping[str, Plain]) -> Iterator[Plain]:
    """Held-out success in each of several environments."""
    shown = {title: name for name, title in _HELD_OUT.items() if any(own.get(name) for own in envs.values())}
    columns = {"environment": "text", "tasks": "number", **dict.fromkeys(shown, "interval")}
    rows = [
        [env, own["panel"]["n_tasks"], *(ends(own.get(name) or {}, "success") for name in shown.values())]
        for env, own in envs.items()
    ]
    yield table("Held-out success in each environment", columns, rows)


def _by_env(lines: Sequence[Plain]) -> Iterator[Plain]:
    """Success of the episodes that were learnt from in each of several environments."""
    series = [_series(owner, lines, key) for owner, key in owned_keys(lines, "success") if owner]
    if series:
        yield _curve("Success in each environment", "share of episodes", series, percent=True)


def _lines(run: Path) -> dict[str, list[Plain]]:
    """Lines of metrics by phase."""
    charts: dict[str, list[Plain]] = {phase: [] for phase in _PHASES}
    try:
        for line in read_metrics(run):
            charts[line["phase"]].append(line)
            line["step"] = int(line["step"])
    except (KeyError, TypeError, ValueError, OSError, RunFolderError) as error:
        raise ReportError(
            f"{run}/metrics.jsonl is damaged ({type(error).__name__}: {error}): manyturn train --resume {run} writes "
            "again what came after the last checkpoint"
        ) from None
    return charts


def _series(name: str, lines: Sequence[Plain], key: str, x: str = "step") -> Plain:
    return {"name": name, "points": [[number(line.get(x)), number(line.get(key)), None, None] for line in lines]}


def _curve(title: str, unit: str, series: Sequence[Plain], *, percent: bool = False, x: str = "step") -> Plain:
    present = [one for one in series if any(point[1] is not None for point in one["points"])]
    return {"title": title, "x": x, "y": unit, "percent": percent, "series": present}


def _success(lines: Mapping[str, Sequence[Plain]], summary: Plain | None) -> Plain:
    """Success of the episodes that were learnt from, on validation tasks, and on held-out tasks at both ends."""
    series = [_series("training", lines["train"], "success"), _series("validation", lines["validation"], "success")]
    if summary is not None:
        places = (("before", 0), ("after", summary["steps"]))
        before, after = ([step, *map(number, ends(summary[name], "success"))] for name, step in places)
        # A gap: nothing was measured between them, and a line would say that something was.
        series.append({"name": "held out", "points": [before, [0, None, None, None], after]})
    return _curve("Success", "share of episodes", series, percent=True)


def _curves(lines: Sequence[Plain]) -> Iterator[Plain]:
    for title, axis in CURVES.items():
        series = [
            _series(f"{owner}: {shown.label}" if owner else shown.label, lines, key)
            for shown in SHOWN
            if shown.curve == title
            for owner, key in owned_keys(lines, shown.key)
        ]
        curve = _curve(title, axis.unit, series, percent=axis.percent)
        if curve["series"]:
            yield curve
    parts = dict.fromkeys(key for line in lines for key in line if key.startswith(PARTS))
    if parts:
        series = [_series(key.removeprefix(PARTS), lines, key) for key in parts]
        yield _curve("Parts of the return", "mean of an episode", series)


def _slowest(lines: Sequence[Plain]) -> Iterator[Plain]:
    """The tasks that were answered most slowly, each at its slowest, with the host where there are any."""
    last: dict[tuple[str, str], tuple[float, int]] = {}
    for owner, key in owned_keys(lines, "slowest_task"):
        for line in lines:
            if (task := line.get(key)) is not None:
                seconds = line[f"{owner}/slowest_env_seconds" if owner else "slowest_env_seconds"]
                last[task, owner] = max(last.get((task, owner), (0.0, 0)), (seconds, line["step"]))
    if any(owner for _, owner in last):  # what all of them say is said by one of them
        last = {key: at for key, at in last.items() if key[1]}
    rows = sorted(((task, owner, *at) for (task, owner), at in last.items()), key=lambda row: -row[2])
    if rows:
        columns = {"task": "text", "host": "text", "seconds": "number", "step": "number"}
        yield table("Slowest answers of the environment", columns, rows[:_SLOWEST])


def _warmup(lines: Sequence[Plain]) -> Iterator[Plain]:
    for title, unit, percent, key in (
        ("Success in the warm-up", "share of validation episodes", True, "success"),
        ("Loss in the warm-up", "nats a token", False, "loss"),
    ):
        series = [_series(owner or "warm-up", lines, own, "updates") for owner, own in owned_keys(lines, key)]
        curve = _curve(title, unit, series, percent=percent, x="update")
        if curve["series"]:
            yield curve


def _before(lines: Mapping[str, Sequence[Plain]]) -> Iterator[Plain]:
    """Section of the warm-up."""
    yield from _warmup(lines["warmup"])
    yield from _estimator(lines["estimator"])
    yield from _critic(lines["critic"])


def _estimator(lines: Sequence[Plain]) -> Iterator[Plain]:
    """Quality of the progress estimator in exploration."""
    series = [
        _series(f"{owner}: {name}" if owner else name, lines, own, "updates")
        for name, key in (("training tasks", "progress_loss"), ("held-out tasks", "estimate_error"))
        for owner, own in owned_keys(lines, key)
    ]
    if series:
        yield _curve("Estimate of the outcome, before the first step", "squared error", series, x="update")


def _critic(lines: Sequence[Plain]) -> Iterator[Plain]:
    """Quality of a critic that is trained before the first step."""
    series = [_series(owner or "critic", lines, own, "updates") for owner, own in owned_keys(lines, "value_explained")]
    if series:
        yield _curve("Returns that the critic explains, before the first step", "share", series, percent=True, x="pass")


def _held_out(summary: Plain) -> list[Plain]:
    tasks = summary["panel"]["n_tasks"]
    shown = [(title, summary[name]) for name, title in _HELD_OUT.items() if summary.get(name)]
    return [figure(title, *ends(interval, "success"), tasks) for title, interval in shown]


def _latest(lines: Mapping[str, Sequence[Plain]]) -> list[Plain]:
    """Progress of an unfinished run."""
    if not lines["train"]:
        last = lines["warmup"][-1:]
        figures = [figure("success in the warm-up", line.get("success")) for line in last]
        for name, key, unit in _WARMUP_COSTS:
            costs = [line[key] / unit for line in last if line.get(key) is not None]
            figures += [figure(name, cost, percent=False) for cost in costs]
        return figures
    last = lines["train"][-1]
    figures = [figure("success of training episodes", last.get("success"))]
    figures += [figure("success in validation", line.get("success")) for line in lines["validation"][-1:]]
    figures += [figure(name, last.get(name), percent=False) for name in ("return", "turns", "entropy")]
    shares = {"broken formats": "broken_format", "actions not understood": "not_understood"}
    return [*figures, *(figure(name, last.get(metric)) for name, metric in shares.items())]


def _warnings(
    config: Plain, steps: Sequence[Plain], summary: Plain | None, evaluated: Mapping[str, Plain]
) -> list[str]:
    warnings = [
        f"{of}{one}" for of, own in evaluated.items() for one in error_warnings(own, " of the final evaluation")
    ]
    if summary is None:
        done = steps[-1]["step"] if steps else 0
        warnings.append(f"the run is not over: {done} of {config['steps']} steps")
    warnings += (
        env_change_lines(summary.get("env_changes", ()))
        if summary is not None
        else [
            f"the environment changed before step {line['step']}: {line['env_changed']}"
            for line in steps
            if line.get("env_changed")
        ]
    )
    errors = sum(line.get("errors") or 0 for line in steps)
    if errors:
        warnings.append(f"{errors} training episodes ended in an error: they left their groups and taught nothing")
    skipped = sum(line.get(key) or 0 for _, key in owned_keys(steps, "skipped_updates") for line in steps)
    if skipped:
        warnings.append(f"{skipped} updates were left out because loss or gradient was not finite")
    return warnings


def _facts(config: Plain, steps: Sequence[Plain], summary: Plain | None) -> list[list[str]]:
    credit = config["credit"]
    facts = [
        *(
            [_title(env), f"{portable_name(env['id'])} {plain_text(env.get('args', {}))}".strip()]
            for env in _envs(config)
        ),
        ["model", plain_text(config["model"])],
        *([stage, plain_text(credit[stage])] for stage in ("rewards", "advantage", "modulation") if credit.get(stage)),
        ["objective", plain_text(config["objective"])],
        ["a step", f"{config['rollout']['tasks']} tasks, {config['rollout']['group']} episodes of each"],
        ["steps", f"{steps[-1]['step'] if steps else 0} of {config['steps']}"],
        ["seed", str(config["seed"])],
    ]
    if summary is not None:
        panel = summary["panel"]
        title = f"success on the {panel['n_tasks']} tasks of {panel['id']}, with 95 % intervals"
        facts += [["held-out figures", title], ["panel's hash", panel["hash"]]]
        facts.append(["environment identity", identity_fact(summary)])
        facts += [[title, plain_text(summary[key])] for key, title in _TOLD.items()]
    return facts


def _title(env: Plain) -> str:
    return f"environment {env['name']}, weight {env['weight']:g}" if "weight" in env else "environment"


def _configuration(config: Plain) -> Plain:
    def entries(prefix: str, section: Plain) -> Iterator[list[str]]:
        for key, value in section.items():
            if isinstance(value, dict) and value:
                yield from entries(f"{prefix}{key}.", value)
            else:
                yield [f"{prefix}{key}", plain_text(value)]

    return table("Configuration", {"entry": "text", "value": "text"}, list(entries("", config)))
