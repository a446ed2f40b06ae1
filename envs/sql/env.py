"""Questions over a database as an environment."""

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.options.options import unknown
from manyturn.envs.contract.tasks.task import SPLITS, Task
from manyturn.envs.sql.grading import PARTS, parts, same
from manyturn.envs.sql.question import Question, english, query
from manyturn.envs.sql.question_generator import LEVELS, SQLLevel
from manyturn.envs.sql.read_only_database import ReadOnlyDatabase, RefusedQuery, shown
from manyturn.envs.sql.schema import Schema
from manyturn.envs.sql.tasks import DATABASES, UNSEEN, candidates, database_of, tasks
from manyturn.envs.tools.calls import call_text
from manyturn.envs.tools.tool import ToolError
from manyturn.envs.tools.tool_prompt import with_tools
from manyturn.envs.tools.toolset import Toolset

REWARDS = ("outcome", "turns")
INSTRUCTIONS = (
    "Answer the question with one SQL query in SQLite's dialect. List the tables, describe those that you need, and "
    "try queries. Then submit the query, once. It must return exactly what the question asks for, in that order of "
    "columns. It is run on this database and on another one with the same tables and other rows, so do not write "
    "results into it. The database is read-only."
)


class SQL(TextEnv):
    """Answer a question by a query over a database that must be explored first.

    Task:
        A generated schema of two or three tables, generated rows, and a question from templates: counts, lists and
        aggregates with conditions; from ``medium`` on over two tables that must be joined. In the manner of
        Reasoning-SQL (Pourreza et al. 2025, arXiv 2503.23157) with exploration; schemas, questions and rewards are its
        own.
    Observation:
        The question, then what the tools return. ``progress`` is the share of the needed steps: tables listed, needed
        tables described, right query submitted.
    Actions:
        The tools ``list_tables``, ``describe``, ``run_query`` and ``submit``, one JSON call each turn. SQLite's
        authorizer allows reading the tables and nothing else; steps, rows and bytes are limited. What is refused is an
        observation.
    Reward:
        1 if the submitted query returns the right result on the episode's database and on another one with other rows.
        ``turns`` adds, for the submitted query, ``executes`` (0.05 if it runs), ``columns`` (0.1 times the Jaccard
        index of the columns that it reads and should read) and ``overlap`` (0.15 times the F1 of its rows).
    End:
        The submission ends the episode, also one that is refused.
    Splits:
        No question of train, validation or test is asked in another of them in the same words, and none of train or
        validation in ``test_unseen``. The tables of ``test_unseen`` have sets of columns that no table of another
        split has.
    Expert:
        Lists the tables, describes those that the question is about, and submits the query.
    Floors:
        ``manyturn envs manyturn/SQL-v0`` measures expert and random policy on every level. The random policy chooses
        among queries that ask something about the tables that it has described.

    Args:
        split: train, validation, test or test_unseen.
        difficulty: ``tiny`` (one table, names as in the question; default), ``easy`` (names that must be read,
            comparisons, order), ``medium`` (two tables, groups) or ``hard`` (three tables, nested queries).
        rewards: ``outcome``, or ``turns``, which adds parts for answers that come close.
        max_turns: default by difficulty, from 6 to 14.
    """

    splits = (*SPLITS, UNSEEN)
    harmless = (*TextEnv.harmless, "rewards")
    levels: Mapping[str, SQLLevel] = LEVELS
    level: SQLLevel
    part_names = ()

    def __init__(
        self,
        split: str = "train",
        difficulty: str | None = None,
        rewards: str = "outcome",
        max_turns: int | None = None,
    ):
        if rewards not in REWARDS:
            raise ValueError(unknown("rewards", rewards, REWARDS))
        super().__init__(split, max_turns, difficulty)
        self._pays_turns = rewards == "turns"
        if self._pays_turns:
            self.part_names = tuple(PARTS)  # what this instance gives
        self._tools = Toolset([self.list_tables, self.describe, self.run_query, self.submit], most_calls=1)
        self.tools = self._tools.schemas
        self.instructions = with_tools(INSTRUCTIONS, self.tools)
        self._database: ReadOnlyDatabase | None = None

    def tasks(self, split: str) -> Sequence[Task]:
        return tasks(split, self.difficulty or "")

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._leave()
        self._schema, self._question = Schema(task.params["schema"]), Question.of(task.params["question"])
        self._needed = self._question.tables(self._schema)
        self._listed, self._described, self._submitted = False, set[int](), ""
        self._scores: dict[str, float] = {}
        self._is_right = False
        return english(self._schema, self._question)

    def respond(self, action: str) -> Turn:
        answered = self._tools.answer(action)
        if not self._submitted:
            return answered.turn(self)
        paid = self._scores if self._pays_turns else {}
        if self._is_right:
            return self.succeed("The query is right.", **paid)
        return self.fail("The query is wrong." if self._scores else answered.text, **paid)

    # ---- tools ----------------------------------------------------------------------------------------------

    def list_tables(self) -> str:
        """List the tables of the database."""
        self._listed = True
        return ", ".join(table.name for table in self._schema.tables)

    def describe(self, table: str) -> str:
        """Show the columns of a table, with the values of text columns.

        Args:
            table: its name.
        """
        named = self._schema.by_name.get(table)
        if named is None:
            raise ToolError(f"no table {table!r:.60}: call list_tables")
        self._described.add(self._schema.tables.index(named))
        return self._schema.describe(named)

    def run_query(self, sql: str) -> str:
        """Run a query and show its first rows.

        Args:
            sql: one SELECT.
        """
        try:
            return shown(self._open().run(sql))
        except RefusedQuery as error:
            raise ToolError(str(error)) from None

    def submit(self, sql: str) -> str:
        """Submit the query that answers the question. This ends the task.

        Args:
            sql: one SELECT.
        """
        self._submitted = sql or " "
        right = query(self._schema, self._question)
        ordered = self._question.kind == "top"
        other = database_of(self.task.params, DATABASES[1])
        try:
            given, expected = self._open().run(sql), self._open().run(right)
            self._scores = parts(given, expected)
            is_first = same(given.rows, expected.rows, ordered)
            self._is_right = is_first and same(other.run(sql).rows, other.run(right).rows, ordered)
        except RefusedQuery as error:
            raise ToolError(str(error)) from None
        finally:
            other.close()
        return ""

    def _open(self) -> ReadOnlyDatabase:
        """The episode's database; it is made for the first query."""
        if self._database is None:
            self._database = database_of(self.task.params, DATABASES[0])
        return self._database

    # ---- what else there is ---------------------------------------------------------------------------------

    def admissible(self) -> list[str]:
        """Calls over tables that were listed, and queries over tables that were described."""
        calls = [call_text("list_tables")]
        if self._listed:
            calls += [call_text("describe", table=table.name) for table in self._schema.tables]
        names = [self._schema.tables[number].name for number in sorted(self._described)]
        calls += [call_text("run_query", sql=f"SELECT * FROM {name} LIMIT 3") for name in names]
        listed = candidates(json.dumps(self.task.params), self.difficulty or "") if names else ()
        return calls + [call_text("submit", sql=text) for needed, text in listed if needed <= self._described]

    def anchor(self) -> Hashable:
        return (self.task.id, self._listed, frozenset(self._described), self.observation)

    def progress(self) -> float:
        done = self._listed + sum(number in self._described for number in self._needed) + self._is_right
        return done / (2 + len(self._needed))

    def measures(self) -> Mapping[str, float]:
        """Scores of the submitted query, from 0 to 1."""
        return {name: self._scores.get(name, 0.0) / most for name, most in PARTS.items()}

    def expert(self) -> str:
        """Lists the tables, describes those that the question is about, and submits the query."""
        if not self._listed:
            return call_text("list_tables")
        unread = [number for number in self._needed if number not in self._described]
        if unread:
            return call_text("describe", table=self._schema.tables[unread[0]].name)
        return self.answer()

    def answer(self) -> str:
        """The query that answers the question, as a call."""
        return call_text("submit", sql=query(self._schema, self._question))

    def save(self) -> bytes:
        own: Any = [self._listed, sorted(self._described), self._submitted, self._scores, self._is_right]
        return json.dumps(own).encode()

    def load(self, data: bytes) -> None:
        self._listed, described, self._submitted, self._scores, self._is_right = json.loads(data)
        self._described = set(described)

    def close(self) -> None:
        self._leave()
        super().close()

    def _leave(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
