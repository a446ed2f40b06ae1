"""Native tool calls of endpoints: they are played, and their results go back as the protocol wants."""

import json
from pathlib import Path
from typing import Any

import pytest
from needs_endpoint import Server, calling, completion, reading

from manyturn.agents.records.episode_rows import read_turns
from manyturn.terminal import command_exit

VAULT = '''
import manyturn as mt
from manyturn.envs.tools.tool_prompt import with_tools
from manyturn.envs.tools.toolset import Toolset


class Vault(mt.TextEnv):
    """Two notes hold a code, which opens the vault."""

    max_turns = 5

    def __init__(self):
        super().__init__()
        self._toolset = Toolset([self.read_note, self.open_vault], most_calls=3)
        self.tools = self._toolset.schemas
        self.instructions = with_tools("Open the vault.", self.tools)

    def tasks(self, split):
        codes = {"train": (111, 112), "validation": (121, 122), "test": (131, 132)}[split]
        return [mt.Task(f"{split}/{code}", split, {"code": code}) for code in codes]

    def begin(self, task, rng):
        self._code, self._opened = task.params["code"], False
        return "The vault is closed."

    def respond(self, action):
        answered = self._toolset.answer(action)
        if self._opened:
            return self.succeed(answered.text)
        return self.go_on(answered.text) if answered.valid else self.invalid(answered.text)

    def read_note(self, number: int) -> str:
        """Read a note.

        Args:
            number: 1 or 2.
        """
        return f"note {number}: {str(self._code)[:2] if number == 1 else str(self._code)[2:]}"

    def open_vault(self, code: int) -> str:
        """Open the vault.

        Args:
            code: of three digits.
        """
        self._opened = code == self._code
        return "open" if self._opened else "It stays closed."
'''


@pytest.fixture
def vault(tmp_path) -> str:
    (tmp_path / "vault.py").write_text(VAULT)
    return f"{tmp_path / 'vault.py'}:Vault"


@pytest.fixture
def server(endpoint_server: Server) -> Server:
    return endpoint_server


def summary(out: Path) -> dict[str, Any]:
    return json.loads((out / "summary.json").read_text())


def test_a_server_that_does_not_read_its_models_calls_is_remarked_on(command, server, vault):
    server.script = [
        (200, completion('<tool_call>\n{"name": "read_note", "arguments": {"number": 1}}\n</tool_call>'), {})
    ]
    found = command("evaluate", "openai:m", "--env", vault, "--limit", 1, "--agent.format", "native_tools")
    assert "100.0% of the replies write tool calls as text" in found.out and "tool_call" in found.out


def opens_the_vault(body: dict[str, Any]) -> bytes:
    """Reads both notes in one reply, then opens with what they say."""
    results = [message for message in body["messages"] if message["role"] == "tool"]
    if not results:
        return calling(("read_note", {"number": 1}), ("read_note", {"number": 2}), text="Both notes first.")
    code = "".join(message["content"].partition(": ")[2] for message in results)
    return calling(("open_vault", {"code": int(code)}), ids=["open"])


def test_native_tool_calls_are_played_and_their_results_go_back_under_their_ids(command, server, vault, tmp_path):
    server.script = [reading(opens_the_vault)]
    out = tmp_path / "out"
    found = command("evaluate", "openai:m", "--env", vault, "--agent.format", "native_tools", "--out", out)
    assert found.code == 0, found.err
    result = summary(out)
    assert (result["success"]["mean"], result["turns"]["mean"], result["invalid_action_rate"]) == (1.0, 2.0, 0.0)
    first, second = server.requests[0]["body"], server.requests[-1]["body"]
    assert [tool["function"]["name"] for tool in first["tools"]] == ["read_note", "open_vault"]
    assert [message["content"] for message in first["messages"]] == ["Open the vault.", "The vault is closed."]
    said, *results = second["messages"][2:]
    assert said["content"] == "Both notes first." and [call["id"] for call in said["tool_calls"]] == [
        "call_0",
        "call_1",
    ]
    assert [json.loads(call["function"]["arguments"]) for call in said["tool_calls"]] == [{"number": 1}, {"number": 2}]
    assert [(message["role"], message["tool_call_id"]) for message in results] == [
        ("tool", "call_0"),
        ("tool", "call_1"),
    ]
    assert results[0]["content"].startswith("note 1: ") and results[1]["content"].startswith("note 2: ")


NOTE, BILL = {"text": "Pay 1250."}, '{"amount": 1250}'
TILL = """
import manyturn as mt
from manyturn.envs.tools import Toolset


class Till(mt.TextEnv):
    max_turns = 3

    def __init__(self):
        super().__init__()
        self._toolset, self._done = Toolset([self.note, self.pay]), []
        self.tools = self._toolset.schemas
        self.instructions = self._toolset.instructions("Pay 1250, and do nothing else.")

    def tasks(self, split):
        return [mt.Task(f"{split}/{n}", split, {"n": n, "split": split}) for n in range(41)]

    def begin(self, task, rng):
        self._done = []
        return f"bill {task.params['n']}"

    def respond(self, action):
        answered = self._toolset.answer(action)
        if not self._done:
            return answered.turn(self)
        return self.succeed("Paid.") if self._done == [1250] else self.fail(f"Not asked for: {self._done}")

    def note(self, text: str) -> str:
        '''Note something.

        Args:
            text: what to note.
        '''
        self._done.append(text)
        return "noted"

    def pay(self, amount: int) -> str:
        '''Pay.

        Args:
            amount: how much.
        '''
        self._done.append(amount)
        return "paid"
"""


def calls_of_prefixes() -> list[list[tuple[str, Any]]]:
    """The calls that servers read from each prefix of a reply that notes and pays, also where they repair its JSON."""
    note = ("note", NOTE)
    prefixes = [[("note", json.dumps(NOTE)[:length])] for length in range(1, len(json.dumps(NOTE)))]
    prefixes += [[note], *([note, ("pay", BILL[:length])] for length in range(len(BILL)))]
    return prefixes + [[note, ("pay", {"amount": amount})] for amount in (1, 12, 125, 1250)]


@pytest.mark.parametrize(("finish", "count"), [("length", 7), ("length", 64), ("tool_calls", 64), ("stop", 64)])
def test_no_prefix_of_a_batch_of_native_calls_acts(command, server, tmp_path, finish, count):
    """Servers say that a reply was cut, or only count as many tokens as it may have."""
    prefixes = calls_of_prefixes()

    def answer(body: dict[str, Any]) -> bytes:
        if sum(message["role"] == "user" for message in body["messages"]) > 1:
            return calling(("pay", BILL), reply=10)
        number = int(body["messages"][1]["content"].removeprefix("bill "))
        return calling(*prefixes[number], finish=finish, reply=count)

    (tmp_path / "till.py").write_text(TILL)
    server.script, out = [reading(answer)], tmp_path / "out"
    words = ("--agent.format", "native_tools", "--sampling.max-tokens", 64, "--out", out)
    assert command("evaluate", "openai:m", "--env", f"{tmp_path}/till.py:Till", *words).code == 0
    assert len(prefixes) == 41 and summary(out)["success"]["mean"] == 1 and summary(out)["turns"]["mean"] == 2
    rows = read_turns(out / "turns.parquet")
    assert {(row["turn"], row["action"] == "", row["cut"]) for row in rows} == {(0, True, True), (1, False, False)}


@pytest.mark.parametrize(
    ("env", "args"),
    [("manyturn/Desk-v0", {"user": "agenda"}), pytest.param("manyturn/Search-v0", {}, marks=pytest.mark.slow)],
)
def test_a_model_that_acts_as_the_expert_does_by_native_calls_succeeds_as_it_does(command, server, tmp_path, env, args):
    """Desks with customers mix calls with speech, and results of searches have many lines."""
    table = "{" + ", ".join(f'{name} = "{value}"' for name, value in args.items()) + "}"
    words = ("--env", env, "--env.args", table, "--limit", 3)
    assert command("evaluate", "expert", *words, "--out", tmp_path / "expert").code == 0
    actions: dict[str, list[str]] = {}
    opening = ""
    for row in read_turns(tmp_path / "expert" / "turns.parquet"):
        opening = row["observation"] if row["turn"] == 0 else opening
        actions.setdefault(opening, []).append(row["action"])

    def answer(body: dict[str, Any]) -> bytes:
        said = [message for message in body["messages"] if message["role"] == "assistant"]
        action = actions[body["messages"][1]["content"]][len(said)]
        if not action.startswith("{"):
            return completion(action)
        call = json.loads(action)
        return calling((call["name"], call["arguments"]))

    server.script = [reading(answer)]
    found = command("evaluate", "openai:m", *words, "--agent.format", "native_tools", "--out", tmp_path / "model")
    assert found.code == 0, found.err
    expert, model = summary(tmp_path / "expert"), summary(tmp_path / "model")
    assert model["success"] == expert["success"] and model["success"]["mean"] == 1
    assert (model["turns"], model["invalid_action_rate"]) == (expert["turns"], 0)


def test_calls_that_cannot_be_read_are_invalid_turns_that_the_server_is_told_of(command, server, vault, tmp_path):
    broken = [
        calling(("read_note", '{"number": 1')),
        calling(("no such tool", {}), ids=[""]),
        calling(*[("read_note", {"number": 1})] * 4, ids=["same"] * 4),
        completion("I would rather talk."),
        completion(None, finish="length"),
    ]
    said = iter(broken)
    server.script = [lambda handler: (200, next(said), {})]
    out = tmp_path / "out"
    words = ("--limit", 1, "--agent.format", "native_tools", "--out", out)
    assert command("evaluate", "openai:m", "--env", vault, *words).code == 0
    result = summary(out)
    assert (result["turns"]["mean"], result["invalid_action_rate"]) == (5.0, 1.0)
    messages = server.requests[-1]["body"]["messages"]
    told = [message["content"] for message in messages if message["role"] == "tool"]
    assert "not valid JSON" in told[0] and "no tool 'no such tool'" in told[1] and "4 calls in one turn" in told[5]
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    assert calls[0]["function"]["arguments"] == "{}" and calls[1]["function"]["name"] == "no_such_tool"
    ids = [call["id"] for call in calls]
    assert len(set(ids)) == len(ids) and all(ids)
    assert messages[-1]["role"] == "user", "words without a call are answered with words"


def test_native_tools_are_of_endpoints_alone(command, bare_model, vault):
    for words in (["evaluate", bare_model, "--env", vault], ["train", vault]):
        found = command(*words, "--agent.format", "native_tools")
        assert found.code == command_exit.BAD_INPUT and "set agent.format to tool_call" in found.err, found.err
