"""An image is whole or not there, comes without a registry, and is never taken from a stranger who has its name."""

import io
import os
import secrets
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine, client
from manyturn.containers.engine.images import NAME, RECIPE, ImageMissing, build, images, resolve
from manyturn.containers.sandbox import EngineUnavailable

ROOT = Path(__file__).parents[3]


@pytest.fixture
def name(engine: str) -> Iterator[str]:
    """Of an image that is not there, and will not be."""
    name = f"manyturn-test-{secrets.token_hex(4)}:1"
    before = {image["Id"] for image in client().images(all=True)}
    yield name
    for image in client().images(all=True):
        if image["Id"] not in before and name in (image["RepoTags"] or []):
            client().remove_image(name)


@pytest.fixture
def maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a program in the place of mmdebstrap: it writes a file, says something, and ends with a status."""

    def put(archive: bytes, status: int = 0) -> None:
        (tmp_path / "root.tar").write_bytes(archive)
        program = tmp_path / "mmdebstrap"
        program.write_text(
            f'#!/bin/sh\necho "I: extracting" >&2\ncat {tmp_path}/root.tar\necho "E: no mirror" >&2\nexit {status}\n'
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return put


def _tar(content: bytes = b"x") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        member = tarfile.TarInfo("hello")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def test_image_is_made_once_for_each_recipe(name: str, maker) -> None:
    maker(_tar())
    said: list[str] = []
    image = build(name, said.append)
    assert image == resolve(name) == client().inspect_image(name)["Id"]
    assert "extracting" in said, "progress is passed on"
    [facts] = [one for one in images() if one.name == name]
    assert (facts.id, facts.recipe) == (image, RECIPE)
    maker(_tar(b"something else"))
    said.clear()
    assert build(name, said.append) == image
    assert said == [f"{name}: already there, {image[7:19]}"]


def test_image_of_an_older_recipe_is_made_anew(name: str, maker) -> None:
    old = client().import_image_from_data(_tar(b"old"), *name.split(":"), changes=["LABEL manyturn.recipe=old"])
    maker(_tar(b"new"))
    assert build(name, lambda line: None) not in old
    client().remove_image(old.split('"')[3])


@pytest.mark.parametrize("archive", [_tar(bytes(5 << 20)), _tar(bytes(5 << 20))[: 1 << 20], b""])
def test_half_an_image_gets_no_name(name: str, maker, archive: bytes) -> None:
    before = {image["Id"] for image in client().images(all=True)}
    maker(archive, status=25)
    with pytest.raises(ImageMissing, match=r"(mmdebstrap, which takes root|cannot import the image).*: E: no mirror"):
        build(name, lambda line: None)
    assert {image["Id"] for image in client().images(all=True)} <= before
    with pytest.raises(ImageMissing):
        resolve(f"127.0.0.1:9/{name}")


def test_what_is_no_archive_is_an_error_in_one_line(name: str, maker) -> None:
    maker(b"<html>proxy error</html>" * 1000)
    with pytest.raises(EngineUnavailable, match="the engine cannot import the image") as caught:
        build(name, lambda line: None)
    assert "\n" not in str(caught.value)


def test_missing_program_names_both_ways_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ImageMissing, match=r"apt-get install mmdebstrap.*--image python:3.12-slim"):
        build(name)


def test_own_name_is_never_pulled(engine: str) -> None:
    """Whoever registers the name elsewhere would run code in the place of ours."""
    with pytest.raises(ImageMissing, match="manyturn images build") as caught:
        resolve(f"{NAME.split(':')[0]}:404")
    assert "pull" not in str(caught.value)


def test_image_that_no_registry_gives_names_the_way_out(engine: str) -> None:
    with pytest.raises(ImageMissing, match=r"127\.0\.0\.1:9/nothing.*manyturn images build makes"):
        resolve("127.0.0.1:9/nothing")


def test_without_an_engine_the_reason_and_the_remedies_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/engine.sock")
    for ask in (images, build, lambda: resolve(NAME)):
        with pytest.raises(EngineUnavailable, match="DOCKER_HOST") as caught:
            ask()
        assert not isinstance(caught.value, ImageMissing)


def test_image_holds_what_environments_need(engine: str) -> None:
    box = DockerSandbox(ContainerEngine(image=engine))
    box.start()
    try:
        ran = box.run("python3 -m pytest --version && git --version && bash --version | head -1 && locale")
        assert ran.status == 0, ran.output
        assert "pytest 7" in ran.output and "git version" in ran.output
    finally:
        box.stop()


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, because a socket's path has to be."""
    if os.geteuid() or not all(map(shutil.which, ("dockerd", "docker", "iptables", "mmdebstrap"))):
        pytest.skip("starting an engine takes root and Debian's packages docker.io, iptables and mmdebstrap")
    folder = Path(tempfile.mkdtemp(prefix="mt-")) / "e"
    yield folder
    script("stop", folder)
    shutil.rmtree(folder.parent)


def script(verb: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "DOCKER_HOST": "", **environ}
    return subprocess.run(
        [ROOT / ".ci" / "engine", verb, folder], env=given, capture_output=True, text=True, check=False, timeout=120
    )


def test_engine_of_the_script_comes_and_goes_without_a_trace(folder: Path) -> None:
    started = script("start", folder)
    if "/var/run/docker.sock" in started.stdout:
        pytest.skip("an engine runs on this machine, which the script leaves alone")
    assert started.returncode == 0, started.stderr
    assert started.stdout == f"export DOCKER_HOST=unix://{folder}/s.sock\n"
    assert script("start", folder).stdout == started.stdout, "it is started once"
    pid = int((folder / "pid").read_text())
    networks = subprocess.run(
        ["docker", "--host", f"unix://{folder}/s.sock", "network", "ls", "--format", "{{.Name}}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(networks.stdout.split()) == ["host", "none"]
    stopped = script("stop", folder)
    assert stopped.returncode == 0, stopped.stderr
    command = Path(f"/proc/{pid}/cmdline")
    assert not folder.exists() and not (command.exists() and command.read_bytes()), "a zombie has no command"
    assert str(folder) not in Path("/proc/mounts").read_text()
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [command for command in commands if str(folder / "exec").encode() in command]
    again = script("stop", folder)
    assert again.returncode == 0 and "none was started" in again.stderr


def test_engine_that_answers_is_left_alone(engine: str, folder: Path) -> None:
    host = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if not shutil.which("docker"):
        pytest.skip("the script asks by Docker's command line, which is not installed")
    started = script("start", folder, DOCKER_HOST=host)
    assert started.stdout == f"export DOCKER_HOST={host}\n" and not folder.exists()
    assert script("stop", folder, DOCKER_HOST=host).returncode == 0
    assert client().ping()


def test_folder_of_something_else_is_not_removed(folder: Path) -> None:
    folder.mkdir()
    (folder / "precious").write_text("x")
    stopped = script("stop", folder)
    assert stopped.returncode and "not the folder of an engine" in stopped.stderr
    assert (folder / "precious").exists()
