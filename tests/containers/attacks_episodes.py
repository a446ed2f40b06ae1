"""Leaving something behind for the next episode in the same sandbox."""

from attacks import Attack, python

_SEARCH = (
    "grep -rs $MARK /workspace /tmp /dev/shm /var/tmp /run /etc /home 2>/dev/null;"
    ' find / -xdev -name "*$MARK*"; sleep 0.1'
)
_PLACES = (
    "/workspace /workspace/.hidden /tmp /tmp/.cache /dev/shm /var/tmp /run /run/lock /var/spool /home /mnt /srv /opt"
)
_LEFT: dict[str, tuple[str, str]] = {
    "files in all places": (f"for d in {_PLACES}; do mkdir -p $d; echo $MARK > $d/x; echo > $d/$MARK; done", _SEARCH),
    "file without rights": (
        "echo $MARK > x; chmod 0 x; mkdir y; cp x y; chmod 0 y; mkdir -p /tmp/z; chmod 0 /tmp/z",
        "chmod -R 700 /workspace /tmp; " + _SEARCH,
    ),
    "name of odd bytes": ("echo $MARK > $'\\xff\\n\\x01'; mkdir -- $'-rf\\n'; echo $MARK > ./-rf$'\\n'/x", _SEARCH),
    "deep folders": ("for i in $(seq 150); do mkdir -p d && cd d; done; echo $MARK > x", _SEARCH),
    "link that is emptied too": ("ln -s /dev/shm x; ln -s /tmp /dev/shm/y; echo $MARK > /dev/shm/z", _SEARCH),
    "message queue by its file": (
        "echo $MARK > /dev/mqueue/x; touch /dev/mqueue/$MARK; ls /dev/mqueue",
        "ls /dev/mqueue",
    ),
    "message queue": (
        python("call('mq_open', os.environ['MARK'], os.O_CREAT | os.O_RDWR, 0o666, 0)"),
        "ls /dev/mqueue; cat /dev/mqueue/*",
    ),
    "shared memory of System V": (
        python("call('shmget', 0x1234, 4096, 0o1666)"),
        python("if call('shmget', 0x1234, 4096, 0) >= 0: print(os.environ['MARK'])"),
    ),
    "semaphores": (
        python("call('semget', 0x1234, 1, 0o1666)"),
        python("if call('semget', 0x1234, 1, 0) >= 0: print(os.environ['MARK'])"),
    ),
    "queue of System V": (
        python("call('msgget', 0x1234, 0o1666)"),
        python("if call('msgget', 0x1234, 0) >= 0: print(os.environ['MARK'])"),
    ),
    "key": (
        python(
            "mark = os.environ['MARK']\nfor ring in (-1, -2, -3, -4, -5):\n"
            "    call('add_key', 'user', 'left', mark, len(mark), ring)"
        ),
        python(
            "out = ctypes.create_string_buffer(99)\nfor ring in (-3, -4, -5):\n    key = call('keyctl', 10, "
            "ring, 'user', 'left', 0)\n"
            "    if key >= 0 and call('keyctl', 11, key, out, 99) > 0: print(out.value.decode())"
        ),
    ),
    "attribute of the workspace itself": (
        python(
            "for place in ('/workspace', '/tmp', '/dev/shm'):\n"
            "    attempt(os.setxattr, place, 'user.mark', os.environ['MARK'].encode())"
        ),
        python(
            "for p in ('/workspace', '/tmp', '/dev/shm'):\n    for n in os.listxattr(p): print(n, os.getxattr(p, n))"
        ),
    ),
    "access list of the workspace itself": (
        python(
            "acl = struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *e) for e in"
            " [(1, 7, 0xFFFFFFFF), (2, 7, 4242), (4, 5, 0xFFFFFFFF), (16, 7, 0xFFFFFFFF), (32, 5, 0xFFFFFFFF)])\n"
            "for name in ('access', 'default'):\n    attempt(os.setxattr, '/workspace', "
            "f'system.posix_acl_{name}', acl)"
        ),
        python(
            "for n in ('access', 'default'):\n    try:\n        if struct.pack('<I', 4242) in"
            " os.getxattr('/workspace', f'system.posix_acl_{n}'): print(os.environ['MARK'])\n    except OSError: pass"
        ),
    ),
    "time of the workspace itself": (
        "touch -a -d @1234567 /workspace /tmp /dev/shm; touch -d @1234567 /workspace; stat -c %X /workspace",
        "for d in /workspace /tmp /dev/shm; do [ $(stat -c %X $d) = 1234567 ] && echo $MARK; done",
    ),
    "mode of the workspace itself": (
        "chmod 2775 /workspace; chmod +t /workspace; chmod 700 /tmp; stat -c %a /workspace",
        '[ "$(stat -c %a /workspace)" = 755 ] || echo $MARK; [ "$(stat -c %a /tmp)" = 1777 ] || echo $MARK',
    ),
    "name of the machine": (
        "hostname $MARK; echo $MARK > /proc/sys/kernel/hostname",
        "hostname; cat /proc/sys/kernel/hostname",
    ),
    "rights of the terminals": ("chmod 777 /dev/pts/ptmx /dev/null; echo $MARK > /dev/pts/x", "ls -la /dev /dev/pts"),
    "daemon": (
        "setsid nohup bash -c 'while :; do echo $MARK > /workspace/x; sleep 0.01; done' > /dev/null 2>&1 &",
        "sleep 0.2; " + _SEARCH,
    ),
    "daemon that hides": (
        python(
            "if os.fork() == 0:\n    os.setsid()\n    libc.prctl(36, 1, 0, 0, 0)\n    libc.prctl(4, 0, 0, 0, 0)\n"
            "    for n in range(1, 65):\n        try: signal.signal(n, signal.SIG_IGN)\n        except "
            "(OSError, ValueError): pass\n"
            "    if os.fork() == 0:\n        while True:\n            open('/tmp/x', 'w').write(os.environ['MARK'])\n"
            "            if os.fork(): os._exit(0)\n    os._exit(0)"
        ),
        "sleep 0.2; " + _SEARCH,
    ),
    "server on a port": (
        python(
            "s = socket.socket()\ns.bind(('127.0.0.1', 5555))\ns.listen()\nif os.fork() == 0:\n    os.setsid()\n"
            "    while True: s.accept()[0].send(os.environ['MARK'].encode())"
        ),
        "cat < /dev/tcp/127.0.0.1/5555",
    ),
    "server without a path": (
        python(
            "s = socket.socket(socket.AF_UNIX)\ns.bind('\\0left')\ns.listen()\nif os.fork() == 0:\n    os.setsid()\n"
            "    while True: s.accept()[0].send(os.environ['MARK'].encode())"
        ),
        python("s = socket.socket(socket.AF_UNIX)\ns.connect('\\0left')\nprint(s.recv(99))"),
    ),
    "table of cron": (
        'echo "* * * * * echo $MARK" | crontab -; for d in /etc/cron.d /var/spool/cron/crontabs /etc/cron.daily; do'
        ' mkdir -p $d; echo "* * * * * root echo $MARK" > $d/x; done; echo "echo $MARK" | at now',
        _SEARCH,
    ),
    "unit of systemd": (
        "for d in /etc/systemd/system /tmp/.config/systemd/user /run/systemd/system; do mkdir -p $d;"
        ' printf "[Service]\\nExecStart=/bin/echo $MARK\\n" > $d/x.service; done; systemctl start x',
        _SEARCH,
    ),
    "start of shells": (
        "for f in /etc/profile /etc/bash.bashrc /etc/profile.d/x.sh /tmp/.bashrc /root/.bashrc /etc/environment"
        ' /etc/ld.so.preload; do echo "echo $MARK" >> $f; done',
        "bash -lic true; bash -ic true; " + _SEARCH,
    ),
    "packages of Python": (
        "d=/tmp/.local/lib/python3.11/site-packages; mkdir -p $d; echo 'import os; print(os.environ[\"MARK\"])' | tee"
        " $d/usercustomize.py $d/x.pth /usr/lib/python3/dist-packages/sitecustomize.py > /dev/null",
        "python3 -c pass; " + _SEARCH,
    ),
    "hooks of git": (
        'git config --global core.hooksPath /tmp/h; git config --system core.pager "echo $MARK"; mkdir /tmp/h;'
        ' echo "echo $MARK" > /tmp/h/post-checkout',
        "git config --list --show-origin; " + _SEARCH,
    ),
    "cache of compiled modules": (
        "mkdir -p __pycache__ .pytest_cache/v; echo $MARK > __pycache__/json.cpython-311.pyc; echo $MARK > "
        ".pytest_cache/v/x",
        "find /workspace; " + _SEARCH,
    ),
    "lock": (
        "exec 5> /tmp/lock; flock 5; setsid sleep 60 5>&5 & ",
        "exec 5> /tmp/lock; flock -n 5 || echo $MARK",
    ),
    "limits of processes to come": (
        "ulimit -u 1; ulimit -n 5; ulimit -v 9999",
        "for i in 1 2 3 4 5 6; do (true) || echo $MARK; done",
    ),
    "file handle kept by a message": (
        python(
            "a, b = socket.socketpair()\nf = os.open('/tmp/x', os.O_CREAT | os.O_RDWR)\nos.write(f, "
            "os.environ['MARK'].encode())\n"
            "socket.send_fds(a, [b'x'], [f, b.fileno()])\nos.unlink('/tmp/x')"
        ),
        "cat /proc/*/fd/* 2>/dev/null | head -c 100; " + _SEARCH,
    ),
}
ATTACKS: list[Attack] = [
    Attack(f"next episode: {name}", "next episode", "persist", script, probe=probe)
    for name, (script, probe) in _LEFT.items()
]
