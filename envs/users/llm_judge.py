"""Language-model judge: its answer is a JSON object of a given form, with values instead of words."""

import json
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from manyturn.envs.users.endpoint.chat_completion import clean
from manyturn.envs.users.endpoint.llm_client import AskedModel, Misread, ModelOptions, Unanswered
from manyturn.envs.users.protocol import UserError

_ASKED = "{rules}\n\nAnswer with one JSON object and nothing else. It must fit this schema:\n{schema}"
_MEND = "Your answer could not be read: {fault}. Answer only with a JSON object that fits the schema."


class JudgeError(UserError):
    """The judge gave no judgement that can be read. It is never a reward."""


class JudgeOptions(ModelOptions):
    """Model that judges: its name, its address and time limits. The key comes from OPENAI_API_KEY."""

    max_tokens: int = Field(default=2048, ge=1)
    """Longest answer, reasons included."""
    longest: int = Field(default=20_000, ge=1)
    """Characters of the longest answer that is read."""

    @model_validator(mode="after")
    def _stays(self) -> "JudgeOptions":
        if "stop" in self.model_fields_set:
            raise ValueError("a judge does not leave: leave out stop")
        return self


class Form(BaseModel):
    """Base of what a judge is asked for. Values are read strictly: ``"7"`` is no number; further keys are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)


F = TypeVar("F", bound=Form)


class Judge:
    """Asks a model for a form, and asks again where the answer does not fit it. It blocks as ``ModelUser`` does.

    Args:
        options: model, endpoint and patience.

    Attributes:
        name: tells judges apart whose scores must not be mixed.

    Raises:
        ValueError: there is no address, or one that holds secrets.
    """

    def __init__(self, options: ModelOptions):
        self._model = AskedModel(options)
        self.name = self._model.name

    def ask(self, rules: str, question: str, form: type[F]) -> F:
        """The model's answer.

        An answer that cannot be read is sent back once more with what is wrong with it; all attempts together share
        ``options.timeout``.

        Args:
            rules: what the model is and does; the form's schema is added.
            question: what it judges; it may hold anything that an agent wrote.
            form: what it answers.

        Raises:
            JudgeError: no answer, or none that fits the form.
        """
        messages = [_message("system", _ASKED.format(rules=rules, schema=json.dumps(form.model_json_schema())))]
        messages.append(_message("user", question))
        try:
            return self._model.ask(messages, self._model.deadline(), lambda choice: _read(choice.text, form))
        except Unanswered as error:
            raise JudgeError(f"the judge {error}") from error


def _read(text: str, form: type[F]) -> F:
    try:
        return form.model_validate_json(_object(text))
    except ValidationError as error:
        fault = _first_fault(error)
        mend = [_message("assistant", text), _message("user", _MEND.format(fault=fault))]
        raise Misread(f"an answer that does not fit ({fault})", mend) from None


def _message(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": clean(text)}


def _object(text: str) -> str:
    """Text from the first brace to the last: models like to put a fence or a sentence around it."""
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text


def _first_fault(error: ValidationError) -> str:
    """The first thing that does not fit, without the value itself, which may be anything."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    text = " ".join(f"{place}: {first['msg']}".removeprefix(": ").split())[:200]
    return "".join(char if char.isprintable() else "\ufffd" for char in text)
