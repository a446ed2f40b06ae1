"""Several ranks that learn something else than one, that hang when one of them dies, or that cannot be resumed.

The commands of docs/ranks.md run here, with another environment and recipe.
"""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import tomli_w
from rank_recipe import RECIPE, STEPS, apart_after_all, same_bits
from torchrun import Torchrun
from two_steps import ROUNDING

import manyturn
from manyturn.trainers.record.checkpoint import read_tensors

pytestmark = pytest.mark.versions

SCARCE = Path(__file__).with_name("scarce_ranks.py")


class Runs:
    """Runs of the recipe in a folder, unbroken ones once for each number of ranks."""

    def __init__(self, folder: Path):
        self.folder, self._done = folder, dict[int, Path]()
        (folder / "recipe.toml").write_text(tomli_w.dumps(RECIPE))

    def new(self, name: str) -> tuple[object, ...]:
        return "--recipe", self.folder / "recipe.toml", "--out", self.folder / name

    def begin(self, name: str, ranks: int, *words: object) -> Torchrun:
        words = words or self.new(name)
        return Torchrun(ranks, "-m", "manyturn", "train", *words, log=self.folder / f"{name}-{ranks}.log")

    def resume(self, name: str, ranks: int, *words: object) -> Path:
        run = self.begin(f"{name}", ranks, "--resume", self.folder / name, *words)
        status, said = run.ended()
        assert status == 0 and not run.left(), said
        return self.folder / name

    def unbroken(self, ranks: int) -> Path:
        if ranks not in self._done:
            run = self.begin(f"unbroken-{ranks}", ranks)
            status, said = run.ended()
            assert status == 0 and not run.left(), said
            assert said.count("step        1") == 1, "only one rank says what happens"
            self._done[ranks] = self.folder / f"unbroken-{ranks}"
        return self._done[ranks]

    def after(self, name: str, step: int) -> Callable[[], bool]:
        """Whether a run has a checkpoint of that step."""
        return (self.folder / name / f"checkpoints/step_{step:06d}").is_dir


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("ranks"))


@pytest.mark.deep
def test_each_rank_writes_its_share_of_a_checkpoint_which_one_process_reads_whole(runs):
    one, two = (run / f"checkpoints/step_{STEPS:06d}" for run in (runs.unbroken(1), runs.unbroken(2)))
    files = {path.name for path in (two / "learner.shards").iterdir()}
    assert files == {"rank-0.safetensors", "rank-1.safetensors", "index.json"}
    assert (one / "learner.safetensors").is_file() and not (two / "learner.safetensors").exists()
    sizes = [(two / f"learner.shards/rank-{rank}.safetensors").stat().st_size for rank in (0, 1)]
    assert max(sizes) < 0.6 * (one / "learner.safetensors").stat().st_size, "a rank wrote what another one has"
    ours, theirs = read_tensors(two), read_tensors(one)
    assert {name: value.shape for name, value in ours.items()} == {name: value.shape for name, value in theirs.items()}
    assert manyturn.load_policy(str(runs.unbroken(2))) is not None


@pytest.mark.deep
def test_two_ranks_end_on_the_weights_of_one(runs):
    """The bound is that of another order of sums in float32, which Adam's division by small gradients makes larger."""
    one, two = runs.unbroken(1), runs.unbroken(2)
    assert 0 < apart_after_all(one, two) < ROUNDING, "0 would mean that nothing was shared out"
    lines = [[json.loads(line) for line in (run / "metrics.jsonl").open()] for run in (one, two)]
    for ours, theirs in zip(*lines, strict=True):
        assert ours.keys() == theirs.keys() and ours.get("drawn_tokens") == theirs.get("drawn_tokens")


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_is_killed_ends_the_others_and_the_run_goes_on_to_the_same_bits(runs, rank):
    name = f"killed-{rank}"
    run = runs.begin(name, 2, *runs.new(name), "--env.workers", 2)
    run.kill(rank, runs.after(name, 2))
    status, said = run.ended(within=60)
    assert status == 1 and not run.left(), "a rank outlived another one"
    assert "another process of this run has ended" in said, said
    assert same_bits(runs.resume(name, 2), runs.unbroken(2))


@pytest.mark.slow
@pytest.mark.parametrize(("first", "then"), [(2, 1), (1, 2)])
def test_a_run_goes_on_with_another_number_of_ranks(runs, first, then):
    name = f"from {first} to {then}"
    run = runs.begin(name, first)
    run.signal(signal.SIGTERM, runs.after(name, 1))
    run.ended(within=60)
    assert not run.left()
    steps = sorted((runs.unbroken(1).parent / name / "checkpoints").iterdir())
    assert steps[-1].name < f"step_{STEPS:06d}", "it was over before the signal"
    assert apart_after_all(runs.resume(name, then), runs.unbroken(1)) < ROUNDING


@pytest.mark.slow
def test_bad_input_and_a_run_that_is_over_leave_no_rank_waiting(runs):
    folder = runs.unbroken(2)
    assert runs.resume(folder.name, 2) == folder
    again = runs.begin("again", 2, "--recipe", folder.parent / "recipe.toml", "--out", folder)
    status, said = again.ended(within=60)
    assert status == 1 and not again.left() and "manyturn: " in said, said
    engine = runs.begin("vllm", 2, "--recipe", folder.parent / "recipe.toml", "--engine.name", "vllm")
    status, said = engine.ended(within=60)
    assert status == 1 and not engine.left() and "starts processes of its own next to the 2 ranks" in said, said


@pytest.mark.slow
def test_rank_0_needs_no_memory_for_what_others_hold_and_nothing_is_set_in_vain(runs):
    adapters = ("--learner.lora-rank", 4, "--learner.lora-layers", "[1, 2]", "--model.layers", 2)
    taken = dict[int, float]()
    for ranks in (1, 2):
        words = (SCARCE, 1000, "train", *runs.new("scarce"))
        run = Torchrun(ranks, *words, log=runs.folder / f"scarce-{ranks}.log")
        status, said = run.ended(within=60)
        assert status == 1 and not run.left(), said
        number, unit = re.search(r"training takes ([\d.]+) (kB|MB)", said).groups()
        taken[ranks] = float(number) * {"kB": 1, "MB": 1e3}[unit]
    assert taken[2] == pytest.approx(taken[1] * 3 / 4, rel=0.01), "weights, and half of four times them"
    run = runs.begin("states", 2, *runs.new("states"), *adapters, "--learner.states-gb", 2)
    status, said = run.ended(within=60)
    assert status == 1 and "learner.states_gb = 2 has no effect with 2 ranks" in said and not run.left(), said
    run = Torchrun(2, SCARCE, 1000, "train", *runs.new("scarce"), *adapters, log=runs.folder / "adapters.log")
    status, said = run.ended(within=60)
    assert status == 1 and not run.left() and re.search(r"training takes [\d.]+ [kM]B, ", said), said


def test_a_script_that_torchrun_would_run_twice_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="-m manyturn train"):
        manyturn.train("manyturn/Maze-v0", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
