"""An engine that would not hold a limit is refused, with the limit's name."""

import os
from typing import Any

import pytest

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine, client
from manyturn.containers.engine.preflight import confirm, demand, examined, facts
from manyturn.containers.sandbox import EngineUnavailable, SandboxLimits
from manyturn.envs.hosting.handle.container_engine_check import usable

GOOD = {
    "Name": "machine",
    "ServerVersion": "28.0",
    "OSType": "linux",
    "Architecture": "x86_64",
    "NCPU": 4,
    "MemTotal": 8 << 30,
    "CgroupDriver": "systemd",
    "CgroupVersion": "2",
    "MemoryLimit": True,
    "SwapLimit": True,
    "PidsLimit": True,
    "CpuCfsQuota": True,
    "SecurityOptions": ["name=apparmor", "name=seccomp,profile=builtin", "name=rootless"],
    "Driver": "overlay2",
    "Runtimes": {"runc": {}, "runsc": {}},
}
SEEN = {
    "pid": 1,
    "capabilities": "00000000000000e0",
    "no_new_privileges": "1",
    "seccomp": "2",
    "root_read_only": True,
    "memory": str(512 << 20),
    "processes": "128",
    "routes": 0,
    "room": {"/workspace": {"bytes": 64 << 20}},
}


def test_a_good_engine_is_good_enough_also_without_accounting_of_swap() -> None:
    for info in (GOOD, {**GOOD, "SwapLimit": False}, {**GOOD, "SecurityOptions": ["name=seccomp,profile=default"]}):
        demand(facts(info), ContainerEngine(runtime="runsc"))
    assert facts(GOOD).security == ("apparmor", "seccomp", "rootless")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"CgroupDriver": "none", "CgroupVersion": "1"}, "memory, processes, cpus"),  # rootless on version 1
        ({"CgroupDriver": ""}, "memory, processes, cpus"),
        ({"CgroupVersion": "1", "Rootless": True}, "memory, processes, cpus"),  # as Podman says it
        ({"MemoryLimit": False}, "limits of memory"),
        ({"PidsLimit": False}, "limits of processes"),
        ({"CpuCfsQuota": None}, "limits of cpus"),
        ({"OSType": "windows"}, "Linux containers"),
        ({"SecurityOptions": None}, "seccomp"),
        ({"SecurityOptions": ["name=apparmor"]}, "seccomp"),
        ({"Runtimes": {"runc": {}}}, "no runtime 'runsc', only runc"),
    ],
)
def test_what_is_not_enforced_is_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(EngineUnavailable, match=reason) as caught:
        demand(facts({**GOOD, **change}), ContainerEngine(runtime="runsc"))
    assert "\n" not in str(caught.value)


def test_an_engine_that_says_nothing_is_refused_and_its_report_can_be_read() -> None:
    assert len(facts({}).lines()) == 6
    with pytest.raises(EngineUnavailable):
        demand(facts({}), ContainerEngine())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"pid": 7}, "first process"),
        ({"capabilities": "00000000a80425fb"}, "capabilities"),
        ({"no_new_privileges": "0"}, "new privileges"),
        ({"seccomp": "0"}, "system calls"),
        ({"root_read_only": False}, "read-only"),
        ({"memory": "max"}, "memory"),
        ({"memory": "9223372036854771712"}, "memory"),
        ({"processes": "max"}, "processes"),
        ({"routes": 1}, "network"),
        ({"room": {"/workspace": {"bytes": 8 << 30}}}, "size"),
    ],
)
def test_a_promise_that_is_not_kept_inside_is_found_out(change: dict[str, Any], reason: str) -> None:
    confirm(SEEN, ContainerEngine())
    with pytest.raises(EngineUnavailable, match=reason):
        confirm({**SEEN, **change}, ContainerEngine())


def test_the_engine_here_is_examined_once(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = examined()
    demand(found, ContainerEngine(image=engine))
    monkeypatch.setattr(client(), "info", None)
    assert examined() is found


def test_an_image_with_volumes_is_refused(engine: str) -> None:
    name = f"manyturn-test-{os.getpid()}"
    client().create_container(engine, ["true"], name=name)
    try:
        client().commit(name, repository=name, tag="1", changes=["VOLUME /data"])
        with pytest.raises(EngineUnavailable, match=r"declares volumes \(/data\)"):
            DockerSandbox(ContainerEngine(image=f"{name}:1")).start()
    finally:
        client().remove_container(name, v=True)
        client().remove_image(f"{name}:1")


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (ContainerEngine(image="manyturn-no-such-image:1"), "(?i)no such image"),
        (ContainerEngine(runtime="no-such-runtime"), "no-such-runtime"),
        (ContainerEngine(python="no-such-python"), "no-such-python"),
        (ContainerEngine(python="/bin/true"), "does not start"),
        (ContainerEngine(limits=SandboxLimits(cpus=10_000.0)), "limits.cpus"),
    ],
)
def test_a_container_that_cannot_start_says_why_and_is_not_left_behind(
    engine: str, asked: ContainerEngine, reason: str
) -> None:
    sandbox = DockerSandbox(asked)
    with pytest.raises(EngineUnavailable, match=reason):
        sandbox.start()
    assert not client().containers(all=True, filters={"name": sandbox.name})


def test_limits_by_which_an_agents_files_could_end_its_container_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^engine: limits: memory_mb is 512, .* at least 4160 for workspace_mb = 4000"
    ):
        usable({"limits": {"workspace_mb": 4000}}, "code cells")
    SandboxLimits(workspace_mb=4000, memory_mb=4160)
