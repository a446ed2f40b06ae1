"""Reaching anything beyond the sandbox: the host's own addresses, names, other families of sockets, hardware."""

from attacks import Attack, python, scripts

_TCP = "s = socket.socket(socket.{family})\ns.settimeout(1)\nattempt(s.connect, {address})\nattempt(s.send, b'hello')"


def _tcp(address: str, family: str = "AF_INET") -> str:
    return python(_TCP.format(address=address, family=family))


def _family(number: int, kind: int, protocol: int = 0, then: str = "") -> str:
    """A socket of a family that only drivers and protocols of the kernel's speak; having it is the success."""
    body = f"s = attempt(socket.socket, {number}, {kind}, {protocol})\nif s:\n    pass\n{then}\nstay(0 if s else -1)"
    return python(body)


_PORT = "int(os.environ['PORT'])"
_CONTACTS = {
    "loopback": _tcp(f"('127.0.0.1', {_PORT})"),
    "loopback by another address": _tcp(f"('127.1.2.3', {_PORT})"),
    "the address of nothing": _tcp(f"('0.0.0.0', {_PORT})"),
    "loopback of version 6": _tcp(f"('::1', {_PORT})", "AF_INET6"),
    "version 4 in version 6": _tcp(f"('::ffff:127.0.0.1', {_PORT})", "AF_INET6"),
    "bash by TCP": "exec 5<>/dev/tcp/127.0.0.1/$PORT && echo hello >&5; echo $?",
    "bash by UDP": "echo hello > /dev/udp/127.0.0.1/$UDP_PORT; for h in $HOSTS; do echo x > "
    "/dev/udp/$h/$UDP_PORT; done",
    "datagram": python(
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nfor host in ['127.0.0.1', "
        "*os.environ['HOSTS'].split()]:\n"
        "    attempt(s.sendto, b'hello', (host, int(os.environ['UDP_PORT'])))"
    ),
    "broadcast": python(
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.setsockopt(socket.SOL_SOCKET, "
        "socket.SO_BROADCAST, 1)\n"
        "attempt(s.sendto, b'hello', ('255.255.255.255', int(os.environ['UDP_PORT'])))"
    ),
    "multicast": python(
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "attempt(s.sendto, b'hello', ('224.0.0.1', int(os.environ['UDP_PORT'])))"
    ),
    "data with the first packet": python(
        "s = socket.socket()\nattempt(s.sendto, b'hello', 0x20000000, ('127.0.0.1', int(os.environ['PORT'])))"
    ),
    "several paths at once": python(
        "s = attempt(socket.socket, socket.AF_INET, socket.SOCK_STREAM, 262)\n"
        "s and attempt(s.connect, ('127.0.0.1', int(os.environ['PORT'])))"
    ),
    "web page": python(
        "import urllib.request\nattempt(urllib.request.urlopen, f\"http://127.0.0.1:{os.environ['PORT']}/\", timeout=1)"
    ),
    "web page by a proxy": (
        "export http_proxy=http://127.0.0.1:$PORT HTTP_PROXY=http://127.0.0.1:$PORT;"
        "python3 -c 'import urllib.request as u; u.urlopen(\"http://example.org/\", timeout=1)'"
    ),
    "git by HTTP": "git clone http://127.0.0.1:$PORT/x.git",
    "git by its own protocol": "git clone git://127.0.0.1:$PORT/x",
    "git by a helper": "git -c protocol.ext.allow=always clone 'ext::bash -c \"exec 3<>/dev/tcp/127.0.0.1/'$PORT'\"' x",
    "package index": "python3 -m pip download --index-url http://127.0.0.1:$PORT/ x; apt-get update",
    "socket with a path of the host's": python(
        "s = socket.socket(socket.AF_UNIX)\nattempt(s.connect, os.environ['UNIX'])"
    ),
    "that path below the first process": python(
        "for top in ('/proc/1/root', '/proc/1/cwd', '/proc/self/root'):\n"
        "    s = socket.socket(socket.AF_UNIX)\n    attempt(s.connect, top + os.environ['UNIX'])"
    ),
    "socket without a path": python(
        "for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):\n"
        "    s = socket.socket(socket.AF_UNIX, kind)\n    attempt(s.connect, '\\0' + os.environ['ABSTRACT'])"
    ),
    "the engine's own socket": python(
        "import glob\nfor path in ['/var/run/docker.sock', '/run/docker.sock', '/run/podman/podman.sock',"
        " '/run/containerd/containerd.sock', *glob.glob('/run/**/*.sock', recursive=True)]:\n"
        "    s = socket.socket(socket.AF_UNIX)\n    if attempt(s.connect, path) is None and s.fileno() < 0: stay(0)"
    ),
    "sockets found in /proc/net": python(
        "for line in open('/proc/net/unix').read().splitlines()[1:]:\n    name = line.split()[-1]\n"
        "    s = socket.socket(socket.AF_UNIX)\n"
        "    attempt(s.connect, name.replace('@', '\\0', 1) if name.startswith('@') else name)"
    ),
    "system bus": python(
        "for path in ('/run/dbus/system_bus_socket', '\\0/tmp/dbus', '/run/systemd/private', '/run/systemd/notify',"
        " '/dev/log', '/run/systemd/journal/socket'):\n    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "    attempt(s.connect, path)"
    ),
    "port that listens to all": python(
        "s = socket.socket()\ns.bind(('0.0.0.0', int(os.environ['PORT'])))\ns.listen()\ns.settimeout(0.3)\n"
        "attempt(s.accept)"
    ),
}
_BEYOND = {
    "metadata of a cloud": python(
        "import urllib.request\nfor host in ('169.254.169.254', 'metadata.google.internal', "
        "'[fd00:ec2::254]', '100.100.100.200'):\n"
        "    page = attempt(urllib.request.urlopen, f'http://{host}/latest/meta-data/', timeout=1)\n"
        "    if page: print('reached', page.read()[:200])"
    ),
    "every address of the host": python("for host in os.environ['HOSTS'].split(): reach(host, 22)"),
    "usual addresses of a host": python(
        "for host in '172.17.0.1 10.0.2.2 192.168.65.2 192.168.0.1 10.0.0.1 100.64.0.1 "
        "169.254.1.1'.split(): reach(host)"
    ),
    "usual names of a host": python(
        "for host in 'host.docker.internal host.containers.internal gateway.docker.internal'.split(): reach(host)"
    ),
    "bound to the host's device": python(
        "for name in (b'eth0', b'ens3', b'docker0', b'enp0s1'):\n"
        "    s = socket.socket()\n    attempt(s.setsockopt, socket.SOL_SOCKET, 25, name)\n"
        "    if attempt(s.getsockopt, socket.SOL_SOCKET, 25, 16) == name + bytes(1): print('reached', name)"
    ),
    "echo requests": python(
        "for host in (*os.environ['HOSTS'].split(), '8.8.8.8'):\n"
        "    s = attempt(socket.socket, socket.AF_INET, socket.SOCK_DGRAM, 1)\n    s and s.settimeout(0.3)\n"
        "    s and attempt(s.sendto, struct.pack('BBHHH', 8, 0, 0xF7FD, 1, 1), (host, 0))\n"
        "    if s and attempt(s.recv, 99): print('reached', host)"
    ),
    "names": python(
        "for name in ('example.org', 'deb.debian.org', 'pypi.org'):\n"
        "    if attempt(socket.getaddrinfo, name, 80): print('reached', name)"
    ),
    "questions to name servers": python(
        "q = b'\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\7example\\3org\\0\\0\\1\\0\\1'\n"
        "servers = re.findall(r'nameserver (\\S+)', open('/etc/resolv.conf').read())\n"
        "for host in [*servers, '8.8.8.8', '1.1.1.1', '9.9.9.9', '127.0.0.11']:\n"
        "    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n    s.settimeout(0.2)\n"
        "    attempt(s.sendto, q, (host, 53))\n    if attempt(s.recv, 512): print('reached', host)"
    ),
    "name server by TCP": python(
        "for host in ('8.8.8.8', '1.1.1.1'):\n    s = socket.socket()\n    s.settimeout(0.3)\n"
        "    attempt(s.connect, (host, 53))\n    if attempt(s.getpeername): print('reached', host)"
    ),
    "name server of version 6": python(
        "s = socket.socket(socket.AF_INET6)\ns.settimeout(0.3)\nattempt(s.connect, ('2001:4860:4860::8888', 53))\n"
        "if attempt(s.getpeername): print('reached')"
    ),
}
_INET, _STREAM, _DATAGRAM, _RAW, _SEQUENCED = 2, 1, 2, 3, 5
_OBJECTS = {
    "raw packets": _family(_INET, _RAW, 1),
    "raw packets with a header": _family(_INET, _RAW, 255),
    "raw packets of version 6": _family(10, _RAW, 58),
    "packets of a device": _family(17, _RAW, 0x0300),
    "SCTP": _family(_INET, _STREAM, 132),
    "DCCP": _family(_INET, 6, 33),
    "virtual machine's host": _family(40, _STREAM, then="    attempt(s.connect, (2, 1024))"),
    "the kernel's ciphers": _family(38, _SEQUENCED, then="    attempt(s.bind, ('hash', 'sha256'))"),
    "keys of IPsec": _family(15, _RAW, 2),
    "Bluetooth": _family(31, _RAW, 1),
    "CAN bus": _family(29, _RAW, 1),
    "TIPC": _family(30, _STREAM),
    "RDS": _family(21, _SEQUENCED),
    "express data path": _family(44, _RAW),
    "X.25": _family(9, _SEQUENCED),
    "AX.25": _family(3, _DATAGRAM),
    "phone network": _family(35, _DATAGRAM),
    "infrared": _family(23, _STREAM),
    "near field": _family(39, _SEQUENCED),
    "caif": _family(37, _SEQUENCED),
    "shared memory of a cluster": _family(43, _STREAM),
    "Qualcomm's router": _family(42, _DATAGRAM),
    "audit": _family(16, _RAW, 9, "    attempt(s.send, struct.pack('IHHII', 16, 1000, 1, 1, 0))"),
    "tunnel device": python(
        "f = attempt(os.open, '/dev/net/tun', os.O_RDWR)\nprint(attempt(os.mknod, '/tmp/tun', 0o20666, "
        "os.makedev(10, 200)))\n"
        "f = f or attempt(os.open, '/tmp/tun', os.O_RDWR)\nstay(f)"
    ),
}
_INTERFACES = {
    "new address": python(
        "import fcntl\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "request = struct.pack('16sHH4s8x', b'lo', 2, 0, bytes([10, 9, 8, 7]))\nattempt(fcntl.ioctl, s, "
        "0x8916, request)"
    ),
    "device by netlink": python(
        "s = socket.socket(16, socket.SOCK_RAW, 0)\n"
        "info = struct.pack('HH', 10, 1) + b'dummy\\0\\0\\0'\n"
        "body = struct.pack('BxHiII', 0, 0, 0, 0, 0) + struct.pack('HH', 4 + len(info), 18) + info\n"
        "attempt(s.send, struct.pack('IHHII', 16 + len(body), 16, 0x605, 1, 0) + body)\nprint(s.recv(4096)[:40])"
    ),
    "packet filter": python("s = attempt(socket.socket, 16, socket.SOCK_RAW, 12)\ns and attempt(s.send, bytes(20))"),
    "loopback off": python(
        "import fcntl\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "attempt(fcntl.ioctl, s, 0x8914, struct.pack('16sH14x', b'lo', 0))"
    ),
}
ATTACKS: list[Attack] = [
    *scripts("network", "contact", _CONTACTS),
    *scripts("network", "reached", _BEYOND),
    *scripts("sockets", "object", _OBJECTS),
    *scripts("interfaces", "interfaces", _INTERFACES),
]
