"""An episode that was kept and taken up again is the same to the last bit."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.agents.play.episode import Ending, Episode, TurnRecord
from manyturn.agents.records.plain_episode import episode_from_plain, episode_to_plain
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import LastPrompt, Ledger
from manyturn.agents.tokens.usage import Usage
from manyturn.envs.contract.env.roles import ONE_ROLE
from manyturn.envs.contract.tasks.task import Task

TASK = Task("a task", "train", {"n": 1})
NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
TEXTS = st.text(st.characters(), max_size=5)
COUNTS = st.none() | st.integers(0, 2**31)
IDS = st.lists(st.integers(0, 9), min_size=1, max_size=4)


@st.composite
def episodes(draw):
    usages = st.builds(Usage, COUNTS, COUNTS, st.none() | st.booleans(), st.none() | NUMBERS)
    further = st.tuples(st.just(ONE_ROLE), st.none() | usages, COUNTS)
    both = st.tuples(st.booleans(), st.booleans())
    turns = draw(st.lists(st.tuples(TEXTS, NUMBERS, both, st.none() | NUMBERS, further), max_size=4))
    records = [
        TurnRecord(text, text, text, *flags, reward, {text: reward}, text, progress, (0.1, 0.2), (text, text), *rest)
        for text, reward, flags, progress, rest in turns
    ]
    ledger = None
    if draw(st.booleans()):
        ledger = Ledger()
        for _ in turns:
            ids = draw(IDS)
            entropies = draw(st.none() | st.just([0.3] * len(ids)))
            ledger.record(draw(IDS), ids, draw(st.lists(NUMBERS, min_size=len(ids), max_size=len(ids))), 3, entropies)
        ledger.unanswered = draw(st.none() | st.builds(LastPrompt, IDS, st.sampled_from([ONE_ROLE, "guest"])))
    ending = draw(st.sampled_from(list(Ending)))
    key = EpisodeKey(draw(st.integers(0, 2**63)), "train/1", TASK.id, 2)
    return Episode(key, TASK, records, ending, "a cause", draw(st.none() | st.booleans()), "last", ledger, 2)


@given(episodes())
def test_nothing_is_lost(episode):
    plain = json.loads(json.dumps(episode_to_plain(episode)))
    # As text, because NaN differs from itself.
    assert repr(episode_from_plain(plain, TASK)) == repr(episode)


def test_an_episode_of_another_task_is_refused():
    episode = Episode(EpisodeKey(0, "train/1", "another", 0), Task("another", "train", {}))
    with pytest.raises(ValueError, match="of another, not of a task"):
        episode_from_plain(episode_to_plain(episode), TASK)
