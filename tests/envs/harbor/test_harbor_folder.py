"""Folders of strangers: links that lead out, requests that no sandbox grants, and images that nobody has here."""

import os
from pathlib import Path

import pytest
from harbor_folders import PLAIN, STEPS, written

import manyturn as mt
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.harbor.dockerfile import laid
from manyturn.envs.harbor.folder import below, read_files


def refused(folder: Path, **args: object) -> str:
    with pytest.raises(NeedsSetup) as error:
        mt.make(f"harbor:{folder}", **args)
    return str(error.value)


@pytest.mark.parametrize("place", ["tests/data.txt", "environment/data.txt", "solution/data.txt", "data.txt"])
def test_a_link_is_never_followed(tmp_path, place):
    (tmp_path / "secret").write_text("s3cret")
    folder = written(tmp_path / "folder", PLAIN)
    (folder / place).symlink_to("../../secret")
    assert f"{place} is a link to ../../secret" in refused(folder)
    (folder / place).unlink()
    (folder / place).symlink_to(tmp_path, target_is_directory=True)
    assert f"{place} is a link to {tmp_path}" in refused(folder)
    (folder / place).unlink()
    os.mkfifo(folder / place)
    assert f"{place} is no file" in refused(folder)


def test_a_folder_of_tasks_takes_up_no_link_to_another(engine, tmp_path):
    elsewhere = written(tmp_path / "elsewhere", PLAIN)
    written(tmp_path / "set" / "own", PLAIN)
    (tmp_path / "set" / "linked").symlink_to(elsewhere, target_is_directory=True)
    env = mt.make(f"harbor:{tmp_path / 'set'}")
    assert [task.id for task in env.get_wrapper_attr("tasks")("train")] == ["train/own"]
    env.close()


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ("[environment]\nnetwork_mode = 'public'", "environment.network_mode cannot be had: a sandbox has no network"),
        (
            "[environment]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['a.b']",
            "environment.network_mode cannot be had",
        ),
        ("[environment]\nallow_internet = true", "environment.allow_internet cannot be had"),
        ("[verifier]\nnetwork_mode = 'public'", "verifier.network_mode cannot be had"),
        ("[environment]\ngpus = 1", "environment.gpus cannot be had: a sandbox has no GPU"),
        ("[environment]\ntpu = {type = 'v6e', topology = '2x2'}", "environment.tpu cannot be had"),
        ("[environment]\nos = 'Windows'", "environment.os cannot be had: sandboxes are of Linux"),
        ("[[environment.mcp_servers]]\nname = 'a'\nurl = 'http://a'", "environment.mcp_servers cannot be had"),
        ("[environment.healthcheck]\ncommand = 'true'", "environment.healthcheck cannot be had"),
        ("[environment]\nskills_dir = '/skills'", "environment.skills_dir cannot be had"),
        ("[environment]\nenv = {KEY = '${HOME}'}", "KEY asks for a variable of this machine"),
        ("[verifier]\nenv = {KEY = '${OPENAI_API_KEY}'}", "KEY asks for a variable of this machine"),
        ("[solution]\nenv = {KEY = '${HOME:-a}'}", "KEY asks for a variable of this machine"),
        ("[agent]\nuser = 'root'", "agent.user cannot be had"),
        ("[verifier]\nuser = 'root'", "verifier.user cannot be had"),
        ("[verifier]\nenvironment_mode = 'separate'", "verifier.environment_mode cannot be had"),
        ("[verifier.environment]\ndocker_image = 'a'", "verifier.environment cannot be had"),
        ("[[verifier.collect]]\ncommand = 'true'", "verifier.collect cannot be had"),
        ("[environment]\ndocker_image = 'nobody/has-this:1'", "the engine has no image nobody/has-this:1"),
        ("[environment]\nworkdir = '/etc'", "a folder of the agent's own"),
        ("[environment]\nspeed = 3", "task.toml: environment.speed: is not known to us"),
        ("[verifier]\ntimeout_sec = inf", "task.toml: verifier.timeout_sec"),
        ("steps = 3", "task.toml: steps"),
        ("[[steps]]\nname = '../../etc'", "task.toml: steps.0.name"),
        ("[[steps]]\nname = 'a'\nmin_reward = nan", "task.toml: steps.0.min_reward"),
        ("[[steps]]\nname = 'a'", "there is no steps/a/instruction.md"),
        ("= 3", "task.toml cannot be read"),
    ],
)
def test_what_no_sandbox_grants_is_refused_by_its_name(engine, tmp_path, settings, why):
    folder = written(tmp_path / "folder", {**PLAIN, "task.toml": f"{settings}\n"})
    try:
        env = mt.make(f"harbor:{folder}")
        env.reset(seed=0)
    except NeedsSetup as error:
        assert why in str(error)
    else:
        raise AssertionError(f"{settings} was taken")


def test_fields_without_a_request_and_a_network_that_one_does_without_are_no_reason(engine, tmp_path):
    settings = (
        "version = '1'\n[metadata]\nany = 1\n[environment]\ngpus = 0\nstorage = '10G'\nmcp_servers = []\nos = 'LINUX'\n"
    )
    folder = written(tmp_path / "folder", {**PLAIN, "task.toml": f"{settings}network_mode = 'public'\n"})
    assert "--env.args.offline true" in refused(folder)
    mt.make(f"harbor:{folder}", offline=True).close()


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        ("environment/docker-compose.yaml", "services: {}", "environment/docker-compose.yaml is there"),
        ("environment/.dockerignore", "*", "environment/.dockerignore is there"),
        (".harborignore", "tests", ".harborignore is there"),
        ("trajectory.json", "{}", "trajectory.json is there"),
        ("tests/test.sh", None, "there is no tests/test.sh"),
        ("instruction.md", None, "there is no instruction.md"),
        ("environment/Dockerfile", None, "there is neither environment/Dockerfile nor environment.docker_image"),
    ],
)
def test_a_file_that_is_missing_or_would_not_be_heeded_is_named(tmp_path, path, text, why):
    assert why in refused(written(tmp_path / "folder", {**PLAIN, path: text}))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("RUN rm -rf /", "RUN rm -rf /: nothing is built here. Build the image yourself, and name it by"),
        ("ADD https://a.b/c /app/", "ADD https://a.b/c /app/: nothing is built here"),
        ("USER nobody", "USER nobody: nothing is built here"),
        ("COPY --from=other a /app/", "options and patterns are not read"),
        ("COPY *.txt /app/", "options and patterns are not read"),
        ("COPY ../../secret /app/", "there is no file environment/../../secret"),
        ("COPY /etc/passwd /app/", "there is no file environment/etc/passwd"),
        ("COPY $SECRET /app/", "variables and here-documents are not read"),
        ("FROM other", "FROM other: nothing is built here"),
        ("COPY start.txt /etc/profile.d/start.sh", "lays /etc/profile.d/start.sh out of /app"),
        ("COPY start.txt /app/../etc/start.sh", "lays /etc/start.sh out of /app"),
    ],
)
def test_a_line_of_a_dockerfile_that_would_have_to_be_built_is_refused(engine, tmp_path, line, why):
    folder = written(tmp_path / "folder", {**PLAIN, "environment/Dockerfile": f"FROM {engine}\nWORKDIR /app\n{line}\n"})
    (tmp_path / "secret").write_text("s3cret")
    with pytest.raises(NeedsSetup) as error:
        mt.make(f"harbor:{folder}").reset(seed=0)
    assert why in str(error.value)


def test_copies_lie_where_docker_would_put_them(tmp_path):
    inner = {"Dockerfile": "", "a.txt": "1", "sub/b.txt": "2", "sub/deep/c.txt": "3"}
    context = below(
        read_files(written(tmp_path, {f"environment/{path}": text for path, text in inner.items()})), "environment"
    )

    def paths(*lines: str) -> list[str]:
        return sorted(laid("\n".join(["FROM x", "WORKDIR /app", *lines]), context).files)

    assert paths("COPY a.txt .") == paths("COPY a.txt ./") == paths('COPY ["a.txt", "/app/"]') == ["/app/a.txt"]
    assert paths("COPY a.txt named.txt") == ["/app/named.txt"]
    assert paths("COPY sub .") == paths("COPY sub/ /app") == ["/app/b.txt", "/app/deep/c.txt"]
    assert paths("COPY sub to") == ["/app/to/b.txt", "/app/to/deep/c.txt"]
    assert paths("COPY a.txt sub/b.txt to/") == ["/app/to/a.txt", "/app/to/b.txt"]
    assert paths("COPY . .") == ["/app/Dockerfile", "/app/a.txt", "/app/sub/b.txt", "/app/sub/deep/c.txt"]
    assert paths("WORKDIR src", "copy a.txt ../a.txt") == ["/app/a.txt"]


def test_a_folder_that_is_no_task_says_what_one_has(tmp_path):
    assert "a task's folder has a task.toml" in refused(tmp_path)
    assert "there is no folder" in refused(tmp_path / "none")
    assert "two steps have one name" in refused(
        written(tmp_path / "twice", {**STEPS, "task.toml": "[[steps]]\nname = 'dig'\n[[steps]]\nname = 'dig'\n"})
    )


def test_an_image_is_not_named_twice(engine, tmp_path):
    with pytest.raises(ValueError, match="engine takes no 'image' here"):
        mt.make(f"harbor:{written(tmp_path / 'folder', PLAIN)}", engine={"image": "another"})
