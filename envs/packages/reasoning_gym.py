"""A dataset of reasoning-gym 0.1.25, played as an environment of one turn: ``reasoning-gym:leg_counting``.

Source: the package reasoning-gym 0.1.25, ``reasoning_gym.create_dataset`` and ``ProceduralDataset.score_answer``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.metadata import version
from typing import Any

import numpy as np
from reasoning_gym.dataset import ProceduralDataset
from reasoning_gym.factory import DATASETS, create_dataset

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.options.options import unknown
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.registration.env_registry import NeedsSetup, UnknownEnv
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task, split_of
from manyturn.envs.packages.reasoning_gym_datasets import VERSION, refusal

_MOST = 10_000  # characters of an answer, for some scorers look at each pair of them
_OWN = ("seed", "size")
_SHIFTS = {"train": 0, "validation": 2**20, "test": 2**21}  # of the seed
_ROUNDS = 200  # of items; the chance that none belongs to validation is 1e-9, unless the dataset has few questions
_LARGEST = 100_000  # tasks of a split, for some datasets hold a list of all items


class ReasoningEnv(TextEnv):
    """The agent reads a question and gives its answer, which the dataset's own scorer judges.

    The outcome is the score, a number from 0 to 1; 1 is a success. A task is an item of the dataset, as
    ``create_dataset(NAME, seed=…, size=…)[number]`` gives it. The package has no splits. Ours are ranges of seeds,
    validation larger by 2**20 and test by 2**21, and the hash of a question decides which split may ask it: small
    datasets draw the same question from several seeds. Task i of a split is the first of the items i, i + size,
    i + 2 size and so on whose question belongs to the split.

    Args:
        dataset: its name in reasoning-gym.
        seed: of the split train. Most datasets draw item i from seed + i, so two whose seeds differ by less than their
            size have items in common.
        size: how many items a split has.
        config: options of the dataset's own, such as ``{"max_animals": 5}``.

    Raises:
        RuntimeError: at ``reset``, where the dataset has too few questions for a split.
    """

    instructions = (
        "Answer the question. Write only the answer, in the form that the question asks for, without reasoning "
        "or any other words."
    )
    max_turns = 1
    part_names = ()
    harmless = (*TextEnv.harmless, "seed", "size")  # some options of config name files

    def __init__(self, dataset: str, seed: int = 42, size: int = 1000, config: Mapping[str, Any] | None = None):
        super().__init__()
        if why := refusal(dataset):
            raise UnknownEnv(why)
        if (installed := version("reasoning-gym")) != VERSION:
            raise NeedsSetup(
                f"reasoning-gym {installed} is installed, and the scorers that were read are those of {VERSION}: "
                "pip install 'manyturn[reasoning-gym]'"
            )
        if not 1 <= size <= _LARGEST:
            raise ValueError(f"size = {size} must be from 1 to {_LARGEST}")
        names = [field.name for field in fields(DATASETS[dataset][1]) if field.name not in _OWN]
        for name in config or ():
            if name not in names:
                raise ValueError(unknown(f"option of {dataset}", name, names))
        self._name, self._seed_of, self._size = dataset, seed, size
        self._config = dict(config or {})
        self._datasets: dict[str, ProceduralDataset] = {}
        try:
            self._dataset("train")
        except AssertionError as error:  # so its configurations refuse a value
            raise ValueError(f"{dataset} refuses its options: {error}") from None
        self._item: dict[str, Any] = {}

    def _dataset(self, split: str) -> ProceduralDataset:
        """The dataset of a split; it is made once, for some of them read long lists of words."""
        if split not in self._datasets:
            seed = self._seed_of + _SHIFTS[split]
            self._datasets[split] = create_dataset(self._name, seed=seed, size=_ROUNDS * self._size, **self._config)
        return self._datasets[split]

    def tasks(self, split: str) -> Sequence[Task]:
        seed = self._seed_of + _SHIFTS[split]
        same = {"dataset": self._name, "seed": seed, "version": VERSION, "split": split}
        same |= {"config": self._config} if self._config else {}
        prefix = f"{split}/{seed}/"
        return GeneratedTasks(lambda i: Task(f"{prefix}{i}", split, {**same, "index": i}), self._size, prefix)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._item = self._item_of(task.split, task.params["index"])
        return self._item["question"]

    def _item_of(self, split: str, index: int) -> dict[str, Any]:
        """Item of a task of which the question belongs to the task's split, and to no other."""
        dataset = self._dataset(split)
        for number in range(index, index + _ROUNDS * self._size, self._size):
            item = dataset[number]
            if split_of(digest("question", item["question"])) == split:
                return item
        raise RuntimeError(
            f"none of {_ROUNDS} questions of {self._name} belongs to {split}: play another split, or give a config "
            "with more questions"
        )

    def respond(self, action: str) -> Turn:
        if len(action) > _MOST:
            return self.fail(f"An answer has at most {_MOST:,} characters.")
        score = float(self._dataset(self.task.split).score_answer(action, self._item))
        if not 0 <= score <= 1:
            raise ValueError(f"the scorer of {self._name} says {score}, and a score is from 0 to 1")
        end = self.succeed if score == 1 else self.fail
        return end(f"Score: {score:.3g} of 1.", outcome=score)

    def expert(self) -> str:
        return self._item["answer"]
