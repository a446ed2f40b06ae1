"""A branch is an episode like any other, but for its first turns, which are its parent's to the bit."""

import asyncio

import pytest
from needs_java import java_package
from tiny_engine import make_engine

from manyturn.agents.engine.engine import Sampling
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.play.episode import Ending
from manyturn.agents.play.fork import Fork, Forking
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.local.seats import open_seats

MAZE = "manyturn/Maze-v0"
TURN = 3
ONCE = Patience(attempts=1, error_share=1.0)
WHIMSICAL = '''
import manyturn as mt

class Whimsical(mt.TextEnv):
    """Every reset in this process but the first few goes differently: {change}."""
    instructions = "Open the doors."
    max_turns = 6
    resets = 0

    def tasks(self, split):
        return [mt.Task(f"{{split}}/{{i}}", split, {{"i": i}}) for i in range(4)]

    def begin(self, task, rng):
        Whimsical.resets += 1
        self.gone, self.where, self.moody = 0, "here", Whimsical.resets > 4
        return "A door."

    def respond(self, action):
        self.gone += 1
        if self.moody and self.gone == 2:
            {change}
        return self.go_on("A door.")

    def anchor(self):
        return self.where

    def admissible(self):
        return ["open", "wait"]
'''
CHANGES = {
    "another observation": 'return self.go_on("A wall.")',
    "another situation": "self.where = 'elsewhere'",
    "an early end": 'return self.succeed("Out.")',
}


class Counting(TransformersEngine):
    """Notes what it is asked."""

    def __init__(self, *given):
        super().__init__(*given)
        self.asked = []

    async def generate(self, key, turn, prompt_ids, sampling):
        self.asked.append((key, turn))
        return await super().generate(key, turn, prompt_ids, sampling)


def grown(language, env=MAZE, context="whole", turn=TURN):
    """Four parents, then a branch of each and four fresh episodes side by side; and what the engine was asked then."""
    config = AgentConfig(instructions=False, context=context, only_admissible=env != MAZE)
    engine = Counting(language.model, language.template.end_ids)

    async def run():
        async with open_seats(env, limit=8) as seats:
            agent = Agent(config, language.template, engine, Sampling(max_tokens=6))
            plans = [
                [(task, EpisodeKey(0, "test", task.id, member)) for task in seats.tasks("train")[:4]]
                for member in range(3)
            ]
            parents = await gather(seats, agent, plans[0], max_turns=8, patience=ONCE)
            engine.asked.clear()
            forks = {key: Fork(parent, turn) for (_, key), parent in zip(plans[1], parents, strict=True)}
            both = await gather(seats, Forking(agent, forks), plans[1] + plans[2], max_turns=8, patience=ONCE)
            return parents, both[:4], both[4:], forks

    return *asyncio.run(run()), engine.asked


def turn_of(episode, turn):
    """All that a turn left in an episode, but for the clock's seconds."""
    ledger, told = episode.ledger, episode.turns[turn]
    tokens = (ledger.reply(turn), ledger.reply_logprobs(turn).tolist(), ledger.reply_entropies(turn).tolist())
    plain = [getattr(told, name) for name in told.__slots__ if name != "seconds"]
    return ledger.prompt(turn), *tokens, ledger.spans[turn], plain


@pytest.fixture(scope="module", params=["whole", {"name": "window", "turns": 1}], ids=["whole", "window"])
def maze(request, tiny):
    language = tiny()
    return language, *grown(language, context=request.param)


def test_a_branch_has_its_parents_turns_to_the_bit_and_then_its_own(maze):
    _, parents, branches, _, _, _ = maze
    for parent, branch in zip(parents, branches, strict=True):
        assert branch.ending is Ending.TRUNCATED and len(branch.turns) == 8
        assert [turn_of(branch, turn) for turn in range(TURN)] == [turn_of(parent, turn) for turn in range(TURN)]
        assert branch.ledger.prompt(TURN) == parent.ledger.prompt(TURN)
    own = [[episode.ledger.reply(TURN) for episode in group] for group in (parents, branches)]
    assert own[0] != own[1]


def test_an_engine_is_asked_for_a_branchs_own_turns_only(maze):
    _, _, branches, fresh, _, asked = maze
    expected = [(episode.key, turn) for episode in branches for turn in range(TURN, 8)]
    expected += [(episode.key, turn) for episode in fresh for turn in range(8)]
    assert sorted(asked) == sorted(expected)


def test_the_learner_computes_what_a_branch_was_drawn_with(maze, engine_gap):
    language, _, branches, _, _, _ = maze
    assert engine_gap(language.model, branches, 1.0) < 1e-4


@pytest.mark.parametrize("change", CHANGES)
def test_an_environment_that_answers_the_same_actions_otherwise_is_an_error(tiny, tmp_path, change):
    file = tmp_path / "whimsical.py"
    file.write_text(WHIMSICAL.format(change=CHANGES[change]))
    parents, branches, fresh, forks, _ = grown(tiny(), env=f"{file}:Whimsical", turn=4)
    assert not any(parent.ending.is_error for parent in parents)
    for branch in branches:
        forks[branch.key].settle(branch)
        assert branch.ending is Ending.ENV_ERROR and branch.success is None
        assert "turn 2 of train/" in branch.cause and "leave rollout.branching out" in branch.cause
        assert "\n" not in branch.cause
    assert not any(episode.ending.is_error for episode in fresh), "which only branches can notice"


def test_a_branch_that_met_its_fork_is_left_as_it_ended(maze):
    _, _, branches, _, forks, _ = maze
    for branch in branches:
        before = (branch.ending, branch.cause, branch.success)
        forks[branch.key].settle(branch)
        assert (branch.ending, branch.cause, branch.success) == before


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_a_branch_after_ten_loads_in_one_java_process_is_no_error(tiny):
    java_package("scienceworld", "scienceworld")
    language = tiny()
    config = AgentConfig(instructions=False, context={"name": "window", "turns": 1}, only_admissible=True)
    agent = Agent(config, language.template, make_engine(language), Sampling(max_tokens=60))

    async def run():
        args = {"tasks": ["identify-life-stages-2"], "commands": True}
        async with open_seats("manyturn/ScienceWorld-v0", args, limit=1) as seats:
            task = seats.tasks("train")[0]

            def plan(stage, members):
                return [(task, EpisodeKey(0, stage, task.id, member)) for member in members]

            [parent] = await gather(seats, agent, plan("test", [0]), max_turns=5, patience=ONCE)
            await gather(seats, Scripted(1.0), plan("other", range(10)), max_turns=1, patience=ONCE)
            branches = plan("test", [1, 2])
            forking = Forking(agent, {key: Fork(parent, TURN) for _, key in branches})
            return parent, await gather(seats, forking, branches, max_turns=5, patience=ONCE)

    parent, branches = asyncio.run(run())
    for branch in branches:
        assert not branch.ending.is_error, branch.cause
        assert [turn_of(branch, turn) for turn in range(TURN)] == [turn_of(parent, turn) for turn in range(TURN)]
