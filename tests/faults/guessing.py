"""Episodes played with the endpoint's model, and the proof that each transcript is what its conversation asks for."""

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from endpoint import reply_to
from tally import Tally

from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.agents.play.endpoint.options import Endpoint, EndpointSampling
from manyturn.agents.play.episode import Episode, Policy
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.local.seats import Seats, open_seats

SIDE_BY_SIDE = 12
CONFIG = AgentConfig(instructions=False, format="tagged")
SAMPLING = EndpointSampling(max_tokens=64)


def endpoint(url: str, **changes: float) -> Endpoint:
    """Settings of an impatient client."""
    settings = {"timeout": 3.0, "attempts": 5, "first_wait": 0.01, "longest_wait": 0.1, "concurrency": SIDE_BY_SIDE}
    return Endpoint(base_url=url, **{**settings, **changes})


@asynccontextmanager
async def seats() -> AsyncIterator[Seats]:
    os.environ["NO_PROXY"] = "127.0.0.1"
    os.environ.pop("OPENAI_API_KEY", None)
    async with open_seats("manyturn/GuessNumber-v0", {"difficulty": "hard"}, limit=SIDE_BY_SIDE) as opened:
        yield opened


async def play_round(opened: Seats, policy: Policy, seed: int, number: int) -> Tally:
    """Twelve episodes side by side; says how many are lost, doubled or mixed up."""
    tasks = opened.tasks("test")[number * SIDE_BY_SIDE : (number + 1) * SIDE_BY_SIDE]
    plan = [(task, EpisodeKey(seed, f"round/{number}", task.id, 0)) for task in tasks]
    records: list[Episode] = []
    patience = Patience(attempts=20, error_share=1.0)
    played = gather(opened, policy, plan, max_turns=20, patience=patience, on_episode=records.append)
    # A fault costs at most a timeout and a wait, so a round that takes minutes hangs.
    returned = await asyncio.wait_for(played, 180)
    tally = Tally()
    ended = Counter(episode.key for episode in records)
    for _, key in plan:
        tally.lost += ended[key] == 0
        tally.duplicated += max(0, ended[key] - 1)
    for episode in records:
        tally += examined(episode)
    if returned != sorted(records, key=lambda episode: [key for _, key in plan].index(episode.key)):
        tally.notes.append(f"round {number}: what gather returned is not what it announced")
        tally.misattributed += 1
    return tally


def examined(episode: Episode) -> Tally:
    """What is wrong with one transcript: each reply must be the one that the conversation before it asks for."""
    tally = Tally()
    if not episode.success:
        # Halving always finds the number in time, so whoever fails has met something that was not its own.
        tally.lost += 1
        tally.notes.append(f"{episode.key}: {episode.ending} {episode.cause}"[:160])
    conversation: list[dict[str, str]] = []
    for turn in episode.turns:
        conversation.append({"role": "user", "content": turn.observation})
        if turn.reply != reply_to(conversation):
            tally.misattributed += 1
            tally.notes.append(f"{episode.key}: a reply that nobody gave to this: {turn.reply[:60]!r}")
        conversation.append({"role": "assistant", "content": turn.reply})
    tally.duplicated += len(episode.turns) - len({turn.reply for turn in episode.turns})
    return tally


def open_files() -> int:
    """Files and sockets that this process has open."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the listing's own
            os.readlink(f"/proc/self/fd/{name}")
            count += 1
    return count
