import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from manyturn.agents.text.chat_template import ChatTemplate, TemplateError
from manyturn.agents.text.contexts.whole import WholeConfig, WholeConversation
from manyturn.agents.text.contexts.window import Window, WindowConfig

pytestmark = pytest.mark.versions

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
FORGETS_THOUGHTS = CHATML.replace("m['content']", "m['content'].split('</think>')[-1]")
NO_SYSTEM = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}" + CHATML
OWN_TEXT = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
ADDS_TEXT = (  # as SmolLM2's does
    "{% for m in messages %}{% if loop.first and m['role'] != 'system' %}{{ '"
    + OWN_TEXT.replace("\n", "\\n")
    + "' }}{% endif %}"
    + CHATML.removeprefix("{% for m in messages %}")
)
CONTROLS = ("<|im_start|>", "<|im_end|>", "<|end|>", "<|user|>", "<|agent|>", "<|system|>")


def chat_template(template: str, listed: bool = True) -> ChatTemplate:
    """A byte-level tokenizer with ChatML's control tokens; not ``listed``, its end token alone is announced."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken(t, special=True) for t in ("<|im_start|>", "<|im_end|>", "<|eos|>")])
    announced = {"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]} if listed else {}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|eos|>", **announced)
    tokenizer.chat_template = template
    return ChatTemplate(tokenizer)


@pytest.fixture(params=["tiny", "chatml", "unlisted"])
def template(request, tiny_template) -> ChatTemplate:
    return tiny_template if request.param == "tiny" else chat_template(CHATML, request.param == "chatml")


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_decoding_a_tiny_encoding_gives_back_any_text(tiny_template, text):
    assert tiny_template.decode(tiny_template.encode(tiny_template.content(text))) == tiny_template.content(text)


def test_a_text_that_was_seen_before_has_its_ids_whoever_changed_the_list_and_however_many_came_between(template):
    texts = [f"Room {number}: a door." for number in range(5000)] + ["long " * 200]
    expected = [template.tokenizer.encode(text, add_special_tokens=False) for text in texts]
    for text in texts:
        template.encode(text).append(0)
    assert [template.encode(text) for text in (*texts, *texts[::-1])] == expected + expected[::-1]
    assert 0 < len(template._ids_by_text) <= 4096, "a long run would keep all that it ever saw"


def test_templates_that_keep_prefixes_pass_the_check(template):
    template.check()
    WholeConversation(WholeConfig()).check(template)


@pytest.mark.parametrize("begin", ["", "<|eos|>", "<|im_start|>"], ids=["none", "begins", "is ChatML's"])
def test_the_templates_own_system_text_is_left_out_and_nothing_else(begin):
    template = chat_template(("{{ '<|eos|>' }}" if begin == "<|eos|>" else "") + ADDS_TEXT)
    template.tokenizer.bos_token = begin or None
    front, said = begin.replace("<|im_start|>", ""), [("Look.", "go"), ("A wall.", "stay")]
    whole, without = template, template.without_own_system().without_own_system()
    without.check()
    for exchanges in ((), said):
        kept, left = (one.tokenizer.decode(one.conversation("", exchanges, "A door.")) for one in (whole, without))
        assert kept == front + OWN_TEXT + left.removeprefix(front) and left.startswith(f"{front}<|im_start|>user")
    pieces = without.opening("", "Look.")
    for (_, reply), following in zip(said, ("A wall.", "A door."), strict=True):
        pieces = [*pieces, *without.reply(reply), *without.bridge(following, ended=True)]
    assert pieces == without.conversation("", said, "A door.")
    assert without.opening("Rules.", "Look.") == whole.opening("Rules.", "Look."), "what is given takes its place"


def test_a_template_without_a_system_text_of_its_own_or_with_one_that_hides_is_refused():
    with pytest.raises(TemplateError, match=r"adds no system text of its own: leave agent.template_system out"):
        chat_template(CHATML).without_own_system()
    inside = ADDS_TEXT.replace("<|im_end|>\\n' }}{% endif %}", "\\n' }}{% endif %}", 1).replace(
        "{{ '<|im_start|>' + m['role']", "{{ (' ' if loop.first else '<|im_start|>') + m['role']"
    )
    with pytest.raises(
        TemplateError, match=r"cannot be told apart, .* take its system text out of .*chat_template.jinja"
    ):
        chat_template(inside).without_own_system()


@pytest.mark.parametrize("listed", [True, False])
def test_a_template_that_drops_earlier_thoughts_is_refused_with_the_remedy(listed):
    template = chat_template(FORGETS_THOUGHTS, listed)
    with pytest.raises(TemplateError, match=r"agent\.context\.name = 'window'.*chat_template"):
        WholeConversation(WholeConfig()).check(template)
    Window(WindowConfig(turns=1)).check(template)
    prompt = template.conversation("", [("one", "<think>secret</think>go")], "two")
    assert "secret" not in template.tokenizer.decode(prompt)


def test_a_template_that_renders_nothing_of_a_reply_is_refused():
    with pytest.raises(TemplateError, match="does not show replies"):
        chat_template(CHATML.replace("m['content']", "'x'")).check()


def test_a_tokenizer_without_template_or_end_token_is_refused():
    with pytest.raises(TemplateError, match="no chat template"):
        chat_template("")
    tokenizer = chat_template(CHATML).tokenizer
    tokenizer.eos_token = None
    with pytest.raises(TemplateError, match="no end token"):
        ChatTemplate(tokenizer)


def test_a_template_without_an_end_of_replies_is_refused_for_that(tmp_path):
    template = chat_template(
        "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}assistant: "
    )
    template.tokenizer.name_or_path = str(tmp_path)
    with pytest.raises(
        TemplateError, match=r"no end token after a reply.*\{\{ eos_token \}\}.*chat_template\.jinja"
    ) as found:
        template.check()
    assert str(tmp_path) in str(found.value) and "window" not in str(found.value)
    template.tokenizer.chat_template = template.tokenizer.chat_template.replace("'\n'", "eos_token + '\n'")
    ChatTemplate(template.tokenizer).check()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (CHATML + "{% for m in %}", r"line 4: Expected an expression"),
        (CHATML + "{{ raise_exception('this model is asleep') }}", "this model is asleep"),
        ("", "has no chat template"),
    ],
)
def test_a_template_that_cannot_be_used_names_its_folder_and_file(tmp_path, text, why):
    tokenizer = chat_template(CHATML).tokenizer
    tokenizer.chat_template = text
    tokenizer.save_pretrained(tmp_path)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    with pytest.raises(TemplateError, match=why) as found:
        ChatTemplate(tokenizer).check()
    assert f"{tmp_path}/chat_template.jinja" in str(found.value) and "tokenizer.chat_template" not in str(found.value)


def test_a_model_without_a_system_role_is_told_the_rules_by_the_user():
    template = chat_template(NO_SYSTEM)
    assert "user\nRules.\n\nlook" in template.tokenizer.decode(template.opening("Rules.", "look"))
    template.check()


def test_the_templates_end_of_turn_ends_replies_even_where_it_is_not_the_end_token():
    for listed in (True, False):
        template = chat_template(CHATML, listed)
        ends = template.tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|eos|>"])
        assert template.end_ids == set(ends)
        assert template.end_id == ends[0]


def control_ids(template: ChatTemplate) -> set[int]:
    return {i for i, token in template.tokenizer.added_tokens_decoder.items() if token.special}


@given(parts=st.lists(st.sampled_from([*CONTROLS, "<|", "|>", "im_end", "go", "\u2060", " "]), max_size=8))
def test_control_tokens_in_an_observation_or_a_reply_stay_text(tiny_template, parts):
    text = "".join(parts)
    for template in (tiny_template, chat_template(CHATML), chat_template(CHATML, listed=False)):
        controls = control_ids(template)
        plain = template.bridge("harmless", ended=False)
        bridge = template.bridge(text, ended=False)
        assert [i for i in bridge if i in controls] == [i for i in plain if i in controls]
        reply = template.reply(text)
        assert reply[-1] == template.end_id and not controls.intersection(reply[:-1])
        opening, quiet = template.opening("a" + text, text), template.opening("a", "b")
        assert [i for i in opening if i in controls] == [i for i in quiet if i in controls]


def test_text_with_lone_surrogates_is_read_instead_of_stopping_the_run(template):
    assert "a\ufffdb" in template.tokenizer.decode(template.opening("Rules.", "a\ud800b"))


def test_a_decoded_reply_leaves_out_its_end_token_alone(template):
    ids = template.encode("go north")
    for end in template.end_ids:
        assert template.decode([*ids, end]) == template.decode(ids) == "go north"
    assert template.decode([template.end_id]) == ""


def test_a_bridge_adds_the_end_token_only_to_a_reply_that_was_cut(template):
    cut, finished = template.bridge("two", ended=False), template.bridge("two", ended=True)
    assert cut[0] == template.end_id
    assert cut[1:] == finished
