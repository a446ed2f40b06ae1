"""Hostile replies through every door that text goes through: worlds, formats, templates, files, wire, terminal."""

import asyncio
import codecs
import contextlib
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from endpoint import Request, ServerThread, completion, response
from guessing import endpoint
from hostile import CONTROLS, payloads, twins
from tally import Tally
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from manyturn.agents.engine.engine import Capabilities, Engine, Reply, Sampling
from manyturn.agents.evaluation.evaluate import EvaluationPlan, evaluate
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.endpoint.options import EndpointSampling
from manyturn.agents.play.endpoint.policy import EndpointRequest as Asking
from manyturn.agents.play.endpoint.policy import OpenAIPolicy
from manyturn.agents.records.episode_rows import Row, read_episodes, read_turns
from manyturn.agents.text.chat_template import ChatTemplate, well_formed
from manyturn.agents.text.formats.free_text import FreeText, FreeTextConfig
from manyturn.agents.text.formats.tagged import Tagged, TaggedConfig
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.registration.env_registry import NeedsSetup, env_ids
from manyturn.envs.contract.tasks.panel import make_panel
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.terminal.escape import visible

SHORT, LONG = 200, 250
_ENV = "manyturn/GuessNumber-v0"
# Where any text may be a search or speech, none is nearly a command; their own tests send them any text.
# Engines of others take seconds for so many resets: their own tests too.
_FREE = {"manyturn/Shop-v0", "manyturn/ShopPages-v0", "manyturn/BFCL-v0", "manyturn/Talk-SelfPlay-v0"}
_FREE |= {"manyturn/ScienceWorld-v0", "manyturn/TextWorld-v0", "manyturn/TextWorldExpress-v0"}
_OBEYED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})  # what a terminal may obey, or shows nothing for
_JOINER = "\u2060"  # marks what would be a control token; shown as <U+2060>
_PROBLEM = Iterator[str]  # what a door finds wrong with a payload


def _handles() -> Iterator[EnvHandle]:
    """Every registered environment that takes commands alone, needs no files, and tells one that is right."""
    for name in env_ids():
        if name not in _FREE:
            with contextlib.suppress(NeedsSetup):
                handle = EnvHandle(name, None, [{"name": "turn_cost"}])
                talks = handle.user is not None or hasattr(handle.env.unwrapped, "tools")
                if handle.has_expert and not talks:
                    yield handle


def run(count: int, seed: int, folder: Path) -> Tally:
    tally = Tally()
    template = _template()
    handles = list(_handles())
    environments = [_Environment(handle) for handle in handles]
    lookalikes = [text for environment in environments for text in twins(environment.command)]
    corpus = [*lookalikes, *payloads(count - len(lookalikes))]
    doors: list[Callable[[str], _PROBLEM]] = [_formats, _terminal, _Template(template).check]
    doors += [environment.check for environment in environments]
    problems: list[list[str]] = [[] for _ in corpus]
    for text, found in zip(corpus, problems, strict=True):
        for door in doors:
            found += _through(door, text)
    for found, kept in zip(problems, asyncio.run(_files(corpus, template, seed, folder)), strict=True):
        found += kept
    for found, kept in zip(problems, asyncio.run(_wire(corpus)), strict=True):
        found += kept
    for handle in handles:
        handle.close()
    for text, found in zip(corpus, problems, strict=True):
        tally.injected += 1
        tally.survived += not found
        tally.notes += [f"{text[:30]!r}: {problem}"[:200] for problem in found[:3]]
    return tally


def _through(door: Callable[[str], _PROBLEM], text: str) -> list[str]:
    try:
        return list(door(text))
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


# ---- environments -------------------------------------------------------------------------------------------


class _Environment:
    """An environment must answer each text, and a command with it, as an action that means nothing.

    Attributes:
        command: one that it takes.
    """

    def __init__(self, handle: EnvHandle):
        self._handle, self._task = handle, handle.tasks("train")[0]
        handle.reset(self._task, 1)
        self.command = handle.expert()

    def check(self, text: str) -> _PROBLEM:
        actions = [text, FreeText(FreeTextConfig()).parse(text).action, Tagged(TaggedConfig()).parse(text).action]
        actions += [f"{self.command}{text}", f"{text}{self.command}"] if text.strip() else []
        for action in dict.fromkeys(actions):
            self._handle.reset(self._task, 1)
            step = self._handle.step(action)
            if step.understood:
                yield f"{self._handle.name} takes {action[:30]!r} for a command"
            if step.reward > 0 or step.terminated:
                yield f"{self._handle.name} pays {step.reward} or ends for {action[:30]!r}"


# ---- formats and terminal -----------------------------------------------------------------------------------


def _formats(text: str) -> _PROBLEM:
    free = FreeText(FreeTextConfig()).parse(text)
    if free.action != text.strip() or free.format_valid != bool(text.strip()):
        yield f"free text became {free.action[:30]!r}"
    tagged = Tagged(TaggedConfig()).parse(f"<action>go</action> {Tagged(TaggedConfig()).render(text)}")
    inner = text.rpartition("<action>")[2] if "<action>" in text else text
    if "</action>" not in text and inner.strip() and tagged != (" ".join(inner.split()), True):
        yield f"between tags it became {tagged.action[:30]!r}"
    Tagged(TaggedConfig()).parse(text)


def _terminal(text: str) -> _PROBLEM:
    for encoding in ("utf-8", "ascii"):
        shown = visible(text, encoding)
        obeyed = {char for char in set(shown) - set("\n\t") if unicodedata.category(char) in _OBEYED}
        if obeyed:
            yield f"{encoding}: prints {sorted(obeyed)[:5]!r}"
        codecs.encode(shown, encoding)


# ---- chat templates -----------------------------------------------------------------------------------------


def _template() -> ChatTemplate:
    """A byte-level tokenizer that has the control tokens of all families."""
    end, speaker, *_ = CONTROLS
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    core.decoder = decoders.ByteLevel()
    chat = (
        "{% for m in messages %}{{ '" + speaker + "' + m['role'] + '\\n' + m['content'] + '" + end + "' }}{% endfor %}"
    )
    return ChatTemplate(
        PreTrainedTokenizerFast(
            tokenizer_object=core,
            eos_token=end,
            additional_special_tokens=list(CONTROLS[1:]),
            chat_template=chat + "{% if add_generation_prompt %}{{ '" + speaker + "assistant\\n' }}{% endif %}",
            clean_up_tokenization_spaces=False,
        )
    )


class _Template:
    """Text from outside must never become a control token, and must be read as what it is."""

    def __init__(self, template: ChatTemplate):
        self._template = template
        self._controls = set(template.tokenizer.all_special_ids)
        self._plain = [self._count(ids) for ids in self._pieces("x")]

    def _pieces(self, text: str) -> list[list[int]]:
        template = self._template
        return [
            template.opening(text, "Look."),
            template.bridge(text, ended=True),
            template.reply(text),
            template.conversation("Rules.", [("Look.", text)], "Look."),
        ]

    def _count(self, ids: list[int]) -> list[int]:
        return [token for token in ids if token in self._controls]

    def check(self, text: str) -> _PROBLEM:
        pieces = self._pieces(text)
        if [self._count(ids) for ids in pieces] != self._plain:
            yield "becomes control tokens"
        said, meant = self._template.decode(pieces[2]), well_formed(text)
        if said != self._template.content(text) or said.replace(_JOINER, "") != meant.replace(_JOINER, ""):
            yield f"is read as {said[:30]!r}"


# ---- files and wire -----------------------------------------------------------------------------------------


class _Recites(Engine):
    """An engine that says the texts in turn: those of an episode are told by its task's place in the plan."""

    def __init__(self, template: ChatTemplate, texts: dict[tuple[str, int], str]):
        self._template, self._texts = template, texts
        self.vocabulary, self.version, self.capabilities = len(template.tokenizer), 0, Capabilities()

    async def generate(self, key: EpisodeKey, turn: int, prompt_ids: Sequence[int], sampling: Sampling) -> Reply:
        ids = self._template.reply(self._texts[key.task, turn])
        return Reply(ids, [-1.0] * len(ids), "stop", 0)


async def _files(corpus: list[str], template: ChatTemplate, seed: int, folder: Path) -> list[list[str]]:
    """Played by an agent and evaluated: journal and tables hold each text, equal or with marks, as invalid."""
    turns = 5
    async with open_seats(_ENV, limit=16) as seats:
        panel = make_panel(seats.tasks("test"), _ENV, "test", -(-len(corpus) // turns), {})
        places = [(task.id, turn) for task in panel.find(seats.tasks("test")) for turn in range(turns)]
        texts = dict(zip(places, [*corpus, *["end"] * turns], strict=False))
        sampling = Sampling(max_tokens=10**6)
        agent = Agent(AgentConfig(max_context=10**7), template, _Recites(template, texts), sampling)
        for _ in range(2):  # the second time from the journal
            await evaluate(seats, agent, EvaluationPlan(panel, repeats=1, seed=seed, max_turns=turns), out=folder)
    rows = {(row["task"], row["turn"]): row for row in read_turns(folder / "turns.parquet")}
    invalid = {row["task"]: row["invalid_actions"] for row in read_episodes(folder / "episodes.parquet")}
    return [
        _kept(rows.get(place), invalid[place[0]], template.content(texts[place])) for place in places[: len(corpus)]
    ]


def _kept(row: Row | None, invalid: int, text: str) -> list[str]:
    if row is None:
        return ["its turn is in no table"]
    found = []
    if row["reply"] != text or row["action"] != text.strip():
        found.append(f"is kept as {row['reply'][:30]!r}")
    if row["understood"] or invalid != 5 or row["reward"] > 0:
        found.append(f"counts as valid or pays: {row['understood']}, {invalid} of 5, {row['reward']}")
    if "".join(row["tokens"][:-1]) != text and text.isascii():
        found.append("its tokens are not its text")
    return found


async def _echo(request: Request, writer: asyncio.StreamWriter) -> None:
    """What comes in goes out, with half of a character, which JSON can hold as an escape."""
    writer.write(response(200, completion(request["messages"][0]["content"] + "\ud83d")))


async def _wire(corpus: list[str]) -> list[list[str]]:
    """Sent to an endpoint and back."""
    with ServerThread(_echo) as server:
        policy = OpenAIPolicy("echo", AgentConfig(), EndpointSampling(), endpoint(server.url, timeout=20.0))
        asked = [
            policy.complete(Asking([{"role": "user", "content": text}]), EpisodeKey(0, "wire", "echo", number), 0)
            for number, text in enumerate(corpus)
        ]
        answers = await asyncio.gather(*asked, return_exceptions=True)
    found = []
    for text, answer in zip(corpus, answers, strict=True):
        if isinstance(answer, BaseException):
            found.append([f"wire: {type(answer).__name__}: {answer}"])
        else:
            found.append([] if answer.text == well_formed(text + "\ud83d") else [f"wire: came as {answer.text[:30]!r}"])
    return found
