"""An interpreter must seem to persist, and whatever a cell does must be answered with text and leave no trace."""

import pytest

from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.envs.code_interpreter.session import LONGEST, Session
from manyturn.envs.tools.tool import ToolError

UNCLOSED = ["x = (", "x = '''", "if True:", "x = 1 + \\", "class A:\n    y = 1\n  x", "'''\n_ended()\n("]


@pytest.fixture
def session(engine: str) -> Session:
    return Session(ContainerEngine(image=engine))


def test_what_a_cell_defines_is_there_later_and_its_output_is_not_seen_again(session: Session) -> None:
    assert session.run("x = 3\ndef f(k):\n    return x * k\nprint('once', f(5))") == ("once 15", True)
    assert session.run("x = 4; import os; os.system('echo shell'); print(f(5))") == ("shell\n20", True)
    assert session.run("from dataclasses import dataclass\n@dataclass\nclass A:\n    y: 'int' = x")[1]
    assert session.run("print(A())") == ("A(y=4)", True)
    assert session.run("y = A()") == ("[no output]", True)
    assert len(session.cells) == 5


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("x = 9\n1 / 0", "  Cell 2, line 2, in <module>\n    1 / 0"),
        ("def g():\n    raise KeyError('no')\ng()", "  Cell 2, line 2, in g\n    raise KeyError"),
        ("x = 9\nf()", "  Cell 1, line 3, in f\n    return x / 0"),
        ("x = 9\nx y", "  Cell 2, line 2\n    x y"),
        ("x = 9\nraise SystemExit(3)", "[this cell is undone]"),
        ("x = 9\nimport os; os._exit(0)", "[this cell is undone]"),
        ("x = 9\n[0] * 10**9", "MemoryError"),
        ("x = 9\nimport os; os.write(3, b'......')\nraise ValueError", "ValueError"),
        ("x = 9\nimport os; os.write(3, b'......')", "[this cell is undone]"),
        ("x = 9\ndel _ended", "NameError"),
    ],
)
def test_a_cell_that_fails_is_undone(session: Session, cell: str, told: str) -> None:
    session.run("x = 1\ndef f():\n    return x / 0")
    text, kept = session.run(cell)
    assert told in text and not kept
    assert session.run("print(x)") == ("1", True)


@pytest.mark.parametrize("cell", UNCLOSED)
def test_a_cell_that_is_not_closed_takes_nothing_along(session: Session, cell: str) -> None:
    session.run("y = 5")
    session.run(cell)
    assert session.run("print(y)") == ("5", True)


def test_a_cell_without_an_end_is_stopped(engine: str) -> None:
    session = Session(ContainerEngine(image=engine), seconds=1)
    session.run("x = 1")
    text, kept = session.run("while True: x += 1")
    assert "share 1 s" in text and not kept
    assert session.run("print(x)") == ("1", True)


def test_an_output_without_an_end_is_cut(session: Session) -> None:
    text, kept = session.run("print('z' * 10**7)\nprint('last')")
    assert kept and len(text) < 7000 and "left out" in text and text.endswith("last")


def test_forks_that_a_cell_forgets_run_nothing_twice(session: Session) -> None:
    assert session.run("import os\nx = os.fork() and 7\nif x: os.wait()") == ("[no output]", True)
    assert session.run("print(x)") == ("7", True)


def test_a_session_that_does_not_run_again_as_before_begins_anew(session: Session) -> None:
    session.run("x = 1")
    session.cells.append("assert False  # as if it had looked at the clock")
    text, kept = session.run("print(x)")
    assert text.startswith("[cell 2 gave a different result when it ran again") and not kept
    assert session.cells == [] and session.run("print('x' in dir())") == ("False", True)


def test_nothing_passes_from_one_session_to_another(session: Session, engine: str) -> None:
    session.run("open('left.txt', 'w').write('secret'); open('/tmp/left.txt', 'w').write('secret'); shared = 1")
    look = "import glob\nprint('shared' in dir(), glob.glob('*') + glob.glob('/tmp/*'))"
    assert Session(ContainerEngine(image=engine)).run(look) == ("False ['session.py']", True)
    assert session.run("print(open('left.txt').read())") == ("secret", True)


def test_what_cannot_be_a_cell_is_refused(session: Session) -> None:
    with pytest.raises(ToolError, match="lone surrogate"):
        session.run("x = '\ud83d'")
    with pytest.raises(ToolError, match="NUL"):
        session.run("x = '\0'")
    with pytest.raises(ToolError, match="at most 20,000"):
        session.run("x" * (LONGEST + 1))
