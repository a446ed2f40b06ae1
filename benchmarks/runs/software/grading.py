"""Cost of grading an attempt at a software task, in seconds of processor and clock.

    python -m benchmarks.runs.software.grading --humanevalfix FILE --quixbugs FOLDER

``right`` is the known fix, ``wrong`` a change that fixes nothing. The grader has four decks of questions per problem,
and draws each on its first use: an attempt that has to wait for that is ``right, deck to be drawn``. Processor time is
that of the container and of this process. A busy machine lengthens the clock's seconds: the load average before and
after is in the result. The row in SWE-bench's form is made here.

Needs a container engine; HumanEvalFix, QuixBugs and the libraries' sources are left out where they are missing.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.kit.provenance import RESULTS, ROOT, origin, write
from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine, client
from manyturn.containers.pool import lease
from manyturn.envs.benchmarks.swebench.differential_check import met
from manyturn.envs.benchmarks.swebench.image_preparation import prepare
from manyturn.envs.benchmarks.swebench.log_grader import Resolved
from manyturn.envs.benchmarks.swebench.patch_evaluation import evaluate
from manyturn.envs.benchmarks.swebench.rows import load
from manyturn.envs.software.env import TEST_SECONDS
from manyturn.envs.software.grading.grader import RESOLVED, TIMEOUT, Grade, grade
from manyturn.envs.software.source.file_tree import Changes
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.tasks.task_sources import problems_of

OUT = RESULTS / "grading_speed.json"
RIGHT, DRAWN, WRONG = "right", "right, deck to be drawn", "wrong"
DECKS = 4
Times = dict[str, list[dict[str, float]]]  # attempt -> of each grading


def chosen(source: str | None, split: str, count: int) -> list[Problem]:
    """Problems of a source, spread over those of a split."""
    problems = problems_of(source)
    tasks = problems.tasks.get(split, ())
    places = range(0, len(tasks), max(1, len(tasks) // count))[:count]
    return [problems.problem(tasks[place]) for place in places]


def used(sandbox: DockerSandbox) -> float:
    """Seconds of the processor's time that a container and this process have taken so far.

    The kernel's own counter of the container's group is read: Docker 20.10 sometimes never answers when it is asked for
    a container's figures. So the engine has to run on this machine.
    """
    first = client().inspect_container(sandbox.name)["State"]["Pid"]
    groups = [line.split(":", 2)[1:] for line in Path(f"/proc/{first}/cgroup").read_text().splitlines()]
    for controllers, path in groups:
        if "cpuacct" in controllers.split(","):
            taken = int(Path(f"/sys/fs/cgroup/cpuacct{path}/cpuacct.usage").read_text()) / 1e9
            break
    else:
        figures = Path(f"/sys/fs/cgroup{dict(groups)['']}/cpu.stat").read_text().split()
        taken = int(figures[figures.index("usage_usec") + 1]) / 1e6
    return taken + time.process_time()


def timed(sandbox: DockerSandbox, call: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """A call's result, and its seconds."""
    cpu, wall = used(sandbox), time.perf_counter()
    result = call()
    wall = time.perf_counter() - wall
    return result, {"CPU": used(sandbox) - cpu, "wall": wall}


def attempts(problem: Problem) -> Iterator[tuple[str, dict[str, bytes | None]]]:
    """The known fix, and a change that fixes nothing."""
    yield RIGHT, dict(problem.fix)
    path = min(problem.fix)
    yield WRONG, {path: problem.files.get(path, b"") + b"\n# nothing is fixed\n"}


def grade_attempts(problem: Problem, repeats: int, times: Times) -> None:
    """Add the seconds of grading one problem; an attempt that ends at its deadline is left out."""
    with lease(ContainerEngine()) as sandbox:
        for attempt, changes in attempts(problem):
            names = (DRAWN, RIGHT) if attempt == RIGHT else (WRONG,)
            for repeat in range(repeats):

                def graded(changes: Changes = changes, repeat: int = repeat) -> Grade:
                    return grade(sandbox, problem, changes, TEST_SECONDS, repeat)

                results = {name: timed(sandbox, graded) for name in names}
                if any(result.cause == TIMEOUT for result, _ in results.values()):
                    break
                for name, (result, seconds) in results.items():
                    if (result.cause == RESOLVED) != (attempt == RIGHT):
                        raise SystemExit(f"{problem.id}: the {attempt} attempt is graded {result}")
                    times[name].append(seconds)


def of_problems(problems: list[Problem], repeats: int) -> dict[str, Any]:
    """A row of the result."""
    times: Times = defaultdict(list)
    for problem in problems:
        grade_attempts(problem, repeats, times)
    return {"problems": [problem.id for problem in problems], "attempts": medians(times)}


def of_a_row(repeats: int) -> dict[str, Any]:
    """The same for a row in SWE-bench's form: its image is made here, and its wrong attempts are not measured."""
    sys.path.insert(0, str(ROOT / "tests" / "envs" / "benchmarks" / "swebench"))
    from standin import GOLD, Standin

    times: Times = defaultdict(list)
    standin = Standin(ContainerEngine().image, f"manyturn-standin:speed-{time.time_ns()}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            (row,) = load(standin.write(Path(folder) / "rows.jsonl"))
        prepared = prepare(row, standin.name)
        engine = ContainerEngine(image=prepared.grader, python=prepared.python)
        for repeat in range(repeats):
            sandbox = DockerSandbox(engine)
            sandbox.start()
            try:
                grading, official = timed(sandbox, lambda sandbox=sandbox: evaluate(sandbox, row, GOLD))
                right = grading.resolved is Resolved.FULL
                for attempt in (DRAWN, RIGHT):
                    challenge, more = timed(sandbox, lambda s=sandbox, r=repeat: met(s, row, GOLD, r))
                    right = right and challenge is not None and not challenge.tampered and not challenge.wrong
                    times[attempt].append({name: official[name] + more[name] for name in official})
            finally:
                sandbox.stop()
            if not right:
                raise SystemExit("the row's own patch does not pass")
    finally:
        standin.remove()
    return {"problems": [row.instance], "attempts": medians(times)}


def medians(times: Times) -> dict[str, Any]:
    """Median and largest seconds of each attempt."""
    return {
        attempt: {
            kind: {"median": round(median(values), 3), "most": round(max(values), 3)}
            for kind in ("CPU", "wall")
            if (values := [seconds[kind] for seconds in some])
        }
        | {"n": len(some)}
        for attempt, some in times.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--humanevalfix", type=Path, help="its Python set, a .jsonl")
    parser.add_argument("--quixbugs", type=Path, help="a checkout")
    parser.add_argument("--tasks", type=int, default=6, help="of each kind; one of networkx, whose tests take long")
    parser.add_argument("--repeats", type=int, default=DECKS, choices=range(1, DECKS + 1))
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    about = origin(args.out, ("docker",), humanevalfix=args.humanevalfix, quixbugs=args.quixbugs)
    sources = {"drills": ("drills", "train"), "networkx": (None, "smoke"), "libraries": (None, "train")}
    for name, place in (("humanevalfix", args.humanevalfix), ("quixbugs", args.quixbugs)):
        if place is not None:
            sources[name] = (f"{name}:{place}", "test")
    rows, load_before = list[dict[str, Any]](), os.getloadavg()[0]
    for kind, (source, split) in sources.items():
        if problems := chosen(source, split, 1 if kind == "networkx" else args.tasks):
            rows.append({"kind": kind, **of_problems(problems, args.repeats)})
            print(rows[-1], flush=True)
    rows.append({"kind": "a row in SWE-bench's form", **of_a_row(args.repeats)})
    loads = {"load_average": [round(load_before, 1), round(os.getloadavg()[0], 1)]}
    write(args.out, about, {"unit": "s for one attempt", **loads, "rows": rows})


if __name__ == "__main__":
    main()
