"""A confined process can do what it is for, and nothing that hurts."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from manyturn.envs.benchmarks.appworld import confinement

pytestmark = pytest.mark.usefixtures("confinable")

SCRIPT = """
import contextlib, io, json, os, runpy, sys
import ctypes, resource, signal, socket, threading
sys.path[:] = [path for path in sys.path if path]
confine = runpy.run_path({module!r})["confine"]
confine([sys.prefix, sys.base_prefix, "/usr", "/lib", "/lib64", "r", "/nowhere"], ["w"], 1 << 30, 1 << 20)
said = dict()
for name, code in json.loads({codes!r}).items():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            exec(code)
        except Exception as error:
            print(type(error).__name__, getattr(error, "errno", None))
    said[name] = out.getvalue().strip()
print(json.dumps(said))
"""


def told(tmp_path: Path, codes: dict[str, str]) -> dict[str, str]:
    """The print of each piece of code in a confined process, which may read the folder ``r`` and write ``w``."""
    for name in "rw":
        (tmp_path / name).mkdir()
    (tmp_path / "r" / "file").write_text("text")
    (tmp_path / "secret").write_text("secret")
    script = SCRIPT.format(module=confinement.__file__, codes=json.dumps(codes))
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, cwd=tmp_path, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_what_it_is_for_works(tmp_path):
    codes = {
        "read": "print(open('r/file').read())",
        "write": "open('w/new', 'w').write('text'); print(open('w/new').read())",
        "folders": "os.mkdir('w/d'); os.rename('w/d', 'w/e'); os.rmdir('w/e'); print('text')",
        "thread": "t = threading.Thread(target=print, args=('text',)); t.start(); t.join()",
        "pair": "a, b = socket.socketpair(); a.send(b'text'); print(b.recv(9).decode())",
        "import": "import decimal; print('text')",
    }
    assert told(tmp_path, codes) == dict.fromkeys(codes, "text")


REFUSED = {
    "read": "open('secret').read()",
    "list": "os.listdir('.')",
    "write": "open('secret', 'w')",
    "write what can be read": "open('r/new', 'w')",
    "remove": "os.remove('secret')",
    "leave by a link": "os.symlink(os.path.abspath('secret'), 'w/link'); open('w/link').read()",
    "move out": "open('w/a', 'w').close(); os.rename('w/a', 'r/a')",
    "truncate": "os.truncate('secret', 0)",
    "mode": "os.chmod('secret', 0)",
    "times": "os.utime('secret')",
    "owner": "os.chown('w', 1, 1)",
    "internet": "socket.socket(socket.AF_INET)",
    "local socket": "socket.socket(socket.AF_UNIX)",
    "datagrams": "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "fork": "os.fork()",
    "program": "os.execv('/bin/true', ['true'])",
    "signal": "os.kill(os.getppid(), 0)",
    "own signal": "os.kill(os.getpid(), 0)",
    "another user": "os.setuid(1 if os.getuid() == 0 else 0)",
    "other's limits": "resource.prlimit(os.getppid(), resource.RLIMIT_CPU)",
    "other's memory": "open(f'/proc/{os.getppid()}/mem')",
    "namespace": "c = ctypes.CDLL(None, use_errno=True); c.unshare(1 << 28); raise OSError(ctypes.get_errno(), '')",
}


def test_what_hurts_is_refused(tmp_path):
    printed = told(tmp_path, REFUSED)
    refusals = {"PermissionError 1", "PermissionError 13", "OSError 18"}  # the last where folders differ in rights
    assert {name: text for name, text in printed.items() if text not in refusals} == {}
    assert (tmp_path / "secret").read_text() == "secret"


def test_each_refusal_is_the_confinements_work(tmp_path):
    """Without it the same acts go through, or the list above proves nothing."""
    (tmp_path / "secret").write_text("secret")
    for name in ("read", "list", "times", "internet", "signal"):
        assert (
            subprocess.run([sys.executable, "-c", f"import os, socket; {REFUSED[name]}"], cwd=tmp_path).returncode == 0
        )


def test_memory_and_files_are_bounded(tmp_path):
    longest = "f = open('w/f', 'wb', 0); f.write(bytes(1 << 20)); f.write(b'x')"  # Python ignores the signal
    printed = told(tmp_path, {"memory": "bytearray(2 << 30)", "file": longest})
    assert printed == {"memory": "MemoryError None", "file": "OSError 27"}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_lands_where_it_means_to(machine):
    """Every path through the filter, for every call's number, by a machine for such filters written here."""
    column, architecture = confinement._ARCHITECTURES[machine]
    steps = confinement._steps(machine)

    def verdict(number: int, *arguments: int, arch: int = architecture) -> int:
        data, place, value = {0: number, 4: arch} | {16 + 8 * i: a for i, a in enumerate(arguments)}, 0, 0
        while True:
            code, yes, no, operand = steps[place]
            place += 1
            match code:
                case confinement._LD:
                    value = data.get(operand, 0)
                case confinement._AND:
                    value &= operand
                case confinement._JEQ:
                    place += yes if value == operand else no
                case confinement._JGE:
                    place += yes if value >= operand else no
                case confinement._JSET:
                    place += yes if value & operand else no
                case confinement._RET:
                    return operand

    numbers = {name: pair[column] for name, pair in confinement._CALLS.items() if pair[column] is not None}
    assert {name for name, number in numbers.items() if verdict(number) != confinement._EPERM} == set()
    clone, clone3 = confinement._CLONE[column], confinement._CLONE3[column]
    limits, pairs = confinement._PRLIMIT[column], confinement._SOCKETPAIR[column]
    assert verdict(clone, 0x10000 | 0x100) == confinement._ALLOW and verdict(clone, 0x100) == confinement._EPERM
    assert verdict(clone3) == confinement._ENOSYS
    assert verdict(limits, 0) == confinement._ALLOW and verdict(limits, 77) == confinement._EPERM
    assert verdict(pairs, 1, 0x80001) == confinement._ALLOW and verdict(pairs, 1, 2) == confinement._EPERM
    assert verdict(numbers["socket"], arch=0x40000003) == confinement._KILL
    named = {*numbers.values(), clone, clone3, limits, pairs}
    others = [number for number in range(500) if number not in named]
    assert {verdict(number, 1, 2, 3) for number in others} == {confinement._ALLOW}
    assert verdict(0x40000000 + 1) == (confinement._EPERM if machine == "x86_64" else confinement._ALLOW)


def test_it_needs_nothing_but_pythons_library():
    """It runs in an interpreter that has none of this project's packages."""
    for module in (confinement.__file__, Path(confinement.__file__).with_name("launcher_main.py")):
        tree = ast.parse(Path(module).read_text(encoding="utf-8"))
        names = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
        assert {name.split(".")[0] for name in names} <= set(sys.stdlib_module_names)


def test_where_it_cannot_be_done_it_says_so(monkeypatch):
    monkeypatch.setattr(confinement.platform, "machine", lambda: "riscv64")
    with pytest.raises(confinement.CannotConfine, match="riscv64"):
        confinement.confine([], [], os.sysconf("SC_PAGE_SIZE"), 1)
