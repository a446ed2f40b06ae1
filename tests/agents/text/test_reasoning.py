"""Reasoning that acts: an action that a reply only considers is played, or a history differs from the model's own."""

import itertools

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from manyturn.agents.text.chat_template import ChatTemplate, TemplateError
from manyturn.agents.text.context import CONTEXTS
from manyturn.agents.text.reply_format import FORMATS

FORMAT_NAMES = ("free_text", "tagged", "tool_call", "native_tools")
INSIDE, OUTSIDE = '{"name": "open", "arguments": {"door": "red"}}', '{"name": "open", "arguments": {"door": "blue"}}'
SHAPES = {
    "closed": "<think>INSIDE</think>OUTSIDE",
    "opened by the template": "INSIDE</think>OUTSIDE",
    "unclosed": "OUTSIDE<think>INSIDE",
    "absent": "OUTSIDE",
    "thinking": "\n<thinking>INSIDE</thinking>OUTSIDE",
    "reasoning around think": "<reasoning>hm<think>hm</think>INSIDE</reasoning>OUTSIDE",
    "thinking after think": "<think>hm</think>\n<thinking>INSIDE</thinking>OUTSIDE",
    "unclosed thinking": "<thinking>INSIDE<think>hm</think>OUTSIDE",
    "thinking that opens again": "<thinking>hm</thinking>OUTSIDE<thinking>INSIDE",
    "think that opens again in capitals": "<think>hm</think>OUTSIDE<THINK>INSIDE</THINK>",
    "capitals": "<THINK>INSIDE</THINK>OUTSIDE",
    "attributes": '<Thinking effort="high">INSIDE</thinking >OUTSIDE',
}
CASES = list(itertools.product(FORMAT_NAMES, SHAPES, range(4)))


@pytest.mark.parametrize(("name", "kind", "actions"), CASES)
def test_only_what_follows_the_reasoning_is_an_action(name, kind, actions):
    """``actions`` has bit 0 for an action inside of the reasoning, and bit 1 for one outside."""
    form = FORMATS.apply(FORMATS.parse({"name": name}))
    inside = form.render(INSIDE) if actions & 1 else "hm"
    outside = form.render(OUTSIDE) if actions & 2 else ""
    reply = SHAPES[kind].replace("INSIDE", inside).replace("OUTSIDE", outside)
    reading = form.read(reply, opened=kind.startswith("opened"))
    acts = bool(actions & 2) and not kind.startswith("unclosed")
    assert (reading.action, reading.format_valid) == ((OUTSIDE, True) if acts else ("", False))
    assert (inside in reading.reasoning) == (kind != "absent")


@pytest.mark.parametrize("tag", ["think", "thinking", "Reasoning"])
def test_no_tag_is_both_reasoning_and_action(tag):
    with pytest.raises(ValueError, match=r"\ntag\n.*choose another tag"):
        FORMATS.parse({"name": "tagged", "tag": tag})


CHATML = (
    "{%- for m in messages %}{%- set c = m.content %}{%- if m.role == 'assistant' %}{%- set c = DROP %}{%- endif %}"
    "{{- '<|im_start|>' + m.role + '\n' + c + '<|im_end|>' + '\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}"
)
# As Qwen3, as DeepSeek-R1, and as a model that has no tags of its own.
DROPS = {"qwen": "c.split('</think>')[-1].lstrip('\n')", "deepseek": "c.split('</think>')[-1]", "keeps": "c"}
REPLIES = ["<think>red or blue?</think>\n\nopen red", "no thought", "<think>a</think>b<think>c</think> open blue"]


def model(drop: str, special: bool) -> ChatTemplate:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    core.pre_tokenizer, core.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    core.add_special_tokens([AddedToken(token, special=True) for token in ("<|im_start|>", "<|im_end|>")])
    core.add_tokens([AddedToken(token, special=special) for token in ("<think>", "</think>")])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>")
    tokenizer.chat_template = CHATML.replace("DROP", DROPS[drop])
    return ChatTemplate(tokenizer)


@pytest.mark.parametrize("special", [False, True], ids=["tags are text", "tags are control tokens"])
@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("policy", ["keep", "strip"])
def test_a_history_is_what_the_models_own_template_makes_of_the_raw_replies(drop, special, policy):
    template = model(drop, special)
    messages = [{"role": "user", "content": "0"}]
    for number, reply in enumerate(REPLIES, 1):
        messages += [{"role": "assistant", "content": reply}, {"role": "user", "content": str(number)}]
    raw = template.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    whole = CONTEXTS.apply(CONTEXTS.parse({"name": "whole"}))
    if policy == "keep":
        if drop != "keeps":
            with pytest.raises(TemplateError, match=r"agent\.reasoning = 'strip'"):
                whole.check(template)
            return
        whole.check(template)
        memory = whole.start(template, "")
    else:
        memory = whole.rendered(template.without_reasoning(), "")
    for number, reply in enumerate(REPLIES):
        prompt = memory.prompt(str(number))
        memory.add_reply(prompt, [*template.encode(reply), template.end_id], reply)
    shown = template.tokenizer.decode(memory.prompt("3"), skip_special_tokens=False)
    if drop == "keeps" and policy == "strip":
        assert "?" not in shown and "<think>" not in shown and "\nopen red<|im_end|>" in shown
    else:
        assert shown == raw and ("?" in shown) == (policy == "keep")
