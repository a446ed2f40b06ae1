"""Improvement without training: rounds of attempts, of lessons from them, and of a look at held-out tasks."""

import copy
import functools
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from manyturn.agents.evaluation.evaluate import (
    Evaluation,
    EvaluationPlan,
    evaluate,
    evaluation_settings,
    held_out_guard,
    policy_settings,
)
from manyturn.agents.evaluation.finished_episodes import Progress
from manyturn.agents.evaluation.format_mismatch import reply_remarks
from manyturn.agents.evaluation.remarks import fault_remarks
from manyturn.agents.experience.attempts import attempts_of
from manyturn.agents.experience.budget import Budgeted, BudgetSpent, Purse
from manyturn.agents.experience.experienced_policy import Experienced
from manyturn.agents.experience.improvement_config import ImprovementConfig
from manyturn.agents.experience.method import METHODS, Method, Round
from manyturn.agents.experience.retrieval.ranking import RETRIEVALS, Ranking
from manyturn.agents.experience.round_result import RoundResult
from manyturn.agents.experience.store import Experience, ExperienceEntry, ExperienceError, read_experience
from manyturn.agents.experience.writer import Writer
from manyturn.agents.play.episode import Policy
from manyturn.agents.records.episode_log import Journal
from manyturn.agents.tokens.usage import NOTHING, Spent
from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.random_keys import generator, seed_of
from manyturn.envs.contract.tasks.panel import Panel, portable_name
from manyturn.envs.hosting.local.seats import Seats

SCHEMA_VERSION = 1
SUMMARY, WRITINGS = "improvement.json", "writings.jsonl"


@dataclass(frozen=True)
class ImprovementPlan:
    """One improvement.

    Attributes:
        config: method, rounds and limits.
        pool: the tasks that are attempted.
        validation: the held-out panel.
        start: the experience to begin with.
        source: its file or folder, next to which there may be vectors.
        seen: contents of tasks that the policy was trained on.
        writer_seen: contents of tasks that the writer was trained on.
        max_turns: for environments without a limit of their own.
        out: folder of everything; an interrupted improvement in it continues.
        secrets: values that no file may show of the command line.
    """

    config: ImprovementConfig
    pool: Panel
    validation: Panel
    start: Experience
    max_turns: int
    out: Path
    seen: frozenset[str] = frozenset()
    writer_seen: frozenset[str] = frozenset()
    secrets: Collection[str] = ()
    source: Path | None = None

    def __post_init__(self) -> None:
        for source, contents in {
            "the policy was trained": self.seen,
            "the writer was trained": self.writer_seen,
            "the improvement would make attempts": self.pool.contents,
            "the experience rests": self.start.contents,
        }.items():
            held_out_guard(self.validation, contents, source)


Phase = Callable[[Progress], object]


def _unseen(title: str, out: Path) -> AbstractAsyncContextManager[Phase]:
    return nullcontext(lambda progress: None)


@dataclass(frozen=True)
class Watcher:
    """Callbacks that show an improvement.

    Attributes:
        phase: title and folder of an evaluation that begins -> a context of what receives its progress.
        ended: receives each round when it has ended, those of earlier calls included.
    """

    phase: Callable[[str, Path], AbstractAsyncContextManager[Phase]] = _unseen
    ended: Callable[[RoundResult], object] = lambda result: None


@dataclass(frozen=True)
class Improvement:
    """Result of an improvement.

    Attributes:
        rounds: of all calls; the first is round 0, before any attempt.
        experience: that of the last round.
        out: the folder.
        stopped: why it ended before its last round; empty where it did not.
    """

    rounds: list[RoundResult]
    experience: Experience
    out: Path
    stopped: str = ""


async def improve(
    seats: Seats, policy: Policy, writer: Policy | None, plan: ImprovementPlan, watcher: Watcher = Watcher()
) -> Improvement:
    """Improve a policy by experience.

    Each round makes attempts at tasks of the pool with the experience so far, lets the method turn them into the next
    experience, and measures that on the held-out panel. Attempts and measurements are evaluations in folders of their
    own, and the writer's answers have a journal, so the same call continues what was interrupted without playing or
    asking again what was finished.

    Args:
        seats: places of the episodes.
        policy: attempts the tasks.
        writer: is asked for texts; None where the method asks for none.

    Raises:
        JournalError: the folder holds an improvement with other settings, or another process writes there.
        TooManyErrors: the environment, the engine or the writer fails too often; what was finished is kept.
    """
    plan.out.mkdir(parents=True, exist_ok=True)
    ranking = RETRIEVALS.apply(plan.config.retrieval)
    settings = _settings(seats, policy, writer, plan, ranking)
    with Journal(plan.out / WRITINGS, settings) as journal, closing(ranking):
        purse = Purse(plan.config.budget)
        ranking.begin(plan.out, plan.source, purse)
        rounds = _Rounds(seats, policy, plan, Writer(writer, journal, plan.config.seed, purse), purse)
        rounds.watcher, rounds.ranking = watcher, ranking
        stopped = await rounds.run()
        rounds.experience.save(plan.out)
        plain = {
            "schema_version": SCHEMA_VERSION,
            "settings": journal.settings,
            "rounds": [result.plain() for result in rounds.results],
            "stopped": stopped,
        }
        replace_text(plan.out / SUMMARY, json.dumps(plain, indent=1, allow_nan=False) + "\n")
        return Improvement(rounds.results, rounds.experience, plan.out, stopped)


class _Rounds:
    """The rounds of one improvement, one after the other.

    Attributes:
        results: of the rounds that have ended.
        experience: that of the last of them.
    """

    watcher = Watcher()
    ranking: Ranking

    def __init__(self, seats: Seats, policy: Policy, plan: ImprovementPlan, writer: Writer, purse: Purse):
        self._seats, self._policy, self._plan = seats, policy, plan
        self._writer, self._purse = writer, purse
        self._method: Method = METHODS.apply(plan.config.method)
        self.results: list[RoundResult] = []
        self.experience = plan.start

    async def run(self) -> str:
        """All rounds, those of earlier calls included; gives the reason why a budget stopped them, if one did."""
        try:
            for number in range(self._plan.config.rounds + 1):
                await self._next(number)
        except BudgetSpent as error:
            return str(error)
        return ""

    async def _next(self, number: int) -> None:
        folder = self._plan.out / "rounds" / f"{number}"
        if (result := RoundResult.read(folder)) is None:
            self._writer.recall(number)
            if vectors := self.ranking.vectors:
                vectors.recall(number)
            result, self.experience = await self._play(number, folder)
            result.save(folder)
        else:
            self.experience = read_experience(folder)
            self._purse.add(result.total)
        self.results.append(result)
        self.watcher.ended(result)

    async def _play(self, number: int, folder: Path) -> tuple[RoundResult, Experience]:
        """One round: attempts, unless it is round 0 or nothing is due; then lessons from them; then validation."""
        spent = dict[str, Spent]()
        solved = self.results[-1].solved if self.results else ()
        experience, attempts = self.experience, None
        if number and (panel := self._due(number, solved)):
            plan = self._evaluation_plan(panel, self._plan.config.method.attempts, self._noise(number))
            evaluation, spent["attempts"] = await self._evaluate(f"round {number}, attempts", plan, folder / "attempts")
            attempts = _figures(evaluation)
            experience = await self._learn(number, evaluation)
            solved = tuple(sorted({*solved, *(of.task for of in attempts_of(evaluation) if of.is_solved)}))
            spent["writing"] = self._writer.spent.get(number, NOTHING)
        experience.save(_made(folder))
        same = next((one for one in self.results if one.experience["version"] == experience.version), None)
        validation = same.validation if same else await self._validate(number, experience, folder, spent)
        since = None if same is None else same.unchanged_since if same.unchanged_since is not None else same.round
        unwritten = self._writer.unwritten.get(number, 0)
        if (vectors := self.ranking.vectors) and number in vectors.spent:
            spent["retrieval"] = vectors.spent[number]
        return RoundResult(number, experience.facts, attempts, solved, validation, since, unwritten, spent), experience

    def _due(self, number: int, solved: Collection[str]) -> Panel | None:
        """The tasks that a round attempts; None if there are none."""
        pool, batch = self._plan.pool, self._plan.config.pool.batch
        places: Sequence[int] = range(len(pool))
        if batch is not None:
            epoch, part = divmod(number - 1, -(-len(pool) // batch))
            order = generator("improve", self._plan.config.seed, "order", epoch).permutation(len(pool))
            places = order[part * batch : (part + 1) * batch].tolist()
        due = self._method.due([pool.tasks[place] for place in places], solved)
        contents = dict(zip(pool.tasks, pool.contents, strict=True))
        return replace(pool, tasks=tuple(due), contents=tuple(contents[task] for task in due)) if due else None

    async def _learn(self, number: int, evaluation: Evaluation) -> Experience:
        """The experience after a round. Raises ExperienceError where a method's entries hide where they come from."""
        before, played = self.experience, attempts_of(evaluation)
        write = functools.partial(self._writer.write, number)
        earlier = max((entry.round for entry in self._plan.start.entries), default=0)  # whose ids are taken
        entries = tuple(await self._method.learn(Round(earlier + number, played, before), write))
        seen = before.contents.union(evaluation.panel.contents)
        for entry in entries:
            _check_origin(entry, before.entries, seen)
        changed = entries != before.entries
        method = self._plan.config.method.model_dump(mode="json")
        after = Experience(entries, seen, before.version + changed, self._method.shown)
        env, trained = portable_name(evaluation.panel.env), self._plan.seen | self._plan.writer_seen | before.trained
        retrieval = self._plan.config.retrieval.facts
        return replace(after, env=env, method=method, by_hand=before.by_hand, trained=trained, retrieval=retrieval)

    async def _validate(
        self, number: int, experience: Experience, folder: Path, spent: dict[str, Spent]
    ) -> dict[str, Any]:
        config, figures = self._plan.config, dict[str, Any]()
        plan = self._evaluation_plan(self._plan.validation, config.validation.repeats, config.seed)
        for name, policy in decodings(self._policy, config).items():
            title = f"round {number}, {name}"
            evaluation, took = await self._evaluate(title, plan, folder / name, policy, experience)
            figures[name] = _figures(evaluation)
            spent["validation"] = spent.get("validation", NOTHING).plus(took)
        return figures

    def _evaluation_plan(self, panel: Panel, repeats: int, seed: int) -> EvaluationPlan:
        return EvaluationPlan(panel, repeats, seed, self._plan.max_turns)

    def _noise(self, number: int) -> int:
        """Seed of a round's attempts, which differ from those of other rounds at the same task."""
        return seed_of("improve", self._plan.config.seed, number) % 2**31

    async def _evaluate(
        self,
        title: str,
        plan: EvaluationPlan,
        out: Path,
        policy: Policy | None = None,
        experience: Experience | None = None,
    ) -> tuple[Evaluation, Spent]:
        """An evaluation with experience, by default with that of the round before; and what its replies took."""
        policy, experience = policy or self._policy, experience or self.experience
        shown = Experienced(policy, experience, self.ranking) if experience.entries else policy
        budgeted, latest = Budgeted(shown, self._purse), list[Progress]()
        async with self.watcher.phase(title, out) as show:

            def watch(progress: Progress) -> None:
                if not latest:  # what an interrupted call has spent here
                    self._purse.add(progress.spent)
                latest[:] = [progress]
                show(progress)

            secrets = self._plan.secrets
            evaluation = await evaluate(self._seats, budgeted, plan, out=out, secrets=secrets, on_progress=watch)
        return evaluation, latest[0].spent


def decodings(policy: Policy, config: ImprovementConfig) -> dict[str, Policy]:
    """Name of a decoding -> the policy with it, which the held-out panel is played with.

    Raises:
        ConfigError: the policy cannot be asked for the one decoding that was chosen.
    """
    sampling, decoding = getattr(policy, "sampling", None), config.validation.decoding
    heat = getattr(sampling, "temperature", None)
    if sampling is None or heat is None:
        if decoding == "greedy":
            raise ConfigError(
                f"validation.decoding = 'greedy' has no effect: {policy.name} has no temperature to set; leave it out"
            )
        return {"sampled" if sampling is not None else "validation": policy}
    greedy: Any = copy.copy(policy)
    greedy.sampling = sampling.model_copy(update={"temperature": 0.0})
    both = {"sampled": policy, "greedy": greedy}
    if heat == 0:
        if decoding == "sampled":
            raise ConfigError("validation.decoding = 'sampled' has no effect at sampling.temperature = 0: leave it out")
        return {"greedy": policy}
    return both if decoding == "both" else {decoding: both[decoding]}


def _check_origin(entry: ExperienceEntry, before: Sequence[ExperienceEntry], seen: Collection[str]) -> None:
    if entry in before or (entry.contents and set(entry.contents) <= set(seen)):
        return
    raise ExperienceError(
        f"entry {entry.id} names no task that was attempted: a method gives each entry the contents of the tasks that "
        "it comes from, see Round.entry"
    )


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _figures(evaluation: Evaluation) -> dict[str, Any]:
    """Figures of an evaluation as a round has them, with remarks on replies that meant nothing."""
    summary = evaluation.summary
    notes = reply_remarks(evaluation.episodes, evaluation.turns, summary["agent"])
    remarks = [*notes.lines, *fault_remarks(summary, notes.explain_invalid)]
    figures = {**summary["success"], "return": summary["return"]["mean"], "errors": summary["errors"]["n"]}
    return figures | ({"remarks": remarks} if remarks else {})


def _settings(
    seats: Seats, policy: Policy, writer: Policy | None, plan: ImprovementPlan, ranking: Ranking
) -> Mapping[str, Any]:
    """Settings that an interrupted improvement must share to continue; rounds and budget may grow."""
    config = plan.config
    about = evaluation_settings(seats, policy, EvaluationPlan(plan.pool, 1, config.seed, plan.max_turns))
    return {
        "schema_version": SCHEMA_VERSION,
        **{name: value for name, value in about.items() if name not in ("panel", "repeats", "split")},
        "method": config.method.model_dump(mode="json"),
        "writer": None if writer is None else {"policy": writer.name, **policy_settings(writer)},
        "length": config.length,
        **({"retrieval": {**config.retrieval.facts, "by": ranking.name}} if ranking.name else {}),
        "pool": {**plan.pool.facts, **config.pool.model_dump(mode="json")},
        "validation": {**plan.validation.facts, **config.validation.model_dump(mode="json")},
        "start": plan.start.hash if plan.start.entries else None,
    }
