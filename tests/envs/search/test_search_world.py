"""Questions must be answerable from the corpus, by one chain only, and test none of what training has led through."""

import pytest

from manyturn.envs.contract.random_keys import digest
from manyturn.envs.search.passage_generator import passages_of
from manyturn.envs.search.questions import HOPS, questions
from manyturn.envs.search.world import SHARES, world_of


def entities_of(split: str, difficulty: str) -> set[str]:
    """Everything with a name that the chains of a split's questions lead through, the answers with them."""
    labels = {entity.label: entity.name for entity in world_of(0).values()}
    found = set()
    for task in questions(0, split, difficulty):
        found |= {labels[query] for query in task.params["queries"]}
        found |= {answer for answer in task.params["answers"] if answer in world_of(0)}
    return found


def test_no_entity_of_a_chain_belongs_to_the_chains_of_two_splits() -> None:
    met = {split: set().union(*(entities_of(split, level) for level in HOPS)) for split in SHARES}
    assert all(len(found) > 300 for found in met.values())
    assert not met["train"] & met["test"] and not met["train"] & met["validation"]
    assert not met["validation"] & met["test"]


def test_no_passage_proves_questions_of_two_splits() -> None:
    cited = {
        split: {name for level in HOPS for task in questions(0, split, level) for name in task.params["supports"]}
        for split in SHARES
    }
    assert sum(map(len, cited.values())) == len(set().union(*cited.values()))


@pytest.mark.parametrize("level", HOPS)
def test_each_passage_of_a_chain_tells_how_the_next_begins_and_the_last_the_answer(level: str) -> None:
    passages = passages_of(0).corpus.passages
    for split in SHARES:
        for task in questions(0, split, level)[:200]:
            params = task.params
            assert len(set(params["supports"])) == HOPS[level], "one passage would prove two facts"
            assert params["queries"][0] in params["question"]
            objects = [*params["queries"][1:], *params["answers"]]
            for subject, passage, found in zip(params["queries"], params["supports"], objects, strict=True):
                assert subject.rpartition(" ")[2] in passages[passage] and found in passages[passage]
            assert not any(found in params["question"] for found in objects)


def test_a_question_without_its_last_facts_passage_cannot_be_answered_from_the_others() -> None:
    for task in questions(0, "test", "hard")[:200]:
        *others, last = (passages_of(0).corpus.passages[name] for name in task.params["supports"])
        assert task.params["answers"][0] in last
        assert not any(task.params["answers"][0] in other for other in others)


def test_questions_and_ids_stay_what_they_are() -> None:
    """A change here makes every published score one of another task: give the environment a new version instead."""
    told_by = {level: digest([dict(task.params) for task in questions(0, "test", level)[:50]]) for level in HOPS}
    assert told_by == PINNED
    assert digest(passages_of(0).corpus.passages) == PINNED_CORPUS
    assert questions(1, "test", "easy")[0].params["question"] != questions(0, "test", "easy")[0].params["question"]


PINNED = {
    "easy": "9d140fb37a5c1fd122c6136f72071f24",
    "medium": "f221a5727a75e4be68fc026e134f6efd",
    "hard": "58fcfb840c7a276075e002e0a752bd57",
}
PINNED_CORPUS = "9a1bad63721d14fd55613dc18028a252"
