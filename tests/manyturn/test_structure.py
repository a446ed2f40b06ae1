"""The promises about the code base itself."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("envs", "agents", "trainers", "containers")
ON_CONTAINERS = (
    "envs.hosting.handle.container_engine_check",
    "envs.software",
    "envs.benchmarks.swebench",
    "envs.code_interpreter",
    "envs.harbor",
)
FLOORS = {"containers": 0, "envs": 1, "agents": 2, "trainers": 3, "manyturn": 4}


def sources() -> list[Path]:
    return [p for top in (*FOLDERS, "manyturn") for p in (ROOT / top).rglob("*.py") if not _behind_link(p)]


def _behind_link(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return parts[0] == "manyturn" and len(parts) > 1 and parts[1] in FOLDERS


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = parts if parts[0] == "manyturn" else ("manyturn", *parts)
    return ".".join(name).removesuffix(".__init__")


@cache
def nodes(path: Path) -> list[ast.AST]:
    """The syntax of a file; all tests here share it, since parsing takes most of their time."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imports(path: Path) -> set[str]:
    """Modules of this project that a file imports anywhere."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name for name in names if name.split(".")[0] == "manyturn"}
    return found


def floor(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FOLDERS else "manyturn"


def test_imports_only_go_down():
    for path in sources():
        here = floor(module_name(path))
        for module in imports(path):
            there = floor(module)
            assert FLOORS[there] <= FLOORS[here], f"{path.relative_to(ROOT)} on floor {here} imports {module}"
            if there == "containers" and here == "envs":
                name = module_name(path).removeprefix("manyturn.")
                assert name.startswith(ON_CONTAINERS), f"{path} stands on containers"


def test_no_cycles_between_files():
    known = {module_name(path): path for path in sources()}
    graph = {name: {m for m in imports(path) if m in known and m != name} for name, path in known.items()}
    # A name imported from a package's __init__ resolves to the package; the submodule is what is meant.
    state: dict[str, int] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if state.get(name) == 2:
            return
        assert state.get(name) != 1, " -> ".join((*trail[trail.index(name) :], name))
        state[name] = 1
        for other in graph[name]:
            visit(other, (*trail, name))
        state[name] = 2

    for name in graph:
        visit(name, ())


# Rooms of a folder, floor by floor from the ground, and the most arrows between them, counted once for each pair.
# Imports for type checkers count as all others do.
ROOMS = {
    "containers": ([{"inside", "engine"}, {"docker"}], 2),
    "agents": (
        [
            {"text", "tokens"},
            {"model"},
            {"engine"},
            {"play"},
            {"records", "search"},
            {"evaluation"},
            {"experience", "scorecard", "trajectories"},
        ],
        28,
    ),
    "trainers": ([{"credit"}, {"credit_audit", "learn", "play"}, {"recipe"}, {"record"}, {"run"}], 12),
    "trainers/credit": (
        [{"batch"}, {"groups"}, {"advantages", "audit", "modulations", "rewards"}],
        8,
    ),
    "trainers/learn": ([{"passes", "objective"}, {"reading"}, {"heads"}, {"learner"}, {"columns", "ranks"}], 18),
    "trainers/play": ([{"tasks", "guidance"}, {"rollout", "judges"}, {"order"}], 5),
    "trainers/run": ([{"setup"}, {"warmup"}, {"step"}, {"loop"}, {"forecast"}], 7),
    "envs": (
        [
            {"contract"},
            {
                "hosting",
                "tools",
                "web",
                "adventure",
                "clarify",
                "classics",
                "drafts",
                "household",
                "openenv",
                "packages",
                "pivot",
                "verifiers",
            },
            {"conformance", "laboratory", "ors", "software", "users", "shop"},
            {"benchmarks", "code_interpreter", "desk", "harbor", "search", "sql", "talk"},
        ],
        51,
    ),
    "envs/contract": ([{"tasks"}, {"env", "options"}, {"registration", "wrappers"}], 7),
    "envs/shop": ([{"search"}, {"catalogue"}, {"pages", "webshop"}, {"reward"}, {"browser", "generated"}], 12),
    "envs/hosting": ([{"handle"}, {"local"}, {"remote"}], 3),
    "envs/software": ([{"source"}, {"testing"}, {"grading", "mutation"}, {"tasks", "workspace"}], 12),
    "manyturn": (
        [
            {"export", "recipes", "report"},
            {"terminal"},
            {"api", "integrations", "serving"},
            {"audit", "suites"},
            {"cli"},
        ],
        20,
    ),
}


@pytest.mark.parametrize("folder", ROOMS)
def test_imports_between_rooms_only_go_down(folder):
    floors, most = ROOMS[folder]
    floor_of = {room: number for number, rooms in enumerate(floors) for room in rooms}
    rooms = {path.name for path in (ROOT / folder).iterdir() if (path / "__init__.py").exists()}
    assert rooms - (set(FOLDERS) if folder == "manyturn" else set()) == set(floor_of)
    prefix, arrows = "manyturn." if folder == "manyturn" else f"manyturn.{folder.replace('/', '.')}.", set()
    for path in sources():
        if not path.is_relative_to(ROOT / folder) or (here := path.relative_to(ROOT / folder).parts[0]) not in floor_of:
            continue
        for module in imports(path):
            there = module.removeprefix(prefix).partition(".")[0]
            if there != module and there in floor_of and there != here:
                assert floor_of[there] < floor_of[here], f"{path.relative_to(ROOT)} imports {module}, not below it"
                arrows.add((here, there))
    assert len(arrows) <= most, sorted(arrows)


ALGORITHMS = (
    *(f"trainers/credit/{stage}" for stage in ("rewards", "advantages", "modulations")),
    "trainers/learn/columns",
    "trainers/learn/objective/objectives",
    "trainers/play/tasks/curricula",
    "envs/contract/wrappers",
    "agents/text/contexts",
    "agents/engine/engines",
    "agents/text/formats",
    "agents/text/inner_turns",
    "agents/experience/methods",
    "agents/experience/retrieval/rankings",
    "agents/search/methods",
    "agents/search/values",
    "agents/model/models",
    "trainers/record/trackers/loggers",
)


@pytest.mark.parametrize("folder", ALGORITHMS)
def test_a_folder_of_algorithms_lists_them_and_nothing_else(folder):
    files = [path for path in (ROOT / folder).glob("*.py") if path.name != "__init__.py"]
    assert files and [path.name for path in files if ".register(" not in path.read_text(encoding="utf-8")] == []


def test_a_benchmark_registers_nothing_by_being_imported():
    """Other tests of the same process would see it."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "benchmarks").rglob("*.py")}
    functions = [
        (path, node) for path, tree in trees.items() for node in tree.body if isinstance(node, ast.FunctionDef)
    ]
    assert [
        str(path) for path, node in functions if ".register(" in "".join(map(ast.unparse, node.decorator_list))
    ] == []


# More than algorithms: every family of environments, and the environments and recipes that are one file each.
FAMILIES = ("envs", "envs/classics", "manyturn/recipes")


def test_a_folder_has_few_enough_entries_to_read_at_a_glance():
    """Four to twelve: ``__init__.py``, which says what the room is for, makes three modules four entries."""
    entries: dict[str, set[str]] = {}
    for path in sources():
        parts = path.relative_to(ROOT).parts
        for depth in range(1, len(parts)):
            entries.setdefault("/".join(parts[:depth]), set()).add(parts[depth])
    sizes = {folder: len(names - {"__init__.py"}) for folder, names in entries.items()}
    assert not {
        folder: size for folder, size in sizes.items() if not 3 <= size <= 12 and folder not in (*ALGORITHMS, *FAMILIES)
    }


OF_TUPLES = {"_asdict", "_replace", "_make", "_fields"}  # public, in spite of their names


def test_nobody_touches_the_privates_of_another_object():
    """What is behind a seam can be replaced only where nothing reaches through it: engines above all."""
    touched = [
        f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}"
        for path in sources()
        if path.relative_to(ROOT).parts[0] in ("agents", "trainers", "manyturn")
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        if node.attr not in OF_TUPLES and ast.unparse(node.value) not in ("self", "cls", "super()")
    ]
    assert not touched


def test_nobody_knows_which_engine_draws():
    """Whoever names an engine's class cannot draw with another one: only its own factory does."""
    named = {
        str(path.relative_to(ROOT))
        for path in sources()
        for module in imports(path)
        if module.startswith("manyturn.agents.engine.transformers_engine")
    }
    assert named == {"agents/engine/engines/transformers.py"}


def test_files_stay_short_enough_to_read():
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources()}
    assert not [(str(p), n) for p, n in sizes.items() if n > 500]
    assert sizes[ROOT / "trainers" / "run" / "loop" / "loop.py"] < 300
    assert sorted(sizes.values())[len(sizes) // 2] <= 150


def test_functions_stay_short_enough_to_read():
    """60 lines besides the docstring, which is a command's help or the page of a public function."""
    long = {}
    for path in sources():
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
                length = (node.end_lineno or 0) - first.lineno + 1 + node.body[0].lineno - node.lineno
                if length > 60:
                    long[f"{path.relative_to(ROOT)}:{node.name}"] = length
    assert not long


def test_import_is_light():
    """A laptop that lists environments must not wait for torch."""
    code = "import sys, gymnasium; old = set(sys.modules); import manyturn; print(*(set(sys.modules) - old))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    added = set(found.stdout.split())
    assert "manyturn" in added and len(added) <= 10, f"more than Gymnasium and the list of ids: {sorted(added)}"
    assert {name.partition(".")[0] for name in added} <= {"manyturn", "difflib"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_folders_refuse_to_be_top_level_packages(folder):
    found = subprocess.run(
        [sys.executable, "-c", f"import {folder}"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert found.returncode and f"import manyturn.{folder}" in found.stderr


def test_dangerous_calls_are_absent():
    """What a model writes is hostile: no way to run it may stand anywhere."""
    for path in sources():
        for node in nodes(path):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert name not in {"eval", "exec", "pickle.load", "pickle.loads", "yaml.load", "os.system"}, (
                    f"{path}: {name}"
                )
                keywords = {k.arg: ast.unparse(k.value) for k in node.keywords if k.arg}
                assert keywords.get("shell") != "True", path
                assert keywords.get("trust_remote_code", "False") == "False", path
                assert keywords.get("weights_only", "True") == "True", path


# Where processes start, and the limit that each has. No other place starts any.
SUPERVISED, SANDBOXED, OUR_OWN = "WorkerLimits", "a sandbox's limits", "runs code of ours, and ends with its parent"
PROCESSES = {
    "envs/hosting/local/worker.py": SUPERVISED,
    "envs/hosting/local/subprocess_call.py": SUPERVISED,
    "envs/hosting/handle/process_reaper.py": OUR_OWN,
    "envs/hosting/remote/ray_seats.py": OUR_OWN,
    "trainers/run/setup/ranks/machine_processes.py": OUR_OWN,
    "envs/benchmarks/engine_process.py": OUR_OWN,  # its worker's limits count it too, and each call has a deadline
    "envs/benchmarks/appworld/launcher_main.py": OUR_OWN,
    "containers/engine/images.py": OUR_OWN,
    "containers/inside/commands.py": SANDBOXED,
    "envs/software/grading/standalone_grader.py": SANDBOXED,
    "envs/software/testing/standalone_runner.py": SANDBOXED,
}
STARTS = {
    "subprocess": {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
    "os": {"fork", "forkpty", "system", "popen", "posix_spawn", "posix_spawnp"}
    | {f"{start}{form}" for start in ("exec", "spawn") for form in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")},
    "multiprocessing": {"Process", "Pool", "get_context"},
    "pty": {"spawn", "fork"},
}


def test_every_place_that_starts_a_process_has_a_limit():
    """What other people wrote runs under ``WorkerLimits`` or in a sandbox; a tool is given a time limit there."""
    places = set()
    for path in sources():
        for node in nodes(path):
            if _starts(node):
                places.add(path.relative_to(ROOT).as_posix())
            if isinstance(node, ast.ImportFrom):
                assert node.module != "concurrent.futures" or "ProcessPoolExecutor" not in {a.name for a in node.names}
                assert node.module not in STARTS or not STARTS[node.module] & {a.name for a in node.names}, path
    timed = {place for place in places - PROCESSES.keys() if _are_timed(ROOT / place)}
    assert places == PROCESSES.keys() | timed, places ^ (PROCESSES.keys() | timed)
    for place in (place for place, limit in PROCESSES.items() if limit is SUPERVISED):
        assert "manyturn.envs.hosting.handle.env_spec_message.KEEPER" in imports(ROOT / place), place


def _starts(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.attr in STARTS.get(node.value.id, ())
    )


def _are_timed(path: Path) -> bool:
    """Every process of a file is waited for with a time limit."""
    calls = [node for node in nodes(path) if isinstance(node, ast.Call) and _starts(node.func)]
    return all("timeout" in {word.arg for word in call.keywords} for call in calls)
