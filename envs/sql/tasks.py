"""Tasks: a schema and a question, drawn until the question has one clear answer that depends on the rows."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task, split_of
from manyturn.envs.sql.grading import same
from manyturn.envs.sql.question import Question, english, query
from manyturn.envs.sql.question_generator import LEVELS, all_questions, draw_question, neighbours
from manyturn.envs.sql.read_only_database import ReadOnlyDatabase
from manyturn.envs.sql.schema import Schema, draw_schema

SIZES = {"train": 100_000, "validation": 5_000, "test": 5_000, "test_unseen": 5_000}
UNSEEN = "test_unseen"
DATABASES = ("episode", "other rows")
"""Databases of a task: the agent sees the first one, and the second has other rows."""
_ATTEMPTS = 10_000
_MOST_RESULT = 10  # rows of a right result
_BASES, _EACH = 6, 5  # questions that admissible queries are made from, and variants of each


def tasks(split: str, difficulty: str) -> GeneratedTasks:
    """The tasks of a split, made when asked for."""
    prefix = f"{split}/{difficulty}/"
    return GeneratedTasks(lambda number: _task(split, difficulty, number), SIZES[split], prefix)


@lru_cache(maxsize=4096)  # a group plays one task many times
def _task(split: str, difficulty: str, number: int) -> Task:
    level = LEVELS[difficulty]
    draws = Draws("sql task", split, difficulty, number)
    kind = draws.pick(level.kinds)
    for _ in range(_ATTEMPTS):
        params = draw_schema(draws, level.tables, level.columns, plain=level.plain, unseen=split == UNSEEN)
        question = draw_question(draws, Schema(params), level, kind)
        params = {"schema": params, "question": question.plain()}
        if _owner(params, question) == ("test" if split == UNSEEN else split) and _is_clear(params, question):
            return Task(f"{split}/{difficulty}/{number}", split, params, difficulty, (question.kind,))
    raise RuntimeError(f"no question of level {difficulty} with one clear answer")


def _owner(params: Mapping[str, Any], question: Question) -> str:
    """The split that a question's words belong to. What is asked of two databases in the same words often has the same
    query, so words alone decide, and ``test_unseen`` takes those of test."""
    return split_of(digest("sql question", english(Schema(params["schema"]), question)))


def database_of(params: Mapping[str, Any], which: str, only: Iterable[int] | None = None) -> ReadOnlyDatabase:
    """One of a task's ``DATABASES``.

    Args:
        only: tables that are needed; others are empty.
    """
    schema = Schema(params["schema"])
    return ReadOnlyDatabase(schema, schema.rows(digest(params, which), only))


def _is_clear(params: dict[str, Any], question: Question) -> bool:
    """True if the answers on both databases are short, full, without ties, and differ."""
    schema, results = Schema(params["schema"]), []
    for which in DATABASES:
        database = database_of(params, which, question.tables(schema))
        rows = database.run(query(schema, question)).rows
        counts = (
            [row[1] for row in database.run(query(schema, replace(question, kind="group", function="COUNT"))).rows]
            if question.kind == "most"
            else []
        )
        database.close()
        best = (max if question.descending else min)(counts) if counts else 0
        short = question.kind == "top" and len(rows) < question.limit
        empty = not rows or len(rows) > _MOST_RESULT or rows[0][0] in (None, 0)
        if empty or short or counts.count(best) > 1 or len(counts) == 1:
            return False
        results.append(rows)
    return not same(*results, ordered=False)


@lru_cache(maxsize=256)
def candidates(params: str, difficulty: str) -> tuple[tuple[frozenset[int], str], ...]:
    """Queries that the random policy and choice decoding choose from, each with the tables that it reads, in order of
    their text.

    On the lowest level all that can be asked about a table. On the others variants of the task's question, and as many
    of each of five other questions about the same schema, so that the right query is no more central than others.

    Args:
        params: of the task, as JSON.
    """
    task = json.loads(params)
    schema, question = Schema(task["schema"]), Question.of(task["question"])
    if LEVELS[difficulty].plain:
        drawn: Iterable[Question] = (
            other for place in range(len(schema.tables)) for other in all_questions(schema, place)
        )
    else:
        draws, made = Draws("admissible queries", digest(task)), list[Question]()
        bases = [question, *(_other(draws, schema, difficulty) for _ in range(_BASES - 1))]
        for base in bases:
            near = list(neighbours(schema, base))
            made += [base, *(near.pop(draws.below(len(near))) for _ in range(min(_EACH, len(near))))]
        drawn = made
    texts = {query(schema, other): frozenset(other.tables(schema)) for other in drawn}
    return tuple((texts[text], text) for text in sorted(texts))


def _other(draws: Draws, schema: Schema, difficulty: str) -> Question:
    level = LEVELS[difficulty]
    return draw_question(draws, schema, level, draws.pick(level.kinds))
