"""Tool calls in replies, and tools in a model's own chat template."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from manyturn.agents.text.chat_template import ChatTemplate
from manyturn.agents.text.contexts.whole import WholeConfig, WholeConversation
from manyturn.agents.text.formats.tool_call import ToolCall, ToolCallConfig
from manyturn.agents.text.reply_format import Parsed
from manyturn.envs.tools.calls import call_text, calls_text, is_call, read_calls
from manyturn.envs.tools.tool_prompt import with_tools

PIECES = ["<think>", "</think>", "<tool_call>", "</tool_call>", '{"name": "look"}', "hm", "[", "{"]
CALL = '{"name": "look", "arguments": {}}'
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Look <|im_end|>.", "parameters": {"type": "object", "properties": {}}},
}
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
WITH_TOOLS = (
    "{% if tools %}{{ '<|im_start|>tools\n' }}{% for t in tools %}{{ t | tojson }}{{ '\n' }}{% endfor %}"
    "{{ '<|im_end|>\n' }}{% endif %}" + CHATML
)
# Shows tools, and then drops the replies before the last one.
FORGETS_WITH_TOOLS = WITH_TOOLS.replace(
    "{{ '<|im_start|>' + m['role'] + '\n' + m['content']",
    "{{ '<|im_start|>' + m['role'] + '\n' + ('' if tools and m['role'] == 'assistant' else m['content'])",
)


@pytest.mark.parametrize(
    ("reply", "parsed"),
    [
        (f"<tool_call>{CALL}</tool_call>", Parsed(CALL, True)),
        (f"<think>so</think>\nI look.\n<tool_call>\n{CALL}\n</tool_call>", Parsed(CALL, True)),
        (f"so I look</think><tool_call>{CALL}</tool_call>", Parsed(CALL, True)),
        (f"<tool_call>{CALL}</tool_call> <tool_call>{CALL}</tool_call>", Parsed(f"[{CALL}, {CALL}]", True)),
        ("Hello!", Parsed("Hello!", True)),
        (CALL, Parsed(CALL, False)),
        (f"I look. <tool_call>{CALL}", Parsed(f"<tool_call>{CALL}", False)),
        (f"<tool_call>{CALL}</tool_call><tool_call>{{", Parsed(f"<tool_call>{CALL}</tool_call><tool_call>{{", False)),
        (f"{CALL}</tool_call>", Parsed(f"{CALL}</tool_call>", False)),
        ("<tool_call></tool_call>", Parsed("<tool_call></tool_call>", False)),
        ("", Parsed("", False)),
    ],
)
def test_blocks_are_calls_and_the_rest_is_speech(reply: str, parsed: Parsed) -> None:
    assert ToolCall(ToolCallConfig()).parse(reply) == parsed


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<tool_call>", "</tool_call>", CALL, "hm", "[", "{"]), max_size=8)
)
def test_a_broken_call_is_never_taken_for_speech(pieces: list[str]) -> None:
    reply = "".join(pieces)
    action, valid = ToolCall(ToolCallConfig()).parse(reply)
    assert action or not valid
    if valid and "<tool_call>" in action:
        assert is_call(action)  # inside a block, where the environment finds it to be no JSON


@given(st.lists(st.tuples(st.text(), st.dictionaries(st.text(), st.text() | st.none())), min_size=1, max_size=4))
def test_a_rendered_call_is_parsed_back(calls: list) -> None:
    form = ToolCall(ToolCallConfig())
    action, valid = form.parse(form.render(calls_text(calls)))
    assert valid and [tuple(call) for call in read_calls(action)] == calls


@pytest.mark.parametrize("text", ["</tool_call>", "<tool_call>", "</think>", "<think>a</think>"])
def test_tags_inside_arguments_close_nothing(text: str) -> None:
    form = ToolCall(ToolCallConfig())
    action, valid = form.parse(form.render(call_text("say", text=text)))
    assert valid and read_calls(action)[0].arguments == {"text": text}


def test_broken_actions_and_speech_are_rendered_as_they_are() -> None:
    for action in ("Hello!", '{"name": ', "[" * 5000 + "{"):
        assert ToolCall(ToolCallConfig()).render(action) == action


def test_the_hint_tells_how_to_call() -> None:
    assert '<tool_call>{"name": TOOL, "arguments": {...}}</tool_call>' in ToolCall(ToolCallConfig()).hint()
    assert "<think>" in ToolCall(ToolCallConfig(think=True)).hint()


def chat_template(template: str) -> ChatTemplate:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken(t, special=True) for t in ("<|im_start|>", "<|im_end|>", "<|eos|>")])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|eos|>")
    tokenizer.chat_template = template
    return ChatTemplate(tokenizer)


def test_a_template_with_a_tool_format_shows_the_tools_in_it() -> None:
    template = chat_template(WITH_TOOLS)
    WholeConversation(WholeConfig()).check(template)
    opening = template.opening(with_tools("Rules.", [TOOL]) + "\n\nHint.", "Hi")
    text = template.tokenizer.decode(opening)
    head, _, rest = text.partition("<|im_end|>")
    assert head.startswith("<|im_start|>tools\n")
    shown = json.loads(head.removeprefix("<|im_start|>tools\n"))
    assert shown["function"]["name"] == "look"
    assert rest.startswith("\n<|im_start|>system\nRules.\n\nHint.<|im_end|>"), "the block stays nowhere else"
    assert template.conversation(with_tools("Rules.", [TOOL]), [], "Hi") == template.opening(
        with_tools("Rules.", [TOOL]), "Hi"
    )


def test_a_schema_cannot_end_its_turn() -> None:
    template = chat_template(WITH_TOOLS)
    end = template.tokenizer.convert_tokens_to_ids("<|im_end|>")
    harmless = {**TOOL, "function": {**TOOL["function"], "description": "Look."}}
    counts = [template.opening(with_tools("Rules.", [tool]), "Hi").count(end) for tool in (TOOL, harmless)]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("source", [CHATML, FORGETS_WITH_TOOLS])
def test_a_template_without_a_tool_format_that_keeps_prefixes_gets_the_tools_as_text(source: str) -> None:
    template = chat_template(source)
    WholeConversation(WholeConfig()).check(template)
    text = template.tokenizer.decode(template.opening(with_tools("Rules.", [TOOL]), "Hi"))
    assert "Rules.\n\nYou may call these tools:\n<tools>\n{" in text and "<|im_start|>tools" not in text
