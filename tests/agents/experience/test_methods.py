"""Methods that would learn from what teaches nothing, forget, or take what a writer writes at its word."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from manyturn.agents.experience.attempts import Attempt, Attempts, AttemptTurn
from manyturn.agents.experience.method import METHODS, Round
from manyturn.agents.experience.retrieval.ranking import RETRIEVALS, retrieval_of
from manyturn.agents.experience.retrieval.selection import Selector, prompt_of
from manyturn.agents.experience.store import Experience, ExperienceEntry, ExperienceError


def attempt(member: int, won: bool, *actions: str, seen: str = "A red door.") -> Attempt:
    turns = tuple(AttemptTurn(seen, action, 0.0) for action in actions or ("push",))
    return Attempt(member, won, float(won), turns, "The end.", "completed")


def tried(task: str, *attempts: Attempt) -> Attempts:
    return Attempts(task, f"content of {task}", attempts)


class Author:
    """A writer that gives prepared texts by name, or by task, and remembers its prompts."""

    def __init__(self, **texts: str):
        self.texts, self.prompts = texts, dict[str, str]()

    async def __call__(self, prompts: Sequence[tuple[str, str]]) -> list[str]:
        self.prompts.update(prompts)
        by_task = {name: "" if name.endswith("summary") else name.partition("/")[0] for name, _ in prompts}
        return [self.texts.get(name, self.texts.get(by_task[name], "")) for name, _ in prompts]


def learn(played: Round, author: Author, name: str, **options: object) -> list[ExperienceEntry]:
    method = METHODS.apply(METHODS.parse({"name": name, **options}))
    return list(asyncio.run(method.learn(played, author)))


def lessons(*texts: str) -> Experience:
    return Experience(tuple(ExperienceEntry(f"l{n}", text, contents=("old",)) for n, text in enumerate(texts)))


def test_training_free_grpo_contrasts_only_groups_with_winners_and_losers_and_edits_the_list():
    mixed = tried("a", attempt(0, True), attempt(1, False), attempt(2, False))
    alike = tried("b", attempt(0, False), attempt(1, False))
    author = Author(
        a="Thinking...\n- LESSON: Pull.\nLESSON: Knock first.\nLESSON: A third is too many.",
        edit="MODIFY 1: Look, then act.\nDELETE 2\nDELETE 9\nADD: Pull.\nADD: Knock first.\nPlease ADD nothing else",
    )
    played = Round(3, [mixed, alike], lessons("Look.", "Push.", "Wait."))
    entries = learn(played, author, "training_free_grpo", most=4, summarise=False)
    assert [entry.text for entry in entries] == ["Look, then act.", "Wait.", "Pull.", "Knock first."]
    assert not [name for name in author.prompts if name.startswith("b")]
    assert "success, score 1" in author.prompts["a"] and author.prompts["a"].count("(failure, score 0") == 2
    assert "1. Look." in author.prompts["edit"] and "A third" not in author.prompts["edit"]
    assert entries[0].contents == ("content of a", "old") and entries[1].contents == ("old",)


@pytest.mark.parametrize("answer", ["", "I would keep it.", "MODIFY: x", "DELETE", "DELETE 0", "MODIFY 7: x", "NONE"])
def test_changes_that_name_no_lesson_change_none(answer):
    played = Round(1, [tried("a", attempt(0, True), attempt(1, False))], lessons("Look."))
    entries = learn(played, Author(a="LESSON: Pull.", edit=answer), "training_free_grpo", summarise=False)
    assert tuple(entries) == played.experience.entries


def test_summaries_stand_for_transcripts_except_where_there_is_none():
    author = Author(**{"a/0/summary": "It pulled."}, a="LESSON: Pull.", edit="NONE")
    learn(
        Round(1, [tried("a", attempt(0, True), attempt(1, False, "kick"))], Experience()), author, "training_free_grpo"
    )
    assert "It pulled." in author.prompts["a"] and "Done: kick" in author.prompts["a"]


def test_reflexion_tries_unsolved_tasks_again_and_keeps_the_newest_reflections_of_each():
    method = METHODS.apply(METHODS.parse("reflexion"))
    assert method.due(["a", "b", "c"], {"b"}) == ["a", "c"]
    experience = Experience()
    for number in range(1, 5):
        author = Author(a=f"Thought {number}.", b="Unneeded.")
        played = Round(number, [tried("a", attempt(0, False)), tried("b", attempt(0, True))], experience)
        experience = Experience(tuple(learn(played, author, "reflexion", memory=2)))
        assert set(author.prompts) == {"a/0"}
    assert [entry.text for entry in experience.entries] == ["Thought 3.", "Thought 4."]
    assert "Thought 3." in author.prompts["a/0"], "earlier reflections are shown to the writer"
    assert not learn(Round(1, [tried("a", attempt(0, False))], Experience()), Author(), "reflexion")


def test_a_task_has_one_case_its_shortest_success_which_replaces_a_failure():
    first = Round(1, [tried("a", attempt(0, False, "x")), tried("b", attempt(0, True, "p", "q"))], Experience())
    author = Author()
    experience = Experience(tuple(learn(first, author, "cases")))
    assert [entry.success for entry in experience.entries] == [False, True] and not author.prompts
    second = Round(
        2, [tried("a", attempt(0, True, "u", "v"), attempt(1, True, "w")), tried("b", attempt(0, True))], experience
    )
    entries = learn(second, author, "cases")
    assert [(entry.task, entry.success, entry.round) for entry in entries] == [("b", True, 1), ("a", True, 2)]
    assert "1. w" in entries[1].text and "2." not in entries[1].text
    assert [entry.task for entry in learn(first, author, "cases", failures=False)] == ["b"]


def test_lessons_are_always_shown_and_cases_where_they_resemble_the_task():
    cases = [
        ExperienceEntry(f"c{n}", f"case {n}", about, f"train/{n}", (str(n),))
        for n, about in enumerate(["a red door", "a blue door of oak", "a red window", "the sea"])
    ]
    learnt = Experience((ExperienceEntry("l", "Look."), *cases), shown=2)
    selector = Selector(learnt, RETRIEVALS.apply(retrieval_of(learnt.retrieval)))
    chosen = asyncio.run(selector.chosen("test/0", "a red house"))
    assert [entry.id for entry in chosen] == ["l", "c0", "c2"]
    own = asyncio.run(selector.chosen("train/3", "a red house"))
    assert [entry.id for entry in own] == ["l", "c3", "c0"], "its own come first"
    words = prompt_of(chosen)
    assert words.index("1. Look.") < words.index("case 0") < words.index("case 2") and "case 3" not in words
    assert prompt_of([]) == ""


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[1]",
        '{"text": ""}',
        '{"text": "x", "wait": 1}',
        '{"experience": 9}',
        '{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}',
        '{"experience": 1, "shown": "many"}',
    ],
)
def test_a_damaged_file_is_refused(text):
    with pytest.raises(ExperienceError):
        Experience.from_lines(text)


def test_a_file_comes_back_as_it_was_written_with_any_signs_in_it():
    odd = ExperienceEntry("r1-1", "line\u2028two\nthree \x85 {é}", "about", "t", ("c",), 1, False)
    experience = Experience((odd,), frozenset({"c", "d"}), 2, 4, "env", {"name": "m"})
    again = Experience.from_lines(experience.to_lines())
    assert again == experience and again.contents == {"c", "d"}


def test_no_core_file_names_a_method():
    root = Path(__file__).parents[3]
    names = {name for name in METHODS.names() if name != "cases"}  # which is a word of many files
    sources = [path for top in ("agents", "manyturn/api", "manyturn/cli") for path in (root / top).rglob("*.py")]
    core = [path for path in sources if "methods" not in path.parts]
    assert len(core) > 50 and not [path for path in core if any(name in path.read_text("utf-8") for name in names)]


def test_a_long_transcript_loses_its_middle():
    long = attempt(0, False, *(f"go {n}" for n in range(500)))
    text = long.transcript(1000)
    assert len(text) <= 1000 and text.startswith("Seen: A red door.") and text.endswith("(completed)")
    assert "go 250" not in text
