"""Tables of evaluations for a terminal: one summary, several side by side, and remarks below them."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from manyturn.agents.evaluation.remarks import remarks


def print_summary(summary: Mapping[str, Any], console: Console, *, invalid_explained: bool = False) -> None:
    """A table of what matters most."""
    table = Table(title=Text(f"{summary['policy']} on {summary['panel']['id']}"), title_justify="left")
    table.add_column("", justify="left")
    for name in ("mean", "95 % interval", "tasks"):
        table.add_column(name, justify="right")
    table.add_row("success", *_shown(summary["success"], percent=True))
    if summary["errors"]["n"]:
        table.add_row("… errors as failures", *_shown(summary["success_errors_as_failures"], percent=True))
    table.add_row("return", *_shown(summary["return"]))
    for name, figure in summary["parts"].items() if len(summary["parts"]) > 1 else ():
        table.add_row(Text(f"… part {name}"), *_shown(figure))
    for name, figure in summary["measures"].items():
        table.add_row(Text(name), *_shown(figure))
    for kind, key in (("pass@", "pass_at_k"), ("pass^", "pass_hat_k")):
        for k, figure in summary[key].items():
            if k != "1":
                table.add_row(f"{kind}{k}", number(figure["mean"], percent=True), "", str(figure["n_tasks"]))
    for group in ("by_difficulty", "by_tag"):
        if len(summary[group]) > 1:
            table.add_section()
            for name, figure in summary[group].items():
                table.add_row(Text(name), *_shown(figure["success"], percent=True))
    console.print(table)
    console.print(_facts(summary), markup=False, highlight=False)
    for remark in remarks(summary, invalid_explained=invalid_explained):
        console.print(remark, markup=False, highlight=False, soft_wrap=True)


def print_summaries(
    summaries: Mapping[str, Mapping[str, Any]], console: Console, invalid_explained: Collection[str] = ()
) -> None:
    """One table of several policies on one panel, which leaves out what is known of none.

    Args:
        summaries: what each policy is called -> its summary.
        invalid_explained: names of policies, see ``remarks``.
    """
    first = next(iter(summaries.values()))
    columns = [
        name for name, (has_value, _) in _COLUMNS.items() if any(has_value(summary) for summary in summaries.values())
    ]
    table = close_table(f"on {first['panel']['id']}")
    table.add_column("policy", justify="left", overflow="fold")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for name, summary in summaries.items():
        table.add_row(Text(name), *(_COLUMNS[column][1](summary) for column in columns))
    console.print(table)
    if meanings := [meaning for name, meaning in (("tokens", _TOKENS), ("cost", COST)) if name in columns]:
        console.print("; ".join(meanings), markup=False, highlight=False)
    parts = dict.fromkeys(part for summary in summaries.values() for part in summary["parts"])
    if len(parts) > 1:
        _print_parts(summaries, parts, console)
    names_of: dict[str, list[str]] = {}
    for name, summary in summaries.items():
        lost = [_lost(summary["lost"])] if summary["lost"]["reply_tokens"] else []
        for remark in [*lost, *remarks(summary, invalid_explained=name in invalid_explained)]:
            names_of.setdefault(remark, []).append(name)
    for remark, names in names_of.items():
        # As a Text: in a string rich would take the :m: of openai:m: for the name of an emoji.
        console.print(Text(f"{', '.join(names)}: {remark}"), soft_wrap=True)


_TOKENS = "tokens: of an episode, prompts + replies"
COST = "cost: USD, of all episodes together"
_Shown = tuple[Callable[[Mapping[str, Any]], Any], Callable[[Mapping[str, Any]], str]]
# Whether a summary has something to say there, and what.
_COLUMNS: dict[str, _Shown] = {
    "success": (lambda summary: True, lambda summary: number(summary["success"]["mean"], percent=True)),
    "95 %": (lambda summary: True, lambda summary: ends_of(summary["success"])),
    "return": (lambda summary: True, lambda summary: number(summary["return"]["mean"])),
    "turns": (lambda summary: True, lambda summary: number(summary["turns"]["mean"])),
    "invalid": (lambda summary: True, lambda summary: number(summary["invalid_action_rate"], percent=True)),
    "cut": (
        lambda summary: summary["cut_reply_rate"] is not None,
        lambda summary: number(summary["cut_reply_rate"], percent=True),
    ),
    "tokens": (
        lambda summary: summary["tokens"]["reply_mean"] is not None,
        lambda summary: tokens_of(summary["tokens"]),
    ),
    "cost": (lambda summary: summary["cost"]["total"] is not None, lambda summary: number(summary["cost"]["total"])),
    "errors": (lambda summary: summary["errors"]["n"], lambda summary: str(summary["errors"]["n"])),
}


def ends_of(interval: Mapping[str, Any]) -> str:
    """An interval of a share, in percent."""
    low, high = interval["ci_low"], interval["ci_high"]
    return "unknown" if low is None or high is None else f"{low:.0%}–{high:.0%}"


def tokens_of(tokens: Mapping[str, Any]) -> str:
    """Of prompts and of replies in an episode."""
    counted = tokens["reply_mean"] is not None
    return f"{count(tokens['prompt_mean'])} + {count(tokens['reply_mean'])}" if counted else "–"


def close_table(title: str) -> Table:
    """A table with few signs between its columns: what is known of endpoints fits into 80 columns."""
    sparse: dict[str, Any] = {"box": box.SIMPLE_HEAD, "show_edge": False, "pad_edge": False, "padding": (0, 1, 0, 0)}
    return Table(title=Text(title), title_justify="left", **sparse)


def _print_parts(summaries: Mapping[str, Mapping[str, Any]], parts: Iterable[str], console: Console) -> None:
    table = close_table("reward parts")
    table.add_column("policy", justify="left", overflow="fold")
    for part in parts:
        table.add_column(Text(part), justify="right")
    for name, summary in summaries.items():
        # A part that an episode does not have earns it nothing.
        means = (summary["parts"].get(part, {"mean": 0.0})["mean"] for part in parts)
        table.add_row(Text(name), *map(number, means))
    console.print(table)


def _facts(summary: Mapping[str, Any]) -> str:
    turns, tokens = summary["turns"], summary["tokens"]
    facts = [f"{summary['n_episodes']} episodes, {number(turns['mean'])} turns each"]
    facts[0] += f" ({number(turns['mean_on_success'])} when it succeeds)" if turns["mean_on_success"] else ""
    if tokens["reply_mean"] is not None:
        facts.append(f"{count(tokens['prompt_mean'])} prompt and {count(tokens['reply_mean'])} reply tokens an episode")
    facts.append(f"invalid actions {number(summary['invalid_action_rate'], percent=True)}")
    if summary["cut_reply_rate"] is not None:
        facts.append(f"cut replies {number(summary['cut_reply_rate'], percent=True)}")
    if summary["cost"]["total"] is not None:
        facts.append(f"cost {summary['cost']['total']:.4g} USD in all")
    if summary["lost"]["reply_tokens"]:
        facts.append(_lost(summary["lost"]))
    facts += [f"truncated by {cause}: {n}" for cause, n in summary["truncations"].items()]
    facts.append(f"errors {summary['errors']['n']}, retried {summary['retried']['n']}")
    wall = summary["seconds"]["wall"]
    return "; ".join([*facts, f"{wall:.1f} s"] if wall is not None else facts)


def _lost(lost: Mapping[str, Any]) -> str:
    tokens = f"{count(lost['prompt_tokens'])} prompt and {count(lost['reply_tokens'])} reply tokens"
    cost = "" if lost["cost"] is None else f", cost {lost['cost']:.4g} USD"
    return f"lost to errors and interruptions: {tokens}{cost}"


def _shown(interval: Mapping[str, Any], *, percent: bool = False) -> tuple[str, str, str]:
    ends = [number(interval[end], percent=percent) for end in ("ci_low", "ci_high")]
    return (
        number(interval["mean"], percent=percent),
        "unknown" if "–" in ends else " to ".join(ends),
        str(interval["n_tasks"]),
    )


def count(value: float | None) -> str:
    """A number of tokens, short: 900, 12.3k, 4.56M.

    >>> count(12_345.6)
    '12.3k'
    """
    if value is None:
        return "–"
    for unit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * unit:
            return f"{value / unit:.3g}{sign}"
    return f"{value:.3g}"


def number(value: float | None, *, percent: bool = False) -> str:
    if value is None:
        return "–"
    return f"{value:.1%}" if percent else f"{value:.3g}"
