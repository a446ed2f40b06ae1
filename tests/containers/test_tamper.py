"""The agent's commands reach neither the tool server nor anything that would outlive them."""

import pytest
from running import sandbox, started

from manyturn.containers.docker.container_config import CAPABILITIES
from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.docker.seccomp import allowed
from manyturn.containers.engine.preflight import examined

__all__ = ["sandbox", "started"]


@pytest.mark.parametrize(
    "script",
    [
        "kill -9 1",
        "kill -STOP 1",
        "kill -0 1",
        "ls /proc/1/fd",
        "cat /proc/1/environ",
        "cat /proc/1/mem",
        "cat /proc/1/maps",
        "readlink /proc/1/exe",
        "readlink /proc/1/cwd",
        "echo x > /proc/1/fd/1",
        "echo 1000 > /proc/1/oom_score_adj",
        "echo x > /proc/1/comm",
        "prlimit --pid 1 --nofile=0",
        "renice 19 1",
        "python3 -c 'import os; os.setuid(0)'",
        "python3 -c 'import os; os.setgroups([0])'",
        "python3 -c 'import os; os.sched_setaffinity(1, {0})'",
        "python3 -c 'import resource; resource.prlimit(1, resource.RLIMIT_CPU, (1, 1))'",
        "unshare -U true",
        "unshare -m true",
        "mount -t tmpfs x /mnt",
        "umount /workspace",
        "mknod x c 1 3",
        "chown 0 .",
        "touch /x /etc/x /usr/x /dev/x /var/tmp/x /run/x",
        "echo 1 > /proc/sys/kernel/ns_last_pid",
        "mkdir /sys/fs/cgroup/x || mkdir /sys/fs/cgroup/memory/x",
        "exec 5<>/dev/tcp/1.1.1.1/53",
        "cat /etc/shadow",
        "touch /dev/mqueue/x",
        "mkdir /dev/mqueue/x",
        "chmod 777 /tmp",
    ],
)
def test_the_server_and_the_machine_are_out_of_reach(sandbox: DockerSandbox, script: str) -> None:
    ran = sandbox.run(script)
    assert ran.status, ran.output
    sandbox.ping()


# x86-64 and arm64: numbers of calls that make namespaces, reach into processes, or leave something that is no file.
FORBIDDEN = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "bpf": (321, 280),
    "io_uring_setup": (425, 425),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "open_by_handle_at": (304, 265),
}


def test_calls_that_are_not_on_the_list_are_refused(sandbox: DockerSandbox) -> None:
    assert not set(FORBIDDEN) & set(allowed())
    program = (
        "import ctypes, errno, platform, socket\n"
        "call = ctypes.CDLL(None, use_errno=True).syscall\n"
        f"for name, numbers in {FORBIDDEN!r}.items():\n"
        "    result = call(numbers[platform.machine() == 'aarch64'], 0, 0, 0, 0, 0, 0)\n"
        "    assert result == -1 and ctypes.get_errno() == errno.EPERM, (name, result, ctypes.get_errno())\n"
        "for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):\n"
        "    assert call(56 if platform.machine() != 'aarch64' else 220, flag | 17, 0, 0, 0, 0) == -1\n"
        "    assert ctypes.get_errno() == errno.EPERM, flag\n"
        "for family in (17, 38, 40):\n"  # AF_PACKET, AF_ALG, AF_VSOCK
        "    try: socket.socket(family, socket.SOCK_DGRAM); assert False, family\n"
        "    except PermissionError: pass\n"
        "print('refused')"
    )
    sandbox.write("x.py", program.encode())
    assert sandbox.run("python3 x.py").output == "refused\n"


def test_the_agent_has_no_rights_and_cannot_get_any(sandbox: DockerSandbox) -> None:
    told = sandbox.run("cat /proc/self/status; id").output
    user = sandbox.agent
    assert f"uid={user} gid={user} groups={user}\n" in told
    lines = dict(line.split(":", 1) for line in told.splitlines() if ":" in line)
    for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(lines[kind], 16) == 0
    assert int(lines["CapBnd"], 16).bit_count() == len(CAPABILITIES) + examined().podman  # CAP_CHOWN
    assert (lines["NoNewPrivs"].strip(), lines["Seccomp"].strip()) == ("1", "2")


def test_the_limits_are_there_inside(sandbox: DockerSandbox) -> None:
    limits = sandbox.engine.limits
    told = sandbox.run(
        "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null;"
        "cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null;"
        "ulimit -n; ulimit -c; hostname; grep -c . /proc/net/dev"
    ).output
    assert told == f"{limits.memory_mb << 20}\n{limits.processes}\n1024\n0\nsandbox\n3\n"
    mounts = {line.split()[1]: line.split()[3] for line in sandbox.run("cat /proc/mounts").output.splitlines()}
    assert mounts["/"].startswith("ro,")
    for place in ("/workspace", "/tmp", "/dev/shm"):
        bounds = {"size=8192k"} if examined().podman else {"size=8192k", "nr_inodes=2000"}
        assert {"nosuid", "nodev", *bounds} <= set(mounts[place].split(","))
    writable = sandbox.run(
        "find / -xdev -writable ! -type l 2>/dev/null; find /dev /run /var -writable -type d 2>/dev/null"
    ).output
    assert set(writable.split()) == {"/workspace", "/tmp", "/dev/shm", "/dev/mqueue"}
