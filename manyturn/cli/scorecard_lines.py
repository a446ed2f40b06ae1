"""Lines of ``manyturn check --audit`` on the terminal, and the two files of a scorecard."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from manyturn.agents.scorecard.page import page, shown
from manyturn.agents.scorecard.scorecard import Scorecard, scorecard
from manyturn.envs.contract.atomic_files import replace_text
from manyturn.terminal.escape import visible

_COLOURS = {"paid": "red", "paid in part": "yellow", "not paid": "green"}


def print_scorecard(
    env: str, env_args: Mapping[str, Any], samples: int, timeout: float, *, out: Path, data_files: Sequence[Path] = ()
) -> Scorecard:
    """Probe an environment's reward, print a line for each policy, and write the page and JSON of the same name.

    Args:
        env, env_args, samples, timeout, data_files: as for ``manyturn.agents.scorecard.scorecard.scorecard``.
        out: the page, a Markdown file; its folder must exist.
    """
    if out.suffix == ".json":
        raise ValueError(f"--out {out} is the page, and the JSON file lies beside it: name it {out.with_suffix('.md')}")
    if not out.parent.is_dir():
        raise ValueError(f"--out {out}: there is no folder {out.parent}: make it first")
    console = Console(highlight=False)
    console.print(Text(visible(f"manyturn check {env} --audit"), "bold"), soft_wrap=True)
    card = scorecard(env, env_args, samples, data_files=data_files, timeout=timeout)
    for row in card.rows:
        errors = f"  {row.errors} errors" if row.errors else ""
        text = Text(visible(f"{row.verdict:13} {row.name:28} {shown(row.success):18} {shown(row.value):18}{errors}"))
        text.stylize(_COLOURS.get(row.verdict, "dim"), 0, len(row.verdict))
        console.print(text, soft_wrap=True)
    for one in card.overlaps:
        line = f"{one['same']} of {one['tasks']} held-out tasks have the text of one in {one['source']}"
        console.print(Text(visible(f"{line}, {one['long']} share long runs of words")), soft_wrap=True)
    replace_text(out, page(card))
    replace_text(out.with_suffix(".json"), json.dumps(card.plain(), indent=1, allow_nan=False) + "\n")
    verdict = f"paid like the expert: {', '.join(card.paid)}" if card.paid else "no probe is paid like the expert"
    console.print(Text(visible(f"{verdict}; written to {out} and {out.with_suffix('.json')}")), soft_wrap=True)
    return card
