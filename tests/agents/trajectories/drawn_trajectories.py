"""Generated trajectories: every kind of text, number, ending and ledger."""

from hypothesis import strategies as st

from manyturn.agents.play.episode import Ending, Episode, TurnRecord
from manyturn.agents.records.episode_rows import episode_rows, turn_rows
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import LastPrompt, Ledger, Limits
from manyturn.agents.tokens.usage import Usage
from manyturn.agents.trajectories.trajectory import Trajectory
from manyturn.envs.contract.env.roles import ONE_ROLE
from manyturn.envs.contract.tasks.task import Task

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
FINITE = st.floats(-50, 0)
TEXTS = st.text(max_size=6)
COUNTS = st.none() | st.integers(0, 2**31)
IDS = st.lists(st.integers(0, 9), min_size=1, max_size=4)
ROLES = st.sampled_from([ONE_ROLE, "guest"])
NAMES = st.sampled_from(["outcome", "step", "not_finite"])


@st.composite
def ledgers(draw, turns: int) -> Ledger:
    """Prompts that go on from what was read and said, or not; a reply more than turns where an episode died of it."""
    ledger, history = Ledger(), []
    for _ in range(turns + draw(st.integers(0, 1))):
        history = draw(st.sampled_from([history, []])) + draw(IDS)
        reply = draw(st.lists(st.integers(0, 9), max_size=3))
        size = {"min_size": len(reply), "max_size": len(reply)}
        entropies = draw(st.none() | st.lists(st.floats(0, 9), **size))
        allowed = draw(st.just([]) | st.lists(st.tuples(st.integers(0, 9)), **size))
        logprobs = draw(st.lists(FINITE, **size))
        commands = draw(st.just(()) | st.just((tuple(reply), (8, 9)))) if reply else ()
        limits = Limits(allowed, commands)
        ledger.record(history, reply, logprobs, draw(st.integers(-1, 9)), entropies, draw(ROLES), limits)
        history = history + reply
    ledger.unanswered = draw(st.none() | st.builds(LastPrompt, IDS, ROLES))
    return ledger


@st.composite
def trajectories(draw) -> Trajectory:
    task = Task(draw(TEXTS), draw(st.sampled_from(["train", "test/hard"])), {"n": draw(st.integers())}, tags=("a",))
    usages = st.none() | st.builds(Usage, COUNTS, COUNTS, st.none() | st.booleans(), st.none() | st.floats(0, 1))
    count = draw(st.integers(0, 4))
    records = [
        TurnRecord(
            *(draw(TEXTS), draw(TEXTS), draw(TEXTS), draw(st.booleans()), draw(st.booleans()), draw(NUMBERS)),
            draw(st.dictionaries(NAMES, NUMBERS)),
            draw(TEXTS),
            draw(st.none() | FINITE),
            (0.1, draw(st.floats(0, 1))),
            *((draw(TEXTS),), draw(ROLES), draw(usages), draw(COUNTS)),
        )
        for _ in range(count)
    ]
    ledger = draw(st.none() | ledgers(count))
    key = EpisodeKey(draw(st.integers(0, 2**62)), "train/1", task.id, draw(st.integers(0, 7)))
    told = draw(st.sampled_from(list(Ending))), draw(TEXTS), draw(st.none() | st.booleans()), draw(TEXTS)
    episode = Episode(key, task, records, *told, ledger, 2, measures=draw(st.dictionaries(NAMES, NUMBERS)))
    [row] = episode_rows([episode])
    turns = turn_rows([episode], {"advantage": draw(st.lists(NUMBERS, min_size=count, max_size=count))})
    about = {"env": "e", "args": {"n": 1.5}, "policy": draw(st.none() | TEXTS), "system": draw(st.none() | TEXTS)}
    return Trajectory(row, turns, ledger, about)
