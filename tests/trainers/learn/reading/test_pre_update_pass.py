"""A step is read once: no recipe makes its policy compute the same log-probabilities twice before an update."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from played_guesses import guess_model, played
from transformers import LlamaModel

from manyturn.agents.play.agent import AgentConfig
from manyturn.recipes import load_recipe, names
from manyturn.recipes.stack import stacked
from manyturn.trainers.learn.heads.head_config import ProgressHeadConfig, ValueHeadConfig
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.learn.passes.samples import samples_of
from manyturn.trainers.learn.reading.reference_policy import Reference
from manyturn.trainers.recipe.config import RunConfig, configure
from manyturn.trainers.run.loop.loop import train

EIGHT = {"env": {"id": f"{Path(__file__).parents[2] / 'eight.py'}:Eight", "args": {}, "workers": 0}}
KINDS = {"env": {"id": "manyturn/Household-v0", "args": {"difficulty": "easy", "max_turns": 4}}}
# Those that choose between kinds of tasks, and the one of two policies, stay where they are at home.
CHOOSING = {"agent": {"only_admissible": True}, "sampling": {"max_tokens": 8}}  # no reply is cut, so that all act
CHANCES = {"env": {"id": f"{Path(__file__).parents[2] / 'chances.py'}:Chances", "args": {}, "workers": 0}, **CHOOSING}
SEARCH = {"env": {"id": "manyturn/Search-v0", "args": {"max_turns": 2}}}
ENVS = {
    **{"dump": KINDS, "sec": KINDS, "bargain-tiny": {}, "gigpo-similarity": CHANCES, "stratified-search": SEARCH},
    **dict.fromkeys(("spa", "gigpo-spa-epo-gra", "ppo + spa + epo + kl"), CHANCES),
}
# A critic, KL in the reward, SPA and EPO in one: each of them asks the policy before an update.
TOGETHER = ["ppo", "spa", "epo", {"objective": {"kl": {"coef": 0.1, "estimator": "k1", "place": "reward"}}}]
RECIPES: dict[str, list[Any]] = {**{name: [name] for name in names()}, "ppo + spa + epo + kl": TOGETHER}
OFTEN = {
    "gigpo",
    "ppo",
    "spa",
    "igpo",
    "epo",
    "spo",
    "reinforce-pp",
    "gigpo-spa-epo-gra",
    "arpo",
    "bargain-tiny",
    "ppo + spa + epo + kl",
}

Row = tuple[int, ...]


@dataclass
class Passes:
    """What one policy reads in a step: how often each row of tokens, in which kind of pass.

    Attributes:
        samples: without gradient, under its own weights.
        reference: without gradient, under the reference's.
        questions: of rows in which something is asked that nobody said.
        updates: with gradient.
        late: without gradient, after the updates of the step began.
    """

    samples: Counter[Row]
    reference: Counter[Row]
    questions: Counter[Row]
    updates: Counter[Row]
    late: Counter[Row]

    @classmethod
    def none(cls) -> "Passes":
        return cls(Counter(), Counter(), Counter(), Counter(), Counter())


class Watch:
    """Counts the learner's passes in a run; the engine's read with a cache and are let be."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.steps: list[dict[int, Passes]] = [{}]
        self._as_reference = False
        forward, in_place = LlamaModel.forward, Reference.in_place

        def watched_forward(model: LlamaModel, *args: Any, **options: Any) -> Any:
            if options.get("use_cache") is False:
                self._count(id(model), **options)
            return forward(model, *args, **options)

        @contextmanager
        def watched_reference(reference: Reference) -> Any:
            with in_place(reference):
                self._as_reference = True
                yield
                self._as_reference = False

        monkeypatch.setattr(LlamaModel, "forward", watched_forward)
        monkeypatch.setattr(Reference, "in_place", watched_reference)

    def _count(self, model: int, input_ids: torch.Tensor, attention_mask: Any = None, **_: Any) -> None:
        passes = self.steps[-1].setdefault(model, Passes.none())
        rows = Counter(tuple(np.trim_zeros(row, "b")) for row in input_ids.tolist())
        if torch.is_grad_enabled():
            passes.updates += rows
        elif passes.updates:
            passes.late += rows
        elif attention_mask is not None:
            passes.questions += rows
        else:
            (passes.reference if self._as_reference else passes.samples).update(rows)

    def line(self, line: dict[str, Any]) -> None:
        """Take a line of metrics: the step that it tells of is over."""
        if line["phase"] == "train":
            self.steps.append({})
        elif line["phase"] == "estimator":  # what it reads before the first step is part of none
            self.steps[-1] = {}


def small(name: str) -> RunConfig:
    """Two steps of the recipe, with random weights in place of a model that it names."""
    layers = [load_recipe(layer) if isinstance(layer, str) else layer for layer in RECIPES[name]]
    recipe = stacked(layers)
    rollout, model = recipe.get("rollout", {}), {"name": "tiny", "width": 16, "layers": 1, "heads": 2}
    sizes: dict[str, Any] = {
        "model": {**model, "sample_tasks": 4},
        "sampling": {"max_tokens": 4},
        "warmup": {"episodes": 0},
        "rollout": {"tasks": 24} if rollout.get("group") == 1 else {"tasks": 3, "group": 3},
        # The trial of a packing is read too, and rows that share tokens are not each read alone.
        "learner": {
            "minibatch": 9,
            "packing": "padding",
            **({"lr_warmup": 0.1} if "lr_warmup" in recipe.get("learner", {}) else {}),
        },
        "evaluation": {"limit": 1, "every": 0, "greedy": False},
        "steps": 2,
        "checkpoint_every": 2,
        "device": "cpu",
    }
    if "progress" in recipe and recipe["progress"].get("body") == "own":
        sizes["progress"] = {"exploration": {"episodes": 24, "passes": 1}}
    if "horizon" in rollout:
        sizes["rollout"]["horizon"] = {"every": 1}
    if "branching" in rollout:
        sizes["rollout"]["branching"] = {"initial": 2}
    if "tempering" in rollout:
        sizes["rollout"]["tempering"] = {"members": 1}
    return configure(recipe, ENVS.get(name, EIGHT), sizes)


def asks(config: RunConfig) -> bool:
    """Whether anything asks the policy before an update: without it the engine's log-probabilities do."""
    heads = any(head is not None and head.body == "policy" for head in (config.value, config.progress))
    paid = config.objective.kl is not None and config.objective.kl.place == "reward"
    return heads or paid or config.objective.epo is not None or config.learner.old_logprobs == "learner"


@pytest.mark.deep
@pytest.mark.parametrize("name", [n if n in OFTEN else pytest.param(n, marks=pytest.mark.slow) for n in RECIPES])
def test_before_the_first_update_a_recipe_reads_its_samples_once(name, monkeypatch, tmp_path):
    config, watch = small(name), Watch(monkeypatch)
    asyncio.run(train(config, tmp_path / "run", report=watch.line))
    *steps, after = watch.steps
    assert len(steps) == 2 and not after
    own = [head for head in (config.value, config.progress) if head is not None and head.body == "own"]
    assert len({model for policies in steps for model in policies}) == (2 if config.roles else 1) + len(own)
    drifts = "drift" in config.credit.needs
    for number, policies in enumerate(steps):
        for passes in policies.values():
            samples = Counter({row: times // config.learner.epochs for row, times in passes.updates.items()})
            previous = passes.samples - samples if drifts else Counter()
            if own and not samples:  # the estimator, which is fixed
                assert passes.samples and not passes.reference and not passes.questions and not passes.late
                continue
            read = passes.samples - previous
            if "threshold" in type(config.credit.advantage).model_fields:  # LOOP's drop: read, and not learnt from
                assert not samples - read and set(read.values()) == {1}
            else:
                asked = samples if asks(config) else Counter()
                once_more = read - asked  # the engine's alarm looks at some where nothing else asks
                assert not asked - read and set(once_more) <= set(samples)
                assert not once_more or config.learner.old_logprobs == "engine"
            assert bool(previous) == (drifts and number == 1), "the first step has no earlier visit"
            assert passes.reference == (samples if config.objective.kl is not None else Counter())
            assert bool(passes.questions) == ("belief" in config.credit.needs)
            assert not passes.late


# ---- what a reading gives


@pytest.fixture(scope="module")
def language() -> Any:
    return guess_model(AgentConfig())


def learner(language: Any, temperature: float = 1.0, **objective: Any) -> Learner:
    heads = (ValueHeadConfig(hidden=4), ProgressHeadConfig(hidden=4))
    made = Learner(language, LearnerConfig(micro_tokens=64), ClipConfig(**objective), temperature, heads)
    made.begin_reinforcement()
    return made


def plain(language: Any, ids: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities (T, V) before each token but the first, and hidden states (T, D), by one plain pass."""
    with torch.no_grad():
        found = language.model(input_ids=torch.from_numpy(ids)[None], use_cache=False, output_hidden_states=True)
    return torch.log_softmax(found.logits[0], -1), found.hidden_states[-1][0]


def test_a_reading_is_what_a_plain_pass_over_each_row_says(language):
    samples = samples_of(played(language, AgentConfig()))
    reading = learner(language).read(samples, {"reply_tokens", "reply_ends"})
    for i, sample in enumerate(samples):
        scores, hidden = plain(language, sample.ids)
        places = np.flatnonzero(sample.reply_mask)
        expected = scores[places - 1]
        close: Callable[..., None] = torch.testing.assert_close
        close(reading.logprob[i][places], expected[torch.arange(len(places)), torch.from_numpy(sample.ids[places])])
        close(reading.entropy[i][places], -(expected.exp() * expected).sum(-1))
        close(reading.hidden("reply_tokens")[i], hidden[places - 1])
        ends = [int(np.flatnonzero(sample.reply == turn)[-1]) for turn in np.unique(sample.reply[sample.reply_mask])]
        close(reading.hidden("reply_ends")[i], hidden[ends])
        assert len(reading.head_values("progress")[i]) == len(ends) > 1
        assert len(reading.head_values("value")[i]) == len(sample)
        assert not reading.logprob[i][~sample.reply_mask].any() and not reading.entropy[i][~sample.reply_mask].any()


def test_nothing_is_kept_that_nobody_named(language):
    reading = learner(language).read(samples_of(played(language, AgentConfig())), {"reply_ends"})
    with pytest.raises(ValueError, match="hidden states at 'reply_tokens' are not kept: name the place"):
        reading.hidden("reply_tokens")
    assert reading.reference is None and not reading.is_made, "neither asked for a pass"


def test_the_reference_is_read_under_its_own_weights_and_leaves_those_of_the_policy_alone():
    language = guess_model(AgentConfig())
    samples, made = samples_of(played(language, AgentConfig())), learner(language, kl={"coef": 0.1})
    before = [row.clone() for row in made.read(samples).logprob]
    with torch.no_grad():
        for weights in language.model.parameters():
            weights.mul_(1.1)
    moved, reading = [weights.clone() for weights in language.model.parameters()], made.read(samples)
    assert reading.reference is not None
    for ours, theirs, first in zip(reading.logprob, reading.reference, before, strict=True):
        assert torch.equal(theirs, first) and not torch.equal(ours, first)
    assert all(map(torch.equal, moved, language.model.parameters()))


def test_what_was_not_asked_before_the_updates_cannot_be_asked_after_them(language):
    """The weights have moved: an answer would be of another policy than the one that played."""
    samples, made = samples_of(played(language, AgentConfig())), learner(language)
    asked, unasked = made.read(samples), made.read(samples)
    before = [row.clone() for row in asked.logprob]
    for reading in (asked, unasked):
        reading.close()
    assert all(map(torch.equal, asked.logprob, before))
    with pytest.raises(RuntimeError, match="must be asked before them"):
        print(unasked.logprob)


@pytest.mark.parametrize("temperature", [0.0, -1.0])
def test_a_temperature_that_nothing_can_be_learnt_at_is_refused_and_not_replaced(language, temperature):
    with pytest.raises(ValueError, match=r"set sampling\.temperature above 0"):
        learner(language, temperature)
    assert learner(language, 0.5).reader.temperature == 0.5
