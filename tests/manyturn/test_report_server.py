"""A server that would give a run to other pages, other machines or other paths, or show it wrongly while it grows."""

import asyncio
import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from manyturn.report import traces
from manyturn.report.document import document_of
from manyturn.report.live_document import Follower
from manyturn.report.report_server import View, ViewError
from manyturn.trainers.recipe.config import parse_config
from manyturn.trainers.run.loop.loop import train

pytestmark = pytest.mark.versions

SHORT = {
    "env": {"id": "manyturn/Maze-v0"},
    "model": {"name": "tiny", "width": 16, "layers": 1, "heads": 2, "sample_tasks": 4},
    "warmup": {
        "episodes": 4,
        "must_succeed": False,
        "batch": 4,
        "max_updates": 1,
        "check_every": 1,
        "check_episodes": 2,
    },
    "rollout": {"tasks": 2, "group": 2},
    "learner": {"minibatch": 4},
    "evaluation": {"limit": 3},
    "steps": 4,
}
# Copies a finished run as slowly as a bad disk would, file by file and each in two halves: one for each line of input.
WRITER = """
import sys
from pathlib import Path
run, out = map(Path, sys.argv[1:])
steps = [f"{table}/step_{n:06d}.parquet" for n in range(1, 5) for table in ("turns", "episodes")]
names = ["panel.json", "episodes.parquet", "turns.parquet", "summary.json"]
for name in ["config.toml", "metrics.jsonl", *steps, *(f"evaluation/{n}" for n in names), "summary.json"]:
    data = (run / name).read_bytes()
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    with (out / name).open("wb") as file:
        for part in (data[: len(data) // 2], data[len(data) // 2 :]):
            sys.stdin.readline()
            file.write(part)
            file.flush()
            print(flush=True)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("viewed") / "run"
    asyncio.run(train(parse_config(SHORT), folder))
    return folder


@contextmanager
def serving(path):
    """A server in a thread, and its token."""
    view = View(path)
    address, _, token = view.url.partition("/#token=")
    thread = threading.Thread(target=view.run)
    thread.start()
    try:
        with httpx.Client(base_url=address, headers={"X-Manyturn-Token": token}, trust_env=False) as client:
            yield client
    finally:
        view.stop()
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def client(run):
    with serving(run) as client:
        yield client


def raw(client, method, target, headers=()):
    """The answer to a request that is sent as it is: clients tidy paths and headers up."""
    parts = urlsplit(str(client.base_url))
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    connection.putrequest(method, target, skip_host=True)
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


@pytest.mark.deep
def test_the_page_its_document_and_its_chunks(client, run):
    page = client.get("/")
    assert page.status_code == 200 and "<title>manyturn</title>" in page.text
    assert "connect-src 'self'" in page.headers["content-security-policy"]
    document, here = client.get("/api/document").json(), document_of(run, live=True)
    assert (
        document == json.loads(json.dumps(here.plain)) and document["done"] and len(document["episodes"]["task"]) == 19
    )
    listed = {"If-Match": client.get("/api/document").headers["etag"]}
    assert [client.get(f"/api/chunk/{n}", headers=listed).json() for n in range(len(here))] == json.loads(
        json.dumps(list(here.chunks()))
    )
    assert client.get(f"/api/chunk/{len(here)}", headers=listed).status_code == 404
    assert client.get(f"/api/chunk/{10**30}", headers=listed).status_code == 404


def test_whoever_lacks_the_token_learns_nothing(client):
    token = client.headers["X-Manyturn-Token"]
    assert len(token) > 40 and token not in client.get("/").text
    for path in ("/api/document", "/api/chunk/0", "/api/other", "/other"):
        for wrong in ("", token[:-1], token + "x", token.swapcase(), "é"):
            answer = client.get(path, headers={"X-Manyturn-Token": wrong.encode()})
            assert answer.status_code == 401 and "train/" not in answer.text
    assert client.get("/api/document", params={"token": token}, headers={"X-Manyturn-Token": ""}).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{}", "[::1]:{}", ""]
)
def test_names_that_resolve_to_this_machine_are_refused(client, host):
    """DNS rebinding: the page of a foreign name would count as this server's own."""
    host = host.format(client.base_url.port)
    for path in ("/", "/api/document"):
        status, body = raw(client, "GET", path, [("Host", host), *client.headers.items()])
        assert status in (400, 403) and b"title" not in body


def test_both_names_of_this_machine_are_known_and_only_one_at_a_time(client):
    port, token = client.base_url.port, ("X-Manyturn-Token", client.headers["X-Manyturn-Token"])
    for name in ("localhost", "127.0.0.1"):
        assert raw(client, "GET", "/api/document", [("Host", f"{name}:{port}"), token])[0] == 200
    assert (
        raw(client, "GET", "/api/document", [("Host", f"localhost:{port}"), ("Host", "evil.example"), token])[0] >= 400
    )
    assert raw(client, "GET", "/api/document", [token])[0] >= 400


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_requests_of_other_pages_are_refused(client, headers):
    answer = client.get("/api/document", headers=headers)
    assert answer.status_code == 403 and "access-control-allow-origin" not in answer.headers
    own = {"Origin": str(client.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert client.get("/api/document", headers=own).status_code == 200


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])
def test_nothing_can_be_done_but_reading(client, method):
    for path in ("/", "/api/document", "/api/chunk/0"):
        answer = client.request(method, path)
        assert answer.status_code == 405 and answer.headers["allow"] == "GET"
        assert not any(name.startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize(
    "path",
    [
        "/config.toml",
        "/api/../config.toml",
        "/api/chunk/../../config.toml",
        "/api/chunk/..%2f..%2fconfig.toml",
        "/api/chunk/%2e%2e/config.toml",
        "//etc/passwd",
        "/..//etc/passwd",
        "/api/chunk/-1",
        "/api/chunk/0%00",
        "/api/chunk/0/../../config.toml",
        "/api/chunk//etc/passwd",
        "file:///etc/passwd",
    ],
)
def test_files_are_named_by_number_and_never_by_path(client, path):
    headers = [
        ("Host", f"127.0.0.1:{client.base_url.port}"),
        *((k, v) for k, v in client.headers.items() if k != "host"),
    ]
    status, body = raw(client, "GET", path, headers)
    assert status in (400, 404) and b"root:" not in body and b"learner" not in body


def test_every_answer_is_guarded(client):
    wrong = {"X-Manyturn-Token": ""}
    answers = [client.get(path) for path in ("/", "/api/document", "/api/chunk/0", "/api/chunk/99", "/nothing")]
    answers += [client.get("/api/document", headers=wrong), client.post("/"), client.get("/", headers={"Host": "evil"})]
    for answer in answers:
        assert answer.headers["cache-control"] == "no-store" and answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY" and "server" not in answer.headers
    assert answers[0].headers["content-security-policy"].endswith("frame-ancestors 'none'")


def test_what_has_not_changed_is_not_sent_again(client):
    tag = client.get("/api/document").headers["etag"]
    for known in (tag, f'"other", {tag}'):
        answer = client.get("/api/document", headers={"If-None-Match": known})
        assert answer.status_code == 304 and not answer.content and answer.headers["etag"] == tag
    assert client.get("/api/document", headers={"If-None-Match": '"other"'}).status_code == 200


def test_a_run_grows_on_the_page_while_it_is_written(run, tmp_path):
    out = tmp_path / "growing"
    shown, tag = [], ""
    with serving(out) as client:
        first = client.get("/api/document").json()
        assert not first["done"] and "waiting for a run" in first["warnings"][0] and not first["episodes"]["task"]
        command = [sys.executable, "-c", WRITER, str(run), str(out)]
        writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        while not (shown and shown[-1]["done"] and writer.poll() is not None):
            answer = client.get("/api/document", headers={"If-None-Match": tag})
            assert answer.status_code in (200, 304)
            if answer.status_code == 200:
                tag = answer.headers["etag"]
                shown.append(answer.json())
            with suppress(BrokenPipeError):
                print(file=writer.stdin, flush=True)
                writer.stdout.readline()
        writer.communicate()
        assert writer.returncode == 0
        names = [list(zip(one["episodes"]["stage"], one["episodes"]["task"], strict=True)) for one in shown]
        assert all(later[: len(before)] == before for before, later in pairwise(names))
        assert len({len(one) for one in names}) >= 4 and len(names[-1]) == 19
        whole = document_of(out, live=True)
        assert shown[-1] == json.loads(json.dumps(whole.plain)) and not whole.plain["warnings"]
        chunk = client.get("/api/chunk/0", headers={"If-Match": tag})
        assert chunk.json() == json.loads(json.dumps(whole.chunk(0)))


def test_a_step_is_read_once(run, tmp_path):
    grown = shutil.copytree(run, tmp_path / "run")
    late = [grown / table / "step_000004.parquet" for table in ("turns", "episodes")]
    aside = [file.rename(tmp_path / f"{file.parent.name}.aside") for file in late]
    traces.played.cache_clear()
    follower = Follower(grown)
    before = follower.newest()
    read = traces.played.cache_info().misses
    assert follower.newest() == before and traces.played.cache_info().misses == read == 4
    for file, place in zip(aside, late, strict=True):
        file.rename(place)
    assert follower.newest() != before and traces.played.cache_info().misses == read + 1


def test_turns_that_were_played_anew_are_not_shown_under_the_old_list(run, tmp_path):
    """A run that is resumed writes again what came after its last checkpoint."""
    resumed = shutil.copytree(run, tmp_path / "run")
    with serving(resumed) as client:
        listed = {"If-Match": client.get("/api/document").headers["etag"]}
        assert client.get("/api/chunk/0", headers=listed).status_code == 200
        shutil.copy(run / "turns" / "step_000002.parquet", resumed / "turns" / "step_000001.parquet")
        assert client.get("/api/chunk/0", headers=listed).status_code == 409
        found = client.get("/api/document").json()
        assert "does not hold the turns" in found["warnings"][0] and len(found["episodes"]["task"]) == 15
        shutil.copy(run / "turns" / "step_000001.parquet", resumed / "turns" / "step_000001.parquet")
        assert len(client.get("/api/document").json()["episodes"]["task"]) == 19


def test_what_was_shown_stays_while_the_folder_cannot_be_read(run, tmp_path):
    folder = shutil.copytree(run, tmp_path / "run")
    follower = Follower(folder)
    before = json.loads(follower.newest().body)
    config = (folder / "config.toml").read_text()
    (folder / "config.toml").write_text("steps = ")
    found = json.loads(follower.newest().body)
    assert found["episodes"] == before["episodes"] and "is not TOML" in found["warnings"][0]
    (folder / "config.toml").write_text(config)
    assert json.loads(follower.newest().body) == before


def test_nothing_is_left_when_it_has_stopped(run):
    threads = set(threading.enumerate())
    with serving(run) as client:
        port = client.base_url.port
        assert client.get("/api/document").status_code == 200
    left = [thread for thread in threading.enumerate() if thread not in threads]
    for thread in left:
        thread.join(5)
    assert not [thread for thread in left if thread.is_alive()]
    with socket.socket() as free:
        assert free.connect_ex(("127.0.0.1", port)) != 0


def test_nobody_on_the_network_can_reach_it(run):
    view = View(run)
    name, port = view._socket.getsockname()
    assert name == "127.0.0.1"
    with pytest.raises(ViewError, match="name another"):
        View(run, port)
    view._socket.close()
    with pytest.raises(ViewError, match="0 for any"):
        View(run, 65_536)


def test_ctrl_c_ends_it_cleanly(run):
    code = "import pathlib, sys; from manyturn.report.report_server import serve; serve(pathlib.Path(sys.argv[1]))"
    server = subprocess.Popen(
        [sys.executable, "-c", code, str(run)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    line = server.stdout.readline()
    found = re.search(r"(http://127\.0\.0\.1:\d+/)#token=(\S+)", line)
    answer = httpx.get(f"{found[1]}api/document", headers={"X-Manyturn-Token": found[2]}, trust_env=False)
    server.send_signal(signal.SIGINT)
    rest, errors = server.communicate(timeout=60)
    assert answer.status_code == 200 and (server.returncode, rest, errors) == (0, "", "")


@pytest.mark.parametrize("missing", ["uvicorn", pytest.param("starlette.applications", marks=pytest.mark.slow)])
def test_a_missing_extra_names_its_mend(missing):
    code = f"import sys; sys.modules[{missing!r}] = None; import manyturn.report.report_server"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.stderr.strip().splitlines()[-1].endswith("pip install 'manyturn[web]'")


def test_only_the_server_chooses_a_number_that_no_seed_gives():
    """Everything else that is random derives from the run's keys."""
    root = Path(__file__).parents[2]
    users = [
        file
        for file in root.glob("manyturn/report/*.py")
        if re.search(r"^import secrets", file.read_text(), re.MULTILINE)
    ]
    assert [file.name for file in users] == ["report_server.py"]


def test_an_evaluation_is_shown_when_it_is_over(run, tmp_path):
    folder = shutil.copytree(run / "evaluation", tmp_path / "evaluation")
    (folder / "summary.json").rename(tmp_path / "aside")
    follower = Follower(folder)
    waiting = json.loads(follower.newest().body)
    assert not waiting["done"] and "not finished" in waiting["warnings"][0]
    (tmp_path / "aside").rename(folder / "summary.json")
    found = json.loads(follower.newest().body)
    assert found["done"] and found["kind"] == "evaluation" and len(found["episodes"]["task"]) == 3
