"""Other projects' environments, measured where they are installed; nothing here is a dependency."""

import contextlib
import io
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

PACKAGES = ("gem-llm", "textworld", "alfworld", "textworld-express", "textarena")
_MODULES = {"gem-llm": "gem", "textworld-express": "textworld_express"}
_SECONDS, _EPISODES, _TURNS = 2.0, 50, 50

Play = tuple[Callable[[], Any], Callable[[random.Random], bool]]


def measure_all(repeats: int) -> list[dict[str, Any]]:
    """One row for each peer: reset and step as [CPU, wall] microseconds, or a note that says why not."""
    makers = {
        "gem-llm": _gem,
        "textworld": _textworld,
        "alfworld": _alfworld,
        "textworld-express": _textworld_express,
        "textarena": _textarena,
    }
    rows: list[dict[str, Any]] = []
    for package, maker in makers.items():
        if find_spec(_MODULES.get(package, package)) is None:
            rows.append({"environment": package, "note": "not installed"})
            continue
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                rows += [_measure(name, play, repeats) for name, play in maker()]
        # A peer may fail in any way, and must not take our own figures with it.
        except Exception as error:
            rows.append({"environment": package, "note": f"failed: {type(error).__name__}: {error}"[:200]})
    return rows


def _measure(name: str, play: Play, repeats: int) -> dict[str, Any]:
    """Median microseconds of reset and step; a random policy picks each action inside the step."""
    reset, step = play
    figures: dict[str, list[tuple[float, float]]] = {"reset": [], "step": []}
    rng = random.Random(0)
    for repeat in range(1 + repeats):
        totals = {"reset": [0, 0.0, 0.0], "step": [0, 0.0, 0.0]}
        end = time.perf_counter() + _SECONDS
        for _ in range(_EPISODES):
            if totals["step"][0] and time.perf_counter() > end:
                break
            with _add(totals["reset"]):
                reset()
            with _add(totals["step"], 0) as total:
                for _ in range(_TURNS):
                    total[0] += 1
                    if step(rng):
                        break
        for key, (count, cpu, wall) in totals.items() if repeat else ():  # the first round only warms up
            figures[key].append((1e6 * cpu / count, 1e6 * wall / count))
    medians = {k: [round(median(x), 1) for x in zip(*rows, strict=True)] for k, rows in figures.items()}
    return {"environment": name, **medians}


@contextlib.contextmanager
def _add(total: list[Any], count: int = 1) -> Iterator[list[Any]]:
    """Add the block's CPU and wall seconds to ``total`` = [count, CPU, wall]."""
    cpu, wall = time.process_time(), time.perf_counter()
    yield total
    total[0] += count
    total[1] += time.process_time() - cpu
    total[2] += time.perf_counter() - wall


def _gem() -> Iterator[tuple[str, Play]]:
    import gem

    for name in ("game:GuessTheNumber-v0", "game:Minesweeper-v0"):
        env = gem.make(name)
        yield name, (env.reset, lambda rng, env=env: any(env.step(env.sample_random_action())[2:4]))


def _textarena() -> Iterator[tuple[str, Play]]:
    import textarena

    env = textarena.make("FrozenLake-v0")

    def step(rng: random.Random) -> bool:
        env.get_observation()
        return env.step(f"[{rng.choice(('up', 'down', 'left', 'right'))}]")[0]

    yield "textarena FrozenLake-v0", (lambda: env.reset(num_players=1, seed=1), step)


def _textworld_express() -> Iterator[tuple[str, Play]]:
    from textworld_express import TextWorldExpressEnv

    env = TextWorldExpressEnv(envStepLimit=1000)
    env.load(gameName="twc", gameParams="")
    state: dict[str, Any] = {}

    def reset() -> None:
        _, state["infos"] = env.reset(seed=1, gameFold="train", generateGoldPath=False)

    def step(rng: random.Random) -> bool:
        _, _, done, state["infos"] = env.step(rng.choice(sorted(state["infos"]["validActions"])))
        return done

    yield "textworld-express twc", (reset, step)


def _textworld() -> Iterator[tuple[str, Play]]:
    import textworld

    options = textworld.GameOptions()
    options.seeds, options.nb_rooms, options.nb_objects, options.quest_length = 1, 2, 3, 4
    with tempfile.TemporaryDirectory() as folder:
        options.path = str(Path(folder) / "game.z8")
        file, _ = textworld.make(options)
        yield from _interpreted("textworld w2-o3-q4", textworld.start(file, _asked_infos()))


def _alfworld() -> Iterator[tuple[str, Play]]:
    with tempfile.TemporaryDirectory() as folder:
        yield from _interpreted("alfworld, our test/easy/0", alfworld_engine(Path(folder)))


def alfworld_engine(folder: Path) -> Any:
    """The original engine on one of our own problems, with the package's own domain and grammar.

    Args:
        folder: for the game's file, which the engine reads.
    """
    import alfworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
    from textworld.envs.pddl import PddlEnv

    from manyturn.envs.household.env import Household

    ours = Household("test", "easy")
    ours.reset(seed=0, options={"task": "test/easy/0"})
    data = Path(alfworld.__file__).parent / "data"
    game = {
        "pddl_domain": (data / "alfred.pddl").read_text(),
        "grammar": (data / "alfred.twl2").read_text(),
        "pddl_problem": "\n".join(line for line in ours.export_pddl().splitlines() if not line.startswith(";")),
    }
    file = folder / "game.tw-pddl"
    file.write_text(json.dumps(game))
    engine = AlfredDemangler(PddlEnv(_asked_infos()))
    engine.load(str(file))
    return engine


def _asked_infos() -> Any:
    import textworld

    return textworld.EnvInfos(admissible_commands=True, won=True)


def _interpreted(name: str, env: Any) -> Iterator[tuple[str, Play]]:
    """A TextWorld environment, the list of commands included."""
    state: dict[str, Any] = {}

    def reset() -> None:
        state["game"] = env.reset()

    def step(rng: random.Random) -> bool:
        state["game"], _, done = env.step(rng.choice(state["game"]["admissible_commands"]))
        return bool(done)

    yield name, (reset, step)
