"""Question answering by search as an environment."""

import json
import re
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.options.options import unknown
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.search.corpus import corpus_at
from manyturn.envs.search.passage_generator import passages_of as made_corpus
from manyturn.envs.search.question_file import questions_at
from manyturn.envs.search.questions import HOPS
from manyturn.envs.search.questions import questions as made_questions
from manyturn.envs.search.scoring import exact, f1
from manyturn.envs.search.search_tools import MOST_SOURCES, Research
from manyturn.envs.shop.search.analyzer import STOP_WORDS
from manyturn.envs.tools.calls import call_text
from manyturn.envs.tools.tool_prompt import with_tools
from manyturn.envs.tools.toolset import Toolset

INSTRUCTIONS = (
    "Answer the question from a collection of passages. A search finds passages by their words: search for a "
    "name in the question, then for names in the passages that you find. You have at most 4 searches. Then "
    "answer, and cite the passages that prove the answer: one for each fact that leads to the answer, at most 4."
)
REWARDS = ("outcome", "turns")
SEARCHES = 4
FOUND = 0.1  # the part for a passage that is needed
_NAME = re.compile(r"[A-Z][^\W\d_]+(?: [A-Z][^\W\d_]+)*")
_FIGURE = re.compile(r"\b\d{2,}\b")
_LISTED = 12  # names of each sort that a random policy is told of


class Search(TextEnv):
    """Answer a question by searching for the facts that lead to the answer.

    Task:
        A question that a chain of one to three facts answers. The corpus is made: 5,000 passages on people, places and
        works that are linked. The task is that of Search-R1 (Jin et al. 2025, arXiv 2503.09516) with citations.
    Observation:
        Three passages for a search, found by BM25 (k1 1.5, b 0.75). ``progress`` is the share of the needed passages
        that searches have shown.
    Actions:
        The tools ``search`` (four times at most) and ``answer``, which cites passages; one JSON call each turn.
    Reward:
        1 if the answer equals a right one, normalised as in SQuAD, and the cited passages contain those of every fact
        of the chain. ``turns`` adds ``found``: 0.1 for each needed passage when a search first shows it. It does not
        preserve the best policy; recipes with gated rewards count it only where the outcome is 1.
    End:
        The answer ends the episode. ``info`` then has ``exact``, ``cited`` and ``f1``.
    Splits:
        train, validation and test: what one split's questions lead through occurs in no question of another.
    Expert:
        Follows the chain: searches for what the next fact is about, and answers when it has read them all.
    Floors:
        Over 900 episodes each the expert always succeeds and doing nothing never does. Random admissible actions
        succeed in 2 % of the easy questions and in none of the others. One search for the full question shows all that
        is needed for 99.9, 0.2 and 0 % of the easy, medium and hard ones.

    Args:
        split: train, validation or test; default: the first that has questions.
        difficulty: ``easy`` (one fact, default), ``medium`` (two) or ``hard`` (three).
        rewards: ``outcome``, or ``turns``, which adds ``found``.
        world: the seed that the corpus is made from.
        corpus, questions: JSON-lines files in place of the made ones (see ``files.py``), both or none; then there is
            no difficulty and no world. Where a question names no ``supports``, no citations are needed.
        max_turns: default 8.

    Raises:
        NeedsSetup: there is no such file.
    """

    harmless = (*TextEnv.harmless, "rewards", "world")
    max_turns = 8
    part_names = ()
    levels: Mapping[str, int] = HOPS

    def __init__(
        self,
        split: str | None = None,
        difficulty: str | None = None,
        rewards: str = "outcome",
        world: int = 0,
        corpus: str | None = None,
        questions: str | None = None,
        max_turns: int | None = None,
    ):
        if rewards not in REWARDS:
            raise ValueError(unknown("rewards", rewards, REWARDS))
        if (corpus is None) != (questions is None):
            raise ValueError("corpus and questions belong together: name both files, or none")
        if corpus is not None and questions is not None:
            if difficulty is not None or world:
                raise ValueError("questions of a file have neither difficulty nor world: leave them out")
            files = Path(corpus).expanduser().resolve(), Path(questions).expanduser().resolve()
            self._corpus, self._own = corpus_at(files[0]), questions_at(files[1], files[0])
            self.levels = {}
            self.splits = tuple(self._own)  # those that have questions
        else:
            self._corpus, self._own = made_corpus(world).corpus, None
        super().__init__(split or self.splits[0], max_turns, difficulty)
        self._world = world
        self._pays_turns = rewards == "turns"
        if self._pays_turns:
            self.part_names = ("found",)  # what this instance gives
        self._sit_down()
        self.tools = self._tools.schemas
        self.instructions = with_tools(INSTRUCTIONS, self.tools)

    def tasks(self, split: str) -> Sequence[Task]:
        if self._own is not None:
            return self._own[split]
        assert self.difficulty is not None
        return made_questions(self._world, split, self.difficulty)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._sit_down()
        self._read = [task.params["question"]]
        return self._read[0]

    def _sit_down(self) -> None:
        self._research = Research(self._corpus, SEARCHES)
        self._tools = Toolset([self._research.search, self._research.answer], most_calls=1)

    def respond(self, action: str) -> Turn:
        before = self._supported()
        answered = self._tools.answer(action)
        if self._research.given is not None:
            return self._judged(*self._research.given)
        if answered.valid:
            self._read.append(answered.text)
        news = self._supported() - before
        parts = {"found": FOUND * news} if news and self._pays_turns else {}
        return answered.turn(self, **parts)

    def _judged(self, text: str, sources: Sequence[str]) -> Turn:
        right, cited = exact(text, self.task.params["answers"]), self._cited(sources)
        if right and cited:
            return self.succeed("The answer is right, and its sources prove it.")
        return self.fail("The answer is right, but its sources do not prove it." if right else "The answer is wrong.")

    def _cited(self, sources: Sequence[str]) -> bool:
        return set(self.task.params["supports"]) <= set(sources)

    def _supported(self) -> int:
        """Number of the needed passages that have been shown."""
        return len(set(self.task.params["supports"]) & self._research.passage_ids.keys())

    def admissible(self) -> list[str]:
        """Searches for the names that were read last, and answers by them and by figures, with all that was found."""
        text = "\n".join(reversed(self._read))
        names = [name for name in dict.fromkeys(_NAME.findall(text)) if name.lower() not in STOP_WORDS][:_LISTED]
        figures = list(dict.fromkeys(_FIGURE.findall(text)))[:_LISTED]
        sources = list(self._research.passage_ids)[-MOST_SOURCES:]
        calls = [call_text("search", query=name) for name in names] if self._research.left else []
        return calls + [call_text("answer", text=text, sources=sources) for text in (*names, *figures)]

    def anchor(self) -> Hashable:
        return (self.task.id, tuple(sorted(self._research.passage_ids)), self.observation)

    def progress(self) -> float:
        return self._supported() / (len(self.task.params["supports"]) or 1)

    def notes(self) -> Mapping[str, Any]:
        """Score of the answer, once it is given."""
        if self._research.given is None:
            return {}
        text, sources = self._research.given
        answers = self.task.params["answers"]
        return {"exact": exact(text, answers), "cited": self._cited(sources), "f1": f1(text, answers)}

    def expert(self) -> str:
        """Follows the chain: searches for what the next fact is about, and answers when it has read them all."""
        supports, research = self.task.params["supports"], self._research
        if research.left:
            for query, support in zip(self.task.params["queries"], supports or [None], strict=True):
                if support not in research.passage_ids and query not in research.queries:
                    return call_text("search", query=query)
        sources = [support for support in supports if support in research.passage_ids]
        return call_text("answer", text=self.task.params["answers"][0], sources=sources)

    def answer(self) -> str:
        """The answer with the passages that prove it, as a call; passages tell the answer, but never the call."""
        params = self.task.params
        return call_text("answer", text=params["answers"][0], sources=params["supports"])

    def save(self) -> bytes:
        research = self._research
        return json.dumps([research.queries, list(research.passage_ids), research.given, self._read]).encode()

    def load(self, data: bytes) -> None:
        queries, shown, given, self._read = json.loads(data)
        research = self._research
        research.queries, research.passage_ids = queries, dict.fromkeys(shown)
        research.given = None if given is None else (given[0], tuple(given[1]))
