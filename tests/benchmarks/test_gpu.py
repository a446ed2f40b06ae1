"""A kit for GPUs that no longer runs when somebody has one at last, or measures something else than it says."""

import json
import math
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import gpu
import gpu_correctness
import gpu_flops
import gpu_items
import gpu_pack
import gpu_shapes
import gpu_table
from gpu_device import Device

from manyturn.agents.model.model_config import MODELS


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """The kit's own model is known to no test after these."""
    MODELS.names()
    monkeypatch.setattr(MODELS, "_entries", dict(MODELS._entries))


def measure(monkeypatch, *words: object) -> int:
    """``python benchmarks/gpu.py WORDS`` at toy size."""
    monkeypatch.setattr(sys, "argv", ["gpu.py", *map(str, words), "--toy", "--device", "cpu"])
    with pytest.raises(SystemExit) as ended:
        gpu.main()
    return int(ended.value.code or 0)


def figures(folder: Path, part: str) -> dict[str, dict]:
    return {row["item"]: row["figures"] for row in gpu_items.read(folder / f"{part}.jsonl")}


def test_a_cpu_keeps_the_bounds_of_correctness(monkeypatch, tmp_path):
    assert measure(monkeypatch, "correctness", "--journal", tmp_path) == 0
    found = figures(tmp_path, "correctness")
    assert len(found) == 6
    assert all(row["ok"] for row in found.values()), found
    assert 0 < found["gradients, float32"]["gradient"] < found["gradients, bfloat16"]["gradient"]


def test_the_learner_s_speed_has_its_figures(monkeypatch, tmp_path):
    assert measure(monkeypatch, "learner", "--journal", tmp_path) == 0
    for name, row in figures(tmp_path, "learner").items():
        assert "error" not in row, row
        if name != "product of matrices":
            assert row["update_tokens_per_s"] > 0 and row["update_share_of_product"] > 0 and row["peak_gb"] > 0


def test_memory_is_measured_next_to_its_prediction(monkeypatch, tmp_path):
    assert measure(monkeypatch, "memory", "--journal", tmp_path) == 0
    found = figures(tmp_path, "memory")
    assert any(name.startswith("fits ") for name in found["what manyturn doctor says"])
    row = found["toy"]
    kept = 16 * weights_of("toy") / 1e9
    assert row["learning_predicted_gb"] > kept and row["learning_over_predicted"] > 0
    assert row["drawing_predicted_gb"] == pytest.approx(kept + 0.001)
    assert min(row["learning_gb"], row["drawing_gb"]) > 0.01  # this process


def weights_of(name: str) -> int:
    return sum(p.numel() for p in gpu_shapes.random_model(name, torch.device("meta")).parameters())


@pytest.mark.slow
def test_rollouts_have_a_row_for_each_way_and_an_engine_that_is_absent_is_named(monkeypatch, tmp_path):
    assert measure(monkeypatch, "rollout", "--journal", tmp_path) == 0
    found = figures(tmp_path, "rollout")
    assert len(found) == 7 and not any("error" in row for row in found.values()), found
    for name, row in found.items():
        if "environments" in name:
            assert row["turns"] > row["episodes"] and row["share"] > 0
        elif "not measured" not in row:
            assert row["drawn_tokens_per_s"] > 0
        else:
            assert (name, row) == ("toy: vllm", {"not measured": "vllm is not installed here"})


def test_a_step_on_household_is_played_and_learnt_from(monkeypatch, tmp_path):
    where = ("--journal", tmp_path / "journal", "--work", tmp_path / "work")
    assert measure(monkeypatch, "household", *where) == 0
    played, learnt = figures(tmp_path / "journal", "household").values()
    assert (played["episodes"], played["turns"]) == (4, 12) and played["drawn_tokens"] <= 12 * 8
    assert learnt["updates"] == 1 and learnt["trained_tokens"] > played["drawn_tokens"]
    assert learnt["engine_ratio_p99"] < 1.01


@pytest.mark.slow
def test_a_model_from_a_folder_is_measured_before_and_after(monkeypatch, tmp_path):
    where = ("--journal", tmp_path / "journal", "--work", tmp_path / "work")
    assert measure(monkeypatch, "smollm2", *where) == 0
    [row] = figures(tmp_path / "journal", "smollm2").values()
    assert row["tasks"] == 2 and row["steps"] == 1 and 0 <= row["after_success"] <= 1 and row["panel"]


def row_of(item: gpu_items.Item, folder: Path, minutes: float = 1.0) -> tuple[list[str], dict[str, dict]]:
    device = Device("cpu")
    journal = gpu_items.Journal(folder, "some", gpu_items.origin(device, toy=True))
    return gpu_items.run([item], journal, device, minutes), figures(folder, "some")


def test_what_is_known_is_not_measured_twice_and_what_failed_is(tmp_path):
    calls = []

    def fails_once() -> dict[str, int]:
        calls.append(1)
        if len(calls) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return {"calls": len(calls)}

    item = gpu_items.Item("fails once", 1, fails_once)
    assert row_of(item, tmp_path) == ([], {"fails once": {"error": "OutOfMemoryError: CUDA out of memory"}})
    with (tmp_path / "some.jsonl").open("a") as file:
        file.write('{"part": "some", "it')  # the machine was taken away
    for _ in range(2):
        assert row_of(item, tmp_path) == ([], {"fails once": {"calls": 2}})


def test_an_item_without_time_waits_and_one_without_end_is_given_up(tmp_path):
    left, found = row_of(gpu_items.Item("long", 90, dict), tmp_path)
    assert (left, found) == (["long"], {})
    left, found = row_of(gpu_items.Item("endless", 0.05, lambda: [None for _ in iter(int, 1)]), tmp_path)
    assert left == [] and found["endless"]["error"].startswith("did not end within")


def test_a_bound_is_kept_by_no_nan():
    assert gpu_correctness.judged({"gap": 0.5}, {"gap": 1.0})["ok"]
    assert not gpu_correctness.judged({"gap": math.nan}, {"gap": 1.0})["ok"]


@pytest.mark.parametrize("kind", ["qwen2", "llama"])
def test_operations_are_those_that_torch_counts(kind):
    shape = gpu_shapes.Shape(kind, 32, 48, 3, 4, 2, 100)
    model = gpu_shapes.AutoModelForCausalLM.from_config(shape.config(), attn_implementation="eager").eval()
    ids = torch.arange(7)[None]
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(ids, use_cache=False)
    # The counter takes attention for one without mask, where each token sees all, and it counts the few operations that
    # give positions their angles.
    unseen = 4 * shape.layers * shape.width * (7 * 7 - 7 * 8 // 2)
    expected = counter.get_total_flops() - unseen
    assert gpu_flops.forward_flops(model.config, [7], 7) == pytest.approx(expected, rel=1e-3)
    assert unseen > 1e-2 * expected


@pytest.mark.parametrize(
    ("name", "billions"), [("qwen2.5-0.5b", 0.494), ("qwen2.5-1.5b", 1.544), ("smollm2-135m", 0.1345)]
)
def test_shapes_have_as_many_weights_as_the_published_models(name, billions):
    model = gpu_shapes.random_model(name, torch.device("meta"))
    assert sum(p.numel() for p in model.parameters()) == pytest.approx(billions * 1e9, rel=1e-3)


def test_the_page_has_the_figures_that_there_are():
    text = gpu_table.PAGE.read_text()
    assert gpu_table.page(text, gpu_table.known()) == text, "run python benchmarks/gpu_table.py"


def test_rows_of_a_toy_or_of_two_commits_make_no_table(monkeypatch, tmp_path):
    row_of(
        gpu_items.Item("one", 1, lambda: {"speed": 1234.5, "gap": 2.0, "bounds": {"gap": 1.0}, "ok": False}), tmp_path
    )
    rows = gpu_table.collected(tmp_path)
    with pytest.raises(SystemExit, match="toy sizes are no result"):
        gpu_table.write(rows, tmp_path / "gpu.json")
    gpu_table.write([row | {"toy": False} for row in rows], tmp_path / "gpu.json")
    told = gpu_table.section(gpu_table.known(tmp_path / "gpu.json"))
    assert "| one | speed 1,234; gap 2 (at most 1) | **no** |" in told and "Measured on one cpu" in told
    (tmp_path / "other.jsonl").write_text(json.dumps(rows[0] | {"commit": "0000000", "item": "two"}) + "\n")
    with pytest.raises(SystemExit, match="rows differ in commit"):
        gpu_table.collected(tmp_path)


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
        "project": {
            "dependencies": ["gym-of-ours>=1.2,<1.5", "numpy>=2.4"],
            "optional-dependencies": {"train": ["torch>=2.11,<2.16"], "test": ["nobody-has-this"]},
        }
    }
    wanted = gpu_pack.needed(project, ["train"])
    where = ("--no-index", "--find-links", str(index))
    present = gpu_pack.present_from(["torch==2.11.0+cu130", "NumPy==2.4.1", "typing-things", "# comment"])
    found = gpu_pack.missing(wanted, present, tmp_path / "wheels", where)
    assert [path.name.split("-")[0] for path in found] == ["gym_of_ours", "cloud"]
    with pytest.raises(SystemExit, match=r"the machine has torch 2\.9\.0, and torch<2\.16,>=2\.11 is needed"):
        gpu_pack.missing(wanted, present | gpu_pack.present_from(["torch==2.9.0"]), tmp_path / "wheels", where)


def test_no_trip_is_larger_than_a_trip(tmp_path):
    (tmp_path / "aside").mkdir()
    for number, size in enumerate((30, 50, 40, 20)):
        (tmp_path / "aside" / f"{number}.whl").write_bytes(b"x" * size)
    places = gpu_pack.trips((tmp_path / "aside").iterdir(), tmp_path / "wheels", room=80)
    sizes = [sorted(file.stat().st_size for file in place.iterdir()) for place in places]
    assert (sizes, places[1].name) == ([[30, 50], [20, 40]], "wheels-2")
    (tmp_path / "aside" / "large.whl").write_bytes(b"x" * 81)
    with pytest.raises(SystemExit, match="more than a trip holds"):
        gpu_pack.trips((tmp_path / "aside").iterdir(), tmp_path / "others", room=80)


def test_weights_in_two_parts_are_the_same_weights_or_none(tmp_path):
    (tmp_path / "model.gguf").write_bytes(content := bytes(range(251)) * 9)
    parts = gpu_pack.split(tmp_path / "model.gguf", tmp_path / "kit")
    assert gpu_pack.join(tmp_path / "kit").read_bytes() == content
    (parts[1] / "content").write_bytes((parts[1] / "content").read_bytes()[:-1] + b"?")
    with pytest.raises(SystemExit, match=r"the checksum of model\.gguf differs"):
        gpu_pack.join(tmp_path / "kit")
    shutil.rmtree(parts[0])
    with pytest.raises(SystemExit, match="has 1 parts, not all of one file"):
        gpu_pack.join(tmp_path / "kit")
