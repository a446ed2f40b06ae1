"""Full episodes a second at hosts that Ray places on this machine, and the seconds that Ray takes to place them.

    python -m benchmarks.scale.ray_throughput                     two hosts, 512 open episodes; a minute or two
    python -m benchmarks.scale.ray_throughput --toy --out toy.json

The trivial environment of 20 turns and the trivial policy of ``concurrent_episodes.py``, at hosts that keep it in their
actors' own processes. ``start_s`` is from nothing to the first episode: Ray, its actors, and the hosts in them. The
first round, in which environments are made, is played before the clock starts. A row is a fresh driver with a Ray of
its own, and the figures are medians over the repeats. Needs manyturn[ray].
"""

import argparse
import asyncio
import json
import time
from pathlib import Path
from statistics import median

from benchmarks.kit.process import measure_apart
from benchmarks.kit.provenance import RESULTS, origin, write
from benchmarks.scale.concurrent_episodes import CORRIDOR, FEW, Figures, SaysOneThing, TakingTurns
from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.remote.ray_seats import RayHosts, RaySeats

OUT = RESULTS / "scale_ray.json"
_ROUNDS, _TOY_EPISODES = 8, 8


async def played(count: int, episodes: int, rounds: int) -> Figures:
    """Whole episodes, so many at a time."""
    began = time.perf_counter()
    async with RaySeats(CORRIDOR, None, (), episodes, RayHosts(count, wait=300.0)) as seats:
        started, policy = time.perf_counter() - began, TakingTurns(SaysOneThing(), episodes)
        tasks, spent, turns = seats.tasks("train")[:episodes], 0.0, 0
        for number in range(rounds + 1):
            plan = [(task, EpisodeKey(number, "scale", task.id, 0)) for task in tasks]
            began = time.perf_counter()
            finished = await gather(seats, policy, plan, max_turns=100)
            if any(episode.ending.is_error for episode in finished):
                raise RuntimeError("an episode ended in an error")
            if number:
                spent += time.perf_counter() - began
                turns += sum(len(episode.turns) for episode in finished)
    if policy.most != episodes:
        raise RuntimeError(f"{policy.most} of {episodes} episodes were open at once")
    return {"start_s": started, "episodes_per_s": rounds * episodes / spent, "turns_per_s": turns / spent}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--episodes", type=int, default=FEW, help="open at once")
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--toy", action="store_true", help="so few episodes that only the code is tested")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)  # of a process of its own
    options = parser.parse_args()
    if min(options.hosts, options.episodes, options.rounds, options.repeats) < 1:
        parser.error("hosts, episodes, rounds and repeats are at least 1")
    if options.one:
        print(json.dumps(asyncio.run(played(options.hosts, options.episodes, options.rounds))))
        return
    about = origin(options.out, ("manyturn", "ray", "gymnasium", "websockets", "uvicorn"))
    rows = []
    for count in (1, options.hosts):
        work = (count, _TOY_EPISODES, 1) if options.toy else (count, options.episodes, options.rounds)
        words = ["--one", "--hosts", str(work[0]), "--episodes", str(work[1]), "--rounds", str(work[2])]
        runs = [measure_apart(__file__, *words) for _ in range(1 if options.toy else options.repeats)]
        medians = {key: float(f"{median(run[key] for run in runs):.4g}") for key in runs[0]}
        rows.append({"hosts": count, "open_at_once": work[1], **medians, "runs": runs})
        print({key: value for key, value in rows[-1].items() if key != "runs"})
    write(options.out, about, {"rows": rows})


if __name__ == "__main__":
    main()
