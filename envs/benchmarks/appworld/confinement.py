"""Takes from a process what code that nobody trusts has no need of. Linux on x86-64 or ARM64; only Python's library.

A process that confines itself, and every thread of it, keeps:

- files: only below the folders that are named, and writing only below those named for it (Landlock); modes, owners,
  times and attributes of files stay as they are;
- network: none, for no socket can be made; those that are open stay usable;
- processes: no others can be started, no program run, no signal sent, no other process traced or limited (seccomp);
- no capabilities, as little as root; bounds on memory and on the size of a file.

What is left: processor time, the number of files below the writable folders, names and sizes of files elsewhere
(which ``stat`` tells), and whatever the kernel's own faults allow.
"""

import ctypes
import os
import platform
import resource
import struct
from collections.abc import Iterable, Sequence

# name -> number on x86-64 and on ARM64; None where the architecture has no such call
_CALLS: dict[str, tuple[int | None, int | None]] = {
    "socket": (41, 198),
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "setpriority": (141, 140),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "io_uring_setup": (425, 425),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "truncate": (76, 45),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
}
_CLONE, _CLONE3, _PRLIMIT, _SOCKETPAIR = (56, 220), (435, 435), (302, 261), (53, 199)
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column above, the kernel's own number

_READ = 1 << 0 | 1 << 2 | 1 << 3  # execute, which mapping a library needs not, but the loader asks; read; list
_ON_FILES = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15  # rights that a rule for a single file may give
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}  # since version of Landlock
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_CAPABILITY_VERSION_3 = 0x20080522
_CLONE_THREAD = 0x10000

_LD, _AND, _JEQ, _JGE, _JSET, _RET = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _EPERM, _ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # places in seccomp_data; the low half of an argument comes first


class CannotConfine(RuntimeError):
    """This system lacks something that confining needs; the text says what."""


def _call(number: int, *arguments: object) -> int:
    result = ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _prctl(option: int, *arguments: object) -> None:
    values = [*arguments, *(ctypes.c_ulong(0) for _ in range(4 - len(arguments)))]
    if ctypes.CDLL(None, use_errno=True).prctl(option, *values):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def require() -> int:
    """The version of Landlock. Raises CannotConfine where a process cannot be confined."""
    if os.name != "posix" or platform.system() != "Linux" or platform.machine() not in _ARCHITECTURES:
        raise CannotConfine(f"Linux on x86_64 or aarch64 is needed, this is {platform.system()} {platform.machine()}")
    try:
        return _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    except OSError as error:
        raise CannotConfine(f"the kernel offers no Landlock ({error.strerror})") from None


def confine(readable: Iterable[str], writable: Sequence[str], memory: int, file_size: int) -> None:
    """Confine this process for good; it must have no other threads.

    Args:
        readable: files and folders; those that do not exist are left out.
        writable: folders, which may be read too.
        memory: bytes of address space.
        file_size: bytes of the longest file that can be written.

    Raises:
        CannotConfine: nothing was changed.
        OSError: the kernel refused a step; the process must not go on.
    """
    version = require()
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1))
    _drop_capabilities()
    _restrict_files(version, readable, writable)
    _filter_calls()


def _drop_capabilities() -> None:
    head = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    if ctypes.CDLL(None, use_errno=True).capset(head, bytes(24)):
        raise OSError(ctypes.get_errno(), "capset failed")


def _restrict_files(version: int, readable: Iterable[str], writable: Sequence[str]) -> None:
    handled = _RIGHTS[max(release for release in _RIGHTS if release <= version)]
    rules = _call(_CREATE_RULESET, struct.pack("Q", handled), ctypes.c_size_t(8), ctypes.c_uint32(0))
    grants = [(path, handled & _READ) for path in readable if os.path.exists(path)]
    for path, rights in grants + [(path, handled) for path in writable]:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rights = rights if os.path.isdir(path) else rights & _ON_FILES
        _call(_ADD_RULE, ctypes.c_int(rules), ctypes.c_int(1), struct.pack("=Qi", rights, place), ctypes.c_uint32(0))
        os.close(place)
    _call(_RESTRICT_SELF, ctypes.c_int(rules), ctypes.c_uint32(0))
    os.close(rules)


def _filter_calls() -> None:
    program = b"".join(struct.pack("HBBI", *step) for step in _steps(platform.machine()))
    code = ctypes.create_string_buffer(program, len(program))
    head = ctypes.create_string_buffer(struct.pack("HP", len(program) // 8, ctypes.addressof(code)))
    _prctl(_PR_SET_SECCOMP, ctypes.c_ulong(2), head)


def _steps(machine: str) -> list[tuple[int, int, int, int]]:
    """The filter: instructions (code, steps to skip if true, if false, value) of the classic BPF machine."""
    column, architecture = _ARCHITECTURES[machine]
    steps = [(_LD, 0, 0, _ARCHITECTURE), (_JEQ, 1, 0, architecture), (_RET, 0, 0, _KILL), (_LD, 0, 0, _NUMBER)]
    if machine == "x86_64":  # the same calls have other numbers under the x32 interface
        steps += [(_JGE, 0, 1, 0x40000000), (_RET, 0, 0, _EPERM)]
    steps += [(_JEQ, 0, 1, _CLONE3[column]), (_RET, 0, 0, _ENOSYS)]  # libraries fall back to clone
    # Threads may be made, but no processes; the own limits read, but no others' set; pairs of streams made.
    refuse_or_allow = [(_RET, 0, 0, _EPERM), (_RET, 0, 0, _ALLOW)]
    steps += [(_JEQ, 0, 4, _CLONE[column]), (_LD, 0, 0, _ARGUMENTS), (_JSET, 1, 0, _CLONE_THREAD), *refuse_or_allow]
    steps += [(_JEQ, 0, 4, _PRLIMIT[column]), (_LD, 0, 0, _ARGUMENTS), (_JEQ, 1, 0, 0), *refuse_or_allow]
    steps += [(_JEQ, 0, 5, _SOCKETPAIR[column]), (_LD, 0, 0, _ARGUMENTS + 8), (_AND, 0, 0, 0xF), (_JEQ, 1, 0, 1)]
    steps += refuse_or_allow
    for numbers in _CALLS.values():
        if (number := numbers[column]) is not None:
            steps += [(_JEQ, 0, 1, number), (_RET, 0, 0, _EPERM)]
    return [*steps, (_RET, 0, 0, _ALLOW)]
