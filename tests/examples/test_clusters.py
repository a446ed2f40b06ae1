"""An example of a cluster that names an option which no command has, or that is no script or no YAML."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from needs_host import host as need

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "clusters"
SCRIPTS = ("slurm_hosts.sh", "slurm_ray.sh")
OPTIONS = set(re.findall(r"^\| `([\w.]+)` \|", (ROOT / "docs" / "options.md").read_text(encoding="utf-8"), re.M))


def commands(file: str, program: str) -> list[list[str]]:
    """The words of each command that a file gives to a program, from the subcommand on."""
    text = re.sub(r"(\\\n| *\n#    |\n    (?=--)) *", " ", (FOLDER / file).read_text(encoding="utf-8"))
    lines = re.findall(rf"\b{program} ((?:host|train|start) [^\n]*)", text)
    bare = (re.sub(r"\$\([^)]*\)|[\"'&]", "", line) for line in lines)
    return [line.split() for line in bare]


def flags(words: list[str]) -> set[str]:
    return {word.partition("=")[0] for word in words if word.startswith("--")}


@pytest.mark.parametrize("file", SCRIPTS)
def test_a_script_is_one(file):
    subprocess.run(["bash", "-n", FOLDER / file], check=True)


def kubernetes() -> dict[str, list[str]]:
    """What each container is given, by its name."""
    pods = [whole["spec"]["template"]["spec"] for whole in documents() if "template" in whole["spec"]]
    return {one["name"]: one["args"] for pod in pods for one in pod["containers"]}


def documents() -> list[dict]:
    return list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")))


def test_the_run_on_kubernetes_names_the_pods_that_are_started():
    service, hosts, _ = documents()
    [port] = service["spec"]["ports"]
    name, count = hosts["metadata"]["name"], hosts["spec"]["replicas"]
    words = kubernetes()["train"]
    named = json.loads(words[words.index("--placement.hosts") + 1])
    assert named == [f"http://{name}-{n}.{service['metadata']['name']}:{port['port']}" for n in range(count)]
    assert kubernetes()["host"][kubernetes()["host"].index("--port") + 1] == str(port["port"])


def test_every_option_of_our_commands_exists():
    lines = [words for file in (*SCRIPTS, "ray_up.yaml") for words in commands(file, "manyturn")]
    lines += kubernetes().values()
    assert sorted(words[0] for words in lines) == ["host"] * 2 + ["train"] * 4
    helped = subprocess.run([sys.executable, "-m", "manyturn", "host", "--help"], capture_output=True, text=True).stdout
    of_host = set(re.findall(r"--[\w.-]+", helped))
    for words in lines:
        known = of_host if words[0] == "host" else {f"--{name}" for name in OPTIONS} | {"--out"}
        assert flags(words) and flags(words) <= known


def test_every_option_of_ray_exists():
    need("ray")
    ray = [sys.executable, "-P", "-m", "ray.scripts.scripts", "start", "--help"]
    known = set(re.findall(r"--[\w-]+", subprocess.run(ray, capture_output=True, text=True, check=True).stdout))
    lines = [words for file in (*SCRIPTS, "ray_up.yaml") for words in commands(file, "ray")]
    assert len(lines) == 4
    for words in lines:
        assert flags(words) and flags(words) <= known


def test_ray_takes_its_file():
    need("ray")
    from ray.autoscaler._private.util import prepare_config, validate_config

    whole = prepare_config(yaml.safe_load((FOLDER / "ray_up.yaml").read_text()))
    validate_config(whole)
    assert len(whole["available_node_types"]) == 1 and whole["max_workers"] == 3
