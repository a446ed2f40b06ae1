"""Sotopia's profiles as its package exports them; they do not come with this package (CC BY-SA 4.0).

A folder holds characters, scenarios and pairings, each as JSON lines, as a JSON list, or as a folder of one file for
each record, which is how Sotopia's local storage keeps them.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from manyturn.envs.benchmarks.sotopia.scene import RELATIONSHIPS
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.contract.registration.regular_file import regular_file
from manyturn.envs.contract.tasks.task import SPLITS, Task, split_of

# What they are -> names of the files; the first are the defaults of the package's own exports.
CHARACTERS = ("agent_profiles", "AgentProfile")
SCENARIOS = ("environment_profiles", "EnvironmentProfile")
PAIRINGS = ("env_agent_combo_storages", "benchmark_agents", "EnvAgentComboStorage")
OFFICIAL_SPLITS = "used_env.json"
_SPLIT_OF_LIST = {"sotopia": "test", "dev": "validation", "SFT": "train", "selftrain": "train"}
_HARD = "sotopia_hard_env"
_LARGEST = 256 * 2**20  # bytes of a file

_MEND = (
    "it holds agent_profiles.jsonl, environment_profiles.jsonl and env_agent_combo_storages.jsonl, which the package "
    "sotopia exports (agentprofiles_to_jsonl, environmentprofiles_to_jsonl, envagnetcombostorage_to_jsonl) from the "
    "dump at huggingface.co/datasets/cmu-lti/sotopia-pi; give data=FOLDER or set MANYTURN_SOTOPIA"
)


class DataError(NeedsSetup):
    """The folder lacks a file, or a file is not what it should be; the text names the fix."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class Character(_Record):
    """A character; further fields are left out."""

    first_name: str
    last_name: str
    age: int = 0
    occupation: str = ""
    gender: str = ""
    gender_pronoun: str = ""
    public_info: str = ""
    personality_and_values: str = ""
    secret: str = ""


class _Scenario(_Record):
    scenario: str
    agent_goals: list[str]
    relationship: int | str = 0
    codename: str = ""


class _Pairing(_Record):
    env_id: str
    agent_ids: list[str]


@lru_cache(maxsize=4)
def tasks_of(folder: str | Path | None) -> Mapping[str, Sequence[Task]]:
    """The tasks of each split: every pairing of two characters with a scenario, once for each role.

    Where the folder holds ``used_env.json`` of sotopia-pi (Wang et al. 2024), splits are its own: the scenarios of
    Sotopia are the test split, those that it trains and develops on are train and validation, and tasks of
    Sotopia-hard have the tag ``hard``; scenarios that it does not list are left out. Otherwise none are official, and a
    scenario's text decides: 80 % train, 10 % validation, 10 % test. Characters occur in all splits.

    Raises:
        DataError: a file is missing or strange.
    """
    if folder is None:
        raise DataError(f"manyturn does not include Sotopia's profiles: make a folder; {_MEND}")
    root = Path(folder).expanduser().resolve()
    if not root.is_dir():
        raise DataError(f"there is no folder {root}: make it; {_MEND}")
    people = _by_id(root, CHARACTERS, "agent_id", Character)
    scenarios = _by_id(root, SCENARIOS, "env_id", _Scenario)
    splits, hard = _official_splits(root)
    tasks: dict[str, dict[str, Task]] = {split: {} for split in SPLITS}
    for number, record in enumerate(_records(root, PAIRINGS)):
        pairing = _parsed(_Pairing, record, f"pairing {number}")
        scenario = _record_of(scenarios, pairing.env_id, "scenario")
        split = split_of(digest("sotopia", scenario.scenario)) if splits is None else splits.get(pairing.env_id)
        if split is None or len(pairing.agent_ids) != 2 or len(scenario.agent_goals) != 2:
            continue  # games of more than two, and scenarios outside the official splits
        cast = [_record_of(people, name, "character").model_dump() for name in pairing.agent_ids]
        tags = ("hard",) if pairing.env_id in hard else ()
        for role in range(2):
            name = f"{split}/{pairing.env_id}/{'-'.join(pairing.agent_ids)}/{role}"
            scene = {
                "scenario": scenario.scenario,
                "goals": scenario.agent_goals,
                "relationship": _relationship(scenario),
            }
            tasks[split][name] = Task(name, split, {**scene, "cast": cast, "role": role}, tags=tags)
    if not any(tasks.values()):
        raise DataError(f"{root} has no pairing of two characters with a scenario: {_MEND}")
    return {split: tuple(played.values()) for split, played in tasks.items()}


def _official_splits(root: Path) -> tuple[Mapping[str, str] | None, frozenset[str]]:
    """Scenario -> split, None where the folder does not say; and the scenarios of Sotopia-hard."""
    file = root / OFFICIAL_SPLITS
    if not file.is_file():
        return None, frozenset()
    splits: dict[str, str] = {}
    try:
        lists = json.loads(_bytes(file))
        for name, ids in lists.items():
            split = next(split for start, split in _SPLIT_OF_LIST.items() if name.startswith(start))
            splits |= dict.fromkeys(ids, split)
        return splits, frozenset(lists.get(_HARD, ()))
    except (ValueError, TypeError, AttributeError, StopIteration, RecursionError):
        raise DataError(f"{file} is not sotopia-pi's (data_generate/env_files of its repository): fetch it") from None


def _by_id(root: Path, names: Sequence[str], key: str, kind: type[_Record]) -> dict[str, Any]:
    records = {}
    for number, record in enumerate(_records(root, names)):
        name = record.get(key) or record.get("pk")
        if not isinstance(name, str):
            raise DataError(f"{root}, {names[0]}, record {number} has neither {key} nor pk: {_MEND}")
        records[name] = _parsed(kind, record, f"{names[0]} {name}")
    return records


def _records(root: Path, names: Sequence[str]) -> list[dict[str, Any]]:
    """The records of the first of the files or folders that is there."""
    places = (root / f"{name}{ending}" for name in names for ending in (".jsonl", ".json", ""))
    place = next((place for place in places if (place.is_file() if place.suffix else place.is_dir())), None)
    if place is None:
        raise DataError(f"{root} has no {' or '.join(names)} (.jsonl, .json or a folder): {_MEND}")
    try:
        if place.suffix == ".jsonl":
            records = [json.loads(line) for line in _bytes(place).splitlines() if line.strip()]
        elif place.suffix == ".json":
            records = json.loads(_bytes(place))
        else:
            records = [json.loads(_bytes(one)) | {"pk": one.stem} for one in sorted(place.glob("*.json"))]
    except (ValueError, TypeError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{place} is not JSON as Sotopia writes it ({error!s:.100}): fetch it again") from None
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise DataError(f"{place} is no list of records: {_MEND}")
    return records


def _parsed(kind: type[_Record], record: dict[str, Any], where: str) -> Any:
    try:
        return kind.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise DataError(f"{where} is not as Sotopia's are ({place}: {first['msg']}): fetch it again") from None


def _record_of(records: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in records:
        raise DataError(f"a pairing names the {what} {name!r}, which is not there: {_MEND}")
    return records[name]


def _relationship(scenario: _Scenario) -> int:
    """The closeness of the two, which is written as number, digit or name."""
    name = str(scenario.relationship).rpartition(".")[2]
    number = int(name) if name.isdecimal() else RELATIONSHIPS.index(name) if name in RELATIONSHIPS else -1
    if not 0 <= number < len(RELATIONSHIPS):
        raise DataError(f"the scenario {scenario.codename!r} has the strange relationship {name!r}: fetch it again")
    return number


def _bytes(file: Path) -> bytes:
    if regular_file(file, "data of Sotopia").stat().st_size > _LARGEST:
        raise DataError(f"{file} has {file.stat().st_size:,} bytes, at most {_LARGEST:,} are read: fetch it again")
    return file.read_bytes()
