"""Files in the layouts of HumanEvalFix, QuixBugs and Exercism, with content of our own."""

import json
from pathlib import Path

ROW = {
    "task_id": "Python/0",
    "prompt": "",
    "declaration": "def twice(number: int) -> int:\n",
    "canonical_solution": "    return number + number\n",
    "buggy_solution": "    return number * number\n",
    "test": "\n\ndef check(twice):\n    assert twice(2) == 4\n    assert twice(3) == 6\n\ncheck(twice)",
    "entry_point": "twice",
    "signature": "twice(number: int) -> int",
    "docstring": "A number added to itself.\n>>> twice(3)\n6",
}


def humanevalfix(folder: Path, *rows: dict) -> Path:
    file = folder / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows or (ROW,)))
    return file


QUIXBUGS = {
    "conftest.py": (
        "import pytest\n\n\ndef pytest_addoption(parser):\n    parser.addoption('--correct', action='store_true')\n\n\n"
        "def pytest_configure(config):\n    pytest.use_correct = config.getoption('--correct')\n"
    ),
    "python_programs/double.py": 'def double(n):\n    return n * n\n\n\n"""\nTwice the number.\n"""\n',
    "correct_python_programs/double.py": "def double(n):\n    return n + n\n",
    "python_programs/walk.py": "def walk(node):\n    return [node.value]\n",
    "correct_python_programs/walk.py": (
        "def walk(node):\n    return [node.value] + (walk(node.successor) if node.successor else [])\n"
    ),
    "python_testcases/load_testdata.py": (
        "import json\nfrom pathlib import Path\n\n\ndef load(name):\n"
        "    lines = (Path(__file__).parents[1] / 'json_testcases' / f'{name}.json').read_text().splitlines()\n"
        "    return [json.loads(line) for line in lines if line]\n"
    ),
    "python_testcases/node.py": (
        "class Node:\n    def __init__(self, value, successor=None):\n"
        "        self.value, self.successor = value, successor\n"
    ),
    "python_testcases/test_double.py": (
        "import pytest\nfrom load_testdata import load\nfrom python_programs.double import double\n\n\n"
        "@pytest.mark.parametrize('input_data,expected', load('double'))\n"
        "def test_double(input_data, expected):\n    assert double(*input_data) == expected\n"
    ),
    "python_testcases/test_walk.py": (
        "from node import Node\nfrom python_programs.walk import walk\n\n\n"
        "def test1():\n    assert walk(Node(1, Node(2))) == [1, 2]\n\n\n"
        "def test2():\n    assert walk(Node(1, Node(2, Node(3)))) == [1, 2, 3]\n"
    ),
    "json_testcases/double.json": '[[3], 6]\n[["é"], "éé"]\n[[[1]], [1, 1]]\n[[5], 10]\n[[5], 10]\n\n[[0.5], 1.0]\n',
}
EXERCISM = {
    "exercises/practice/half/.meta/config.json": json.dumps(
        {"files": {"solution": ["half.py"], "test": ["half_test.py"], "example": [".meta/example.py"]}}
    ),
    "exercises/practice/half/.meta/example.py": "def half(n):\n    return n / 2\n",
    "exercises/practice/half/.docs/instructions.md": "# Instructions\n\nHalve a number.\n",
    "exercises/practice/half/.docs/instructions.append.md": "Of any kind.\n",
    "exercises/practice/half/half.py": "def half(n):\n    pass\n",
    "exercises/practice/half/helper.py": "FOUR = 4\n",
    "exercises/practice/half/half_test.py": (
        "import unittest\n\nfrom half import half\nfrom helper import FOUR\n\n\nclass HalfTest(unittest.TestCase):\n"
        "    def test_even(self):\n        self.assertEqual(half(FOUR), 2)\n\n"
        "    def test_odd(self):\n        self.assertEqual(half(5), 2.5)\n\n    def helper(self):\n        pass\n"
    ),
}


def checkout(folder: Path, files: dict[str, str], **others: str | None) -> Path:
    """A folder with files; ``others``, whose paths have "__" for "/", are other contents, or None for no such file."""
    changed = {path.replace("__", "/"): text for path, text in others.items()}
    for path, text in {**files, **changed}.items():
        if text is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    return folder
