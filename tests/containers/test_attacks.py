"""Hundreds of attacks on real sandboxes: none succeeds, the neighbour goes on answering, and nothing is left."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import attacks_archives
import attacks_episodes
import attacks_kernel
import attacks_network
import attacks_output
import attacks_paths
import attacks_resources
import attacks_server
import pytest
from attacks import Attack
from attacks_naive import NaiveSandbox
from attacks_scene import LIMITS, Host, Neighbour, Scene
from attacks_signs import GRACE, SIGNS, Seen, succeeded

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine, client
from manyturn.containers.engine.preflight import examined

MODULES = (
    attacks_archives,
    attacks_episodes,
    attacks_kernel,
    attacks_network,
    attacks_output,
    attacks_paths,
    attacks_resources,
    attacks_server,
)
CORPUS = [attack for module in MODULES for attack in module.ATTACKS]
_LONG = {"forks", "memory", "processor", "time", "floods", "inodes", "cgroups"}  # go on until their deadline
_EVERY, _EVERY_LONG = 6, 12  # of so many of a class, one is made by default; all of them with the slow tests
# Sign -> an attack that makes it show where nothing is protected; None where nothing has to be done for that.
SUCCESSES = {
    "secret": "rights to files: read",
    "contact": "network: loopback",
    "reached": None,
    "interfaces": None,
    "rights": "rights: user nought",
    "namespace": "namespaces: unshare user",
    "object": "sockets: raw packets",
    "host": "host: file of the host's",
    "image": "next episode: start of shells",
    "limits": "memory: 200 MB at once",
    "late": "time: trap that begins anew",
    "answer": "floods: a megabyte",
    "server": "server's streams: program replaced for what comes",
    "left": "next episode: daemon",
    "persist": "next episode: files in all places",
    "outside": "archives: user and group bits",
}


def _parameters() -> list[object]:
    met = Counter[str]()
    found = []
    for attack in CORPUS:
        often = met[attack.kind] % (_EVERY_LONG if attack.kind in _LONG else _EVERY) == 0
        found.append(pytest.param(attack, id=attack.name, marks=() if often else pytest.mark.slow))
        met[attack.kind] += 1
    return found


@pytest.fixture(scope="session")
def here(engine: str) -> None:
    """Skips where containers run, but not as processes that can be looked at."""
    box = DockerSandbox(ContainerEngine(image=engine, limits=LIMITS))
    box.start()
    pid = client().inspect_container(box.name)["State"]["Pid"]
    seen = Path(f"/proc/{pid}/cgroup").is_file() and box.name not in Path(f"/proc/{pid}/cmdline").read_text()
    box.stop()
    if not seen:
        pytest.skip("the engine's processes cannot be looked at from here: attacks need an engine on this machine")


@pytest.fixture(scope="session")
def host() -> Iterator[Host]:
    host = Host()
    yield host
    host.close()


@pytest.fixture(scope="session")
def neighbour(here: None, engine: str) -> Iterator[Neighbour]:
    box = DockerSandbox(ContainerEngine(image=engine, limits=LIMITS))
    box.start()
    yield Neighbour(box)
    box.stop()


@pytest.fixture(scope="session")
def scene(host: Host, neighbour: Neighbour, engine: str) -> Iterator[Scene]:
    names = []

    def make() -> DockerSandbox:
        box = DockerSandbox(ContainerEngine(image=engine, limits=LIMITS))
        names.append(box.name)
        return box

    scene = Scene(host, make, neighbour)
    yield scene
    scene.close()
    for name in names:
        assert not client().containers(all=True, filters={"name": name})
        assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if name in _text(path)]


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


@pytest.mark.deep
@pytest.mark.parametrize("attack", _parameters())
def test_attack_fails(attack: Attack, scene: Scene, record_property) -> None:
    seen = scene.observe(attack)
    record_property("lost", seen.lost)
    harm = succeeded(seen)
    if harm and examined().podman and attack.kind == "inodes":
        pytest.xfail("Podman bounds no number of files")
    assert harm == {}, seen


def test_the_corpus_is_large_and_has_no_doubles() -> None:
    assert len(CORPUS) >= 200
    assert len({attack.name for attack in CORPUS}) == len(CORPUS)
    scripts = Counter(attack.script for attack in CORPUS if attack.request is None)
    assert max(scripts.values()) == 1
    assert min(Counter(attack.kind for attack in CORPUS).values()) >= 4
    assert {attack.aim for attack in CORPUS} <= set(SIGNS)
    assert set(SUCCESSES) | {"screen", "neighbour"} == set(SIGNS), "each sign is shown to work"


@pytest.mark.deep
@pytest.mark.parametrize("sign", SUCCESSES)
def test_sign_shows_where_nothing_is_protected(sign: str, host: Host, neighbour: Neighbour, engine: str) -> None:
    """A sign that never shows proves nothing. The sandbox here is a plain container, root, on the host's network."""
    scene = Scene(host, lambda: NaiveSandbox(engine, host.folder), neighbour, reports=False)
    try:
        quiet = succeeded(scene.observe(Attack("nothing", "nothing", sign, "sleep 0.2")))
        assert (sign in quiet) == (sign in ("reached", "interfaces", "rights")), quiet
        for attack in CORPUS:
            if attack.name == SUCCESSES[sign]:
                seen = scene.observe(attack)
                assert sign in succeeded(seen), seen
    finally:
        scene.close()


def test_sign_of_the_screen_shows_where_output_is_printed_as_it_is(
    host: Host, neighbour: Neighbour, engine: str
) -> None:
    scene = Scene(
        host, lambda: DockerSandbox(ContainerEngine(image=engine, limits=LIMITS)), neighbour, show=lambda text: text
    )
    try:
        for attack in CORPUS:
            if attack.name in ("escapes: clipboard", "escapes: right to left", "escapes: line written over"):
                assert "screen" in succeeded(scene.observe(attack))
    finally:
        scene.close()


def test_sign_of_the_neighbour_shows_when_it_is_slow_or_wrong() -> None:
    attack = Attack("nothing", "nothing", "neighbour")
    for seconds, shows in ((0.1, False), (GRACE + 1, True), (float("inf"), True)):
        seen = Seen(attack, "mark", LIMITS, {}, neighbour=[0.1, seconds])
        assert ("neighbour" in succeeded(seen)) == shows


def test_a_process_that_is_killed_leaves_no_sandbox_under_attack(engine: str) -> None:
    """The attacker's container ends with the process that held it, though its command would go on."""
    code = (
        "import os, signal, sys, threading\n"
        "from manyturn.containers.docker.docker_sandbox import DockerSandbox\n"
        "from manyturn.containers.engine.container_engine import ContainerEngine\n"
        f"box = DockerSandbox(ContainerEngine(image={engine!r}))\nbox.start()\nprint(box.name, flush=True)\n"
        "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()\n"
        "box.run(\"trap '' TERM HUP; setsid sleep 600 & :(){ :|:& };: ; sleep 600\", seconds=600)\n"
    )
    ran = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False, timeout=60)
    name = ran.stdout.strip()
    assert ran.returncode == -9 and name, ran.stderr
    for _ in range(100):
        if not client().containers(all=True, filters={"name": name}):
            return
        time.sleep(0.1)
    raise AssertionError(f"{name} is still there")
