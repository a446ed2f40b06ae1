"""The agent's tools: they do what they say, stay inside, and are refused rather than broken by odd arguments."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import small

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.envs.software.reward_levels import STEPS, Steps
from manyturn.envs.software.source.file_tree import (
    changes_between,
    difference,
    patched,
    snapshot_of,
    tree_of,
    with_changes,
)
from manyturn.envs.software.source.text_sanitizer import bounded, harmless, numbered
from manyturn.envs.software.workspace.attempt import schemas
from manyturn.envs.software.workspace.call_shorthand import call_of, line_of
from manyturn.envs.software.workspace.expert import next_edit
from manyturn.envs.software.workspace.tools import Tools
from manyturn.envs.tools.calls import BadCall, call_text
from manyturn.envs.tools.tool import ToolError


@pytest.fixture
def tools(sandbox: DockerSandbox) -> Tools:
    sandbox.restore(snapshot_of(small().files))
    return Tools(sandbox, seconds=5)


def test_a_command_says_what_it_says_and_how_it_ended(tools: Tools) -> None:
    assert tools.bash("echo out; echo err >&2") == "out\nerr"
    assert tools.bash("true") == "[no output]" and tools.ran
    assert tools.bash("exit 3") == "[exit status 3]"
    assert tools.bash("ls 'odd").endswith("[exit status 2]")
    assert "stopped after 0.5 s" in Tools(tools._sandbox, 0.5).bash("echo begun; sleep 9")
    assert tools.bash("cat") == "[no output]"


def test_the_folder_is_kept_and_an_odd_one_is_survived(tools: Tools) -> None:
    assert tools.bash("cd calc; pwd") == "/workspace/calc"
    assert "def add" in tools.view("core.py") and "def add" in tools.view("/workspace/calc/core.py")
    assert tools.bash("exit 1") and tools.folder == "/workspace/calc"
    assert tools.bash("cd /tmp && mkdir x && cd x; false") and tools.folder == "/tmp/x"
    tools.bash("rmdir /tmp/x; echo /nowhere >&3")
    with pytest.raises(ToolError, match="/workspace again"):
        tools.bash("true")
    assert tools.bash("pwd") == "/workspace"
    tools.bash("trap - EXIT; cd calc")
    assert tools.folder == "/workspace"


def test_view_numbers_lines_within_bounds(tools: Tools) -> None:
    assert tools.view("calc/core.py", 4, 5) == "4  def add(a, b):\n5      return a - b\n[16 lines in all]"
    tools.bash("seq 500 > long; : > nothing")
    assert tools.view("long").count("\n") == 100 and tools.view("long", 450, 9999).startswith("450  450\n")
    assert tools.view("nothing") == "1"
    wrong = [("nowhere", 1, 0, "No such"), ("calc", 1, 0, "directory"), ("long", 501, 0, "500 lines")]
    for path, first, last, why in [*wrong, ("long", 0, 0, "from 1"), ("long", 9, 8, "before the first")]:
        with pytest.raises(ToolError, match=why):
            tools.view(path, first, last)


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../etc/passwd", "", "\0", "/workspace", "/workspace/../etc/passwd", "out"]
)
def test_files_outside_are_not_reached(tools: Tools, path: str) -> None:
    tools.bash("ln -s /etc/passwd out")
    for call in (lambda: tools.view(path), lambda: tools.edit(path, "root", "x"), lambda: tools.edit(path, "", "x")):
        with pytest.raises(ToolError):
            call()


def test_edit_replaces_what_stands_exactly_once(tools: Tools) -> None:
    assert "5      return a + b" in tools.edit("calc/core.py", "a - b", "a + b")
    assert tools.touched
    for old, why in [
        ("a - b", "does not occur"),
        ("return", "occurs 3 times"),
        ("\n\n", "occurs 6 times"),
        ("a + b", "are the same"),
    ]:
        with pytest.raises(ToolError, match=why):
            tools.edit("calc/core.py", old, "a + b")
    with pytest.raises(ToolError, match="exists already"):
        tools.edit("calc/core.py", "", "x")
    with pytest.raises(ToolError, match="surrogate"):
        tools.edit("calc/core.py", "a + b", "\ud83d")
    tools.edit("deep/er/new.py", "", "one\ntwo\n")
    tools.edit("calc/__init__.py", "", "x = 1\n")
    assert tools.bash("cat deep/er/new.py calc/__init__.py") == "one\ntwo\nx = 1"


def test_edit_keeps_bytes_that_are_no_text_and_line_ends(tools: Tools) -> None:
    tools.bash(r"printf 'a\r\n\377b\r\n' > odd; chmod +x odd")
    tools.edit("odd", "a", "c")
    assert tools.bash("od -An -c odd | tr -s ' '; test -x odd && echo x") == " c \\r \\n 377 b \\r \\n\nx"


def test_search_finds_lines_in_a_fixed_order(tools: Tools) -> None:
    assert tools.search("def (add|double)") == "calc/core.py:4:def add(a, b):\ncalc/core.py:15:def double(a):"
    assert tools.search("no such thing") == "[no matches]"
    assert tools.search("-e", "calc") == "[no matches]"
    tools.bash("for i in $(seq 70); do echo word > f$i; done")
    assert "[20 more matches]" in tools.search("word")
    for pattern, path in [("(", "."), ("x", "nowhere"), ("\0", "."), ("x", "\0")]:
        with pytest.raises(ToolError):
            tools.search(pattern, path)


@pytest.mark.parametrize(
    "text", ["$(touch pwned)", "`touch pwned`", "'; touch pwned; '", "\ud83d", "é漢", "-f/etc/passwd"]
)
def test_no_argument_becomes_a_command(tools: Tools, text: str) -> None:
    for call in (lambda: tools.search(text), lambda: tools.search("x", text), lambda: tools.view(text),
                 lambda: tools.edit(text, "", "x\n"), lambda: tools.edit(text, "y", "x")):  # fmt: skip
        with contextlib.suppress(ToolError):
            call()
    assert tools.bash("ls pwned calc/pwned").endswith("[exit status 2]")


# ---- without a sandbox --------------------------------------------------------------------------------------

SCHEMAS = schemas(True)


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("test", call_text("test")),
        (" submit ", call_text("submit")),
        ("view a.py", call_text("view", path="a.py")),
        ("view 'a b.py' 3 9", call_text("view", path="a b.py", first=3, last=9)),
        ("edit a.py 'x = 1' \"y = '2'\"", call_text("edit", path="a.py", old="x = 1", new="y = '2'")),
        ("bash echo 'a  b' | wc -l", call_text("bash", command="echo 'a  b' | wc -l")),
        ("search -e", call_text("search", pattern="-e")),
    ],
)
def test_a_command_line_is_a_call(line: str, call: str) -> None:
    assert call_of(line, SCHEMAS) == call


@pytest.mark.parametrize("line", ["", "look", "view 'a", "edit a b c d", "submit now", "9" * 400])
def test_a_line_that_is_no_call_is_refused_with_the_reason(line: str) -> None:
    with pytest.raises(BadCall):
        call_of(line, SCHEMAS)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30)


@given(texts, texts, texts)
def test_every_call_has_a_line(path: str, old: str, new: str) -> None:
    assert call_of(line_of("edit", path=path, old=old, new=new), SCHEMAS) == call_text(
        "edit", path=path, old=old, new=new
    )


@given(st.text(max_size=200))
def test_what_is_shown_is_printable_and_bounded(text: str) -> None:
    shown = harmless(text)
    assert all(sign.isprintable() or sign in "\n\t" for sign in shown)
    assert len(bounded(text * 50, 300)) < 400


def test_numbers_stand_in_a_column() -> None:
    assert numbered(["a", "", "b"], 9) == " 9  a\n10\n11  b"


lines = st.lists(st.sampled_from(["a = 1", "    b = 2", "", "    return a", "def f():", "x = 'é'"]), max_size=8)


@settings(max_examples=300)
@given(lines, lines, st.booleans())
def test_the_expert_reaches_any_mend_by_unique_replacements(before: list[str], after: list[str], end: bool) -> None:
    def written(some: list[str]) -> str:
        return "\n".join(some) + ("\n" if end and some else "")

    content, target, steps = written(before), written(after), 0
    while edit := next_edit({"f.py": target.encode()}, {"f.py": content.encode()}.get):
        steps += 1
        assert steps < 30
        if edit.old:
            assert content.count(edit.old) == 1
            content = content.replace(edit.old, edit.new)
        else:
            assert not content
            content = edit.new
    assert content == target


def test_the_expert_says_no_more_than_a_line_where_that_is_enough() -> None:
    edit = next_edit(
        {"f.py": b"def f(a):\n    return a + 1  # x\n"}, lambda path: b"def f(a):\n    return a - 1  # x\n"
    )
    assert edit is not None and (edit.old, edit.new, edit.line) == ("return a - 1  # x", "return a + 1  # x", 2)


names = st.sampled_from(["a.py", "b/c.py", "b/d.py", "e/f/g.py"])
trees = st.dictionaries(names, st.binary(max_size=5), max_size=4)


@given(trees, trees)
def test_changes_lead_from_one_tree_to_the_other(one: dict[str, bytes], two: dict[str, bytes]) -> None:
    assert with_changes(one, changes_between(one, two)) == two
    assert tree_of(snapshot_of(two)) == two
    before, after = snapshot_of(one), snapshot_of(two)
    assert patched(before, difference(before, after)) == after


@given(st.lists(st.dictionaries(st.sampled_from(list(STEPS)), st.integers(0, 8).map(lambda n: n / 8)), max_size=10))
def test_no_step_is_paid_beyond_its_worth(turns: list[dict[str, float]]) -> None:
    steps, paid = Steps(), dict.fromkeys(STEPS, 0.0)
    for reached in turns:
        for name, reward in steps.pay(reached).items():
            assert reward > 0
            paid[name] += reward
    assert all(paid[name] <= STEPS[name] + 1e-9 for name in STEPS)
