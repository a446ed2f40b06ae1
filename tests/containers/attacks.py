"""What an agent might try against its sandbox, the neighbours and the machine.

An attack is a script that really does it, sometimes a request that the host is made to send afterwards, and sometimes a
probe, which the next episode in the same sandbox runs. Its aim names the sign (attacks_signs.py) by which success would
show, looked at from outside of the agent's reach. Scripts find what they attack in their environment:

    CANARY        path of a file of the host's, whose content is a secret
    PORT          of 127.0.0.1, where the host listens by TCP; UDP_PORT likewise
    HOSTS         addresses of the host's, separated by spaces
    UNIX          path of a socket of the host's; ABSTRACT is the name of one without a path
    MARK          what nobody else knows, to be found again
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from manyturn.containers.sandbox import Sandbox

Request = Callable[[Sandbox], object]


class Attack(NamedTuple):
    """One of the corpus.

    Attributes:
        kind: its class.
        aim: the sign that would show its success.
        script: bash, run as the agent.
        request: sent after the script; what it returns is looked through for secrets.
        probe: run after the sandbox was emptied for the next episode.
        seconds: deadline of the script.
        expect: all that the script's output may be, where that is known.
    """

    name: str
    kind: str
    aim: str
    script: str = ""
    request: Request | None = None
    probe: str = ""
    seconds: float = 5.0
    expect: str | None = None


def scripts(kind: str, aim: str, named: Mapping[str, str], seconds: float = 5.0) -> list[Attack]:
    """Attacks that consist of a script: name -> bash."""
    return [Attack(f"{kind}: {name}", kind, aim, script, seconds=seconds) for name, script in named.items()]


def requests(kind: str, aim: str, named: Mapping[str, tuple[str, Request]]) -> list[Attack]:
    """Attacks that prepare something, and then have the host ask for it: name -> script and request."""
    return [Attack(f"{kind}: {name}", kind, aim, script, request) for name, (script, request) in named.items()]


def python(body: str) -> str:
    """A script that runs Python with system calls at hand."""
    return f"python3 - <<'PYTHON'\n{_PRELUDE}\n{body.strip()}\nPYTHON"


# Name, number on x86-64, number on 64-bit ARM.
_NUMBERS = """
acct 163 89 add_key 248 217 adjtimex 159 171 bpf 321 280 chroot 161 51 clock_settime 227 112 clone 56 220 clone3
435 435 fanotify_init 300 262 fsopen 430 430 init_module 175 105 io_uring_setup 425 425 ioperm 173 -1 iopl 172 -1
keyctl 250 219 memfd_secret 447 447 mount 165 40 mount_setattr 442 442 mq_open 240 180 msgget 68 186 msgsnd 69 189
name_to_handle_at 303 264 open_by_handle_at 304 265 open_tree 428 428 perf_event_open 298 241 personality 135 92
pidfd_getfd 438 438 pidfd_open 434 434 pidfd_send_signal 424 424 pivot_root 155 41 process_vm_readv 310 270
process_vm_writev 311 271 ptrace 101 117 quotactl 179 60 reboot 169 142 request_key 249 218 semget 64 190 seccomp
317 277 setdomainname 171 162 sethostname 170 161 setns 308 268 settimeofday 164 170 shmat 30 196 shmget 29 194
swapon 167 224 syslog 103 116 umount2 166 39 unshare 272 97 userfaultfd 323 282
"""
_PRELUDE = f"""
import ctypes, os, re, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
words = {" ".join(_NUMBERS.split())!r}.split()
numbers = dict(zip(words[::3], map(int, words[1 + (os.uname().machine == "aarch64") :: 3])))
SECRET = re.compile(rb"canary-[0-9a-f]{{32}}")
def call(name, *words):
    words = [word.encode() if isinstance(word, str) else word for word in words]
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in words]
    result = libc.syscall(ctypes.c_long(numbers[name]), *words)
    print(name, result, "" if result >= 0 else os.strerror(ctypes.get_errno()), flush=True)
    return result
def attempt(act, *words, **options):
    try:
        result = act(*words, **options)
        print(act.__name__, "gave", repr(result)[:300], flush=True)
        return result
    except (OSError, ValueError, TypeError) as error:
        print(act.__name__, "failed:", error, flush=True)
def reach(host, port=80):
    s = socket.socket()
    s.settimeout(0.3)
    try:
        s.connect((host, port))
        print("reached", host)
    except ConnectionRefusedError:
        print("reached", host)  # there is somebody who refuses
    except OSError as error:
        print(host, error)
def stay(*results):
    if any(result is not None and result >= 0 for result in results):
        time.sleep(0.4)  # long enough to be seen
"""
