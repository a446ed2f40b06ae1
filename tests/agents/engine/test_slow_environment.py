"""An environment that takes its time and holds the episodes of others back."""

import asyncio
from pathlib import Path

from tiny_engine import make_engine

from manyturn.agents.engine.engine import Sampling
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.agents.play.episode import Episode
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.local.seats import open_seats

WORLD = f"{Path(__file__).with_name('waiting_world.py')}:Waiting"


def test_whole_episodes_end_while_another_environment_has_not_answered_once(tiny, tmp_path):
    language, may_answer, ended = tiny(), tmp_path / "may-answer", list[Episode]()
    engine = make_engine(language, reproducible=False)

    def note(episode: Episode) -> None:
        ended.append(episode)
        if len(ended) == 3:
            may_answer.touch()

    async def play() -> None:
        agent = Agent(
            AgentConfig(instructions=False, only_admissible=True), language.template, engine, Sampling(max_tokens=8)
        )
        async with open_seats(WORLD, {"file": str(may_answer)}, limit=4, workers=4) as seats:
            plan = [(task, EpisodeKey(0, "test", task.id, 0)) for task in seats.tasks("train")]
            await gather(seats, agent, plan, max_turns=3, patience=Patience(attempts=1), on_episode=note)

    asyncio.run(play())
    assert [episode.success for episode in ended] == [True] * 4, [episode.cause for episode in ended]
    assert ended[-1].task.id == "train/0"
