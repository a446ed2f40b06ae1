"""An improvement as shown on a terminal: one line a round, and the progress of what is being played."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from rich.console import Console

from manyturn.agents.evaluation.summary_table import count, ends_of, number
from manyturn.agents.experience.improvement import Improvement, Phase, Watcher
from manyturn.agents.experience.round_result import RoundResult
from manyturn.agents.experience.store import FILE, PAGE
from manyturn.agents.tokens.usage import Spent
from manyturn.terminal.evaluation_progress import Watch
from manyturn.terminal.results_table import say


class RoundLines:
    """Prints each round when it has ended.

    Args:
        name: of the policy.
        tasks: number of tasks in the pool.
        console: prints the rounds; default: standard output.
    """

    def __init__(self, name: str, tasks: int, console: Console | None = None):
        self._name, self._tasks, self._console = name, tasks, console or Console(highlight=False)
        self._remarked = False

    @property
    def watcher(self) -> Watcher:
        """The callbacks of an improvement."""
        return Watcher(self._phase, self._ended)

    def _phase(self, title: str, out: Path) -> AbstractAsyncContextManager[Phase]:
        return Watch(f"{self._name}, {title}", out)

    def _ended(self, result: RoundResult) -> None:
        parts = [f"round {result.round}: {result.experience['entries']} entries"]
        if result.attempts is not None:
            made = result.attempts
            errors = f", {made['errors']} errors" if made["errors"] else ""
            share = number(made["mean"], percent=True)
            parts.append(f"attempts {share} of {made['n_episodes']}{errors}, solved {len(result.solved)}/{self._tasks}")
        parts += [_held_out(name, figures) for name, figures in result.validation.items()]
        if result.unchanged_since is not None:
            parts.append(f"experience unchanged since round {result.unchanged_since}")
        if result.unwritten:
            parts.append(f"{result.unwritten} prompts were too long for the writer")
        say("; ".join([*parts, *cost_of(result.total)]), self._console)
        self._remark(result)

    def _remark(self, result: RoundResult) -> None:
        """Print the remarks of the first round that has any; those of later ones are in its file."""
        figures = [result.attempts or {}, *result.validation.values()]
        lines = dict.fromkeys(line for one in figures for line in one.get("remarks", ()))
        for line in () if self._remarked else lines:
            say(f"note: {line}", self._console)
        self._remarked = self._remarked or bool(lines)


def _held_out(name: str, figures: Mapping[str, Any]) -> str:
    errors = f", {figures['errors']} errors" if figures["errors"] else ""
    kind = "" if name == "validation" else f", {name}"
    if figures["mean"] is None:
        return f"held-out{kind} return {number(figures['return'])}{errors}"
    return f"held-out{kind} {number(figures['mean'], percent=True)} ({ends_of(figures)}){errors}"


def cost_of(spent: Spent) -> list[str]:
    """Tokens and cost in words, as far as they were counted."""
    if spent.reply_tokens is None:
        return []
    tokens = [f"{count(spent.prompt_tokens)} prompt and {count(spent.reply_tokens)} reply tokens"]
    return tokens + ([] if spent.cost is None else [f"cost {spent.cost:.4g} USD"])


def print_improvement(improvement: Improvement, console: Console | None = None) -> None:
    """Totals, and where everything is."""
    console = console or Console(highlight=False)
    total = Spent().plus(*(result.total for result in improvement.rounds))
    if cost := cost_of(total):
        say(f"all rounds: {', '.join(cost)}", console)
    if improvement.stopped:
        say(f"stopped: {improvement.stopped}; the same command continues", console)
    say(
        f"{improvement.out / PAGE} is for people; evaluate POLICY --experience {improvement.out / FILE} plays with it",
        console,
    )
