"""Source that is parsed in one thread and fails because another one parses, too."""

import ast
import gc
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from manyturn.envs.contract import python_syntax

ENVS = Path(python_syntax.__file__).parents[1]


def deep(level: int) -> str:
    return "\n".join(f"x = {'f(' * level}{', '.join(map(str, range(20)))}{')' * level}" for _ in range(20))


def test_threads_that_parse_at_once_do_not_end_each_other():
    """Collecting garbage in the middle of a tree lets another thread in, as it does in long runs."""

    def at_depth(thread: int, frames: int) -> list[str]:
        if frames:
            return at_depth(thread, frames - 1)
        return [ast.dump(python_syntax.parse(deep(5 + thread))) for _ in range(10)]

    def let_others_in(phase: str, info: object) -> None:
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
    assert files == ["python_syntax.py"]
