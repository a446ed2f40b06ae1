"""A kit for GPUs that no longer runs when somebody has one at last, or measures something else than it says."""

import json
import math
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.gpu_kit import flops, measurement_log, random_models, schedule, table
from benchmarks.gpu_kit.carried import household_rows, pack, reference
from benchmarks.gpu_kit.cases import Case, Session, Writer, measure
from benchmarks.gpu_kit.device import Device
from benchmarks.gpu_kit.items import correctness
from manyturn.agents.model.model_config import MODELS
from manyturn.trainers.learn.passes.trie.tree import Tree

ROOT = measurement_log.ROOT
SMOKE = {"test_memory: test_a_sleeping_engine", "test_steps: test_one_rank", "test_steps: test_the_learner_updates"}


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """The kit's own model is known to no test after these."""
    MODELS.names()
    monkeypatch.setattr(MODELS, "_entries", dict(MODELS._entries))


@pytest.fixture(scope="module")
def carried(tmp_path_factory) -> Path:
    """What is computed beforehand, at toy size."""
    folder = tmp_path_factory.mktemp("gpu-kit")
    household_rows.write(folder, toy=True)
    reference.write(folder, toy=True)
    return folder


def short(carried: Path, folder: Path, *items: str) -> dict[tuple[str, str], measurement_log.Row]:
    """``python benchmarks/gpu.py short`` at toy size: the rows that it leaves."""
    command = [sys.executable, "benchmarks/gpu.py", "short", *items, "--toy", "--device", "cpu", "--seconds", "6000"]
    command += ["--journal", str(folder / "rows"), "--carried", str(carried), "--work", str(folder / "work")]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return {(row["item"], row["case"]): row for row in measurement_log.Journal(folder / "rows").rows()}


def figures(rows: dict[tuple[str, str], measurement_log.Row], item: str) -> dict[str, dict]:
    return {case: row["figures"] for (of, case), row in rows.items() if of == item and "figures" in row}


@pytest.fixture(scope="module")
def some(carried, tmp_path_factory) -> tuple[dict[tuple[str, str], measurement_log.Row], Path]:
    """The rows of the items that take least, and their folder."""
    folder = tmp_path_factory.mktemp("some")
    return short(carried, folder, "household", "rollout"), folder / "rows"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_one_command_leaves_a_row_of_everything(carried, tmp_path):
    rows = short(carried, tmp_path)
    assert {item for item, _ in rows} == {item.name for item in schedule.ITEMS}
    assert not [row for row in rows.values() if "error" in row]
    smoke = figures(rows, "smoke")
    assert all(any(name.startswith(start) for name in smoke) for start in SMOKE) and len(smoke) > 30
    right = figures(rows, "correctness")
    assert len(right) == 8 and all(row["ok"] for row in right.values())
    exact, rounded = (right[f"gradients, padding, {kind}"]["gradient"] for kind in ("float32", "bfloat16"))
    assert 0 < exact < rounded
    decoded = figures(rows, "decoding")
    assert decoded["toy, adapters"]["launches"] > decoded["toy"]["launches"] > 10
    for row in figures(rows, "learner").values():
        assert row["nodes"] < row["tokens"] and row["update_share_of_product"] > 0
    assert figures(rows, "learner")["toy, recomputed"]["profiled top"]
    memory, kept = figures(rows, "memory")["toy"], 16 * weights_of("toy") / 1e9
    assert memory["learning_predicted_gb"] > kept and memory["learning_over_predicted"] > 0
    assert memory["drawing_predicted_gb"] == pytest.approx(kept + 0.001)
    assert figures(rows, "rollout").keys() >= {"manyturn, running batch", "transformers, continuous batching"}


@pytest.mark.deep
def test_a_slice_of_a_step_says_what_a_step_would_take(some):
    played, learnt, step = figures(some[0], "household").values()
    assert (played["episodes"], played["turns"]) == (4, 8) and learnt["updates"] == 1
    of_a_turn = played["seconds_of_2_turns"] - played["seconds_of_1_turns"]
    assert step["seconds_of_a_turn"] == pytest.approx(of_a_turn)
    assert step["seconds_of_drawing"] == pytest.approx(played["seconds_of_2_turns"] + of_a_turn)
    share = step["distinct_tokens_of_a_step"] / learnt["distinct_tokens"]
    assert share > 1 and step["seconds_of_learning"] == pytest.approx(learnt["seconds"] * share)


def weights_of(name: str) -> int:
    return sum(p.numel() for p in random_models.random_model(name, torch.device("meta")).parameters())


def writer_of(folder: Path, item: str = "some", ends: float = math.inf, began: float = 1.0) -> Writer:
    session = Session(item, folder / "rows", folder, folder / "work", "cpu", True, "0000000", began, ends)
    session.work.mkdir(exist_ok=True)
    return Writer(session, Device("cpu"), measurement_log.Dependencies())


@pytest.mark.deep
def test_a_failure_has_its_traceback_and_the_next_session_tries_it_again(tmp_path):
    def fails() -> dict[str, int]:
        raise torch.OutOfMemoryError("CUDA out of memory")

    writer = writer_of(tmp_path)
    assert measure([Case("fails", fails), Case("works", lambda: {"calls": 1})], writer) == 0
    failed, works = writer.journal.rows()
    assert failed["error"] == "OutOfMemoryError: CUDA out of memory" and "in fails" in failed["traceback"]
    assert works["figures"] == {"calls": 1} and writer.done() == {"fails", "works"}
    assert writer_of(tmp_path, began=2.0).done() == {"works"}


def test_a_row_counts_while_its_code_is_the_same_and_a_line_that_was_cut_off_never(tmp_path, monkeypatch):
    monkeypatch.setattr(measurement_log, "ROOT", tmp_path)
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / "maze.py").write_text("walls = 1")
    rows = measurement_log.Journal(tmp_path / "rows", {"device": "H100", "toy": False})
    rows.write("decoding", "passes", 1.0, ["envs/maze.py"], {"figures": {"pass_ms": 5.0}})
    with (tmp_path / "rows" / "rows.jsonl").open("a") as file:
        file.write('{"item": "decoding", "ca')  # the machine was taken away
    again = measurement_log.Journal(tmp_path / "rows")
    assert [row["figures"]["pass_ms"] for row in again.current()] == [5.0]
    (tmp_path / "envs" / "maze.py").write_text("walls = 2")
    assert again.current() == [] and len(again.rows()) == 1


@pytest.mark.deep
def test_a_row_depends_on_what_was_loaded_and_read_and_on_no_output(some):
    rows, folder = some
    files = {line["code"]: line["files"] for line in map(json.loads, (folder / "code.jsonl").read_text().splitlines())}
    drawn = set(files[rows["rollout", "manyturn, running batch"]["code"]])
    assert {"agents/engine/transformers_engine.py", "benchmarks/gpu_kit/items/rollout.py"} <= drawn
    assert not {
        name
        for name in drawn
        if name.startswith(("trainers/credit/advantages/", "envs/household/", "docs/", "gpu-kit/"))
    }
    played = files[rows["household", "2 turns played"]["code"]]
    assert "manyturn/recipes/household-gigpo-qwen2.5-1.5b.toml" in played and not [
        n for n in played if "rows.jsonl" in n
    ]


@pytest.mark.deep
def test_an_item_that_cannot_begin_leaves_its_traceback_and_its_time(tmp_path):
    session = Session("absent", tmp_path / "rows", tmp_path, tmp_path / "work", "cpu", True, "0000000", 1.0, 0.0)
    rows = schedule.run(session, [schedule.Item("absent", 30), schedule.Item("late", 30)], 40)
    assert [row["case"] for row in rows] == ["all cases"] * len(rows) and all("error" in row for row in rows)
    assert "No module named 'benchmarks.gpu_kit.items.absent'" in rows[0]["traceback"]


def test_a_bound_is_kept_by_no_nan():
    assert correctness.judged({"gap": 0.5}, {"gap": 1.0})["ok"]
    assert not correctness.judged({"gap": math.nan}, {"gap": 1.0})["ok"]


@pytest.mark.parametrize("kind", ["qwen2", "llama"])
def test_operations_are_those_that_torch_counts(kind):
    shape = random_models.Shape(kind, 32, 48, 3, 4, 2, 100)
    model = random_models.AutoModelForCausalLM.from_config(shape.config(), attn_implementation="eager").eval()
    ids = torch.arange(7)[None]
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(ids, use_cache=False)
    # The counter takes attention for one without mask, where each token sees all, and it counts the few operations that
    # give positions their angles.
    unseen = 4 * shape.layers * shape.width * (7 * 7 - 7 * 8 // 2)
    expected = counter.get_total_flops() - unseen
    assert flops.of_rows(model.config, [7], 7).forward == pytest.approx(expected, rel=1e-3)
    assert unseen > 1e-2 * expected
    rows = [np.arange(7), np.append(np.arange(6), 9)]  # the second one adds a token that sees seven
    both = flops.of_tree(model.config, Tree.of(rows, least=1).depth, 8)
    more = flops.of_rows(model.config, [7, 1], 8).attention + 6 * flops._attention(model.config)
    assert both.attention == more and both.linear == flops.of_rows(model.config, [8], 8).linear


@pytest.mark.parametrize(
    ("name", "billions"), [("qwen2.5-0.5b", 0.494), ("qwen2.5-1.5b", 1.544), ("smollm2-135m", 0.1345)]
)
def test_shapes_have_as_many_weights_as_the_published_models(name, billions):
    assert weights_of(name) == pytest.approx(billions * 1e9, rel=1e-3)


def test_the_page_has_the_figures_that_there_are_and_a_command_that_fits():
    text = table.PAGE.read_text()
    assert table.page(text, table.committed()) == text, "run python benchmarks/gpu.py table"
    [command] = [block for block in text.split("```") if "--no-index" in block]
    assert "benchmarks/gpu.py short" in command and len(command) <= 2000


def test_rows_of_a_toy_or_of_no_commit_make_no_table(tmp_path):
    machine = {"device": "H100", "driver": "1", "cuda": "13", "versions": {}, "toy": True}
    rows = measurement_log.Journal(tmp_path, machine)
    content = {"figures": {"speed": 1234.5, "gap": 2.0, "bounds": {"gap": 1.0}, "ok": False}}

    def write(**more: object) -> None:
        rows.origin = {**rows.origin, "session": 1.0, "commit": "0000000", **more}
        rows.write("decoding", "passes", 1.0, [], content)

    write()
    with pytest.raises(SystemExit, match="toy"):
        table.result(rows)
    (tmp_path / "rows.jsonl").unlink()
    write(toy=False, commit="0000000-dirty")
    with pytest.raises(SystemExit, match="commit first"):
        table.result(rows)
    write(toy=False)
    text = table.section(json.loads(json.dumps(table.result(rows))))
    assert "| passes | speed 1,234; gap 2 (at most 1) | **no** |" in text and "Measured on one H100" in text


def wheel(folder: Path, name: str, version: str, *needs: str) -> None:
    """A package of nothing but a name and what it needs."""
    about = f"{name}-{version}.dist-info"
    files = {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + "".join(f"Requires-Dist: {need}\n" for need in needs),
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "",
    }
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as packed:
        for path, content in files.items():
            packed.writestr(path, content)


def test_wheels_are_those_that_the_machine_has_not(tmp_path):
    index = tmp_path / "index"
    index.mkdir()
    wheel(
        index,
        "gym_of_ours",
        "1.2.0",
        "numpy>=1",
        "cloud>=2",
        "win-only; sys_platform == 'win32'",
        "extra-of; extra == 'x'",
    )
    wheel(index, "cloud", "2.1.0", "typing-things")
    wheel(index, "typing_things", "4.0")
    wheel(index, "numpy", "2.5.0")
    project = {
        "dependencies": ["gym-of-ours>=1.2,<1.5", "numpy>=2.4"],
        "optional-dependencies": {"train": ["torch>=2.11,<2.16"], "test": ["not-needed"]},
    }
    wanted = pack.needed(project, ["train"])
    where = ("--no-index", "--find-links", str(index))
    present = pack.present_from(["torch==2.11.0+cu130", "NumPy==2.4.1", "typing-things", "# comment"])
    found = pack.missing(wanted, present, tmp_path / "wheels", where)
    assert [path.name.split("-")[0] for path in found] == ["gym_of_ours", "cloud"]
    with pytest.raises(SystemExit, match=r"the machine has torch 2\.9\.0, and torch<2\.16,>=2\.11 is needed"):
        pack.missing(wanted, present | pack.present_from(["torch==2.9.0"]), tmp_path / "wheels", where)
