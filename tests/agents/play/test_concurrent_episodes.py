"""Many episodes side by side: none is lost, doubled or mixed up, and no error becomes a reward."""

import asyncio
import math
import time
from pathlib import Path

import pytest

from manyturn.agents.engine.engine import EngineError
from manyturn.agents.evaluation.replay_policy import Replay
from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.play.episode import Act, Ending, Episode
from manyturn.agents.play.error_limit import Breaker, TooManyErrors
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.local.seats import InlineSeats, open_seats

TRAPS = Path(__file__).parents[2] / "envs" / "traps.py"
BREAKING = """
import manyturn as mt

class Breaking(mt.TextEnv):
    instructions = "Say go."
    broken = {}
    def tasks(self, split):
        return [mt.Task(f"{split}/{i}", split, {"i": i, "split": split}) for i in range(20)]
    def begin(self, task, rng):
        return "Ready."
    def respond(self, action):
        times = self.broken.get(self.task.id, 0)
        if self.task.params["i"] % 5 == 0 and times < %d:
            self.broken[self.task.id] = times + 1
            raise OSError("the tool server is gone")
        return self.succeed("Done.")
    def admissible(self):
        return ["go"]
    def expert(self):
        return "go"
"""


def breaking(tmp_path, times: int) -> str:
    file = tmp_path / "breaking.py"
    file.write_text(BREAKING.replace("%d", str(times)))
    return f"{file}:Breaking"


def plan_of(seats, count, split="train"):
    return [(seats.tasks(split)[i], EpisodeKey(0, "test", seats.tasks(split)[i].id, 0)) for i in range(count)]


async def played(name, limit, count, **options):
    async with InlineSeats(name, {}, [], limit) as seats:
        plan = plan_of(seats, count)
        return plan, await gather(seats, Scripted(0.0), plan, max_turns=50, **options)


@pytest.mark.parametrize("limit", [1, 3, 50])
def test_episodes_come_back_in_the_order_asked_for(limit):
    plan, episodes = asyncio.run(played("manyturn/Maze-v0", limit, 17))
    assert [e.key for e in episodes] == [key for _, key in plan]
    assert all(e.ending is Ending.COMPLETED and e.success for e in episodes)


def test_an_error_that_passes_is_retried_under_the_same_key(tmp_path):
    _, episodes = asyncio.run(played(breaking(tmp_path, 2), 4, 20))
    assert [e.attempts for e in episodes] == [3 if i % 5 == 0 else 1 for i in range(20)]
    assert all(e.success for e in episodes)


def test_an_error_that_stays_is_no_failure_and_no_reward(tmp_path):
    name = breaking(tmp_path, 99)
    _, episodes = asyncio.run(played(name, 4, 20, patience=Patience(attempts=2, error_share=0.5)))
    broken = [e for i, e in enumerate(episodes) if i % 5 == 0]
    assert all(e.ending is Ending.ENV_ERROR and e.success is None and math.isnan(e.outcome) for e in broken)
    assert all(e.cause.startswith("after 2 attempts: ") and "tool server" in e.cause for e in broken)


def test_too_many_errors_stop_everything_and_say_why(tmp_path):
    with pytest.raises(TooManyErrors, match="tool server is gone"):
        asyncio.run(played(breaking(tmp_path, 99), 4, 20, patience=Patience(attempts=1, error_share=0.1)))


def test_the_option_that_allows_more_errors_is_named_where_there_is_one(tmp_path):
    name, option = breaking(tmp_path, 99), "rollout.error_share"
    for allowed_by, end in ((option, f"; {option} allows more"), (None, "manyturn check on the environment")):
        with pytest.raises(TooManyErrors) as stopped:
            asyncio.run(played(name, 4, 20, patience=Patience(1, 0.1, allowed_by)))
        assert str(stopped.value).endswith(end)


def test_a_breaker_remembers_errors_from_one_call_to_the_next(tmp_path):
    """Each call alone stays within its own limit: 1 of 5 episodes fails."""
    breaker, name, ended = Breaker(share=0.19), breaking(tmp_path, 99), []

    async def run():
        async with InlineSeats(name, {}, [], 1) as seats:
            for _ in range(10):
                options = {"patience": Patience(1, 1.0), "breaker": breaker, "on_episode": ended.append}
                await gather(seats, Scripted(0.0), plan_of(seats, 5), max_turns=50, **options)

    with pytest.raises(TooManyErrors, match=r"5 of the last 21 episodes .* train/0: after 1 attempt: .*tool server"):
        asyncio.run(run())
    assert len(ended) == 21


def test_a_breaker_forgets_what_lies_behind_its_window():
    episodes = {ending: Episode(None, None, ending=ending) for ending in Ending}
    breaker = Breaker(share=0.25, window=4, least=4)
    for name in ("env_error", "completed", "completed", "truncated", "infra_error"):
        breaker.note(episodes[Ending(name)])
    with pytest.raises(TooManyErrors):
        breaker.note(Episode(None, plan_of(InlineSeats("manyturn/Maze-v0"), 1)[0][0], ending=Ending.ENV_ERROR))
    with pytest.raises(ValueError, match=r"least = 9 in 1\.\.window = 4"):
        Breaker(window=4, least=9)


class Stumbling:
    """An expert whose engine fails at the first ``times`` attempts of chosen members, and who notes when."""

    name = "stumbling"

    def __init__(self, members: set[int], times: int):
        self.members, self.times = members, times
        self.began: dict[int, list[float]] = {}

    def player(self, key, instructions):
        began = self.began.setdefault(key.member, [])
        began.append(time.monotonic())
        player = Scripted(0.0).player(key, instructions)
        if key.member in self.members and len(began) <= self.times:

            async def fail(step, seat):
                raise EngineError("connection reset")

            player.act = fail
        return player


def stumble(limit: int, members: set[int], times: int, attempts: int = 9, count: int = 4):
    async def run():
        async with InlineSeats("manyturn/Maze-v0", {}, [], limit) as seats:
            task, policy = seats.tasks("train")[0], Stumbling(members, times)
            plan = [(task, EpisodeKey(0, "test", task.id, member)) for member in range(count)]
            patience = Patience(attempts, 1.0)
            return policy, await gather(seats, policy, plan, max_turns=50, patience=patience)

    return asyncio.run(run())


def test_pauses_after_a_failure_of_the_machinery_grow_and_come_from_the_key(monkeypatch):
    clock, pauses = [0.0], list[float]()

    async def sleep(seconds: float) -> None:
        if seconds:
            pauses.append(seconds)
            clock[0] += seconds

    monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda loop: clock[0])
    monkeypatch.setattr(asyncio, "sleep", sleep)
    for _ in range(2):
        stumble(1, {0}, 3, count=1)
    assert len(pauses) == 6 and pauses[3:] == pytest.approx(pauses[:3])
    assert all(0.05 * 2**number <= pause < 0.1 * 2**number for number, pause in enumerate(pauses[:3]))


def test_a_seat_plays_others_while_an_episode_waits_to_be_tried_again():
    policy, episodes = stumble(1, {0}, 1)
    assert [episode.attempts for episode in episodes] == [2, 1, 1, 1] and all(e.success for e in episodes)
    assert policy.began[1][0] < policy.began[0][1]


def test_a_failure_of_the_machinery_that_stays_is_an_error_and_says_how_often_it_was_tried():
    _, episodes = stumble(2, {1, 2}, 99, attempts=2)
    assert [e.ending is Ending.INFRA_ERROR for e in episodes] == [False, True, True, False]
    assert episodes[1].cause == "after 2 attempts: connection reset" and episodes[1].success is None


def test_a_limit_of_turns_truncates_and_does_not_fail():
    async def run():
        async with InlineSeats("manyturn/Maze-v0", {}, [], 1) as seats:
            plan = plan_of(seats, 1)
            policy = Replay({(plan[0][0].id, 0): ["dance"] * 12}, "dances")
            return await gather(seats, policy, plan, max_turns=50)

    [episode] = asyncio.run(run())
    assert episode.ending is Ending.TRUNCATED and episode.cause == "turns" and episode.success is False
    assert len(episode.turns) == 12 and not any(turn.valid for turn in episode.turns)


def test_an_environment_without_a_limit_is_cut_off(tmp_path):
    file = tmp_path / "endless.py"
    file.write_text(
        "import gymnasium, manyturn as mt\n"
        "class Endless(gymnasium.Env):\n"
        "    observation_space = action_space = mt.TextSpace()\n"
        "    def reset(self, *, seed=None, options=None):\n        super().reset(seed=seed); return 'go on', {}\n"
        "    def step(self, action):\n        return 'go on', 0.5, False, False, {}\n"
    )

    async def run():
        async with InlineSeats(f"{file}:Endless", {}, [], 1) as seats:
            return await gather(seats, Scripted(1.0), plan_of(seats, 1), max_turns=7)

    [episode] = asyncio.run(run())
    assert len(episode.turns) == 7 and episode.ending is Ending.TRUNCATED and episode.outcome == 3.5


class Open(Scripted):
    """The expert, who sees how many episodes are open."""

    def __init__(self):
        super().__init__(0.0)
        self.open = self.most = 0

    def player(self, key, instructions):
        player = super().player(key, instructions)
        self.open += 1
        self.most = max(self.most, self.open)

        def leave():
            self.open -= 1

        player.leave = leave
        return player


@pytest.mark.parametrize(("workers", "asked", "most"), [(0, None, 1), (2, None, 2), (2, 5, 5)])
def test_no_more_episodes_are_open_than_get_on(workers, asked, most):
    """Otherwise all advance side by side, and an interruption loses nearly all of them."""
    policy = Open()
    if asked is not None:
        policy.concurrency = asked

    async def run():
        async with open_seats("manyturn/Maze-v0", limit=32, workers=workers) as seats:
            await gather(seats, policy, plan_of(seats, 12), max_turns=50)

    asyncio.run(run())
    assert (policy.open, policy.most) == (0, most)


def test_a_policy_that_raises_is_not_hidden():
    """A bug in a policy is neither an environment's error nor a failure: it must surface."""

    class Broken:
        name = "broken"
        ledger = None

        def player(self, key, instructions):
            return self

        async def act(self, step, seat) -> Act:
            raise ZeroDivisionError("bug")

        def leave(self):
            pass

    async def run():
        async with InlineSeats("manyturn/Maze-v0", {}, [], 2) as seats:
            await gather(seats, Broken(), plan_of(seats, 3), max_turns=5)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(run())


@pytest.mark.deep
@pytest.mark.parametrize(("cls", "workers"), [("Poison", 1), ("Poison", 2), ("PoisonSleep", 2)])
def test_a_task_that_ends_its_process_costs_its_neighbours_nothing(cls, workers):
    async def run():
        async with open_seats(f"{TRAPS}:{cls}", limit=32, workers=workers, timeout=1.0) as seats:
            tasks = seats.tasks("train")
            plan = [(tasks[n], EpisodeKey(0, "test", tasks[n].id, member)) for n in range(40) for member in range(4)]
            return await gather(seats, Scripted(0.0), plan, max_turns=9, patience=Patience(attempts=2))

    episodes = asyncio.run(run())
    lost = [episode for episode in episodes if episode.ending.is_error]
    assert {episode.task.id for episode in lost} == {"train/3"} and len(lost) == 4
    assert {episode.attempts for episode in lost} == {2}
    assert all(episode.attempts == 1 and episode.success for episode in episodes if episode not in lost)


def test_too_many_errors_name_the_task_that_ended_its_process():
    async def run():
        async with open_seats(f"{TRAPS}:Poison", limit=8, workers=1) as seats:
            tasks = seats.tasks("train")
            plan = [(tasks[n], EpisodeKey(0, "test", tasks[n].id, member)) for n in range(8) for member in range(2)]
            await gather(seats, Scripted(0.0), plan, max_turns=9, patience=Patience(attempts=1, error_share=0.0))

    with pytest.raises(TooManyErrors, match=r"the last, of task train/3: after 1 attempt: worker \d+ is gone: it died"):
        asyncio.run(run())
