"""From messages to token ids by a model's own chat template, one piece at a time.

An episode's tokens grow by appending: opening, reply, bridge to the next observation, reply … Each piece is encoded
once. That is only right where the template keeps prefixes, which ``check`` proves at start-up.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from manyturn.agents.text.reasoning import CLOSE, OPEN, without_reasoning
from manyturn.envs.tools.tool import Schema
from manyturn.envs.tools.tool_prompt import without_tools

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Message = dict[str, str]
_MARK = "\u241e"  # a rare character that stands for an observation while the template is taken apart
_SAID = "\u241d"  # and another one, for a reply
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHORT, _MOST_KEPT = 512, 4096  # characters of a text whose ids are kept, and how many such texts
_JOINER = "\u2060"  # invisible; put into a control token's text, it makes it text
_PROBE = {"name": "probe_of_tools", "description": "Probe.", "parameters": {"type": "object", "properties": {}}}
_PROBE_TOOL = {"type": "function", "function": _PROBE}


def well_formed(text: str) -> str:
    """Text that can be encoded: lone surrogates, which a program may emit but no encoding takes, become U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


class TemplateError(ValueError):
    """The chat template cannot be used in this way."""


def _file_of(tokenizer: "PreTrainedTokenizerBase") -> str:
    """The file in which a user changes the template."""
    name = tokenizer.name_or_path
    if Path(name).is_dir():
        return f"{name}/chat_template.jinja"
    return f"chat_template.jinja in a local copy of {name or 'the tokenizer'}"


class OwnSystem(NamedTuple):
    """The text that a template puts before a conversation without system text.

    Attributes:
        begin: stays, such as a token that begins every text.
        text: is left out.
    """

    begin: str
    text: str

    def taken_from(self, rendered: str) -> str:
        """A conversation without it. Raises TemplateError where the template has not put it there."""
        if not rendered.startswith(self.begin + self.text):
            raise TemplateError(
                f"the chat template no longer begins with {self.text!r:.60}, so that it cannot be left out: set "
                "agent.template_system to keep"
            )
        return self.begin + rendered[len(self.begin) + len(self.text) :]


class ChatTemplate:
    """A tokenizer's chat template, taken apart into opening and bridge.

    Tools that a system text names in a block (``manyturn.envs.tools.tool_prompt``) are shown in the template's own way
    where it has one; else the block stays in the system text as it is.

    Args:
        tokenizer: with ``chat_template`` set.
        left_out: what of a conversation without system text is not rendered; see ``without_own_system``.
        strips: leave reasoning out of earlier replies; see ``without_reasoning``.
    """

    def __init__(
        self, tokenizer: "PreTrainedTokenizerBase", left_out: OwnSystem | None = None, *, strips: bool = False
    ):
        if not tokenizer.chat_template:
            raise TemplateError(
                f"{tokenizer.name_or_path or 'the tokenizer'} has no chat template: use an instruct model, "
                f"or write {_file_of(tokenizer)}"
            )
        if not isinstance(tokenizer.eos_token_id, int):
            raise TemplateError("the tokenizer has no end token (eos_token), so no reply could ever end")
        self._end = tokenizer.eos_token_id
        self.tokenizer = tokenizer
        self._pieces: dict[int, str] = {}
        self._ids_by_text: dict[str, tuple[int, ...]] = {}
        self._left_out, self._strips = left_out, strips

    @cached_property
    def end_ids(self) -> frozenset[int]:
        """Tokens that end a reply: the tokenizer's end token, and the template's own end of turn if it differs."""
        tail = self._tail
        controls = [self.tokenizer.convert_tokens_to_ids(token) for token in self._controls]
        return frozenset({self._end, tail[0]} if tail and tail[0] in controls else {self._end})

    @cached_property
    def end_id(self) -> int:
        """The token that the template puts after a reply."""
        return self._tail[0] if self._puts_end else self._end

    def encode(self, text: str) -> list[int]:
        """Ids of a piece of rendered text; nothing is added."""
        if len(text) > _SHORT:
            return self.tokenizer.encode(text, add_special_tokens=False)
        # Episodes see the same short texts again and again.
        ids = self._ids_by_text.get(text)
        if ids is None:
            if len(self._ids_by_text) >= _MOST_KEPT:
                self._ids_by_text.clear()
            ids = self._ids_by_text[text] = tuple(self.tokenizer.encode(text, add_special_tokens=False))
        return list(ids)

    def content(self, text: str) -> str:
        """Text that comes from outside, made harmless: an observation cannot end its turn.

        The texts of control tokens get an invisible character.
        """
        backend: Any = self.tokenizer.backend_tokenizer
        normal = backend.normalizer
        if normal and any(token in normal.normalize_str(text) and token not in text for token in self._controls):
            text = normal.normalize_str(text)  # look-alikes that the tokenizer would turn into control tokens
        for token in self._controls:
            text = text.replace(token, token[0] + _JOINER + token[1:] if len(token) > 1 else "\ufffd")
        return well_formed(text)

    def _earlier(self, reply: str) -> str:
        """A reply in the history, made harmless but for the tags of its reasoning, which the template may look for."""
        if self._strips and not self._drops_reasoning:
            reply = without_reasoning(reply, opened=self.opens_reasoning)
        return "".join(
            part if part in (OPEN, CLOSE) else self.content(part) for part in re.split(f"({OPEN}|{CLOSE})", reply)
        )

    def decode(self, ids: Sequence[int]) -> str:
        """The reply's text without its end token."""
        ids = list(ids)
        while ids and ids[-1] in self.end_ids:
            ids.pop()
        return self._text_of(ids, skip_special_tokens=False)

    def _text_of(self, ids: Sequence[int], **options: bool) -> str:
        text = self.tokenizer.decode(list(ids), clean_up_tokenization_spaces=False, **options)
        assert isinstance(text, str)  # a list of texts is for a list of lists
        return text

    def pieces(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Each token's own text, for those who read; a token that is part of a character shows as a mark."""
        for new in set(ids) - self._pieces.keys():
            self._pieces[new] = self._text_of([new])
        return tuple(self._pieces[token] for token in ids)

    def opening(self, system: str, observation: str) -> list[int]:
        """Everything before the first reply."""
        return self.conversation(system, (), observation)

    def reply(self, text: str) -> list[int]:
        """A reply written by another author, as the policy would have said it: its text and the end token."""
        return [*self.encode(self.content(text)), self.end_id]

    def bridge(self, observation: str, *, ended: bool) -> list[int]:
        """Token ids between a reply and the next one.

        Args:
            observation: the environment's answer.
            ended: whether the reply holds its end token already.
        """
        ids = self.encode(self._after_reply.replace(_MARK, self.content(observation)))
        if ended and ids and ids[0] in self.end_ids:
            return ids[1:]
        return ids

    def conversation(self, system: str, exchanges: Sequence[tuple[str, str]], observation: str) -> list[int]:
        """A full conversation rendered in one piece: the check's second opinion, and the window context's prompt."""
        rules, tools = without_tools(system)
        if tools and not self._shows_tools:
            rules, tools = system, ()
        return self._conversation(rules, tools, exchanges, observation)

    def _conversation(
        self, rules: str, tools: Sequence[Schema], exchanges: Sequence[tuple[str, str]], observation: str
    ) -> list[int]:
        messages = self._messages(self.content(rules), self.content(exchanges[0][0] if exchanges else observation))
        for i, (_, reply) in enumerate(exchanges):
            following = exchanges[i + 1][0] if i + 1 < len(exchanges) else observation
            messages.append({"role": "assistant", "content": self._earlier(reply)})
            messages.append({"role": "user", "content": self.content(following)})
        text = self._render(messages, [self._harmless(tool) for tool in tools])
        if self._left_out is not None and not rules and not tools:
            text = self._left_out.taken_from(text)
        return self.encode(text)

    def without_own_system(self) -> "ChatTemplate":
        """The same, which adds no system text of its own where none is given. A second time changes nothing.

        Raises:
            TemplateError: it adds none, or what it adds cannot be told from what belongs to the observation.
        """
        return ChatTemplate(self.tokenizer, self._left_out or self._own_system, strips=self._strips)

    def without_reasoning(self) -> "ChatTemplate":
        """The same, whose conversations show earlier replies without their reasoning.

        Where the template drops it by itself, it does so on the raw tags, in its own way; else the part up to the last
        closing tag is taken off before. A last reply is always an earlier one here, since an observation follows it.
        """
        return ChatTemplate(self.tokenizer, self._left_out, strips=True)

    @cached_property
    def opens_reasoning(self) -> bool:
        """True if the prompt of a reply ends inside of reasoning."""
        tail = self._after_reply.partition(_MARK)[2]
        return tail.rfind(OPEN) > tail.rfind(CLOSE)

    @cached_property
    def _drops_reasoning(self) -> bool:
        """True if the template takes reasoning out of earlier replies by itself."""
        text = self._render(
            [
                *self._messages("S", "U"),
                {"role": "assistant", "content": f"{OPEN}{_SAID}{CLOSE}\n\nA"},
                {"role": "user", "content": _MARK},
            ]
        )
        return _SAID not in text

    @property
    def _own_system(self) -> OwnSystem:
        """Found by what stands before an observation where a reply has come before it, and where nothing has."""
        before = self._render([{"role": "user", "content": _MARK}]).partition(_MARK)[0]
        turn = [{"role": "user", "content": "U"}, {"role": "assistant", "content": _SAID}]
        ending = self._render(turn, asks=False).rpartition(_SAID)[2]
        header = self._after_reply.partition(_MARK)[0].removeprefix(ending)
        begin: Any = self.tokenizer.bos_token or ""
        if not before.startswith(begin) or header.startswith(begin):
            begin = ""
        parted = [before]
        if self._has_system:
            messages = [{"role": "system", "content": _SAID}, {"role": "user", "content": _MARK}]
            parted.append(self._render(messages).partition(_MARK)[0])
        if not header.startswith(tuple(self._controls)) or not all(text.endswith(header) for text in parted):
            raise TemplateError(
                "what the chat template puts before the first observation cannot be told apart, so that it "
                f"cannot be left out (agent.template_system): take its system text out of {_file_of(self.tokenizer)}"
            )
        own = before[len(begin) : len(before) - len(header)]
        if not own.strip():
            raise TemplateError("the chat template adds no system text of its own: leave agent.template_system out")
        return OwnSystem(begin, own)

    def check(self) -> None:
        """Prove that pieces appended to each other equal the conversation rendered in one piece.

        Raises TemplateError with the remedy if the template rewrites earlier turns.
        """
        if self._keeps_prefixes():
            return
        file = _file_of(self.tokenizer)
        if not self._puts_end:
            raise TemplateError(
                "the template puts no end token after a reply, so it never shows where one ended: add {{ eos_token }} "
                f"after the content of an assistant's message in {file}"
            )
        raise TemplateError(
            "this model's chat template rewrites earlier turns (many drop reasoning), so one sequence cannot hold "
            "the full conversation: set agent.reasoning = 'strip' or agent.context.name = 'window', which show each "
            f"turn the history that the template shows, or keep earlier turns as they were said in {file}"
        )

    def _keeps_prefixes(self, tools: Sequence[Schema] = ()) -> bool:
        """True if a conversation put together from pieces equals the one rendered in one piece."""
        rules = "Rules.\nBe brief."
        exchanges = [
            ("First, look: 1.", "<think>Why not?</think><action>go north</action>"),
            ("Nothing happens.\n\nTwo.", '<tool_call>\n{"name": "take", "arguments": {}}\n</tool_call>'),
            ('{"taken":[2]}', "take key 2"),
        ]
        pieces = self._conversation(rules, tools, (), exchanges[0][0])
        for i, (_, reply) in enumerate(exchanges):
            following = exchanges[i + 1][0] if i + 1 < len(exchanges) else "The end?"
            # The policy's own reply holds the raw tags, also where they are control tokens.
            pieces = [*pieces, *self.encode(self._earlier(reply)), self.end_id, *self.bridge(following, ended=True)]
        return pieces == self._conversation(rules, tools, exchanges, "The end?")

    @cached_property
    def _controls(self) -> list[str]:
        """Texts that the tokenizer reads as control tokens, the longest first.

        All of them: many models list no more than their end token among ``all_special_tokens``.
        """
        added = {token.content for token in self.tokenizer.added_tokens_decoder.values() if token.special}
        return sorted({*added, *self.tokenizer.all_special_tokens} - {""}, key=lambda token: (-len(token), token))

    @cached_property
    def _tail(self) -> list[int]:
        """Token ids after a reply, up to the next observation."""
        return self.encode(self._after_reply.partition(_MARK)[0])

    @property
    def _puts_end(self) -> bool:
        return bool(self._tail) and self._tail[0] in self.end_ids

    @cached_property
    def _after_reply(self) -> str:
        """The template's text from the end of a reply to the start of the next, the observation marked."""
        text = self._render(
            [*self._messages("S", "U"), {"role": "assistant", "content": _SAID}, {"role": "user", "content": _MARK}]
        )
        _, marked, after = text.rpartition(_SAID)
        if not marked or after.count(_MARK) != 1:
            raise TemplateError(
                "the chat template does not show replies and observations as they are: show each message's content in "
                f"{_file_of(self.tokenizer)}"
            )
        return after

    @cached_property
    def _has_system(self) -> bool:
        try:
            return _SAID in self._render([{"role": "system", "content": _SAID}, {"role": "user", "content": "U"}])
        except Exception:  # templates refuse a role by raising any error
            return False

    @cached_property
    def _shows_tools(self) -> bool:
        """True if the template has a tool format of its own, and keeps prefixes with it if it does without."""
        try:
            shown = _PROBE["name"] in self._render(self._messages("S", "U"), [_PROBE_TOOL])
        except Exception:  # as above
            return False
        return shown and (self._keeps_prefixes([_PROBE_TOOL]) or not self._keeps_prefixes())

    def _harmless(self, value: Any) -> Any:
        """A schema whose texts cannot end their turn."""
        if isinstance(value, dict):
            return {key: self._harmless(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self._harmless(part) for part in value]
        return self.content(value) if isinstance(value, str) else value

    def _messages(self, system: str, observation: str) -> list[Message]:
        if not system:
            return [{"role": "user", "content": observation}]
        if self._has_system:
            return [{"role": "system", "content": system}, {"role": "user", "content": observation}]
        return [{"role": "user", "content": f"{system}\n\n{observation}"}]

    def _render(self, messages: list[Message], tools: Sequence[Any] = (), *, asks: bool = True) -> str:
        """A conversation as text; where it ``asks``, up to where a reply begins."""
        import jinja2

        try:
            text = self.tokenizer.apply_chat_template(
                messages, tools=list(tools) or None, tokenize=False, add_generation_prompt=asks
            )
        except jinja2.TemplateError as error:
            line = f", line {error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
            raise TemplateError(
                f"the chat template of {self.tokenizer.name_or_path or 'the tokenizer'} fails{line}: {error.message}: "
                f"fix it in {_file_of(self.tokenizer)}"
            ) from error
        assert isinstance(text, str)
        return text
