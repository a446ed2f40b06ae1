"""Questions about a corpus of one's own, from a JSON-lines file."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from manyturn.envs.contract.options.options import unknown
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.tasks.task import SPLITS, Task, split_of
from manyturn.envs.search.corpus import Corpus, Line, corpus_at, lines_of, stamp, unique
from manyturn.envs.search.search_tools import MOST_QUERY, MOST_SOURCES

Splits = Mapping[str, Sequence[Task]]
_WORDS = 20  # of a passage, as a query
_FIELDS = ("id", "question", "answers", "supports", "split")


def questions_at(path: Path, corpus: Path) -> Splits:
    """Split -> its questions, as tasks; splits without any are left out.

    Args:
        path: of lines with ``id``, ``question``, ``answers`` (texts, one is enough), and maybe ``supports`` (ids of
            the passages that have to be cited) and ``split`` (by the question's hash if absent).
        corpus: of lines with ``id`` and ``text``.

    Raises:
        NeedsSetup: there is no such file.
        ValueError: a line is not as it should be, or names a passage that the corpus lacks.
    """
    return _read(path, stamp(path), corpus, stamp(corpus))


@lru_cache(maxsize=4)
def _read(path: Path, _: Any, corpus: Path, __: Any) -> Splits:
    corpus_there = corpus_at(corpus)
    loaded = unique(
        (task.id, task, line.place) for line in lines_of(path, "questions") for task in [_task(line, corpus_there)]
    )
    if not loaded:
        raise ValueError(f"{path}: there are no questions")
    splits = {split: [task for task in loaded.values() if task.split == split] for split in SPLITS}
    return {split: tasks for split, tasks in splits.items() if tasks}


def _task(line: Line, corpus: Corpus) -> Task:
    for field in line.fields:
        if field not in _FIELDS:
            raise ValueError(f"{line.place}: {unknown('field', field, _FIELDS)}")
    question, answers, supports = line.text("question"), line.texts("answers"), line.texts("supports")
    if not answers:
        raise ValueError(f"{line.place}: 'answers' must have at least one text")
    if len(supports) > MOST_SOURCES:
        raise ValueError(f"{line.place}: {len(supports)} supports: at most {MOST_SOURCES} can be cited")
    for name in supports:
        if name not in corpus.passages:
            raise ValueError(f"{line.place}: the corpus has no passage {name!r}, which 'supports' names")
    split = line.fields.get("split") or split_of(digest(question))
    if split not in SPLITS:
        raise ValueError(f"{line.place}: {unknown('split', str(split), SPLITS)}")
    # The passages' own words find them; without passages there is only the question to go by.
    queries = [" ".join(corpus.passages[name].split()[:_WORDS])[:MOST_QUERY] for name in supports] or [question]
    params = {"question": question, "answers": list(answers), "supports": list(supports), "queries": queries}
    return Task(line.text("id"), split, params)
