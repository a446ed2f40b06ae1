"""What somebody else has written is read as far as it is known, and nothing is invented for the rest."""

import json

import pytest

from manyturn.agents.trajectories.conversation import conversations, of_exchanges
from manyturn.agents.trajectories.folder_writer import write_folder
from manyturn.agents.trajectories.format_detection import read_any
from manyturn.agents.trajectories.formats import chat, preferences
from manyturn.agents.trajectories.trajectory import TrajectoryError

pytestmark = pytest.mark.versions

CALL = {"function": {"name": "look", "arguments": '{"at": "box"}'}}
CHAT = [
    {"role": "system", "content": "Rules."},
    {"role": "user", "content": "Begin."},
    {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
    {"role": "tool", "content": "A box."},
    {"role": "user", "content": [{"type": "text", "text": "Go on."}]},
    {"role": "assistant", "content": "Done."},
]
ATIF = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s",
    "agent": {"name": "other", "version": "2", "model_name": "m"},
    "steps": [
        {"step_id": 1, "source": "system", "message": "Rules."},
        {"step_id": 2, "source": "user", "message": "Begin."},
        {
            "step_id": 3,
            "source": "agent",
            "message": "I look.",
            "reasoning_content": "a secret",
            "tool_calls": [{"tool_call_id": "1", "function_name": "look", "arguments": {"at": "box"}}],
            "observation": {"results": [{"source_call_id": "1", "content": "A box."}]},
            "metrics": {"prompt_token_ids": [1, 2], "completion_token_ids": [3], "logprobs": [-0.5]},
        },
        {
            "step_id": 4,
            "source": "agent",
            "message": "Done.",
            "metrics": {"prompt_token_ids": [1, 2, 3, 4], "completion_token_ids": [5], "logprobs": [-0.25]},
        },
    ],
}
SAID = ['I look.\n<tool_call>\n{"name": "look", "arguments": {"at": "box"}}\n</tool_call>', "Done."]


def test_a_chat_of_others_becomes_turns_with_its_calls_and_without_a_reward(tmp_path):
    file = tmp_path / "chat.jsonl"
    file.write_text(json.dumps({"messages": CHAT}) + "\n\n")
    [one] = read_any(file)
    assert [row["reply"] for row in one.turns] == SAID
    assert [row["observation"] for row in one.turns] == ["Begin.", "A box.\n\nGo on."]
    assert one.about["system"] == "Rules." and one.ledger is None
    assert (one.episode["success"], one.episode["return"], one.episode["split"]) == (None, None, "unknown")


def test_an_atif_document_of_others_keeps_its_tokens_and_its_reasoning(tmp_path):
    file = tmp_path / "one.json"
    file.write_text(json.dumps(ATIF))
    [one] = read_any(file)
    assert [row["reply"] for row in one.turns] == SAID and one.turns[1]["observation"] == "A box."
    assert one.ledger.reply(1) == [5] and one.ledger.prompt(1) == [1, 2, 3, 4]
    assert one.about["policy"] == "m"
    assert [row["reasoning"] for row in one.turns] == ["a secret", ""]


def test_what_a_conversation_that_ours_wrote_can_hold_comes_back(tmp_path):
    known = {"task": "t", "success": True, "return": 1.5, "split": "train", "rewards": [0.5, 1.0], "member": 3}
    one = of_exchanges([("see", "say"), ("see more", "say more")], "x", "Rules.", **known)
    (tmp_path / "a.jsonl").write_text("\n".join(chat.lines_of([one])))
    [back] = read_any(tmp_path / "a.jsonl")
    assert conversations(back) and [c.messages for c in conversations(back)] == [c.messages for c in conversations(one)]
    assert {name: back.episode[name] for name in chat.KEPT} == {name: one.episode[name] for name in chat.KEPT}
    assert [row["reward"] for row in back.turns] == [0.5, 1.0]


def group(*returns, **known):
    given = {"task": "t", "content": "c", "stage": "train/1", "seed": 1, **known}
    return [
        of_exchanges([("see", f"say {n}"), ("more", f"end {n}")], "x", "Rules.", member=n, **{"return": r}, **given)
        for n, r in enumerate(returns)
    ]


def test_a_pair_is_the_best_against_the_worst_of_its_group_and_nothing_else():
    errors = group(9.0, ending="env_error") + group(-9.0, ending="tampered")
    found = list(preferences.pairs_of([*group(0.5, 1.0, 0.0, 1.0, None), *errors, *group(2.0, stage="train/2")]))
    [pair] = found
    assert pair["members"] == [1, 2] and (pair["chosen_return"], pair["rejected_return"]) == (1.0, 0.0)
    assert [one["role"] for one in pair["prompt"]] == ["system", "user"]
    assert [one["content"] for one in pair["chosen"]] == ["say 1", "more", "end 1"]
    assert pair["rejected"][0] == {"role": "assistant", "content": "say 2"}
    assert not list(preferences.pairs_of(group(1.0, 1.0)))


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.jsonl", '{"messages": [{"role": "user"}]}\n{"prompt": 1}', "line 2 is no conversation"),
        ("a.json", "{", "is no JSON"),
        ("a.json", "[]", "holds no trajectory"),
        ("a.json", '{"schema_version": "ATIF-v2.0"}', "is no ATIF document"),
        ("a.json", '{"schema_version": "ATIF-v1.8", "steps": [{}]}', "is no complete ATIF document"),
        ("a.json", '{"eval": {}, "samples": [{}]}', "is no log of Inspect"),
        ("a.json", '{"eval": {}}', "a log without samples"),
        ("a.eval", "PK", "inspect log convert"),
        ("a.txt", "", "in no format that is known"),
        ("trajectories.jsonl.gz", "no gzip", "is damaged"),
    ],
)
def test_a_file_that_holds_none_is_refused_with_the_fix(name, text, told, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(TrajectoryError, match=told) as refusal:
        read_any(tmp_path / name)
    assert "\n" not in str(refusal.value)


def test_an_import_overwrites_nothing_of_others(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(TrajectoryError, match="holds something else"):
        write_folder(tmp_path, group(1.0), "x")
    with pytest.raises(TrajectoryError, match="holds no trajectories"):
        write_folder(tmp_path / "new", [], "x")
    assert not (tmp_path / "new").exists()
