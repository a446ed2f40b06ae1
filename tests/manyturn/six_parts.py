"""A package of its own that brings a reward wrapper, a context, a reply format, a model, a logger and an advantage."""

from typing import Literal

from manyturn.agents.model.model_config import MODELS, ModelConfig
from manyturn.agents.text.context import CONTEXTS, Context
from manyturn.agents.text.reply_format import FORMATS, Parsed, ReplyFormat
from manyturn.envs.contract.options.registry import Named
from manyturn.envs.contract.wrappers.reward_wrapper import WRAPPERS, TurnReward
from manyturn.trainers.credit.stages import ADVANTAGES, StageConfig
from manyturn.trainers.recipe.logger import LOGGERS, Logger


class HasteConfig(Named):
    name: Literal["haste"] = "haste"
    bonus: float = 0.5
    """What the first turn earns."""


@WRAPPERS.register(HasteConfig)
class Haste(TurnReward):
    """Pay the first turn. It does not preserve the optimal policy."""

    preserves_optimal_policy = False
    part = "haste"

    def __init__(self, env, config):
        super().__init__(env)
        self.bonus = config.bonus

    def reward_parts(self, parts, ended, info):
        return self.add(parts, self.bonus if info["turn"] == 1 else 0.0)


class ForgetfulConfig(Named):
    name: Literal["forgetful"] = "forgetful"


@CONTEXTS.register(ForgetfulConfig)
class Forgetful(Context):
    """Nothing of the past."""

    def __init__(self, config):
        pass

    def shown(self, past, observation):
        return [], observation


class LoudConfig(Named):
    name: Literal["loud"] = "loud"
    mark: str = "!"
    """What a reply ends with."""


@FORMATS.register(LoudConfig)
class Loud(ReplyFormat):
    """The action in capitals, with a mark."""

    def __init__(self, config):
        self.mark = config.mark

    def hint(self):
        return "SHOUT!"

    def parse(self, text):
        return Parsed(text.removesuffix(self.mark).lower(), text.endswith(self.mark))

    def render(self, action):
        return action.upper() + self.mark


class NarrowConfig(ModelConfig):
    name: Literal["narrow"] = "narrow"
    width: int = 16
    """Hidden size."""

    @property
    def vocabulary_tasks(self):
        return 8


@MODELS.register(NarrowConfig)
def narrow(context, config):
    """One layer."""
    from manyturn.agents.model.language_model import build_tiny

    sizes = {"width": config.width, "layers": 1, "heads": 2}
    return build_tiny(context.texts, context.seed, context.max_context, context.device, **sizes)


class NoteConfig(Named):
    name: Literal["note"] = "note"
    file: str = "notes.txt"
    """In the run's folder."""


@LOGGERS.register(NoteConfig)
class Note(Logger):
    """The phases of a run."""

    def __init__(self, config):
        self.name = config.file

    def begin(self, folder, config, lines):
        self.file = folder / self.name
        self.file.write_text(f"model {config['model']['name']}\n")

    def line(self, line):
        with self.file.open("a") as file:
            file.write(f"{line['phase']} {line['step']}\n")

    def end(self, summary):
        with self.file.open("a") as file:
            file.write(f"after {summary['after']['success']}\n")


class LatenessConfig(StageConfig):
    name: Literal["lateness"] = "lateness"
    scale: float = 1.0
    """Credit of a turn for each turn before it."""


@ADVANTAGES.register(LatenessConfig)
def lateness(batch, config):
    return config.scale * batch.turn_K.astype(float)
