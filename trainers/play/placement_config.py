"""Options of placement: in which processes the episodes of a run are played."""

from collections import Counter
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from manyturn.envs.contract.facts import EnvFacts
from manyturn.envs.contract.options import OnlyWith, Options

_STATIC = OnlyWith("kind", "static", may_wait=True)


class PlacementConfig(Options):
    kind: Literal["local", "static"] = "local"
    """Where environments run: local, in this process or its workers; static, at the hosts that are named here. Model
    and learner are here in both, and in synchronous order the weights are the same."""
    hosts: Annotated[tuple[str, ...], _STATIC] = ()
    """Addresses of hosts that manyturn host has started, such as http://127.0.0.1:9001. The token of all is that of the
    environment variable MANYTURN_TOKEN."""
    wait: Annotated[float, _STATIC] = Field(default=60.0, gt=0)
    """Seconds until every host has to answer at the beginning, and until an episode has to find room when hosts were
    lost later. Then the run ends, and can be resumed."""
    silence: Annotated[float, _STATIC] = Field(default=30.0, gt=0)
    """Seconds without a sign of life after which a host that owes an answer counts as lost."""

    @field_validator("hosts")
    @classmethod
    def _are_addresses(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        found = tuple(_address(host) for host in hosts)
        if double := [host for host, count in Counter(found).items() if count > 1]:
            raise ValueError(f"{double[0]} is named twice: name each host once")
        return found

    @property
    def is_static(self) -> bool:
        return self.kind == "static"

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if not self.is_static:
            return None
        if not self.hosts:
            return (
                "placement.kind = 'static' needs hosts: start some with manyturn host --port N, and name their "
                "addresses in placement.hosts"
            )
        if run.env.workers:
            return (
                f"env.workers = {run.env.workers} has no effect with placement.kind = 'static': give --workers to "
                "manyturn host, and leave it out here"
            )
        return None


def _address(url: str) -> str:
    """An address without a slash at its end. Raises ValueError for what is none, or holds more than an address."""
    url = url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port is not None
    except ValueError:
        sound, parts = False, urlsplit("")
    if parts.username or parts.password:
        raise ValueError("an address of a host is kept with the run: leave the token out, and set MANYTURN_TOKEN")
    if not sound or parts.path or parts.query or parts.fragment or any(sign.isspace() for sign in url):
        raise ValueError(
            f"{url!r:.80} is no address of a host: write http://127.0.0.1:9001, as manyturn host prints it"
        )
    return url
