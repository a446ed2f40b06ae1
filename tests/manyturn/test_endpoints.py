"""``manyturn evaluate openai:MODEL`` against a real server: what it is asked, what it refuses, and what is played."""

import json
import shlex
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from needs_endpoint import KEY, Server, completion, reading
from own_certificate import own_certificate
from pyarrow.parquet import read_table
from strict_endpoints import message

from manyturn.agents.records.episode_rows import read_turns
from manyturn.report.document import comparison_document, document_of
from manyturn.terminal import command_exit

pytestmark = pytest.mark.versions

MAZE = "manyturn/Maze-v0"
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def server(endpoint_server: Server) -> Server:
    return endpoint_server


def summary(out: Path) -> dict[str, Any]:
    return json.loads((out / "summary.json").read_text())


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


# ---- where it is --------------------------------------------------------------------------------------------


def test_an_endpoint_that_is_not_there_ends_the_evaluation_at_once(command, server, monkeypatch):
    refused = f"127.0.0.1:{free_port()}"
    for address, said in ((refused, "Connection refused"), ("http://no-such-host.invalid/v1", "no-such-host")):
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        found = command("evaluate", "openai:m", "--env", MAZE, "--limit", 4)
        assert found.code == command_exit.BAD_INPUT and found.out == ""
        (line,) = found.err.splitlines()  # a wait would have a line of its own
        assert "cannot be reached" in line and said in line and "--endpoint.base-url" in line
        assert "manyturn check" not in line
    assert f"http://{refused}" in command("evaluate", "openai:m", "--env", MAZE, "--endpoint.base-url", refused).err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["openai"], "openai:MODEL"),
        (["openai:"], "openai:MODEL"),
        (["gpt-4o-mini"], "write openai:gpt-4o-mini"),
        (["o3"], "write openai:o3"),
        (["openai:m", "--endpoint.base-url", "example.org:8000/v1"], "write https://example.org:8000/v1"),
        (["openai:m", "--endpoint.top-p", "0.5"], "set sampling.top_p instead"),
        (["openai:m", "--sampling.extra-body", '{"stream": true}'], "set endpoint.stream"),
        (["openai:m", "--sampling.extra-body", "[1]"], "sampling.extra_body: "),
        (["openai:m", "--endpoint.headers", '{"Host": "x"}'], "endpoint.headers: 'Host' cannot be set"),
        (["openai:m", "--endpoint.headers", '{"X-Key" = "$NOT_SET_HERE"}'], "NOT_SET_HERE, which is not set"),
        (["openai:m", "--endpoint.price-in", "1"], "price_in and price_out belong together"),
        (["openai:m", "--agent.format", "native_tools"], "its instructions name none: use --agent.format tagged"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_asked(command, server, words, said):
    found = command("evaluate", *words, "--env", MAZE)
    assert found.code == command_exit.BAD_INPUT and said in found.err and len(found.err.splitlines()) == 1, found.err
    assert not server.requests


# ---- a server that says no ----------------------------------------------------------------------------------

OPENAI = '{"error": {"message": "%s", "type": "invalid_request_error", "param": %s, "code": "unsupported_parameter"}}'


@pytest.mark.parametrize(
    ("status", "body", "words", "fix"),
    [
        (401, '{"error": "no such key"}', [], "check OPENAI_API_KEY"),
        (403, '{"error": "not yours"}', [], "check what the key is allowed to use"),
        (404, '{"error": "no model m"}', [], "check the model's name"),
        (429, '{"error": {"code": "insufficient_quota"}}', [], "nothing left to spend"),
        (301, "", [], "redirects"),
        (400, OPENAI % ("Unsupported parameter: 'seed'", "null"), [], "--sampling.seed false leaves it out"),
        (422, '[{"loc": ["body", "temperature"]}]', [], "--sampling.temperature none leaves it out"),
        (
            400,
            OPENAI % ("'max_tokens' is not supported. Use 'max_completion_tokens' instead.", '"max_tokens"'),
            [],
            "--endpoint.length-field max_completion_tokens",
        ),
        (400, "max_tokens: 4096 > 2048, the most output tokens", [], "--sampling.max-tokens asks for shorter replies"),
        (
            400,
            "'max_tokens' is too large: 4096. This model's maximum context length is 2048 tokens",
            [],
            "--sampling.max-tokens asks for shorter replies",
        ),
        (
            400,
            OPENAI % ("Unknown parameter: 'top_k'.", '"top_k"'),
            ["--sampling.extra-body", '{"top_k": 5}'],
            "top_k out of --sampling.extra-body",
        ),
    ],
)
def test_a_server_that_says_no_is_not_asked_again(command, server, status, body, words, fix):
    server.script = [(status, body.encode(), {})]
    found = command("evaluate", "openai:m", "--env", MAZE, "--limit", 4, *words)
    assert found.code == command_exit.BAD_INPUT
    (line,) = found.err.splitlines()
    assert f"refused with status {status}" in line and fix in line, line
    assert len(server.requests) == 1


def test_a_web_page_is_no_endpoint(command, server):
    server.script = [(200, b"<!doctype html><title>Welcome</title>", {"Content-Type": "text/html"})]
    found = command("evaluate", "openai:m", "--env", MAZE, "--limit", 4)
    assert found.code == command_exit.BAD_INPUT and "answers with a web page" in found.err
    assert len(server.requests) == 1


def test_a_server_that_never_answers_is_given_up_after_one_request(command, server):
    server.script = [lambda handler: (time.sleep(1), b"", {})]
    found = command("evaluate", "openai:m", "--env", MAZE, "--limit", 4, "--endpoint.timeout", 0.2)
    assert found.code == command_exit.BAD_INPUT and "no answer within 0.2 s: give --endpoint.timeout more" in found.err
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_waiting_for_a_busy_server_is_seen_and_ends(command, server, status):
    server.script = [(status, b"busy", {"Retry-After": "0.2"})]
    found = command("evaluate", "openai:m", "--env", MAZE, "--limit", 4, "--endpoint.first-wait", 0.01)
    assert found.code == command_exit.BAD_INPUT
    *waits, last = found.err.splitlines()
    assert len(waits) == 3 and all(f"status {status}: busy; attempt" in line for line in waits)
    assert "(4 attempts)" in last and "manyturn check" not in last
    assert len(server.requests) == 4


def test_a_refusal_in_the_middle_ends_its_episode_and_no_other(command, server, tmp_path):
    """A filter that refuses one prompt."""
    count = iter(range(1000))

    def answer(handler: Any) -> tuple[int, bytes, dict[str, str]]:
        if next(count) == 1:
            return 400, b"content_filter", {}
        return 200, completion("<action>go north</action>"), {}

    server.script = [answer]
    found = command("evaluate", "openai:m", "--env", MAZE, "--limit", 10, "--out", tmp_path)
    assert found.code == 0, found.err
    ended = summary(tmp_path)
    assert (ended["errors"]["n"], ended["retried"]["n"], ended["n_episodes"]) == (1, 0, 10)


def test_a_server_that_breaks_in_the_middle_stops_the_evaluation_with_its_own_words(command, server, tmp_path):
    server.script = [(200, completion("<action>go north</action>"), {}), (500, b"out of memory", {})]
    patience = ("--endpoint.first-wait", 0.01, "--endpoint.attempts", 2)
    found = command("evaluate", "openai:m", "--env", MAZE, "--limit", 8, "--out", tmp_path, *patience)
    assert found.code == command_exit.TOO_MANY_ERRORS
    assert "status 500: out of memory (2 attempts)" in found.err and "manyturn check" not in found.err
    assert "rollout.error_share" not in found.err, "that is an option of training"


def test_a_reply_without_words_is_an_invalid_turn_and_no_error(command, server, tmp_path):
    absent = json.loads(completion(None))
    del absent["choices"][0]["message"]["content"]
    parts = [{"type": "text", "text": "<action>go "}, {"type": "text", "text": "north</action>"}]
    replies = [
        completion(None),
        json.dumps(absent).encode(),
        completion(None, finish="length"),
        completion(None, tool_calls=[]),
        completion(parts),
    ]
    server.script = [(200, reply, {}) for reply in replies]
    found = command("evaluate", "openai:m", "--env", MAZE, "--limit", 1, "--out", tmp_path)
    assert found.code == 0 and not found.err, found.err
    *played, said = read_turns(tmp_path / "turns.parquet")[:5]
    assert [(row["action"], row["format_valid"]) for row in played] == [("", False)] * 4 and said[
        "action"
    ] == "go north"
    assert [row["cut"] for row in played] == [False, False, True, False]
    assert summary(tmp_path)["retried"]["n"] == 0


# ---- options ------------------------------------------------------------------------------------------------


def test_options_of_sampling_headers_and_system_text_reach_the_server_and_no_secret_the_result(
    command, server, tmp_path, monkeypatch
):
    monkeypatch.setenv("OTHER_SECRET", "secret-of-the-environment")
    options = {
        "--sampling.temperature": "none",
        "--sampling.top-p": 0.9,
        "--sampling.stop": '["END"]',
        "--sampling.seed": "false",
        "--sampling.extra-body": '{"reasoning_effort": "low"}',
        "--endpoint.headers": '{"X-Typed": "secret-on-the-line", "X-Other": "$OTHER_SECRET"}',
        "--agent.system": "You are a mole.",
    }
    words = [word for pair in options.items() for word in pair]
    found = command("evaluate", "openai:m", "--env", MAZE, "--limit", 1, "--out", tmp_path, *words)
    assert found.code == 0, found.err
    asked = server.requests[0]
    body = asked["body"]
    assert not {"temperature", "seed"} & body.keys()
    assert (body["top_p"], body["stop"], body["reasoning_effort"], body["max_tokens"]) == (0.9, ["END"], "low", 4096)
    assert body["messages"][0]["content"].startswith("You are a mole.\n\n")
    assert asked["headers"]["X-Typed"] == "secret-on-the-line"
    assert asked["headers"]["X-Other"] == "secret-of-the-environment"
    assert summary(tmp_path)["sampling"]["extra_body"] == {"reasoning_effort": "low"}
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir()) + (found.out + found.err).encode()
    assert b"secret-o" not in written and KEY.encode() not in written


SECRET = "secret-on-the-line"


@pytest.mark.parametrize(
    "spelling",
    [
        ["--endpoint", f'{{headers = {{X-Key = "{SECRET}"}}}}'],
        [f'--endpoint={{headers = {{X-Key = "{SECRET}"}}}}'],
        ["--endpoint.headers", f'{{X-Key = "{SECRET}"}}'],
        [f'--endpoint.headers={{X-Key = "{SECRET}"}}'],
        ["--endpoint-headers", f'{{X-Key = "{SECRET}"}}'],
        ["--endpoint_headers", f'{{X-Key = "{SECRET}"}}'],
        ["--endpoint.headers.X-Key", SECRET],
        [f"--endpoint.headers.X-Key={SECRET}"],
        ["--endpoint-headers.X-Key", SECRET],
        ["--agent.system", "--endpoint", "--endpoint.headers.X-Key", SECRET],
    ],
    ids=lambda words: words[0].partition("=")[0] + (" one word" if len(words) == 1 else f" {len(words)} words"),
)
def test_a_header_reaches_the_server_and_no_file_however_it_is_spelt(command, server, tmp_path, spelling):
    words = ("--endpoint-timeout", 9, "--endpoint.price-in=2", "--endpoint.price-out", 4, *spelling)
    found = command("evaluate", "openai:m", "--env", MAZE, "--limit", 1, "--out", tmp_path, *words)
    assert found.code == 0, found.err
    assert server.requests[0]["headers"]["X-Key"] == SECRET
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    kept = json.loads((tmp_path / "manifest.json").read_text())["command"]
    assert kept[kept.index("--endpoint-timeout") + 1] == "9" and "--endpoint.price-in=2" in kept


def test_a_key_that_stands_elsewhere_in_the_command_is_in_no_manifest(command, server, tmp_path, monkeypatch):
    monkeypatch.setenv("TOKEN", f"Bearer {SECRET}")
    words = ("--endpoint.headers", '{Authorization = "$TOKEN"}', "--out", tmp_path / SECRET)
    found = command("evaluate", "expert", "openai:m", "--env", MAZE, "--limit", 1, *words)
    assert found.code == 0, found.err
    for name in ("expert", "openai-m"):
        kept = json.loads((tmp_path / SECRET / name / "manifest.json").read_text())["command"]
        assert not any(SECRET in word for word in kept) and f"{tmp_path}/***" in kept


def test_models_read_a_system_text_of_ones_own_too(command, bare_model, tiny_run, tmp_path):
    doors = f"{tiny_run.parent}/doors.py:Doors"
    words = ("evaluate", bare_model, "--env", doors, "--limit", 1, "--sampling.max-tokens", 8)
    assert command(*words, "--out", tmp_path / "without").code == 0
    assert command(*words, "--out", tmp_path / "with", "--agent.system", "open open open").code == 0
    first = [read_turns(tmp_path / name / "turns.parquet")[0]["prompt_tokens"] for name in ("without", "with")]
    assert first[1] > first[0]


def in_its_protocol(handler: Any) -> tuple[int, bytes, dict[str, str]]:
    """An entry of a server's script that answers at the path of Messages as that protocol does."""
    is_message = handler.path == "/v1/messages"
    return 200, message({"type": "text", "text": "go north"}) if is_message else completion("go north"), {}


def test_the_commands_of_the_pages_work(command, server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AZURE_KEY", "azure")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    server.script = [in_its_protocol]
    pages = [(DOCS / name).read_text().replace("\\\n", "") for name in ("endpoints.md", "endpoint-replies.md")]
    commands = [line for line in "\n".join(pages).splitlines() if line.startswith("manyturn evaluate")]
    assert len(commands) > 5
    for line in commands:
        words = shlex.split(line.replace("--limit 20", ""))[1:]
        found = command(*words, "--limit", 1)
        assert found.code == 0, f"{line}: {found.err}"


def test_the_page_shows_the_messages_that_are_sent(command, server):
    """Without them nobody saw the tags, and a model that said commands alone had every reply invalid."""
    page = (DOCS / "endpoint-replies.md").read_text()
    assert command("evaluate", "openai:m", "--env", MAZE, "--limit", 1).code == 0
    assert server.requests[0]["body"]["messages"] == json.loads(page.split("```json\n")[1].split("```")[0])


def test_an_evaluation_is_not_continued_at_another_address(command, server, tmp_path):
    words = ("evaluate", "openai:m", "--env", MAZE, "--limit", 1, "--out", tmp_path)
    assert command(*words).code == 0
    refused = command(*words, "--endpoint.base-url", "http://127.0.0.1:9/v1")
    assert refused.code == command_exit.BAD_INPUT and "was begun with other settings: endpoint was http" in refused.err


def test_an_evaluation_is_not_continued_with_other_sampling(command, server, tmp_path):
    words = ("evaluate", "openai:m", "--env", MAZE, "--limit", 1, "--out", tmp_path)
    assert command(*words).code == 0
    refused = command(*words, "--sampling.top-p", 0.5)
    assert refused.code == command_exit.BAD_INPUT and "top_p" in refused.err


# ---- tokens and cost ----------------------------------------------------------------------------------------


def test_tokens_and_cost_are_what_the_server_counted_failed_attempts_included(command, server, tmp_path):
    served: list[tuple[int, int, int]] = []

    def answer(body: dict[str, Any]) -> bytes:
        number = len(served)
        finish = "error" if number in (2, 5, 6) else "length" if number == 9 else "stop"
        found = json.loads(completion("<action>go north</action>", 100 + number, 7, finish))
        found["usage"]["prompt_tokens_details"] = {"cached_tokens": 10 * (number % 3)}
        served.append((100 + number, 7, 10 * (number % 3)))
        return json.dumps(found).encode()

    server.script = [reading(answer)]
    prices = ("--endpoint.price-in", 2, "--endpoint.price-out", 8, "--endpoint.price-cached", 1)
    patience = ("--endpoint.first-wait", 0.01, "--endpoint.attempts", 2, "--endpoint.concurrency", 1)
    found = command("evaluate", "openai:m", "--env", MAZE, "--limit", 2, "--out", tmp_path, *prices, *patience)
    assert found.code == 0, found.err
    result = summary(tmp_path)
    prompts, replies, cached = (sum(column) for column in zip(*served, strict=True))
    assert result["tokens"]["prompt_total"] + result["lost"]["prompt_tokens"] == prompts
    assert result["tokens"]["reply_total"] + result["lost"]["reply_tokens"] == replies
    cost = ((prompts - cached) * 2 + cached * 1 + replies * 8) / 1e6
    assert result["cost"]["total"] + result["lost"]["cost"] == pytest.approx(cost)
    costs = [*result["cost"].values(), result["lost"]["cost"]]
    assert all(one is None or one == round(one, 9) for one in costs), costs
    assert result["retried"]["n"] == 1 and result["lost"]["reply_tokens"] > 0, "an episode was lost and played again"
    assert 0 < result["cut_reply_rate"] < 0.1 and "cost" in found.out


# ---- remarks on the replies ---------------------------------------------------------------------------------

THOUGHT = "<think>North, I think.</think>"


@pytest.mark.parametrize(
    ("answer", "words", "said"),
    [
        (
            completion("Let me think: ", finish="length"),
            [],
            "100.0% of the replies were cut at sampling.max_tokens = 4096",
        ),
        (completion(None, finish="length"), [], "100.0% of the replies were cut at sampling.max_tokens = 4096"),
        (completion(THOUGHT + "go north"), [], "--agent.format.think true asks for both"),
        (completion(THOUGHT + "go north"), ["--agent.format", "free_text"], ""),
        (completion(THOUGHT + "<action>go north</action>"), [], ""),
        (b"context_length_exceeded", [], "give --sampling.max-tokens less"),
    ],
)
def test_replies_that_the_options_do_not_fit_are_remarked_on(command, server, answer, words, said):
    server.script = [(400 if answer.startswith(b"context") else 200, answer, {})]
    found = command("evaluate", "openai:m", "--env", MAZE, "--limit", 1, *words)
    assert found.code == 0, found.err
    remarks = [line for line in found.out.splitlines() if "of the replies" in line or "of the episodes" in line]
    assert len(remarks) == bool(said) and all(said in remark for remark in remarks), found.out


@pytest.mark.parametrize("words", [["openai:m"], ["expert", "openai:m"]], ids=" ".join)
def test_why_every_reply_is_invalid_is_said_once(command, server, tmp_path, words):
    """That no reply had the tags was said too, and proposed another format."""
    server.script = [(200, completion(THOUGHT + "go north"), {})]
    found = command("evaluate", *words, "--env", MAZE, "--limit", 1)
    assert found.code == 0, found.err
    [remark] = [line for line in found.out.splitlines() if "--agent.format" in line or "is invalid: " in line]
    assert "--agent.format.think true asks for both" in remark


@pytest.mark.parametrize("words", [["openai:m"], ["random", "openai:m"]], ids=" ".join)
def test_an_invalid_reply_is_quoted_with_nothing_that_a_terminal_obeys(command, server, tmp_path, words):
    server.script = [(200, completion("go\n\x1b[2J north :m: [red]" + "x" * 500), {})]
    found = command("evaluate", *words, "--env", MAZE, "--limit", 1, "--out", tmp_path)
    [quoted] = [line for line in found.out.splitlines() if "such a reply: " in line]
    reply = quoted.partition("such a reply: ")[2]
    assert reply.startswith("go <U+001B>[2J north :m: [red]xxx") and reply.endswith("x…") and len(reply) == 201
    assert "no reply had the tags <action>; give --agent.format free_text" in found.out
    assert (len(words) == 1) or quoted.startswith("openai:m: ")


def test_a_policy_has_one_name_and_is_compared_with_the_floor(command, server, tmp_path):
    """It was openai:m in one table and m in another, and the suggested comparison had the opposite sign."""
    server.script = [(200, completion("<action>go north</action>"), {})]
    words = ("--env", MAZE, "--limit", 2, "--out", tmp_path, "--endpoint.price-in", 1, "--endpoint.price-out", 2)
    found = command("evaluate", "openai:m", "random", *words)
    [line] = [line for line in found.out.splitlines() if line.startswith("task by task: ")]
    assert line.endswith(f"manyturn compare {tmp_path}/random {tmp_path}/openai-m")
    assert "tokens: of an episode, prompts + replies; cost: USD, of all episodes together" in found.out
    compared = command(*shlex.split(line.partition("manyturn ")[2]))
    assert f"B  {tmp_path}/openai-m: openai:m\n" in compared.out and "cost: USD, of all" in compared.out
    (head,) = (line for line in compared.out.splitlines() if line.strip().startswith("success"))
    assert head.split() == ["success", "95", "%", "interval", "return", "invalid", "cut", "cost", "episodes", "errors"]
    assert max(map(len, compared.out.splitlines()[2:10])) <= 80


def test_a_report_names_the_unit_of_a_cost(command, server, tmp_path):
    server.script = [(200, completion("<action>go north</action>"), {})]
    words = ("--env", MAZE, "--limit", 1, "--out", tmp_path, "--endpoint.price-in", 1, "--endpoint.price-out", 2)
    assert command("evaluate", "openai:m", "random", *words).code == 0
    alone = document_of(tmp_path / "openai-m").plain
    assert "cost, USD" in [figure["name"] for figure in alone["figures"]]
    both = comparison_document([tmp_path / "random", tmp_path / "openai-m"]).plain
    [policies] = [table for table in both["tables"] if table["title"] == "Policies"]
    assert "cost, USD" in [column["name"] for column in policies["columns"]]


def test_another_protocol_and_tls_that_is_not_there_name_the_address_to_give(command, server, monkeypatch):
    server.script = [(200, b'{"status": "ok"}', {})]
    words = ("evaluate", "openai:m", "--env", MAZE, "--limit", 1, "--endpoint.first-wait", 0.01)
    found = command(*words)
    assert found.code == command_exit.BAD_INPUT
    assert "(4 attempts): does this address serve chat completions?" in found.err.splitlines()[-1]
    refused = command(*words, "--endpoint.base-url", server.url.replace("http://", "https://"))
    assert f"if the server has no TLS, write {server.url}; or start the server" in refused.err, refused.err


def test_a_certificate_that_is_not_trusted_is_not_advised_to_go_without_tls(command, server, monkeypatch, tmp_path):
    certificate, key = own_certificate(tmp_path)
    server.encrypt(certificate, key)
    words = ("evaluate", "openai:m", "--env", MAZE, "--limit", 1, "--endpoint.base-url", server.url)
    refused = command(*words)
    assert refused.code == command_exit.BAD_INPUT and "SSL_CERT_FILE" in refused.err, refused.err
    assert "http://" not in refused.err and "start the server" not in refused.err and not server.requests
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert command(*words).code == 0 and server.requests


def test_a_few_replies_that_reason_do_not_hide_why_the_others_are_invalid(command, server):
    server.script = [(200, completion(THOUGHT + "go north"), {}), (200, completion("go north"), {})]
    found = command("evaluate", "openai:m", "--env", MAZE, "--limit", 1)
    assert "no reply had the tags <action>" in found.out and "<think>" not in found.out


def test_a_server_that_says_all_headers_back_finds_no_way_into_a_result(command, server, tmp_path, monkeypatch):
    """The agent's replies, reasoning and errors, and the words of a user behind the same endpoint, full and in part."""
    key, header = "sk-a1B2c3D4e5F6g7H8i9J0k1L2", "Bearer x9Y8z7W6v5U4t3S2r1Q0"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    seen = []

    def echo(handler: Any) -> Any:
        said = json.dumps(dict(handler.headers)) + f" {key[:15]} {header[12:]}"
        seen.append(said)
        if len(seen) % 5 == 2:
            return 500, said.encode(), {"X-Echo": said}
        return 200, completion(said, reasoning_content=said), {"X-Echo": said}

    server.script = [echo]
    user = f'{{kind = "model", model = "u", base_url = "{server.url}", wait = 0}}'
    env = ("--env", "manyturn/Talk-Booking-v0", "--env.args.user", user, "--env.workers", 1)
    words = (*env, "--limit", 2, "--out", tmp_path / "out", "--endpoint.headers.X-Key", header)
    ended = command("evaluate", "openai:m", *words)
    assert ended.code == 0, ended.err
    assert any(key in said and header in said for said in seen)
    written = [ended.out, ended.err]
    for path in (tmp_path / "out").rglob("*"):
        if path.is_file():
            table = path.suffix == ".parquet"
            written.append(str(read_table(path).to_pylist()) if table else path.read_text(errors="replace"))
    assert any("***" in text for text in written)
    for secret in (key, header.removeprefix("Bearer ")):
        for start in range(len(secret) - 8):
            assert not any(secret[start : start + 9] in text for text in written), secret[start:]
