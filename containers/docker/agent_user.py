"""The user in whose name a container's commands run: one of its own for each container.

The kernel counts some things by user and not by container: signals and timers that wait, inotify instances, memory of
pipes. Whoever shares a user, in another container or on the host, is refused what one command has used up.
"""

import secrets
from pathlib import Path

from manyturn.containers.engine.preflight import Facts

_APART = range(65_536, 524_288)  # no account, service or container of systemd's has these
_MAPPED = range(20_000, 60_000)  # for an engine with 65,536 users, none of which is one of the host's


def drawn(facts: Facts) -> int:
    """A user id. That two of a hundred containers share one is as likely as 1 in 100."""
    few = {"rootless", "userns"} & set(facts.security) or _own_users() < _APART.stop
    return secrets.choice(_MAPPED if few else _APART)


def _own_users() -> int:
    """Number of users in this process's namespace, in which an engine of this machine runs too."""
    try:
        return sum(int(line.split()[2]) for line in Path("/proc/self/uid_map").read_text().splitlines())
    except (OSError, ValueError):  # not Linux: the engine's machine is another
        return _APART.stop
