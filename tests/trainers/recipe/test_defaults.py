"""A model that is fine-tuned at a tiny decoder's learning rate and never told its task, and options that mean one thing
in a file and another on the command line."""

import asyncio
import json
import tomllib
from pathlib import Path

import pytest
import tomli_w
from chat_model import save_chat_model
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.options.overlay import overlay
from manyturn.envs.hosting.local.seats import InlineSeats
from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.terminal.overrides import parse_overrides
from manyturn.trainers.recipe.config import configure, parse_config, to_toml
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.run_builder import open_run

pytestmark = pytest.mark.versions

MAZE = {"env": {"id": "manyturn/Maze-v0"}}
# Values that go together whichever of them are given: parts by name alone, their options with and without the name.
OPTIONS = {
    "agent.max_context": 1024,
    "agent.show_admissible": True,
    "agent.context": "window",
    "agent.context.turns": 3,
    "agent.format": "tagged",
    "agent.format.tag": "do",
    "credit.advantage.gamma": 0.9,
    "credit.rewards": [{"name": "invalid_penalty", "coef": 0.2}],
    "device": "cpu",
    "engine.max_batch": 8,
    "env.args": {"difficulty": "easy"},
    "evaluation.limit": 7,
    "learner.lora_rank": 0,
    "learner.minibatch": 8,
    "model": "some/model",
    "model.dtype": "float32",
    "objective": "clip",
    "objective.kl.coef": 0.1,
    "objective.low": 0.1,
    "rollout.group": 4,
    "sampling.max_tokens": 40,
    "seed": 3,
    "warmup.episodes": 0,
}
# Without which an option would be another part's.
NEEDS = {"agent.context.turns": "agent.context", "agent.format.tag": "agent.format", "model.dtype": "model"}
WORDS = {"env.args": "{difficulty = 'easy'}", "credit.rewards": "[{name = 'invalid_penalty', coef = 0.2}]"}
DOORS = Path(__file__).parents[1] / "doors.py"


def layer_of(places):
    layer = {}
    for place in places:
        *above, last = place.split(".")
        table = layer
        for name in above:
            if isinstance(table.get(name), str):
                table[name] = {"name": table[name]}
            table = table.setdefault(name, {})
        table[last] = OPTIONS[place]
    return layer


def words_of(places):
    for place in places:
        yield from (f"--{place.replace('_', '-')}", WORDS.get(place, str(OPTIONS[place]).lower()))


@settings(max_examples=60, deadline=None)
@given(
    where=st.fixed_dictionaries({place: st.sampled_from(["left out", "file", "words", "python"]) for place in OPTIONS})
)
def test_an_option_means_the_same_in_a_file_on_the_command_line_and_in_python(tmp_path_factory, where):
    places = [p for p in sorted(OPTIONS) if where[p] != "left out" and where.get(NEEDS.get(p, p)) != "left out"]
    file = tmp_path_factory.mktemp("layers") / "some.toml"
    file.write_text(tomli_w.dumps(layer_of([p for p in places if where[p] == "file"])))
    words = parse_overrides([*words_of(p for p in places if where[p] == "words")])
    python = layer_of([p for p in places if where[p] == "python"])
    parted = configure(stacked([load_recipe(str(file))]), MAZE, python, words)
    whole = parse_config(overlay(MAZE, layer_of(places)))
    assert parted == whole
    assert parse_config(tomllib.loads(to_toml(whole))) == whole, "and what a run writes down is what it was"


def test_one_entry_of_a_section_in_a_file_leaves_the_others_as_they_were():
    """A file's [agent] table once gave instructions to a model that was to do without."""
    for recipe, layer in (({"agent": {"max_context": 512}}, {}), ({}, {"agent": {"max_context": 512}})):
        config = configure(recipe, MAZE, layer)
        assert config.agent == configure({}, MAZE).agent.model_copy(update={"max_context": 512})
        assert not config.agent.instructions


@pytest.mark.parametrize("given", [{"path": "x"}, "x", {"name": "pretrained", "path": "x"}])
def test_a_path_alone_means_a_pretrained_model_with_settings_of_its_size(given):
    config = configure({}, MAZE, {"model": given})
    assert config.model.label == "x" and config.agent.instructions and config.threads == 0
    assert (config.agent.format.name, config.agent.max_context, config.sampling.max_tokens) == ("tagged", 4096, 128)
    assert (config.learner.lora_rank, config.learner.lr, config.warmup.lr) == (16, 1e-4, 2e-4)
    of_all_weights = configure({}, MAZE, {"model": given, "learner": {"lora_rank": 0}})
    assert (of_all_weights.learner.lr, of_all_weights.warmup.lr) == (1e-6, 1e-5)


@pytest.mark.parametrize(
    ("form", "tiny", "pretrained"),
    [
        ("free_text", 16, 64),
        ("tagged", 32, 128),
        ({"name": "tagged", "think": True}, 160, 640),
        ("tool_call", 96, 384),
    ],
)
def test_a_reply_may_be_as_long_as_its_format_needs(form, tiny, pretrained):
    given = {"agent": {"format": form}}
    assert configure({}, MAZE, given).sampling.max_tokens == tiny
    assert configure({}, MAZE, given, {"model": "x"}).sampling.max_tokens == pretrained
    assert configure({}, MAZE, given, {"sampling": {"max_tokens": 5}}).sampling.max_tokens == 5


@pytest.mark.parametrize(
    ("model", "fix"),
    [
        ("tinny", "did you mean 'tiny'"),
        ({"kind": "hf"}, "write name = one of .*pretrained, tiny"),
        ({"name": "tiny", "path": "x"}, "path is no option of model tiny, but of pretrained"),
        ({"name": "some/model", "path": "x"}, "give one of them"),
    ],
)
def test_a_model_that_is_named_in_a_wrong_way_is_answered_with_the_right_one(model, fix):
    with pytest.raises(ConfigError, match=fix):
        configure({}, MAZE, {"model": model})


def test_no_context_exceeds_what_the_model_knows(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for values, context in (
        ({"max_position_embeddings": 300}, 300),
        ({"n_positions": 200}, 200),
        ({"text_config": {"max_position_embeddings": 100_000}}, 4096),
        ([], 4096),
    ):
        (folder / "config.json").write_text(json.dumps(values))
        config = configure({}, MAZE, {"model": str(folder)})
        assert config.agent.max_context == context and config.sampling.max_tokens <= context // 4


@pytest.mark.parametrize(("model", "form", "tokens"), [("tiny", "free_text", 96), ("x", "tool_call", 384)])
def test_calls_of_tools_are_not_cut_short(model, form, tokens):
    """A call in JSON has 25 to 60 words of a tiny vocabulary; a limit for commands of two words made all invalid."""
    config, seats = (
        configure({}, {"env": {"id": "manyturn/Search-v0"}}, {"model": model}),
        InlineSeats("manyturn/Search-v0"),
    )
    fitted = config.fitted(seats.facts)
    assert (fitted.agent.format.name, fitted.sampling.max_tokens) == (form, tokens)
    asked = configure(config.model_dump(mode="json"), {"sampling": {"max_tokens": 30}})
    assert asked.fitted(seats.facts).sampling.max_tokens == 30, "what somebody gave stays"


def test_without_an_expert_a_pretrained_model_begins_without_a_warm_up(tmp_path):
    (tmp_path / "no_expert.py").write_text(
        DOORS.read_text().replace("def expert", "def _next").replace(".expert()", "._next()")
    )
    for name, demonstrations in ((DOORS, 256), (tmp_path / "no_expert.py", 0)):
        config = configure({}, {"env": {"id": f"{name}:Doors"}, "model": "x"})
        assert config.fitted(InlineSeats(config.env.id).facts).warmup.episodes == demonstrations


# ---- a run of one's own model on one's own environment


@pytest.fixture(scope="module")
def own_run(tmp_path_factory):
    """The folder of a run that was asked for nothing but its model, sizes aside."""
    folder = tmp_path_factory.mktemp("own")
    model = save_chat_model(folder / "hf")
    sizes = {  # random weights learn nothing in so few updates
        "warmup": {"episodes": 6, "max_updates": 2, "check_every": 2, "check_episodes": 2, "must_succeed": False},
        "rollout": {"tasks": 2, "group": 2},
        "evaluation": {"limit": 2},
        "steps": 3,
    }
    config = configure({}, {"env": {"id": f"{DOORS}:Doors"}, "model": {"path": str(model)}}, sizes)
    asyncio.run(train(config, folder / "run"))
    return folder / "run"


@pytest.mark.deep
def test_an_own_model_on_an_own_environment_runs_with_settings_that_fit_it(own_run):
    told = tomllib.loads((own_run / "config.toml").read_text())
    assert told["model"]["name"] == "pretrained" and told["agent"]["instructions"]
    assert told["agent"]["format"]["name"] == "tagged" and told["agent"]["max_context"] == 384
    assert told["sampling"]["max_tokens"] == 96 and told["learner"]["lora_rank"] == 16
    assert (told["learner"]["lr"], told["warmup"]["lr"]) == (1e-4, 2e-4)
    steps = [json.loads(line) for line in (own_run / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in steps if line["phase"] == "train"] == [1, 2, 3]
    assert (own_run / "checkpoints" / "step_000003" / "model" / "adapter_config.json").is_file()


def test_an_own_model_reads_what_it_has_to_do(own_run):
    config = parse_config(tomllib.loads((own_run / "config.toml").read_text()))

    async def prompt():
        async with open_run(config) as run:
            task = run.seats.tasks("validation")[0]
            plan = [(task, EpisodeKey(0, "test", task.id, 0))]
            async with run.drawing():
                [episode] = await gather(run.seats, run.policy(), plan, max_turns=1)
            branch, span = episode.ledger.branches[0], episode.ledger.spans[0]
            return run.only.language.tokenizer.decode(branch.ids[: span.start])

    told = asyncio.run(prompt())
    assert told.startswith("<|im_start|>system\nOpen the doors in the order given, one each turn.")
    assert "exactly one action, between <action> and </action>" in told
    assert "<|im_start|>user\nOrder: " in told and told.endswith("<|im_start|>assistant\n")
