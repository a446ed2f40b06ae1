"""Options of placement: in which processes the episodes of a run are played."""

from collections import Counter
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationInfo, field_validator

from manyturn.envs.contract.options.options import OnlyWith, Options
from manyturn.envs.contract.tasks.env_facts import EnvFacts

_STATIC = OnlyWith("kind", "static", may_wait=True)
_RAY = OnlyWith("kind", "ray", may_wait=True)
_HOSTS = OnlyWith("kind", "static", "ray", may_wait=True)
_LOCAL = OnlyWith("kind", "local", "ray", may_wait=True)
_CLUSTER = OnlyWith("cluster", may_wait=True)
_RAYS_OWN = ("CPU", "GPU", "memory", "object_store_memory")


class PlacementConfig(Options):
    kind: Literal["local", "static", "ray"] = "local"
    """Where environments run: local, in this process or its workers; static, at the hosts that are named here; ray, at
    hosts that Ray places. The learner is here in each, and in synchronous order the weights are the same."""
    hosts: Annotated[tuple[str, ...], _STATIC] = ()
    """Addresses of hosts that manyturn host has started, such as http://127.0.0.1:9001. The token of all is that of the
    environment variable MANYTURN_TOKEN."""
    samplers: tuple[str, ...] | Annotated[int, Field(ge=1)] = ()
    """Samplers run the engine and draw all tokens, with weights that this process sends. With local: how many it starts
    on this machine, on GPUs of their own if it has GPUs. With static: addresses of those that manyturn sampler has
    started, such as http://127.0.0.1:9101, whose token is that of the hosts. With ray: how many Ray places. Unset: the
    engine is here."""
    count: Annotated[int, _RAY] = Field(default=1, ge=1)
    """Hosts that Ray places, each with env.workers processes."""
    learners: Annotated[int, _LOCAL] = Field(default=1, ge=1)
    """Processes that learn as one: this one, and ranks. With local: ranks that it starts on this machine, each on a GPU
    of its own if it has GPUs. With ray: ranks that Ray places, on CPUs. They end on the weights of one, up to
    rounding."""
    cluster: Annotated[str | None, _RAY] = None
    """Ray's cluster: auto, for the one that this machine is in, or HOST:PORT of its head. Unset: one is started on this
    machine, and ends with the run."""
    cpus: Annotated[float, _CLUSTER] = Field(default=1.0, ge=0)
    """Processors that Ray counts for a host, a sampler or a rank, when it looks for a node."""
    gpus: Annotated[float, _CLUSTER] = Field(default=0.0, ge=0)
    """GPUs that Ray counts for a sampler, and lets it see; 0: it draws on a CPU."""
    resources: Annotated[dict[str, float], _CLUSTER] = {}
    """Further resources that a node must have for a host, such as {containers = 1}; nodes are started with them."""
    remote: Annotated[bool, _CLUSTER] = False
    """Allow a cluster with other machines. Hosts then listen at their nodes' addresses, guarded by a token that is made
    for the run; ranks talk there without one. Nothing is encrypted."""
    wait: Annotated[float, _HOSTS] = Field(default=60.0, gt=0)
    """Seconds until every host, sampler and rank has to answer at the beginning, and until an episode has to find room
    when hosts were lost later, or a sampler when all were. Then the run ends, and can be resumed."""
    silence: Annotated[float, _HOSTS] = Field(default=30.0, gt=0)
    """Seconds without a sign of life after which a host or sampler that owes an answer counts as lost."""

    @property
    def ranks(self) -> int:
        """Processes that learn, of those that this section has started."""
        return self.learners if self.kind != "static" else 1

    @property
    def sampler_urls(self) -> tuple[str, ...]:
        """Of samplers that somebody else has started."""
        return self.samplers if self.kind == "static" and isinstance(self.samplers, tuple) else ()

    @property
    def sampler_count(self) -> int:
        """Of samplers that this section has started."""
        return self.samplers if self.kind != "static" and isinstance(self.samplers, int) else 0

    @field_validator("hosts", "samplers")
    @classmethod
    def _are_addresses(cls, value: tuple[str, ...] | int, info: ValidationInfo) -> tuple[str, ...] | int:
        if isinstance(value, int):
            return value
        what = str(info.field_name).removesuffix("s")
        addresses = tuple(_address(address, what) for address in value)
        if double := [address for address, count in Counter(addresses).items() if count > 1]:
            raise ValueError(f"{double[0]} is named twice: name each {what} once")
        return addresses

    @field_validator("cluster")
    @classmethod
    def _is_cluster(cls, cluster: str | None) -> str | None:
        if cluster is None or cluster == "auto":
            return cluster
        host, _, port = cluster.rpartition(":")
        if not host or "/" in host or not port.isdecimal():
            raise ValueError(
                f"{cluster!r:.80} is no cluster that can be joined: write auto, or HOST:PORT as ray start --head "
                "prints it, on a machine that is a node of it"
            )
        return cluster

    @field_validator("resources")
    @classmethod
    def _are_custom(cls, resources: dict[str, float]) -> dict[str, float]:
        for name, amount in resources.items():
            if name in _RAYS_OWN:
                raise ValueError(f"{name} is Ray's own: set placement.cpus, and name resources of your own here")
            if amount <= 0:
                raise ValueError(f"{name} = {amount:g}: {_SHARES}")
            _share_or_whole(name, amount)
        return resources

    @field_validator("gpus")
    @classmethod
    def _are_gpus(cls, gpus: float) -> float:
        return _share_or_whole("gpus", gpus)

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if self.kind == "static":
            return self._refuse_static(run) or self._refuse_samplers(run)
        return self._refuse_started() or self._refuse_samplers(run)

    def _refuse_started(self) -> str | None:
        if self.samplers and not self.sampler_count:
            starter = "Ray places" if self.kind == "ray" else "the run starts"
            return (
                f"placement.samplers names addresses, and with kind = {self.kind!r} {starter} samplers: say how many, "
                "or set kind to 'static'"
            )
        if self.gpus and not self.samplers:
            return f"placement.gpus = {self.gpus:g} is of samplers: set placement.samplers as well, or leave it out"
        return None

    def _refuse_static(self, run: Any) -> str | None:
        if self.samplers and not self.sampler_urls:
            return (
                f"placement.samplers = {self.samplers} has samplers started, with kind = 'local' or 'ray': name the "
                "addresses of those that manyturn sampler has started"
            )
        if not self.hosts and not self.samplers:
            return (
                "placement.kind = 'static' needs hosts: start some with manyturn host --port N, and name their "
                "addresses in placement.hosts; or samplers, with manyturn sampler, in placement.samplers"
            )
        if self.hosts and run.env is not None and run.env.workers:
            return (
                f"env.workers = {run.env.workers} has no effect at hosts that placement.hosts names: give --workers to "
                "manyturn host, and leave it out here"
            )
        return None

    def _refuse_samplers(self, run: Any) -> str | None:
        """Refuse what samplers cannot draw for."""
        if not self.samplers:
            return None
        if run.learner.lora_rank:
            return (
                f"learner.lora_rank = {run.learner.lora_rank} learns adapters, and placement.samplers takes whole "
                "models: set it to 0, or leave samplers out"
            )
        if run.engine.name == "vllm-server":
            return (
                "placement.samplers has no use for engine vllm-server, whose servers are elsewhere already: name those "
                "in engine.addresses and leave samplers out, or take another engine"
            )
        if len(run.trained_roles) > 1:
            return (
                "placement.samplers draws for one policy, and [roles] names several that learn: give all roles one "
                "name, or leave samplers out"
            )
        return None


_SHARES = "Ray takes a share of one, or whole ones"


def _share_or_whole(name: str, amount: float) -> float:
    """An amount that Ray can count. Raises ValueError for anything else."""
    if amount > 1 and not amount.is_integer():
        raise ValueError(f"{name} = {amount:g}: {_SHARES}")
    return amount


def _address(url: str, what: str) -> str:
    """An address without a slash at its end. Raises ValueError for what is none, or holds more than an address."""
    url = url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port is not None
    except ValueError:
        sound, parts = False, urlsplit("")
    if parts.username or parts.password:
        raise ValueError(f"an address of a {what} is kept with the run: leave the token out, and set MANYTURN_TOKEN")
    if not sound or parts.path or parts.query or parts.fragment or any(sign.isspace() for sign in url):
        raise ValueError(
            f"{url!r:.80} is no address of a {what}: write http://127.0.0.1:9001, as manyturn {what} prints it"
        )
    return url
