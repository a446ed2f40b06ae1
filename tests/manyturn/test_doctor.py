"""A doctor that is wrong is worse than none: ranges, mends and what fits are told truly."""

import importlib.metadata
import io
import shlex
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from rich.console import Console

from manyturn.agents.engine.card import device_memory
from manyturn.agents.engine.card.device_memory import size
from manyturn.cli import hardware_checks
from manyturn.cli.doctor import dependencies, engines, examine, extras, print_findings, python, within
from manyturn.cli.doctor_finding import Diagnosis
from manyturn.cli.hardware_checks import folders, hub
from manyturn.cli.model_fit import fits
from manyturn.trainers.learn.learner.learner_config import LearnerConfig

pytestmark = pytest.mark.versions

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
REQUIRES = [
    "gymnasium<1.5,>=1.2",
    "numpy>=1.26",
    'torch[cuda]<2.16,>=2.11; extra == "train"',
    "scipy>=1.13; extra == 'train'",
    'gguf<0.20,>=0.17; extra == "gguf"',
]


def installed(**versions: str):
    """What ``importlib.metadata.version`` says where these are installed."""

    def version(name: str) -> str:
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    return version


@pytest.mark.parametrize(
    ("version", "ranges", "inside"),
    [
        ("1.4.0", ">=1.2,<1.5", True),
        ("1.10", ">=1.2,<1.5", False),
        ("1.2", ">=1.2.0", True),
        ("2.0.0", "<2", False),
        ("2.16.0rc1", "<2.16", False),
        ("2.13.0+cpu", ">=2.11, <2.16", True),
        ("1.1", "!=1.1", False),
        ("1.1", "==1.1.0", True),
        ("7", "", True),
    ],
)
def test_versions_are_compared_as_numbers(version, ranges, inside):
    assert within(version, ranges) is inside


def test_ranges_agree_with_packaging_on_what_this_project_asks_for():
    specifiers = pytest.importorskip("packaging.specifiers")
    requirements = pytest.importorskip("packaging.requirements")
    for line in importlib.metadata.requires("manyturn"):
        ranges = str(requirements.Requirement(line).specifier)
        for version in ("0.6", "0.17", "0.19.1", "1", "1.26.4", "2.11.0", "2.16", "4.0", "9.9", "27.0.0", "2026.1"):
            assert within(version, ranges) == specifiers.SpecifierSet(ranges).contains(version), (version, ranges)


def test_a_missing_or_outdated_dependency_is_a_problem_with_its_mend():
    [old, missing] = dependencies(REQUIRES, installed(gymnasium="0.26.3"))
    assert (old.status, missing.status) == ("problem", "problem")
    assert "outside >=1.2,<1.5" in old.text and shlex.split(old.text)[-1] == "gymnasium>=1.2,<1.5"
    assert "numpy is missing" in missing.text and shlex.split(missing.text)[-1] == "numpy>=1.26"


def test_an_extra_that_is_absent_or_too_new_is_a_note_and_never_a_failure():
    train, gguf = extras(REQUIRES, installed(torch="2.16.0+cu130", gguf="0.18"))
    assert (train.status, train.subject, gguf.status) == ("note", "extra train", "ok")
    assert "torch 2.16.0+cu130 is outside" in train.text and "scipy is missing" in train.text
    assert shlex.split(train.text)[-2:] == ["torch>=2.11,<2.16", "scipy>=1.13"]
    usable = {found.subject for found in engines([train, gguf]) if found.status == "ok"}
    protocols = {f"engine {name}" for name in ("openai", "openai-responses", "anthropic")}
    assert usable == {"engine scripted", *protocols}, "evaluation of these needs no extra"


def test_extras_that_nobody_asked_for_are_one_short_line_each():
    """Fifteen of them with a command each hid what was wrong."""
    [train, gguf] = extras(REQUIRES, installed())
    assert (train.text, train.status) == ("not installed (training, and models as policies)", "note")
    assert gguf.text.startswith("not installed") and len(gguf.text) < 80
    assert "pip install" in extras(REQUIRES, installed(torch="2.12"))[0].text, "half of an extra is a fault"
    more = [*REQUIRES, 'transformers>=5; extra == "train"']
    assert extras(more, installed(torch="2.12"))[0].text.startswith("not installed"), "torch came with others"


def test_the_use_of_every_extra_is_named():
    names = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    found = extras([f"package; extra == '{name}'" for name in names], installed())
    assert {line.subject for line in found} == {f"extra {name}" for name in names}
    assert not [line.subject for line in found if not line.text.endswith(")")]


@pytest.mark.parametrize(
    ("release", "status", "told"),
    [
        ("0.32.1+cpu", "ok", "vLLM 0.32.1+cpu"),
        ("0.20.2", "note", "is not of the series 0.32"),
        (None, "note", "not here"),
    ],
)
def test_whether_vllm_can_be_used_is_said_with_the_release_that_is_here(monkeypatch, tmp_path, release, status, told):
    if release is None and find_spec("vllm") is not None:
        pytest.skip("vllm is installed here")
    if release is not None:
        info = tmp_path / f"vllm-{release}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {release}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
    found = {line.subject: line for line in engines([Diagnosis("ok", "extra train", "")])}
    assert found["engine vllm"].status == status and told in found["engine vllm"].text
    assert found["engine vllm-server"].status == "ok", "its servers may be elsewhere"
    assert not [line for line in engines([]) if "vllm" in line.subject]


def test_an_old_python_is_a_problem():
    assert python(">=3.11").status == "ok" and python(">=9").status == "problem"


def test_the_address_of_an_endpoint_is_asked_for_and_not_shown(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "https://user:secret@host/v1")
    whole = [Diagnosis("ok", f"extra {name}", "") for name in ("train", "gguf")]
    assert not any("secret" in found.text or "OPENAI_BASE_URL" in found.text for found in engines(whole))
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert any("OPENAI_BASE_URL" in found.text for found in engines(whole))


def test_what_fits_counts_weights_gradients_and_both_moments():
    assert fits("tiny", 150_000, 1e9, False, 256).status == "ok"
    small = fits("1.5B", 1_540_000_000, 16e9, False, 14_336)
    assert small.status == "note" and "24.6 GB" in small.text and "lora-rank" in small.text
    assert small.text.endswith(
        f"up to {size(LearnerConfig().states_gb * 1e9)} more of hidden states (learner.states_gb)"
    )
    assert "larger machine" in fits("1.5B", 1_540_000_000, 4e9, False, 14_336).text
    large = fits("1.5B", 1_540_000_000, 80e9, True, 14_336)
    assert large.status == "ok" and large.text.endswith("keys and values of 685 episodes of 2048 tokens")
    assert [size(n) for n in (2_400_000, 24.64e9, 900)] == ["2.4 MB", "24.6 GB", "0.9 kB"]


def test_a_container_limit_counts_and_not_the_host(monkeypatch, tmp_path):
    monkeypatch.setattr(device_memory, "_CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text("1000000000\n")
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    found = {finding.subject: finding.text for finding in hardware_checks.hardware()}
    assert found["memory"].startswith("1.0 GB") and found["cpu"] == "1 cores"
    for name in ("memory.max", "cpu.max"):
        (tmp_path / name).write_text("max 100000\n")
    assert device_memory.main_memory()[0] > 1e9


def test_runs_that_is_a_file_is_found_before_the_run(tmp_path):
    (tmp_path / "runs").write_text("")
    [_, runs] = folders(tmp_path)
    assert runs.status == "note" and "--out" in runs.text


def test_the_write_test_leaves_nothing_behind(tmp_path):
    assert all(found.status == "ok" for found in folders(tmp_path) if found.subject == "runs")
    assert not list(tmp_path.iterdir())
    (tmp_path / "runs" / "one").mkdir(parents=True)
    list(folders(tmp_path))
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["one"]


@pytest.mark.parametrize(("value", "told"), [("1", "nothing is downloaded"), ("0", "is downloaded if")])
def test_offline_is_read_as_the_hub_reads_it(monkeypatch, value, told):
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    assert told in hub().text


def test_this_installation_is_healthy_and_each_finding_is_one_line(tmp_path):
    findings = examine(tmp_path)
    console = Console(file=io.StringIO(), width=40)
    assert print_findings(findings, console), console.file.getvalue()
    assert len(console.file.getvalue().splitlines()) == len(findings) > 15


def test_only_a_problem_fails():
    console = Console(file=io.StringIO())
    assert print_findings([Diagnosis("note", "a", "[b] limits"), Diagnosis("ok", "b", "is fine")], console)
    assert not print_findings([Diagnosis("problem", "a", "is missing")], console)
    assert "[b] limits" in console.file.getvalue()


def test_a_program_that_is_not_installed_says_how_to_install_it(monkeypatch, tmp_path):
    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "metadata", absent)
    [found] = examine(tmp_path)
    assert found.status == "problem" and "pip install --editable" in found.text
