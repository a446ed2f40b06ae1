"""Rights that the agent has not, and the tool server: its life, its memory, its descriptors, its answers."""

from attacks import Attack, python, requests, scripts

_WATCHED = "; sleep 0.4"
_RIGHTS = {
    "su": "echo | su -c 'id; sleep 0.4'; echo | su -",
    "programs with a user of their own": (
        "for f in $(find / -xdev -perm /6000 -type f 2>/dev/null); do echo $f; timeout 0.2 $f < /dev/null; "
        "done 2>&1 | tail"
    ),
    "sudo": "sudo -n id; pkexec id; doas id; sg root id; newgrp root < /dev/null; runuser -u root id; "
    "setpriv --reuid 0 id",
    "user nought": python(
        "attempt(os.setuid, 0)\nattempt(os.setresuid, 0, 0, 0)\nattempt(os.seteuid, 0)\ntime.sleep(0.3)"
    ),
    "group nought": python(
        "attempt(os.setgid, 0)\nattempt(os.setgroups, [0, 42])\nattempt(os.setresgid, 0, 0, 0)\ntime.sleep(0.3)"
    ),
    "user of files": python("libc.setfsuid(0)\nlibc.setfsgid(0)\nprint(attempt(open, '/etc/shadow').read())"),
    "no new privileges taken back": python("print(libc.prctl(38, 0, 0, 0, 0))\ntime.sleep(0.3)"),
    "ambient capabilities": python("print([libc.prctl(47, 2, n, 0, 0) for n in range(41)])\ntime.sleep(0.3)"),
    "all capabilities": python(
        "head = ctypes.create_string_buffer(struct.pack('Ii', 0x20080522, 0))\n"
        "print(libc.capset(head, ctypes.create_string_buffer(b'\\xff' * 24)))\ntime.sleep(0.3)"
    ),
    "those of the bounding set by a file": python(
        "import shutil\nshutil.copy('/usr/bin/sleep', 's')\n"
        "attempt(os.setxattr, 's', 'security.capability', struct.pack('<5I', 0x02000001, 0xE0, 0, 0, 0))\n"
        "os.execv('./s', ['s', '0.4'])"
    ),
    "shell of root's": "cp /bin/bash b; chmod 6755 b; chown root b; ./b -p -c 'id; sleep 0.4'",
    "secure bits": python("print(libc.prctl(28, 0x2F, 0, 0, 0), libc.prctl(8, 1, 0, 0, 0))\ntime.sleep(0.3)"),
    "loader of a privileged program": (
        "printf 'x' > l.so; LD_PRELOAD=$PWD/l.so su -c id; LD_LIBRARY_PATH=. mount; GCONV_PATH=. su; "
        "GLIBC_TUNABLES=x su"
    ),
    "unfiltered calls": python("print(libc.prctl(22, 0, 0, 0, 0), libc.prctl(21, 0, 0, 0, 0))\ntime.sleep(0.3)"),
    "calls of 32 bits": python(
        "import mmap\nif os.uname().machine == 'x86_64':\n"
        "    m = mmap.mmap(-1, 4096, prot=7)\n    m.write(bytes.fromhex('53b8170000' '0031dbcd80' '5bc3'))\n"
        "    address = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
        "    print(ctypes.CFUNCTYPE(ctypes.c_int)(address)())\ntime.sleep(0.3)"
    ),
    "calls of the third kind": python("print(libc.syscall(ctypes.c_long(0x40000000 + 105), 0))\ntime.sleep(0.3)"),
    "accounts": "echo 'e::0:0::/:/bin/bash' >> /etc/passwd; echo 'e::1::::::' >> /etc/shadow; echo | su e "
    "-c 'sleep 0.4'",
    "another's rights by a message": python(
        "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\nb.setsockopt(1, 16, 1)\n"
        "attempt(a.sendmsg, [b'x'], [(1, 2, struct.pack('3i', 1, 0, 0))])\nattempt(b.recvmsg, 10, 100)\ntime.sleep(0.1)"
    ),
    "files given away": "touch x; chown root x; chgrp shadow x; chmod 2755 x; ls -l x" + _WATCHED,
    "old holes": (
        "find / -xdev -name 'pkexec' -o -xdev -name 'sudoedit' -o -xdev -name 'snap-confine' 2>/dev/null;"
        "echo > '/proc/self/attr/exec'; echo 0 > /proc/self/loginuid" + _WATCHED
    ),
}
_SHADOW = {
    "read": "cat /etc/shadow /etc/shadow- /etc/gshadow",
    "group of shadow": "chage -l root; expiry -c; unix_chkpwd root nullok < /dev/null; cat /etc/shadow",
    "link": "ln -s /etc/shadow x; cat x; cp --no-dereference x y; cat y",
    "hard link": "ln /etc/shadow x; cat x; ln -P /proc/1/environ y; cat y",
    "by a layer below": "find / -name shadow -not -path '/proc/*' 2>/dev/null | xargs -r cat",
}
_LIFE = {
    "killed": "kill -9 1; kill -KILL -- -1; sleep 0.1",
    "killed with everything": "kill -9 -1",
    "stopped": "kill -STOP 1; kill -TSTP 1; sleep 0.1",
    "every signal": "for n in $(seq 64); do kill -$n 1; done 2>/dev/null; sleep 0.1",
    "every signal with a message": python(
        "for n in range(1, 65):\n    info = ctypes.create_string_buffer(struct.pack('3i', n, 0, -1), 128)\n"
        "    libc.syscall({'x86_64': 129, 'aarch64': 138}[os.uname().machine], 1, n, info)"
    ),
    "signal by a descriptor": python(
        "f = call('pidfd_open', 1, 0)\nfor n in (9, 15, 19): call('pidfd_send_signal', f, n, 0, 0)"
    ),
    "signal to its thread": python(
        "for n in (9, 15, 19): libc.syscall({'x86_64': 234, 'aarch64': 131}[os.uname().machine], 1, 1, n)"
    ),
    "signals from a dying family": python(
        "for _ in range(200):\n    if os.fork() == 0:\n        libc.prctl(1, 9, 0, 0, 0)\n        os._exit(0)"
    ),
    "kill by the terminal": python(
        "import fcntl, termios\nf = attempt(os.open, '/dev/tty', 2)\nprint(f)\nos.killpg(0, 9)"
    ),
    "own parent": "kill -9 $PPID; kill -9 0",
    "input asked for signals": python(
        "import fcntl\nfor n in range(3):\n    f = attempt(os.open, f'/proc/1/fd/{n}', os.O_RDWR)\n"
        "    f is not None and attempt(fcntl.fcntl, f, fcntl.F_SETOWN, 1)"
    ),
    "first for the killer of processes": "echo 1000 > /proc/1/oom_score_adj; echo 15 > /proc/1/oom_adj",
    "last in line": "renice 19 1; ionice -c 3 -p 1; taskset -p 1 1; chrt -i -p 0 1",
    "no files to open": python("import resource\nattempt(resource.prlimit, 1, resource.RLIMIT_NOFILE, (3, 3))"),
    "adopter of orphans": python(
        "libc.prctl(36, 1, 0, 0, 0)\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: "
        "time.sleep(60)\n    os._exit(0)"
    ),
    "its timers": "echo 999999999 > /proc/1/timerslack_ns; echo 1 > /proc/1/clear_refs; echo x > /proc/1/comm",
}
_MEMORY = {
    "read": python(
        "for name in ('mem', 'environ', 'cmdline', 'auxv', 'maps', 'stack', 'syscall', 'io', 'pagemap', 'smaps'):\n"
        "    f = attempt(open, f'/proc/1/{name}', 'rb')\n    data = f and attempt(f.read, 1 << 20)\n"
        "    data and print(SECRET.findall(data))"
    ),
    "read by its threads": "for t in /proc/1/task/*; do cat $t/environ $t/mem $t/maps; done | grep -aoE "
    "'canary-[0-9a-f]{32}'",
    "searched": python(
        "for line in attempt(open, '/proc/1/maps') or ():\n    start, end = (int(x, 16) for x in "
        "line.split()[0].split('-'))\n"
        "    with open('/proc/1/mem', 'rb', 0) as f:\n        f.seek(start)\n        data = attempt(f.read, "
        "end - start)\n"
        "        data and print(SECRET.findall(data))"
    ),
    "read by a call": python(
        "out = ctypes.create_string_buffer(4096)\n"
        "local = ctypes.create_string_buffer(struct.pack('2Q', ctypes.addressof(out), 4096))\n"
        "for at in (0x400000, 0x555555554000, 0x7ffff7a00000):\n"
        "    call('process_vm_readv', 1, local, 1, ctypes.create_string_buffer(struct.pack('2Q', at, 4096)), 1, 0)"
    ),
    "traced": python("stay(call('ptrace', 16, 1, 0, 0))\nstay(call('ptrace', 0x4206, 1, 0, 0))"),
    "written": python(
        "f = attempt(open, '/proc/1/mem', 'r+b')\nout = ctypes.create_string_buffer(b'FORGED', 64)\n"
        "local = ctypes.create_string_buffer(struct.pack('2Q', ctypes.addressof(out), 64))\n"
        "call('process_vm_writev', 1, local, 1, ctypes.create_string_buffer(struct.pack('2Q', 0x400000, 64)), 1, 0)"
    ),
    "read through a child that was it": python(
        "for p in os.listdir('/proc'):\n    if p.isdigit():\n        for name in ('environ', 'mem'):\n"
        "            try: print(p, SECRET.findall(open(f'/proc/{p}/{name}', 'rb').read(1 << 16)))\n"
        "            except OSError: pass"
    ),
    "what is left in new memory": python(
        "import mmap\nfound = set()\nfor _ in range(40):\n    m = mmap.mmap(-1, 1 << 20)\n    found |= "
        "set(SECRET.findall(m[:]))\n"
        "print(found)"
    ),
    "what a new process inherits": "env; cat /proc/self/environ | tr '\\0' '\\n'; set",
    "scripts of others": "ls -la /proc/*/fd 2>/dev/null; cat /proc/*/fd/9 2>/dev/null; cat /memfd* 2>/dev/null",
}
_FRAME = (
    "import json\nhead = json.dumps({'id': %s, 'nonce': '0' * 32, 'status': 0, 'head': 6, 'tail': 0, 'left_out': 0,"
    " 'seconds': 0, 'timed_out': False, 'oom_kills': 0}).encode()\n"
    "frame = struct.pack('>4sII', b'mty1', len(head), 6) + head + b'FORGED'\n"
)
_STREAMS = {
    "answer into its output": python(
        _FRAME % "99" + "for n in range(10):\n    f = attempt(os.open, f'/proc/1/fd/{n}', os.O_WRONLY)\n"
        "    f is not None and attempt(os.write, f, frame)"
    ),
    "answer through one's own output": python(_FRAME % "2" + "sys.stdout.buffer.write(frame * 3)"),
    "answers to all that may be asked": python(
        "import json\nfor i in range(500):\n    head = json.dumps({'id': i, 'status': 0}).encode()\n"
        "    sys.stdout.buffer.write(struct.pack('>4sII', b'mty1', len(head), 0) + head)"
    ),
    "question into its input": python(
        "import json\nhead = json.dumps({'op': 'run', 'id': 1, 'folder': '/', 'environ': {}, 'seconds': 9}).encode()\n"
        "for n in range(10):\n    f = attempt(os.open, f'/proc/1/fd/{n}', os.O_RDWR)\n"
        "    f is not None and attempt(os.write, f, struct.pack('>4sII', b'mty1', len(head), 0) + head)"
    ),
    "input eaten": "cat /proc/1/fd/0 & cat <&0; cat /dev/stdin; sleep 0.1",
    "every descriptor written": python(
        "for n in range(256):\n    try: os.write(n, b'FORGED')\n    except OSError: pass\nos.closerange(0, 256)"
    ),
    "every descriptor read": python(
        "print([n for n in os.listdir('/proc/self/fd')])\nfor n in range(3, 256):\n    try: print(n, "
        "os.read(n, 1 << 16)[:99])\n"
        "    except OSError: pass"
    ),
    "report that nobody asked for": "echo FORGED >&3; echo FORGED >&4; echo FORGED >&9; echo FORGED > /proc/self/fd/3",
    "pipes of the command blocked": python(
        "import fcntl\nfor n in (1, 2):\n    os.set_blocking(n, False)\n    attempt(fcntl.fcntl, n, "
        "fcntl.F_SETSIG, 9)\n"
        "    attempt(fcntl.fcntl, n, fcntl.F_SETOWN, 1)\n    attempt(fcntl.fcntl, n, fcntl.F_SETFL, os.O_ASYNC)"
    ),
    "output handed on": python(
        "s = socket.socket(socket.AF_UNIX)\ns.bind('\\0keep')\ns.listen()\n"
        "if os.fork() == 0:\n    os.setsid()\n    c, _ = s.accept()\n    time.sleep(60)\n"
        "c = socket.socket(socket.AF_UNIX)\nc.connect('\\0keep')\nsocket.send_fds(c, [b'x'], [1, 2])"
    ),
    "late words": "setsid bash -c 'sleep 0.2; while :; do echo FORGED; echo FORGED >&3; sleep 0.01; done' & exit 0",
    "text of the script behind": "exit 0\nFORGED",
    "settings of the shell": (
        "for f in .bashrc .bash_profile .profile .bash_login .bash_logout .inputrc .bash_env; do"
        " echo 'echo FORGED; exit 9' | tee /tmp/$f > /workspace/$f; done; export BASH_ENV=/tmp/.bashrc "
        "ENV=/tmp/.profile"
    ),
    "functions and programs of the same name": (
        "export -f printf exit 2>/dev/null; printf() { echo FORGED; }; export -f printf; alias exit='echo FORGED';"
        "for n in printf bash exit sh env; do printf '#!/bin/sh\\necho FORGED\\n' > $n; chmod +x $n; done;"
        "mkdir -p /tmp/bin; cp bash /tmp/bin; cp bash /usr/local/sbin/bash; hash -p ./bash bash"
    ),
    "modules of the same name": (
        "for d in /workspace /tmp /tmp/.local/lib/python3.11/site-packages; do mkdir -p $d;"
        " for m in os json sitecustomize usercustomize struct encodings; do echo 'print(\"FORGED\")' > "
        "$d/$m.py; done; done"
    ),
    "program replaced for what "
    "comes": "cat > /tmp/b <<< 'echo FORGED'; chmod 755 /tmp/b; mv -f /tmp/b /bin/bash; cp /tmp/b /usr/bin/bash",
    "configuration of git and "
    "readline": "git config --global core.fsmonitor 'echo FORGED'; git config --global alias.x '!echo FORGED'",
}
_SCRIPTS = {
    "300 KB in one line": (": " + "x" * 300_000, lambda box: None),
    "5 MB": ("# " + "y" * 79 + "\n" + ("true\n# " + "y" * 79 + "\n") * 4000, lambda box: None),
    "arguments beyond the limit": (
        "/bin/true $(seq 200000); /bin/true $(head -c 200000 /dev/zero | tr '\\0' x)",
        lambda box: None,
    ),
    "NUL in the script": ("echo a\0b; echo FORGED", lambda box: None),
    "surrogates in the script": ("echo \udcff\udc80; echo \ud800", lambda box: box.run("echo \ud800")),
    "unfinished quotes": ("echo \"'`$(((", lambda box: box.run("cat <<X\n")),
    "closing what surrounds it": (
        "'; echo FORGED; \"; echo FORGED; } ; ) ; fi ; done ; EOF\nPYTHON\nexit 0",
        lambda box: None,
    ),
    "options in place of a script": ("--version", lambda box: box.run("-c 'echo FORGED'")),
    "megabyte of environment": ("", lambda box: box.run("true", environ={"X": "x" * 1_000_000})),
    "thousands of variables": ("", lambda box: box.run("true", environ={f"X{i}": "x" * 100 for i in range(20_000)})),
    "NUL in a variable": ("", lambda box: box.run("true", environ={"X": "a\0b"})),
    "sign in the name of a variable": ("", lambda box: box.run("true", environ={"A=B": "C", "": "x"})),
    "folder that is none": ("", lambda box: box.run("true", folder="/nowhere")),
    "folder with a NUL": ("", lambda box: box.run("true", folder="/tmp\0/x")),
    "folder of the first process": ("", lambda box: box.run("ls; cat *", folder="/proc/1/cwd")),
    "folder that goes away": ("mkdir -p a/b; chmod 0 a", lambda box: box.run("true", folder="/workspace/a/b")),
    "folder that is a link": ("ln -s /root r", lambda box: box.run("ls", folder="/workspace/r")),
    "no time at all": ("", lambda box: box.run("sleep 9", seconds=0.0)),
    "less than no time": ("", lambda box: box.run("sleep 9", seconds=-1.0)),
}
ATTACKS: list[Attack] = [
    *scripts("rights", "rights", _RIGHTS, 2.0),
    *scripts("rights to files", "secret", _SHADOW),
    *scripts("server's life", "server", _LIFE),
    *scripts("server's memory", "secret", _MEMORY),
    *scripts("server's streams", "server", _STREAMS),
    *requests("huge and odd commands", "server", _SCRIPTS),
]
