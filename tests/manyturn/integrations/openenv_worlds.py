"""Environments written with OpenEnv's own classes, behind its own server: ``python openenv_worlds.py NAME``."""

import sys
from typing import Any

import uvicorn
from openenv.core.env_server.http_server import create_fastapi_app  # pyright: ignore[reportMissingImports]
from openenv.core.env_server.interfaces import Environment  # pyright: ignore[reportMissingImports]
from openenv.core.env_server.types import Action, Observation, State  # pyright: ignore[reportMissingImports]
from pydantic import Field


class Guess(Action):
    number: str = Field(description="A number from 0 to 9.")


class Hint(Observation):
    hint: str = ""


class Letters(Hint):
    tries: int = 0


class Guessing(Environment):
    """Find the number from 0 to 9 that the seed decides; 'raise' raises."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._state = State(episode_id=None, step_count=0)
        self.secret = 0

    def reset(self, seed: int | None = None, episode_id: str | None = None, **words: Any) -> Hint:
        self._state = State(episode_id=episode_id, step_count=0)
        self.secret = (seed or 0) % 10
        return Hint(hint="Guess.")

    def step(self, action: Guess, timeout_s: float | None = None, **words: Any) -> Hint:
        self._state.step_count += 1
        if action.number == "raise":
            raise RuntimeError("broken on purpose")
        found = action.number == str(self.secret)
        over = found or self._state.step_count >= 5
        facts = {"truncated": not found, "success": found} if over else {}
        return Hint(hint="Yes." if found else "No.", done=over, reward=float(found) if over else None, metadata=facts)

    @property
    def state(self) -> State:
        return self._state


class Listed(Guessing):
    """The same with tasks, as OpenEnv's task API has them."""

    def list_splits(self) -> list[str]:
        return ["train", "test"]

    def num_tasks(self, split: str) -> int:
        return {"train": 200, "test": 3}[split]

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        return {"id": f"{split}-{index}", "secret": (index * 7 + (split == "test")) % 10}

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, Any]]:
        return [self.get_task(split, index) for index in range(self.num_tasks(split))[start:stop]]

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        return self.get_task_range(split)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **words: Any) -> Hint:
        begun = super().reset(seed, episode_id)
        self.secret = self.get_task(words["split"], words["index"])["secret"]
        return begun


class Spelled(Guessing):
    """One whose observations have two fields."""

    def reset(self, seed: int | None = None, episode_id: str | None = None, **words: Any) -> Letters:
        return Letters(hint=super().reset(seed, episode_id).hint)

    def step(self, action: Guess, timeout_s: float | None = None, **words: Any) -> Letters:
        told = super().step(action)
        return Letters(**told.model_dump(), tries=self._state.step_count)


if __name__ == "__main__":
    world = {"guessing": Guessing, "listed": Listed, "spelled": Spelled}[sys.argv[1]]
    shown = Letters if world is Spelled else Hint
    app = create_fastapi_app(world, Guess, shown, env_name=sys.argv[1], max_concurrent_envs=int(sys.argv[3]))
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
