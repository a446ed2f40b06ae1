"""Folders in the real harbor's own loader: ours that it refuses, and those that we read otherwise than it."""

from pathlib import Path

import pytest
from harbor_folders import HEAD, PLAIN, STEPS, written  # pyright: ignore[reportMissingImports]
from needs_host import host  # pyright: ignore[reportMissingImports]

from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.harbor.tasks import read_task


@pytest.fixture(autouse=True)
def _harbor() -> None:
    host("harbor")


def loaded(folder: Path):
    from harbor.models.task.task import Task  # pyright: ignore[reportMissingImports]

    return Task(folder)


def test_exported_tasks_are_tasks_of_harbor(command, engine, tmp_path):
    words = ("--env.args.source", "drills", "--limit", 2)
    assert command("export", "manyturn/Software-v0", "--as", "harbor", "--out", tmp_path / "out", *words).code == 0
    folders = sorted(path.parent for path in (tmp_path / "out").rglob("task.toml"))
    assert len(folders) == 6
    for folder in folders:
        theirs, ours = loaded(folder), read_task(folder, False, None)
        assert theirs.name == f"manyturn/{folder.name}" and not theirs.has_steps
        assert theirs.instruction.strip() == ours.steps[0].instruction
        assert theirs.config.environment.network_mode.value == "no-network"
        assert theirs.config.verifier.timeout_sec == ours.steps[0].seconds
        assert theirs.paths.discovered_test_path and theirs.paths.discovered_solve_path


def test_a_folder_is_read_as_harbor_reads_it(tmp_path):
    theirs, ours = (
        read(written(tmp_path / "plain", PLAIN)) for read in (loaded, lambda path: read_task(path, False, None))
    )
    assert theirs.instruction.strip() == ours.steps[0].instruction
    folder = written(tmp_path / "steps", STEPS)
    theirs, ours = loaded(folder), read_task(folder, False, None)
    assert [step.name for step in theirs.config.steps] == [step.name for step in ours.steps]
    assert [theirs.step_instruction(step.name).strip() for step in ours.steps] == [
        step.instruction for step in ours.steps
    ]
    assert [step.min_reward for step in theirs.config.steps] == [step.least.get("reward") for step in ours.steps]
    assert (theirs.config.multi_step_reward_strategy is None) == ours.is_mean


def test_a_field_that_harbor_knows_is_heeded_has_no_effect_or_is_refused_by_its_name(tmp_path):
    """A field that a newer harbor has is unknown to us, and said to be."""
    from harbor.models.task.config import (  # pyright: ignore[reportMissingImports]
        AgentConfig,
        EnvironmentConfig,
        StepConfig,
        TaskConfig,
        VerifierConfig,
    )

    values = {"os": "'linux'", "env": "{}", "workdir": "'/app'", "docker_image": "'a'", "timeout_sec": "1.0"}
    tables = {"environment": EnvironmentConfig, "verifier": VerifierConfig, "agent": AgentConfig}
    for place, model in tables.items():
        for name in model.model_fields:
            text = f"{HEAD}[{place}]\n{name} = {values.get(name, 'false')}\n"
            folder = written(tmp_path / f"{place}-{name}", {**PLAIN, "task.toml": text})
            try:
                read_task(folder, False, None)
            except NeedsSetup as error:
                assert "is not known to us" not in str(error), f"{place}.{name}"
    assert {*TaskConfig.model_fields} - {*tables, "solution", "steps", "multi_step_reward_strategy"} == {
        *("schema_version", "task", "metadata", "source", "artifacts")
    }
    assert {*StepConfig.model_fields} == {"name", "agent", "verifier", "min_reward", "healthcheck", "artifacts"}
