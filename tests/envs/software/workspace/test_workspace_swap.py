"""What episodes leave while they rest must take no memory of the trainer's, come back to the byte, and be bounded."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.software.workspace.workspace_swap import ParkedFiles

NOISE = os.urandom(200_000)


@given(st.lists(st.lists(st.binary(max_size=300), max_size=3), max_size=12), st.data())
def test_what_is_laid_down_comes_back_in_any_order(loads: list[list[bytes]], data: st.DataObject) -> None:
    spool = ParkedFiles()
    held = [(spool.lay_down(parts), parts) for parts in loads]
    while held:
        parcel, parts = held.pop(data.draw(st.integers(0, len(held) - 1)))
        assert parcel is not None and spool.take_up(parcel) == parts
        if parts[:1] != [b"again"] and data.draw(st.booleans()):
            held.append((spool.lay_down([b"again", *parts]), [b"again", *parts]))
    assert spool.held() == 0


def test_room_is_used_again_and_what_is_forgotten_takes_none() -> None:
    spool = ParkedFiles()
    parcels = [spool.lay_down([NOISE]) for _ in range(4)]
    del parcels[1]
    size = spool.held()
    assert size < 3.1 * len(NOISE)
    kept = spool.lay_down([NOISE])
    assert spool._file is not None and os.fstat(spool._file.fileno()).st_size < 4.1 * len(NOISE)
    parcels.clear()
    assert kept is not None and spool.take_up(kept) == [NOISE]
    assert spool.held() == 0 == os.fstat(spool._file.fileno()).st_size


def test_beyond_the_budget_the_largest_go_and_nobody_else_does() -> None:
    spool = ParkedFiles(budget=500_000)
    small = [spool.lay_down([bytes([n]) * 5000]) for n in range(20)]
    large = [spool.lay_down([NOISE[:size]]) for size in (150_000, 160_000)]
    whole = spool.lay_down([NOISE])
    assert whole is not None and spool.take_up(whole) is None
    assert all(parcel is not None and spool.take_up(parcel) for parcel in (*small, *large))


def test_a_disk_without_room_is_said_and_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    spool = ParkedFiles()
    kept = spool.lay_down([b"x"])
    monkeypatch.setattr(os, "pwrite", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    assert spool.lay_down([NOISE]) is None
    assert kept is not None and spool.take_up(kept) == [b"x"] and spool.held() == 0


def test_threads_do_not_mix_their_files() -> None:
    spool, wrong = ParkedFiles(), list[int]()

    def work(number: int) -> None:
        for turn in range(30):
            parts = [os.urandom(50) * (1 + (number * turn) % 40)]
            parcel = spool.lay_down(parts)
            if parcel is None or spool.take_up(parcel) != parts:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and spool.held() == 0


RESTING = """
import resource
from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.containers.inside.archive import pack
from manyturn.containers.sandbox import Snapshot
from manyturn.envs.software.workspace import episode_sandbox
from pathlib import Path

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20

empty = episode_sandbox.Files(Snapshot(*pack([])))
sandboxes = [episode_sandbox.EpisodeSandbox(ContainerEngine(), empty) for _ in range(6)]
keys = []
for number, one in enumerate(sandboxes):
    assert one.run("head -c 12M /dev/urandom > noise; head -c 1M /dev/urandom > /tmp/noise; md5sum noise /tmp/noise")
    keys.append(one.run("md5sum noise /tmp/noise").output)
    if number == 1:
        before = resident()
grown = resident() - before
assert episode_sandbox._spool.held() > 60 << 20
for one, key in zip(sandboxes, keys):
    assert one.run("md5sum noise /tmp/noise").output == key
    one.close()
assert episode_sandbox._spool.held() == 0
print(grown)
"""


@pytest.mark.slow
def test_episodes_that_rest_take_no_memory_of_the_trainer(engine: str) -> None:
    environ = {**os.environ, "MANYTURN_SANDBOXES": "1"}
    ran = subprocess.run([sys.executable, "-c", RESTING], env=environ, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < 25, "megabytes, of 52 that four of them hold"


def test_nothing_is_left_of_a_process_that_is_killed(tmp_path: Path) -> None:
    code = "import os; from manyturn.envs.software.workspace.workspace_swap import ParkedFiles\n"
    code += "ParkedFiles().lay_down([os.urandom(9999)]); os._exit(9)"
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", code], env=environ, check=False).returncode == 9
    assert not list(tmp_path.iterdir())
