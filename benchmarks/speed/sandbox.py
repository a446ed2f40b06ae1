"""Cost of a sandbox: a turn, a start, a snapshot, and many of them side by side.

    python -m benchmarks.speed.sandbox        on the engine under DOCKER_HOST, or on this machine's; two minutes

A turn is a command that does nothing, asked of the tool server over the attached stream; beside it stands the same
command by the engine's exec in the same container, which is what most sandboxes do, and the command alone, as a shell
inside starts it; what is beyond that is overhead. Milliseconds of wall time: p50 and p95 over all calls, and the least,
which other programs beside it raise least. A cold start is the time until the first answer of a new container; a warm
one is a lease of the pool, in which the sandbox is emptied for the next. Snapshot and restore are of a workspace of 200
files and 1 MB.

Side by side: containers started by four threads at once, and one command in each of them when all are there. Memory is
the proportional set of a container's processes and of the process by which the engine holds it, idle, the median over
all; absent where the engine's processes cannot be looked at from here.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine, client
from manyturn.containers.inside.archive import FILE, FOLDER, ArchivedPath, pack
from manyturn.containers.pool import SandboxPool
from manyturn.containers.sandbox import SandboxLimits, Snapshot
from manyturn.envs.contract.random_keys import generator

OUT = RESULTS / "sandbox.json"
_FILES, _FILE_BYTES, _FOLDERS = 200, 5000, 20
_THREADS = 4
_COMMAND = ["bash", "-c", "true"]


def times(call: Callable[[], object], repeats: int) -> dict[str, float]:
    """Percentiles in milliseconds over so many calls, after one that is not counted."""
    call()
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        taken.append(1e3 * (time.perf_counter() - began))
    return percentiles(taken)


def percentiles(taken: list[float]) -> dict[str, float]:
    shares = {"least": 0, "p50": 50, "p95": 95}
    return {name: float(f"{np.percentile(taken, p):.3g}") for name, p in shares.items()} | {"n": len(taken)}


def workspace() -> Snapshot:
    """Files of noise in a few folders."""
    rng = generator("sandbox workspace")
    folders = [ArchivedPath(f"d{number:02}", FOLDER) for number in range(_FOLDERS)]
    files = [ArchivedPath(f"d{n % _FOLDERS:02}/f{n:03}.py", FILE, rng.bytes(_FILE_BYTES)) for n in range(_FILES)]
    return Snapshot(*pack(sorted([*folders, *files])))


@contextmanager
def started(engine: ContainerEngine) -> Iterator[DockerSandbox]:
    """A sandbox that answers."""
    sandbox = DockerSandbox(engine)
    sandbox.start()
    try:
        yield sandbox
    finally:
        sandbox.stop()


def by_exec(sandbox: DockerSandbox) -> None:
    """The command as a new process of the engine's."""
    made = client().exec_create(sandbox.name, _COMMAND, user=str(sandbox.agent), workdir="/workspace")
    client().exec_start(made)
    if client().exec_inspect(made)["ExitCode"]:
        raise RuntimeError("the command failed")


def alone(sandbox: DockerSandbox, repeats: int) -> dict[str, float]:
    """The command as a child of a shell inside, twenty at a time: what nobody can save."""
    script = f"for i in $(seq 20); do {' '.join(_COMMAND)}; done"
    taken = times(lambda: sandbox.run(script), repeats // 5), times(lambda: sandbox.run("true"), repeats // 5)
    longer, shorter = taken
    return {name: float(f"{(longer[name] - shorter[name]) / 20:.3g}") for name in ("least", "p50", "p95")} | {
        "n": longer["n"]
    }


def overhead(milliseconds: dict[str, dict[str, float]]) -> dict[str, float]:
    """Time that exec adds to a command, over the time that the tool server adds, at each percentile."""
    names = ("the command alone", "exec, command", "tool server, command")
    alone, exec_, server = (milliseconds[name] for name in names)
    return {name: round((exec_[name] - alone["p50"]) / (server[name] - alone["p50"]), 1) for name in ("p50", "p95")}


def turns(engine: ContainerEngine, repeats: int) -> dict[str, dict[str, float]]:
    """Cost of one turn, and of its parts."""
    full = workspace()
    with started(engine) as sandbox:
        milliseconds = {
            "the command alone": alone(sandbox, repeats // 3),
            "tool server, command": times(lambda: sandbox.run("true"), repeats),
            "exec, command": times(lambda: by_exec(sandbox), repeats // 3),
            "ping": times(sandbox.ping, repeats),
            "write 4 KB": times(lambda: sandbox.write("file", bytes(4096)), repeats),
            "read 4 KB": times(lambda: sandbox.read("file"), repeats),
            "restore 1 MB": times(lambda: sandbox.restore(full), repeats // 5),
            "snapshot 1 MB": times(sandbox.snapshot, repeats // 5),
        }
        if sandbox.snapshot().key != full.key:
            raise RuntimeError("a snapshot differs from what was restored")
    return milliseconds


def starts(engine: ContainerEngine, repeats: int) -> dict[str, dict[str, float]]:
    """From nothing, and from the pool."""

    def cold() -> None:
        with started(engine) as sandbox:
            taken.append(1e3 * (time.perf_counter() - began))
            sandbox.run("true")

    taken: list[float] = []
    for _ in range(repeats // 10):
        began = time.perf_counter()
        cold()
    pool = SandboxPool(2)
    try:

        def warm() -> None:
            with pool.lease(engine) as sandbox:
                sandbox.run("echo x > file")

        return {"start, cold": percentiles(taken), "lease, command and emptying": times(warm, repeats)}
    finally:
        pool.close()


def side_by_side(engine: ContainerEngine, count: int) -> dict[str, Any]:
    """Many at once: how fast they start, what they take, and whether all answer."""
    sandboxes = [DockerSandbox(engine) for _ in range(count)]
    with ThreadPoolExecutor(_THREADS) as threads:
        try:
            began = time.perf_counter()
            list(threads.map(DockerSandbox.start, sandboxes))
            start = time.perf_counter() - began
            began = time.perf_counter()
            answers = list(threads.map(lambda box: box.run("echo $HOSTNAME; pwd").output, sandboxes))
            answer = time.perf_counter() - began
            taken = [memory for box in sandboxes if (memory := memory_of(box)) is not None]
        finally:
            began = time.perf_counter()
            list(threads.map(DockerSandbox.stop, sandboxes))
            stop = time.perf_counter() - began
    return {
        "containers": count,
        "threads": _THREADS,
        "starts a second": round(count / start, 2),
        "answered": sum(answer == "sandbox\n/workspace\n" for answer in answers),
        "seconds until all had answered": round(answer, 3),
        "MB of each, idle": round(median(taken), 2) if taken else None,
        "seconds until all were removed": round(stop, 2),
    }


def memory_of(sandbox: DockerSandbox) -> float | None:
    """MB of the tool server, and of its parent, which belongs to the engine."""
    pid = client().inspect_container(sandbox.name)["State"]["Pid"]
    try:
        parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        return (_proportional(pid) + _proportional(parent)) / 1e6
    except OSError:
        return None


def _proportional(pid: int | str) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def engine_facts() -> dict[str, str]:
    """The engine that answers under DOCKER_HOST."""
    version, info = client().version(), client().info()
    name = (version.get("Components") or [{"Name": "Engine"}])[0]["Name"]
    return {
        "engine": f"{'Docker' if name == 'Engine' else name} {version['Version']}",
        "storage": info["Driver"],
        "cgroups": f"{info['CgroupDriver']}, version {info.get('CgroupVersion', '1')}",
        "cores": str(info["NCPU"]),
    }


def show(record: dict[str, Any]) -> None:
    """Print the table."""
    print(f"{'milliseconds':<32}{'least':>10}{'p50':>10}{'p95':>10}{'n':>6}")
    for name, milliseconds in record["milliseconds"].items():
        print(
            f"{name:<32}{milliseconds['least']:>10}{milliseconds['p50']:>10}{milliseconds['p95']:>10}{milliseconds['n']:>6}"
        )
    times = record["overhead of exec over the tool server's"]
    print(f"exec adds {times['p50']} (p50) and {times['p95']} (p95) times as much to a command as the tool server")
    for name, value in record["side by side"].items():
        print(f"{name:<32}{value}")


def main() -> None:
    parser = argparse.ArgumentParser(description="What a sandbox costs.")
    parser.add_argument("--image", default=ContainerEngine().image)
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--count", type=int, default=64, help="containers side by side")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    about = origin(options.out, ("docker",))
    engine, load = ContainerEngine(image=options.image, limits=SandboxLimits(memory_mb=256)), os.getloadavg()[0]
    milliseconds = turns(engine, options.repeats) | starts(engine, options.repeats)
    record = {
        "engine": engine_facts(),
        "load of the machine before": round(load, 1),
        "image": options.image,
        "milliseconds": milliseconds,
        "overhead of exec over the tool server's": overhead(milliseconds),
        "side by side": side_by_side(engine, options.count),
    }
    show(record)
    write(options.out, about, record)


if __name__ == "__main__":
    main()
