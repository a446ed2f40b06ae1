"""Report section of an evaluation: success with its interval, by difficulty and tag, endings, settings."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from manyturn.agents.evaluation.paired_comparison import Evaluated
from manyturn.agents.evaluation.remarks import remarks
from manyturn.envs.contract.tasks.env_identity import EnvIdentity
from manyturn.envs.contract.tasks.panel import portable_name
from manyturn.report.report_head import Head, Plain, ReportError, ends, figure, number, plain_text, read_json, table


def evaluation_head(evaluated: Evaluated) -> Head:
    """The head of an evaluation; raises ReportError if its summary is not what ``summarise`` makes."""
    summary = evaluated.summary
    try:
        return Head(
            kind="evaluation",
            title=f"{summary['policy']} on {summary['panel']['id']}",
            sources=[str(summary["policy"])],
            facts=_facts(summary, evaluated.folder),
            warnings=[*error_warnings(summary), *remarks(summary)],
            figures=list(_figures(summary)),
            tables=evaluation_tables(summary),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ReportError(
            f"{evaluated.folder}/summary.json lacks something ({type(error).__name__}: {error}): evaluate again"
        ) from None


def evaluation_tables(summary: Mapping[str, Any], prefix: str = "") -> list[Plain]:
    """Reward parts, measures, success by difficulty and tag, attempts, endings and limits, as far as there are any."""
    success = prefix + ("success" if prefix else "Success")
    tables = [_broken_down(f"{success} by {name}", name, summary[f"by_{name}"]) for name in ("difficulty", "tag")]
    return [
        one
        for one in (
            *(_parts(summary, prefix), _measures(summary, prefix)),
            *(*tables, _attempts(summary, prefix), _endings(summary, prefix)),
        )
        if one["rows"]
    ]


def error_warnings(summary: Mapping[str, Any], of: str = "") -> list[str]:
    """Warnings about errors, for the reader of the figures."""
    errors, share = summary["errors"]["n"], summary["errors"]["share"]
    if not errors:
        return []
    return [f"{errors} episodes{of} ({share:.1%}) ended in an error: they are in no figure of success or return"]


def _figures(summary: Mapping[str, Any]) -> Iterator[Plain]:
    success = summary["success"]
    yield figure("success", *ends(success), success["n_tasks"])
    if summary["errors"]["n"]:
        strict = summary["success_errors_as_failures"]
        yield figure("success, errors as failures", *ends(strict), strict["n_tasks"])
    yield figure("return", *ends(summary["return"]), summary["return"]["n_tasks"], percent=False)
    for sign, key in (("pass@", "pass_at_k"), ("pass^", "pass_hat_k")):
        k = max(summary[key], key=int, default="1")
        if k != "1":
            yield figure(f"{sign}{k}", summary[key][k]["mean"], n=summary[key][k]["n_tasks"])
    yield figure("turns an episode", summary["turns"]["mean"], percent=False)
    yield figure("broken formats", summary["broken_format_rate"])
    yield figure("actions not understood", summary["not_understood_rate"])
    if summary["cut_reply_rate"] is not None:
        yield figure("cut replies", summary["cut_reply_rate"])
    if summary["tokens"]["reply_mean"] is not None:
        yield figure("reply tokens an episode", summary["tokens"]["reply_mean"], percent=False)
    if summary["cost"]["total"] is not None:
        yield figure("cost, USD", summary["cost"]["total"], percent=False)


def _facts(summary: Mapping[str, Any], folder: Path) -> list[list[str]]:
    panel, seconds = summary["panel"], summary["seconds"]
    facts = [
        ["policy", str(summary["policy"])],
        ["environment", f"{portable_name(summary['env'])} {plain_text(summary['args'])}".strip()],
        ["environment identity", identity_fact(summary)],
        ["panel", f"{panel['id']}, {panel['n_tasks']} tasks"],
        ["panel's hash", panel["hash"]],
        ["episodes", f"{summary['n_episodes']}, {summary['repeats']} of each task"],
        ["seed", str(summary["seed"])],
        *([name, plain_text(summary[name])] for name in ("sampling", "agent") if summary[name] is not None),
        ["turn limit", f"{summary['max_turns']}, where the environment has none of its own"],
    ]
    if summary["retried"]["n"]:
        facts.append(["retried episodes", str(summary["retried"]["n"])])
    facts += [
        [f"seconds ({name})", str(number(seconds[name], 4))] for name in ("wall", "policy", "env") if seconds[name]
    ]
    return facts + made_with(folder)


def identity_fact(record: Mapping[str, Any]) -> str:
    """The identity of the environment in a summary, short: its hash, files and packages."""
    if (identity := EnvIdentity.of(record)) is None:
        return "unknown"
    if identity.members:
        return "; ".join(f"{name} {member.short}" for name, member in identity.members.items())
    packages = [f"{name} {version}" for name, version in identity.packages.items()]
    parts = [*identity.files, *packages, *(str(one.get("name")) for one in identity.wrappers), *identity.wrapper_files]
    return f"{identity.short}: {', '.join(parts)}" if parts else identity.short


def made_with(folder: Path) -> list[list[str]]:
    """Facts of an evaluation's manifest, if it is there: when and with which versions it was made."""
    if not (folder / "manifest.json").is_file():
        return []
    manifest = read_json(folder / "manifest.json")
    packages = {"python": manifest.get("python"), **manifest.get("packages", {})}
    return [
        ["made", plain_text(manifest.get("created"))],
        ["versions", ", ".join(f"{n} {v}" for n, v in packages.items())],
    ]


def _broken_down(title: str, label: str, groups: Mapping[str, Any]) -> Plain:
    columns = {label: "text", "success": "interval", "tasks": "number", "episodes": "number"}
    rows = [[name, ends(o["success"]), o["success"]["n_tasks"], o["n_episodes"]] for name, o in groups.items()]
    return table(title, columns, rows)


def _parts(summary: Mapping[str, Any], prefix: str) -> Plain:
    """Mean of each reward part; empty where there is only the outcome."""
    columns = {"part": "text", "mean of an episode": "number", "low": "number", "high": "number", "tasks": "number"}
    parts = summary["parts"] if len(summary["parts"]) > 1 else {}
    rows = [[name, *ends(interval), interval["n_tasks"]] for name, interval in parts.items()]
    return table(f"{prefix}reward parts" if prefix else "Reward parts", columns, rows)


def _measures(summary: Mapping[str, Any], prefix: str) -> Plain:
    """Measurements of the environment besides the reward."""
    columns = {"measure": "text", "mean of an episode": "number", "low": "number", "high": "number", "tasks": "number"}
    rows = [[name, *ends(interval), interval["n_tasks"]] for name, interval in summary["measures"].items()]
    return table(f"{prefix}measures" if prefix else "Measures", columns, rows)


def _attempts(summary: Mapping[str, Any], prefix: str) -> Plain:
    """pass@k: at least one of k attempts succeeds; pass^k: all of them do."""
    columns = {"k": "number", "one of k succeeds (pass@k)": "percent", "all of k succeed (pass^k)": "percent"}
    at, hat = summary["pass_at_k"], summary["pass_hat_k"]
    rows = [[int(k), at[k]["mean"], hat[k]["mean"], at[k]["n_tasks"]] for k in at] if len(at) > 1 else []
    return table(f"{prefix}attempts" if prefix else "Attempts", {**columns, "tasks": "number"}, rows)


def _endings(summary: Mapping[str, Any], prefix: str) -> Plain:
    counts = {name: n for name, n in summary["endings"].items() if n}
    counts |= {f"truncated by {cause}": n for cause, n in summary["truncations"].items()}
    rows = [[name, n, n / summary["n_episodes"]] for name, n in counts.items()]
    columns = {"ending": "text", "episodes": "number", "share": "percent"}
    return table(f"{prefix}endings" if prefix else "Endings", columns, rows)
