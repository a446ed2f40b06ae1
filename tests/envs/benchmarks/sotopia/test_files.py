"""Every layout of the profiles gives the same tasks, splits share no scenario, and a strange file names the mend."""

import json
from pathlib import Path

import pytest

from manyturn.envs.benchmarks.sotopia.files import DataError, tasks_of


def lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def as_lists(data: Path, folder: Path) -> Path:
    """JSON lists whose ids are called pk."""
    folder.mkdir()
    for file in data.glob("*.jsonl"):
        records = [{"pk": next(iter(one.values())), **dict(list(one.items())[1:])} for one in lines(file)]
        (folder / f"{file.stem}.json").write_text(json.dumps(records))
    return folder


def as_folders(data: Path, folder: Path) -> Path:
    """The local storage: a folder for each class, a file for each record."""
    classes = {"agent_profiles": "AgentProfile", "environment_profiles": "EnvironmentProfile"}
    classes["env_agent_combo_storages"] = "EnvAgentComboStorage"
    for stem, name in classes.items():
        (folder / name).mkdir(parents=True)
        for record in lines(data / f"{stem}.jsonl"):
            key, *rest = record
            (folder / name / f"{record[key]}.json").write_text(json.dumps({other: record[other] for other in rest}))
    return folder


def contents(folder: Path) -> dict[str, set[tuple[str, str]]]:
    return {split: {(task.id, task.content) for task in tasks} for split, tasks in tasks_of(folder).items()}


@pytest.mark.parametrize("layout", [as_lists, as_folders])
def test_every_layout_gives_the_same_tasks(layout, data, tmp_path):
    assert contents(layout(data, tmp_path / "other")) == contents(data)


def test_each_pairing_gives_a_task_for_each_role_and_no_scenario_is_in_two_splits(data):
    tasks = tasks_of(data)
    assert sum(map(len, tasks.values())) == 30 * 2 * 2 and all(tasks.values())
    scenarios = [{task.params["scenario"] for task in split} for split in tasks.values()]
    assert sum(map(len, scenarios)) == len(set().union(*scenarios)) == 30
    assert {task.params["role"] for task in tasks["train"]} == {0, 1}


def test_the_splits_of_sotopia_pi_are_taken_where_they_are_given(data):
    lists = {"sotopia_env": ["S0", "S1"], "sotopia_hard_env": ["S1"], "SFT-round-1": ["S2"], "dev-round-1": ["S3"]}
    (data / "used_env.json").write_text(json.dumps({**lists, "selftrain-round-2": ["S4"]}))
    scenarios = {split: {task.id.split("/")[1] for task in tasks} for split, tasks in tasks_of(data).items()}
    assert scenarios == {"test": {"S0", "S1"}, "train": {"S2", "S4"}, "validation": {"S3"}}
    assert {task.id.split("/")[1] for task in tasks_of(data)["test"] if task.tags == ("hard",)} == {"S1"}


@pytest.mark.parametrize("relationship", [3, "3", "friend", "RelationshipType.friend"])
def test_a_relationship_may_be_a_number_a_digit_or_a_name(relationship, data):
    changed = [{**one, "relationship": relationship} for one in lines(data / "environment_profiles.jsonl")]
    (data / "environment_profiles.jsonl").write_text("\n".join(map(json.dumps, changed)))
    assert {task.params["relationship"] for task in tasks_of(data)["train"]} == {3}


def test_games_of_more_than_two_are_left_out(data):
    record = json.dumps({"env_id": "S0", "agent_ids": ["P0", "P1", "P2"]})
    (data / "env_agent_combo_storages.jsonl").write_text(record)
    with pytest.raises(DataError, match="no pairing of two"):
        tasks_of(data)


BROKEN = {
    "no JSON": ("agent_profiles.jsonl", "{", "agent_profiles.jsonl is not JSON"),
    "deep": ("agent_profiles.jsonl", "[" * 100_000, "agent_profiles.jsonl is not JSON"),
    "not UTF-8": ("agent_profiles.jsonl", b"\xff", "agent_profiles.jsonl is not JSON"),
    "numbers": ("agent_profiles.jsonl", "1\n2", "agent_profiles.jsonl is no list of records"),
    "no id": ("agent_profiles.jsonl", '{"first_name": "Ada"}', "neither agent_id nor pk"),
    "no name": ("agent_profiles.jsonl", '{"agent_id": "P0"}', "agent_profiles P0 .*first_name"),
    "goals": ("environment_profiles.jsonl", '{"env_id": "S", "scenario": "", "agent_goals": 1}', "agent_goals"),
    "strangers": ("env_agent_combo_storages.jsonl", '{"env_id": "S0", "agent_ids": ["P0", "P9"]}', "'P9'"),
    "elsewhere": ("env_agent_combo_storages.jsonl", '{"env_id": "S99", "agent_ids": ["P0", "P1"]}', "'S99'"),
    "splits": ("used_env.json", '{"mine": ["S0"]}', "used_env.json is not sotopia-pi's"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_strange_file_is_named(case, data):
    name, content, message = BROKEN[case]
    (data / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=message) as caught:
        tasks_of(data)
    assert "\n" not in str(caught.value)


def test_what_is_missing_is_named_with_where_it_comes_from(data, tmp_path):
    for folder in (None, tmp_path / "nowhere"):
        with pytest.raises(DataError, match=r"agent_profiles.jsonl.*sotopia-pi.*MANYTURN_SOTOPIA"):
            tasks_of(folder)
    (data / "environment_profiles.jsonl").unlink()
    with pytest.raises(DataError, match="no environment_profiles or EnvironmentProfile"):
        tasks_of(data)
