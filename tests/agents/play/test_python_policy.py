"""Policies in Python: what they are given, what they must give, and whose fault an error is."""

import asyncio
import functools

import pytest

from manyturn.agents.evaluation.evaluate import EvaluationPlan, evaluate
from manyturn.agents.play.python_policy import PolicyError, PythonPolicy
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.tasks.panel import make_panel
from manyturn.envs.hosting.local.seats import open_seats

MAZE = "manyturn/Maze-v0"


def play(made, tasks=2, repeats=2, **options):
    async def run():
        async with open_seats(MAZE) as seats:
            panel = make_panel(seats.tasks("test"), MAZE, "test", tasks)
            policy = PythonPolicy(made, "mine")
            plan = EvaluationPlan(panel, repeats=repeats, seed=3, max_turns=50)
            return await evaluate(seats, policy, plan, **options)

    return asyncio.run(run())


def test_a_function_sees_what_a_policy_may_see_and_never_the_answer():
    seen = []

    def policy(observation, info):
        seen.append((observation, info))
        return info["admissible"][0]

    found = play(policy)
    assert [row["observation"] for row in found.turns] == [observation for observation, _ in seen]
    assert [row["action"] for row in found.turns] == [info["admissible"][0] for _, info in seen]
    assert all(
        info.keys() == {"instructions", "task", "turn", "repeat", "role", "admissible", "seed"} for _, info in seen
    )
    assert [(row["task"], row["member"], row["turn"]) for row in found.turns] == [
        (info["task"], info["repeat"], info["turn"]) for _, info in seen
    ]
    assert "maze" in seen[0][1]["instructions"]
    key = EpisodeKey(3, "evaluate", seen[0][1]["task"], 0)
    assert seen[0][1]["seed"] == key.noise_seed(0), "the same whenever the evaluation is repeated"
    assert len({info["seed"] for _, info in seen}) == len(seen)


def test_an_async_function_is_asked_by_several_episodes_at_once_and_a_plain_one_by_one():
    class Busy:
        now = most = 0

        async def __call__(self, observation, info):
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.001)
            self.now -= 1
            return info["admissible"][0]

    busy = Busy()
    async_policy = functools.partial(busy.__call__)
    play(async_policy, tasks=8, repeats=1)
    assert busy.most == 8
    begun = []

    def one(observation, info):
        begun.append(info["task"])
        return info["admissible"][0]

    play(one, tasks=4, repeats=1)
    assert begun == sorted(begun, key=list(dict.fromkeys(begun)).index), "an episode ends before the next begins"
    busy.most = 0
    async_policy.concurrency = 3
    play(async_policy, tasks=8, repeats=1)
    assert busy.most == 3


def test_an_object_of_a_class_remembers_its_own_episode_alone():
    class Memory:
        concurrency = 4

        def __init__(self):
            self.tasks = set()
            self.turns = 0

        async def act(self, observation, info):
            self.tasks.add((info["task"], info["repeat"]))
            assert len(self.tasks) == 1 and self.turns == info["turn"]
            self.turns += 1
            await asyncio.sleep(0)
            return info["admissible"][0]

    assert play(Memory, tasks=4).summary["errors"]["n"] == 0

    class Shared:
        def __init__(self, letter):
            self.letter = letter

        def act(self, observation, info):
            return self.letter

    assert {row["reply"] for row in play(Shared("x"), tasks=1).turns} == {"x"}


def broken(observation, info):
    if info["turn"] == 1:
        return {}["missing"]
    return info["admissible"][0]


def stops(observation, info):
    return next(iter(()))


class Unmade:
    def __init__(self):
        raise RuntimeError("no model here")

    def act(self, observation, info): ...


def test_an_exception_of_the_policy_ends_everything_and_names_its_line(tmp_path):
    line = broken.__code__.co_firstlineno + 2
    with pytest.raises(
        PolicyError, match=rf"test_python_policy.py, line {line}, in broken: the policy mine raised KeyError"
    ):
        play(broken, out=tmp_path)
    with pytest.raises(PolicyError, match=r"mine raised StopIteration when asked for turn 0 of task 'test/easy/0'"):
        play(stops)
    with pytest.raises(PolicyError, match=r"mine raised RuntimeError: no model here when making it for task"):
        play(Unmade)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda observation, info: None, "answered turn 0 of task 'test/easy/0' with None, which is no text: return"),
        (lambda observation: "x", "does not take .*: write def <lambda>"),
        (type("Empty", (), {}), "is a class without a method act, no policy"),
        (type("Few", (), {"act": lambda self, observation: "x"}), "does not take"),
        (3, "is int, no policy: write a function"),
        (type("Idle", (), {"act": lambda self, o, i: "x", "concurrency": 0}), "it is 1 or more, not 0"),
    ],
)
def test_what_is_no_policy_is_refused_with_what_one_is(made, told):
    with pytest.raises(PolicyError, match=told):
        play(made)
