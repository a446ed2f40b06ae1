"""Taking more than one's share: processes, memory, disk, inodes, processor, time."""

from attacks import Attack, python, scripts

_FORKS = {
    "classic bomb": ":(){ :|:& };:; wait",
    "bomb that ignores signals": "trap '' TERM INT HUP; f(){ f & f & }; f; sleep 60",
    "sixty sleepers": "for i in $(seq 60); do sleep 60 & done; wait",
    "python forks": python("while True:\n    try: os.fork()\n    except OSError: time.sleep(0.01)"),
    "perl forks": "perl -e 'fork while fork or 1'",
    "daemons by double fork": python(
        """
while True:
    try:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(60)
            os._exit(0)
        os.wait()
    except OSError:
        time.sleep(0.01)
"""
    ),
    "hydra that forks anew for each death": python(
        """
def head():
    while True:
        try:
            if os.fork() == 0:
                os.setpgid(0, 0)
                continue
            os.waitpid(-1, os.WNOHANG)
        except OSError:
            time.sleep(0.01)
head()
"""
    ),
    "threads": python(
        """
import threading
while True:
    try: threading.Thread(target=time.sleep, args=(60,)).start()
    except RuntimeError: time.sleep(0.05)
"""
    ),
    "xargs without a limit": "yes 60 | xargs -P 0 -n 1 sleep",
    "recursion in pipes": "f(){ f | f | f; }; f",
    "coprocesses": "for i in $(seq 60); do coproc c$i { sleep 60; }; done 2>/dev/null; wait",
    "zombies that nobody waits for": python(
        """
while True:
    try:
        if os.fork() == 0: os._exit(0)
    except OSError:
        time.sleep(0.05)
"""
    ),
    "thousands of orphans": "for i in $(seq 1500); do (true &) ; done; sleep 60",
    "a program that executes itself for ever": "printf '#!/bin/bash\\nexec \"$0\"\\n' > x; chmod +x x; exec ./x",
}
_MEMORY = {
    "200 MB at once": python("x = bytearray(200 << 20); print('got it'); time.sleep(0.3)"),
    "page after page": python("x = []\nwhile True: x.append(bytearray(1 << 20))"),
    "shared mapping": python("import mmap\nm = mmap.mmap(-1, 200 << 20)\nm.write(b'x' * (200 << 20)); time.sleep(0.3)"),
    "file in memory": python("f = os.memfd_create('x')\nwhile True: os.write(f, bytes(1 << 20))"),
    "many processes": "for i in $(seq 20); do python3 -c 'x = bytearray(20 << 20); import time; "
    "time.sleep(60)' & done; wait",
    "bash doubles a string": "x=x; while :; do x=$x$x; done",
    "perl string": "perl -e '$x = \"x\" x (300 << 20); sleep 1'",
    "sort without an end": "sort /dev/zero",
    "tail without an end": "tail -c 1G /dev/zero",
    "locked memory": python("libc.mlockall(3)\nx = []\nwhile True: x.append(bytearray(1 << 20))"),
    "without a score for the killer": (
        "echo -1000 > /proc/self/oom_score_adj; echo 0 > /proc/self/oom_score_adj;"
        "python3 -c 'x = []\nwhile True: x.append(bytearray(1 << 20))'"
    ),
    "all file systems and then some": (
        "for d in /workspace /tmp /dev/shm; do head -c 100M /dev/zero > $d/x; done;"
        "python3 -c 'x = []\nwhile True: x.append(bytearray(1 << 20))'"
    ),
    "pipes full of data": python(
        """
import fcntl
ends = []
try:
    while True:
        ends.append(os.pipe())
        os.set_blocking(ends[-1][1], False)
        try: fcntl.fcntl(ends[-1][1], 1031, 1 << 20)
        except OSError: pass
        try:
            while True: os.write(ends[-1][1], bytes(1 << 16))
        except BlockingIOError: pass
except OSError as error:
    print(error)
time.sleep(0.3)
"""
    ),
    "sockets full of data": python(
        """
ends = []
try:
    while True:
        ends.append(socket.socketpair())
        ends[-1][0].setblocking(False)
        ends[-1][0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        try:
            while True: ends[-1][0].send(bytes(1 << 15))
        except BlockingIOError: pass
except OSError as error:
    print(error)
time.sleep(0.3)
"""
    ),
    "stack": "ulimit -s unlimited; f(){ f; }; f",
    "compressed bomb": python(
        """
import zlib
c = zlib.compressobj(9)
bomb = b"".join(c.compress(bytes(1 << 20)) for _ in range(300)) + c.flush()
print(len(zlib.decompress(bomb)))
time.sleep(0.3)
"""
    ),
    "page tables": python(
        """
import mmap
maps = []
for i in range(400):
    m = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
    for at in range(0, 1 << 30, 1 << 21): m[at] = 1
    maps.append(m)
"""
    ),
}
_DISK = {
    "40 MB into the workspace": "head -c 40M /dev/zero > big; ls -l big; sleep 0.3",
    "40 MB into the scratch folder": "head -c 40M /dev/zero > /tmp/big; sleep 0.3",
    "40 MB into shared memory": "head -c 40M /dev/zero > /dev/shm/big; sleep 0.3",
    "fallocate": "fallocate -l 40M big; ls -l big; sleep 0.3",
    "many files": "for i in $(seq 100); do head -c 1M /dev/zero > f$i; done 2>/dev/null; sleep 0.3",
    "file that has no name any more": "exec 5> x; rm x; head -c 40M /dev/zero >&5; sleep 0.3",
    "image and everything": "for d in / /var/tmp /run /run/lock /root /home /mnt /dev /sys /proc; do"
    " head -c 20M /dev/zero > $d/big; done; sleep 0.3",
    "sparse and then filled": python(
        "f = open('big', 'wb'); f.truncate(1 << 22)\nfor i in range(0, 1 << 26, 4096): f.seek(i); f.write(bytes(4096))"
    ),
    "extended attributes": python(
        "for i in range(100000):\n    try: os.setxattr('.', f'user.{i}', bytes(60000))\n"
        "    except OSError as error: print(i, error); break\ntime.sleep(0.3)"
    ),
    "core dumps": "ulimit -c unlimited; for i in 1 2 3; do bash -c 'kill -SEGV $$'; done; ls -la",
    "beyond the limit of a file": "ulimit -f unlimited; head -c 40M /dev/zero > big; ls -l big",
    "git repository that grows": "git init -q .; for i in $(seq 20); do head -c 2M /dev/urandom > f; git add f; done",
}
_INODES = {
    "two thousand files": "touch $(seq 2000); ls | wc -l",
    "folders without an end": "while mkdir x && cd x; do :; done 2>/dev/null; sleep 0.1",
    "links": "for i in $(seq 2000); do ln -s x l$i || break; done 2>/dev/null",
    "hard links": "touch x; for i in $(seq 3000); do ln x h$i || break; done 2>/dev/null; ls | wc -l",
    "pipes": "for i in $(seq 2000); do mkfifo p$i || break; done 2>/dev/null",
    "sockets": python(
        "for i in range(2000):\n    s = socket.socket(socket.AF_UNIX)\n    try: s.bind(f's{i}')\n    except "
        "OSError: break\n"
        "    s.close()"
    ),
    "names as long as can be": "for i in $(seq 600); do touch $(printf '%0255d' $i) || break; done 2>/dev/null",
    "names of odd bytes": python(
        "for i in range(1, 256):\n    for name in (bytes([i]), bytes([i]) * 200, b'-' + bytes([i]), "
        "bytes([i]) + b'\\n'):\n"
        "        try: open(name, 'w').close()\n        except OSError: pass"
    ),
    "in all places at once": "for d in /workspace /tmp /dev/shm; do (cd $d; touch $(seq 1000)); done",
    "open files": python(
        "held = []\ntry:\n    while True: held.append(os.open('/dev/null', 0))\n"
        "except OSError as error: print(len(held), error)"
    ),
    "watches": python(
        "held = []\nfor i in range(1000):\n    f = libc.inotify_init()\n    if f < 0: break\n"
        "    for p in os.listdir('/proc/self'): libc.inotify_add_watch(f, os.fsencode('/proc/self/' + p), 0xfff)"
    ),
    "timers": python(
        "import ctypes\nn = 0\nt = ctypes.c_void_p()\n"
        "while n < 200000 and libc.timer_create(1, None, ctypes.byref(t)) == 0: n += 1\nprint(n)"
    ),
    "locks": python(
        "import fcntl\nf = open('x', 'wb')\nfor i in range(100000): fcntl.lockf(f, fcntl.LOCK_EX, 1, 2 * "
        "i)\nprint('held')"
    ),
}
_PROCESSOR = {
    "eight busy loops": "for i in $(seq 8); do while :; do :; done & done; wait",
    "highest priority": python("attempt(os.nice, -20)\nattempt(os.setpriority, 0, 0, -20)\nwhile True: pass"),
    "real time": python(
        "attempt(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(99))\n"
        "attempt(os.sched_setscheduler, 0, os.SCHED_RR, os.sched_param(1))\nwhile True: pass"
    ),
    "first in line for the disk": python(
        "r = libc.syscall({'x86_64': 251, 'aarch64': 30}[os.uname().machine], 1, 0, 1 << 13)\nprint(r)\n"
        "while True: open('x', 'wb').write(bytes(1 << 20))"
    ),
    "expression that backtracks": python("re.match(r'(a+)+$', 'a' * 60 + 'b')"),
    "system calls": python("while True: os.stat('/')"),
    "yes eight times": "for i in $(seq 8); do yes > /dev/null & done; wait",
    "signals to oneself": python("signal.signal(10, lambda *_: None)\nwhile True: os.kill(os.getpid(), 10)"),
    "renames": "touch a; while :; do mv a b; mv b a; done",
}
_TIME = {
    "sleep": "sleep infinity",
    "ignores every signal it can": python(
        "for n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n"
        "while True: time.sleep(60)"
    ),
    "stops itself": "kill -STOP $$; sleep 60",
    "orphan that holds the output": "sleep 60 & disown; exit 0",
    "orphan in a session of its own": "setsid sleep 60 & exit 0",
    "closed output": "exec >&- 2>&-; sleep 60",
    "reads what never comes": "cat; cat /dev/tty; read x < /dev/console; sleep 60",
    "pipe without another end": "mkfifo p; cat p",
    "trap that begins anew": "trap 'exec sleep 60' TERM EXIT; trap '' INT; sleep 60",
    "parent waits in vfork": python("libc.vfork() == 0 and time.sleep(60)"),
    "frozen family": "(kill -STOP $BASHPID) & (kill -STOP $BASHPID) & wait",
    "deadline of its own": "timeout -s KILL 1000 sleep 60",
    "alarm that never rings": python("signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nsignal.sigwait({40})"),
}
ATTACKS: list[Attack] = [
    *scripts("forks", "limits", _FORKS, 0.8),
    *scripts("memory", "limits", _MEMORY, 1.5),
    *scripts("disk", "limits", _DISK, 1.5),
    *scripts("inodes", "limits", _INODES, 2.0),
    *scripts("processor", "limits", _PROCESSOR, 0.8),
    *scripts("time", "late", _TIME, 0.5),
]
