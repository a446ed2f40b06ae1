"""Source that is parsed in one thread and fails because another one parses, too."""

import ast
import gc
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from manyturn.envs.software.source import syntax

SOFTWARE = Path(syntax.__file__).parent


def deep(level: int) -> str:
    return "\n".join(f"x = {'f(' * level}{', '.join(map(str, range(20)))}{')' * level}" for _ in range(20))


def test_threads_that_parse_at_once_do_not_end_each_other():
    """Collecting garbage in the middle of a tree lets another thread in, as it does in long runs."""

    def at_depth(thread: int, frames: int) -> list[str]:
        if frames:
            return at_depth(thread, frames - 1)
        return [ast.dump(syntax.parse(deep(5 + thread))) for _ in range(10)]

    def let_others_in(phase: str, info: object) -> None:
        time.sleep(0.0001)

    threshold = gc.get_threshold()
    gc.callbacks.append(let_others_in)
    gc.set_threshold(200)
    try:
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(at_depth, range(3), (10, 40, 70)))
    finally:
        gc.callbacks.remove(let_others_in)
        gc.set_threshold(*threshold)
    assert [set(trees) for trees in found] == [{ast.dump(ast.parse(deep(5 + thread)))} for thread in range(3)]


def test_whatever_grades_parses_by_way_of_the_lock():
    found = [file.name for file in SOFTWARE.rglob("*.py") if "ast.parse(" in file.read_text()]
    assert found == ["syntax.py"]
