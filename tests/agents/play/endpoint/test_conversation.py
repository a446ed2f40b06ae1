"""What of an episode an endpoint is shown: calls and their results stay together whatever the context leaves out."""

from manyturn.agents.play.endpoint.completion import Completion, NativeCall
from manyturn.agents.play.endpoint.conversation import Conversation
from manyturn.agents.text.contexts.whole import WholeConfig, WholeConversation
from manyturn.agents.text.contexts.window import Window, WindowConfig


def calls(*names: str) -> Completion:
    return Completion("", tuple(NativeCall(name, name, "{}") for name in names))


def shown(conversation: Conversation, view: str) -> list[tuple[str, str]]:
    """(role, content or the ids of calls) of each message."""
    return [
        (message["role"], message.get("content") or " ".join(call["id"] for call in message["tool_calls"]))
        for message in conversation.messages(view)
    ]


def test_an_answer_with_a_line_for_each_call_is_parted_and_any_other_stays_whole():
    conversation = Conversation("Rules.", WholeConversation(WholeConfig()))
    conversation.add_reply("start", calls("a", "b"))
    conversation.add_reply("one\ntwo", calls("c", "d"))
    conversation.add_reply("three", calls("e"))
    told = shown(conversation, "four\nfive")
    together = "(the result of the last call answers this one too)"
    assert told == [
        *[("system", "Rules."), ("user", "start"), ("assistant", "a b")],
        *[("tool", "one"), ("tool", "two"), ("assistant", "c d")],
        *[("tool", together), ("tool", "three"), ("assistant", "e")],
        ("tool", "four\nfive"),
    ]


def test_a_window_shows_no_result_without_its_call():
    """Servers refuse a message of role tool that answers no call before it."""
    conversation = Conversation("", Window(WindowConfig(turns=1)))
    for turn in range(3):
        conversation.add_reply(f"seen {turn}", calls(f"call {turn}"))
    first, said, result = conversation.messages("seen 3")
    assert first["role"] == "user" and "(2 turns left out)" in first["content"] and "seen 2" in first["content"]
    assert said["tool_calls"][0]["id"] == result["tool_call_id"] and result["content"] == "seen 3"
    alone = Conversation("", Window(WindowConfig(turns=0)))
    alone.add_reply("seen 0", calls("call"))
    assert [message["role"] for message in alone.messages("seen 1")] == ["user"]


def test_ids_that_a_server_leaves_out_or_repeats_are_replaced():
    conversation = Conversation("", WholeConversation(WholeConfig()))
    same = Completion("", (NativeCall("", "look", "{}"), NativeCall("", "look", "{}")))
    conversation.add_reply("start", same)
    conversation.add_reply("x\ny", same)
    ids = [call["id"] for message in conversation.messages("z") for call in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in conversation.messages("z") if message["role"] == "tool"]
    assert ids == answered and len(set(ids)) == 4
