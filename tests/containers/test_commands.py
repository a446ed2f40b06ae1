"""Commands: nothing survives them, nothing they do ends the tool server, and what they say is bounded."""

import pytest
from running import NOBODYS_MEMORY, sandbox, started

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.preflight import examined
from manyturn.containers.sandbox import SandboxRefused

__all__ = ["sandbox", "started"]
PROCESSES = "set -- /proc/[0-9]*; echo $#"
ALONE = "2\n"  # the server and bash
ESCAPED = "{ (setsid bash -c 'trap \"\" TERM INT HUP; while :; do sleep 0.01; done' >/dev/null 2>&1 &); };"


def test_status_output_and_streams(sandbox: DockerSandbox) -> None:
    ran = sandbox.run("echo one; echo two >&2; exit 3")
    assert ran[:2] == (3, "one\ntwo\n") and not ran.timed_out and ran.report == b""
    assert sandbox.run("kill -9 $$").status == 137
    assert sandbox.run("no-such-program").output == "bash: line 1: no-such-program: command not found\n"
    assert sandbox.run("echo a\n(((").output.startswith("a\nbash: eval: line 2: ")
    assert sandbox.run("cat; read x; echo $?").output == "1\n"  # there is nothing on its input
    assert sandbox.run("exec >&- 2>&-; echo lost; sleep 0.1; exit 4")[:2] == (4, "")
    assert sandbox.run("printf '\\xff\\x00\\xfe'").output == "\ufffd\x00\ufffd"
    assert sandbox.run("python3 -c 'import os; os.write(1, bytes(range(256)))'").status == 0
    assert sandbox.run("").status == 0


def test_no_state_but_files_passes_from_one_command_to_the_next(sandbox: DockerSandbox) -> None:
    sandbox.run("cd /tmp; export A=1; f() { :; }; echo 1 > kept; ulimit -n 100")
    assert sandbox.run("pwd; echo $A; declare -F; cat /tmp/kept; ulimit -n").output == "/workspace\n\n1\n1024\n"


def test_folder_and_environment(sandbox: DockerSandbox) -> None:
    assert sandbox.run('pwd; echo "$A"', folder="/usr/lib", environ={"A": "x y\nz"}).output == "/usr/lib\nx y\nz\n"
    for asked in (
        {"folder": "/nowhere"},
        {"environ": {"A=B": "c"}},
        {"environ": {"A": "x" * 200_000}},
        {"seconds": 0.0},
    ):
        with pytest.raises(SandboxRefused):
            sandbox.run("true", **asked)  # type: ignore[arg-type]
    with pytest.raises(SandboxRefused, match="NUL"):
        sandbox.run("echo \0")
    assert sandbox.run("echo still there").output == "still there\n"


def test_a_script_is_longer_than_any_argument(sandbox: DockerSandbox) -> None:
    text = "x" * 3_000_000
    assert sandbox.run(f"cat > big <<'END'\n{text}\nEND\nwc -c < big").output == "3000001\n"
    assert sandbox.run("exit 7\n" + "# \n" * 100_000).status == 7


def test_a_flood_is_kept_at_both_ends(sandbox: DockerSandbox) -> None:
    ran = sandbox.run("echo first; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo last", seconds=60)
    head, _, tail = ran.output.partition("\n... 49990012 bytes left out ...\n")
    assert ran.status == 0 and head.startswith("first\nxxx") and tail.endswith("xxx\nlast\n")
    assert (len(head), len(tail)) == (5000, 5000)
    assert sandbox.run("head -c 10000 /dev/zero | tr '\\0' y").output == "y" * 10_000
    assert "... 1 bytes left out ..." in sandbox.run("head -c 10001 /dev/zero | tr '\\0' y").output


def test_the_report_is_apart_from_the_output_and_bounded(sandbox: DockerSandbox) -> None:
    ran = sandbox.run("echo said; printf 'a\\0b' >&3; (sleep 0.1; echo later >&3) & wait", report=True)
    assert (ran.output, ran.report) == ("said\n", b"a\0blater\n")
    assert sandbox.run("{ echo x >&3; } 2>/dev/null; echo $?").output == "1\n"
    ran = sandbox.run("head -c 20000000 /dev/zero >&3; echo done", report=True, seconds=60)
    assert (ran.output, len(ran.report)) == ("done\n", 8 << 20)


def test_whatever_a_command_started_ends_with_it(sandbox: DockerSandbox) -> None:
    ran = sandbox.run(f"nohup sleep 1000 & {ESCAPED} {ESCAPED} sleep 1000 & disown -a; echo up")
    assert ran.output == "up\n" and ran.seconds < 5
    assert sandbox.run(PROCESSES).output == ALONE


def test_at_the_deadline_everything_ends(sandbox: DockerSandbox) -> None:
    ran = sandbox.run(f"{ESCAPED} {ESCAPED} echo up; trap '' TERM; while :; do :; done", seconds=0.5)
    assert (ran.status, ran.output, ran.timed_out) == (137, "up\n", True) and 0.5 <= ran.seconds < 5
    assert sandbox.spent
    assert sandbox.run(PROCESSES).output == ALONE
    ran = sandbox.run("yes", seconds=0.5)
    assert ran.timed_out and "bytes left out" in ran.output
    assert sandbox.run("sleep 100 >&- 2>&-", seconds=0.3).timed_out


@pytest.mark.deep
def test_a_fork_bomb_does_not_win(sandbox: DockerSandbox) -> None:
    for bomb in (":(){ :|:& };:; sleep 9", "python3 -c 'import os\nwhile 1:\n try: os.fork()\n except OSError: pass'"):
        assert sandbox.run(bomb, seconds=1.0).timed_out
        assert sandbox.run(PROCESSES).output == ALONE
    assert "Resource temporarily unavailable" in sandbox.run("for i in {1..200}; do sleep 9 & done", seconds=5).output


def test_memory_that_runs_out_ends_the_command_only(sandbox: DockerSandbox) -> None:
    sandbox.spent = ""
    ran = sandbox.run("python3 -c 'x = bytearray(10**9)'; echo then $?")
    assert ran.output.endswith("then 137\n")
    assert sandbox.spent == "it ran out of memory"
    sandbox.ping()


def test_memory_that_belongs_to_no_process_ends_the_command_only(sandbox: DockerSandbox) -> None:
    for _ in range(3):
        ran = sandbox.run(NOBODYS_MEMORY, seconds=20)
        assert (ran.status, ran.timed_out) == (137, False), ran.output
    sandbox.ping()


def test_a_command_cannot_make_itself_the_last_to_be_killed(sandbox: DockerSandbox) -> None:
    lower = 'echo 0 > /proc/self/oom_score_adj || python3 -c \'open("/proc/self/oom_score_adj", "w").write("0")\''
    assert sandbox.run(f"{lower}; cat /proc/self/oom_score_adj").output.endswith("\n1000\n")


def test_files_can_be_written_moved_and_linked_wherever_the_agent_may(sandbox: DockerSandbox) -> None:
    script = """
    set -e
    for place in /workspace /tmp /dev/shm; do
        cd $place; mkdir -p a b; echo x > a/f; mv a/f b/g; ln b/g a/h; ln -s g b/l; mkfifo b/p; : > b/g
        cat <(echo in) > /dev/stdout; echo err > /dev/stderr; echo null > /dev/null; rm -r a b
    done
    mv /tmp/../tmp /nowhere 2>/dev/null || echo kept
    """
    assert sandbox.run(script).output == "in\nerr\n" * 3 + "kept\n"


def test_full_file_systems_do_not_stop_commands(sandbox: DockerSandbox) -> None:
    full = "for f in /workspace/x /tmp/x /dev/shm/x; do head -c 100M /dev/zero > $f; wc -c < $f; done 2>/dev/null"
    assert sandbox.run(full).output == f"{8 << 20}\n" * 3
    assert sandbox.run("echo said; echo more > y").status == 1
    with pytest.raises(SandboxRefused, match="No space left"):
        sandbox.write("z", b"x" * 5000)
    with pytest.raises(SandboxRefused):
        sandbox.read("z")
    if examined().podman:
        pytest.skip("Podman bounds no number of files")
    assert sandbox.run("i=0; rm x; while : > $((i++)); do :; done 2>/dev/null; echo $i").output == "1999\n"
    with pytest.raises(SandboxRefused, match="No space left"):
        sandbox.write("z", b"")


def test_programs_that_people_use_run_under_the_filter(sandbox: DockerSandbox) -> None:
    script = """
    set -e
    git init -q . && git config user.email a@b && git config user.name n
    printf 'import asyncio, concurrent.futures, multiprocessing, socket, sqlite3, subprocess, tempfile, threading
def double(x): return 2 * x
def test_pools():
    for kind in (concurrent.futures.ThreadPoolExecutor, concurrent.futures.ProcessPoolExecutor):
        with kind(2) as pool: assert list(pool.map(double, range(5))) == [0, 2, 4, 6, 8]
def test_loop():
    async def main():
        done = asyncio.Event()
        async def serve(reader, writer): writer.write(await reader.read(4)); writer.close(); done.set()
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"ping"); assert await reader.read() == b"ping"; await done.wait()
        process = await asyncio.create_subprocess_exec("true"); assert await process.wait() == 0
    asyncio.run(main())
def test_files():
    with tempfile.TemporaryDirectory() as folder:
        with sqlite3.connect(folder + "/x") as data: data.execute("create table t (a)")
' > test_x.py
    python3 -m pytest -q test_x.py
    git add -A && git commit -qm one && git checkout -qb other && git merge -q master && git gc -q && git log --oneline
    tar cf x.tar test_x.py && gzip x.tar && sed -i s/x/y/ test_x.py && find . -name '*.py' | xargs grep -c import
    sort /etc/passwd | head -1
    """
    ran = sandbox.run(script, seconds=60)
    assert ran.status == 0 and "3 passed" in ran.output, ran.output
