import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.agents.text.contexts.whole import WholeMemory
from manyturn.agents.tokens.ledger import Ledger

IDS = st.lists(st.integers(0, 300), min_size=1, max_size=8)
CONVERSATION = st.lists(st.tuples(IDS, IDS), min_size=1, max_size=6)


def record(ledger: Ledger, prompt: list[int], reply: list[int], version: int = 0) -> None:
    ledger.record(prompt, reply, [-0.5] * len(reply), version)


@given(CONVERSATION)
def test_an_appended_conversation_is_one_branch_of_exactly_what_was_seen_and_said(conversation):
    ledger, history, prompts = Ledger(), [], []
    for version, (news, reply) in enumerate(conversation):
        history = history + news
        prompts.append(history)
        record(ledger, history, reply, version)
        history = history + reply
    assert [branch.ids for branch in ledger.branches] == [history]
    assert [ledger.prompt(k) for k in range(len(conversation))] == prompts
    assert [ledger.reply(k) for k in range(len(conversation))] == [reply for _, reply in conversation]
    assert [span.version for span in ledger.spans] == list(range(len(conversation)))
    said = [flag for news, reply in conversation for flag in [False] * len(news) + [True] * len(reply)]
    assert ledger.branches[0].reply_mask == said
    assert np.array_equal(np.array(ledger.branches[0].logprobs) == -0.5, said)


@given(CONVERSATION, st.data())
def test_an_edited_history_branches_and_leaves_earlier_turns_as_they_were(conversation, data):
    ledger, history = Ledger(), []
    for news, reply in conversation:
        record(ledger, history + news, reply)
        history = history + news + reply
    before = [(ledger.prompt(k), ledger.reply(k)) for k in range(len(conversation))]
    place = data.draw(st.integers(0, len(history) - 1))
    edited = [*history[:place], history[place] + 1, *history[place + 1 :], 7]
    record(ledger, edited, [1, 2])
    assert len(ledger.branches) == 2
    assert [(ledger.prompt(k), ledger.reply(k)) for k in range(len(conversation))] == before
    assert (ledger.prompt(len(conversation)), ledger.reply(len(conversation))) == (edited, [1, 2])
    assert ledger.computed_tokens == len(history) + len(edited) + 2


def test_a_shortened_history_branches_instead_of_keeping_what_was_not_seen():
    ledger = Ledger()
    record(ledger, [1, 2, 3], [4])
    record(ledger, [1, 2], [5])
    assert [branch.ids for branch in ledger.branches] == [[1, 2, 3, 4], [1, 2, 5]]


def test_a_reply_without_a_logprob_for_each_token_is_refused():
    with pytest.raises(ValueError, match="2 reply tokens but 1"):
        Ledger().record([1], [2, 3], [-1.0], 0)


@given(data=st.data())
def test_reply_ids_reach_the_next_prompt_untouched_even_where_text_would_change_them(tiny_template, data):
    # Ids that no encoder would choose, such as half a character, are what a sampler draws every day.
    memory = WholeMemory(tiny_template, "Rules.")
    last = len(tiny_template.tokenizer) - 1
    replies = data.draw(st.lists(st.lists(st.integers(0, last), min_size=1, max_size=8), min_size=1, max_size=4))
    ledger, expected = Ledger(), []
    for turn, reply in enumerate(replies):
        prompt = memory.prompt(f"observation {turn}")
        assert prompt[: len(expected)] == expected
        record(ledger, prompt, reply)
        memory.add_reply(prompt, reply, tiny_template.decode(reply))
        expected = prompt + reply
    assert [branch.ids for branch in ledger.branches] == [expected]
