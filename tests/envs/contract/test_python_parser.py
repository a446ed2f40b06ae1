"""Source that fails to be parsed because something else is parsed in the middle of it."""

import ast
import gc
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from manyturn.envs.contract import python_parser

ENVS = Path(python_parser.__file__).parents[1]


def deep(level: int) -> str:
    return "\n".join(f"x = {'f(' * level}{', '.join(map(str, range(20)))}{')' * level}" for _ in range(20))


def test_a_tree_is_not_ended_by_threads_and_finalizers_that_parse():
    """Garbage that is collected in the middle of a tree runs finalizers and lets another thread in."""

    def at_depth(thread: int, frames: int) -> list[str]:
        if frames:
            return at_depth(thread, frames - 1)
        return [ast.dump(python_parser.parse(deep(5 + thread))) for _ in range(10)]

    def let_others_in(phase: str, info: object) -> None:
        ast.parse("1 + (2 * 3)")  # as a traceback does that a finalizer writes
        time.sleep(0.0001)

    threshold = gc.get_threshold()
    gc.callbacks.append(let_others_in)
    gc.set_threshold(200)
    try:
        with ThreadPoolExecutor(3) as pool:
            trees_N = list(pool.map(at_depth, range(3), (10, 40, 70)))
    finally:
        gc.callbacks.remove(let_others_in)
        gc.set_threshold(*threshold)
    assert [set(trees) for trees in trees_N] == [{ast.dump(ast.parse(deep(5 + thread)))} for thread in range(3)]


def test_environments_parse_by_way_of_the_lock():
    files = [file.name for file in ENVS.rglob("*.py") if "ast.parse(" in file.read_text(encoding="utf-8")]
    assert files == ["python_parser.py"]
