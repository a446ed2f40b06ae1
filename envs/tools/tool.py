"""A tool: a typed Python function with a docstring, and the JSON schema that tells a model how to call it."""

import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, NotRequired, get_type_hints

from pydantic import ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError, with_config
from pydantic.errors import PydanticSchemaGenerationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import SchemaValidator, to_jsonable_python
from typing_extensions import TypedDict  # pydantic's own: below Python 3.12 it refuses the standard library's

Schema = Mapping[str, Any]
_ENCODE = json.JSONEncoder().encode
_ENTRY = re.compile(r"(\w+)(?: \([^)]*\))?:\s*(.*)")


class ToolError(Exception):
    """A tool declines; the agent reads the text after ``Error: ``. Raise it for what an agent can do wrong."""


class BadArguments(ValueError):
    """The arguments do not fit the tool; the text names the fix."""


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that can be called by name.

    Args:
        schema: in OpenAI's form, ``{"type": "function", "function": {"name", "description", "parameters"}}``.
        run: takes the arguments as they stand in the call, and returns a result: text, or what JSON can express.
            Raises BadArguments if they do not fit, ToolError if the tool declines.
    """

    schema: Schema
    run: Callable[[dict[str, Any]], Any]

    @property
    def name(self) -> str:
        return self.schema["function"]["name"]


def tool_of(function: Callable[..., Any]) -> Tool:
    """The tool that a function or bound method is.

    Every parameter has a name, a type and a line below ``Args:`` of the docstring; what stands before is the tool's
    description. Arguments are checked strictly, as JSON: ``"3"`` is no number, and a date is an ISO text. Raises
    ValueError for a function that cannot be a tool.
    """
    schema, validator = _signature(inspect.unwrap(getattr(function, "__func__", function)))
    name, properties = schema["function"]["name"], schema["function"]["parameters"]["properties"]
    validate = validator.validate_json

    def run(arguments: dict[str, Any]) -> Any:
        try:
            fit = validate(_ENCODE(arguments))
        except ValidationError as error:
            raise BadArguments(_explain(name, error, properties)) from None
        return function(**fit)

    return Tool(schema, run)


@lru_cache(maxsize=1024)  # building a validator takes a millisecond, and every environment has the same tools
def _signature(function: Callable[..., Any]) -> tuple[Schema, SchemaValidator]:
    name = function.__name__
    description, argument_texts = _documented(function)
    fields: dict[str, Any] = {}
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ValueError(f"tool {name}: {error}; types of parameters are names of the function's module") from error
    parameters = list(inspect.signature(function).parameters.values())
    if parameters and parameters[0].name == "self":
        parameters = parameters[1:]
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ValueError(f"tool {name}: {parameter} cannot be given by name: a tool's parameters have names")
        if parameter.name not in hints:
            raise ValueError(f"tool {name}: give {parameter.name!r} a type")
        if parameter.name not in argument_texts:
            raise ValueError(f"tool {name}: describe {parameter.name!r} below 'Args:' of its docstring")
        optional = parameter.default is not parameter.empty
        extra = {"default": to_jsonable_python(parameter.default)} if optional else None
        kind = Annotated[
            hints[parameter.name], Field(description=argument_texts[parameter.name], json_schema_extra=extra)
        ]
        fields[parameter.name] = NotRequired[kind] if optional else kind
    strict = with_config(ConfigDict(strict=True, extra="forbid", allow_inf_nan=False))
    arguments = strict(TypedDict("Arguments", fields))  # type: ignore[operator]  # made from a signature
    try:
        adapter = TypeAdapter(arguments)
        shape = adapter.json_schema(schema_generator=_Untitled)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise ValueError(f"tool {name}: {error.message}; use types that JSON can express") from error
    ordered = {"type": "object", "properties": {}, "required": [], **{k: v for k, v in shape.items() if k != "title"}}
    made = {"name": name, "description": description, "parameters": ordered}
    return {"type": "function", "function": made}, adapter.validator  # type: ignore[return-value]


class _Untitled(GenerateJsonSchema):
    """Schemas without titles, which repeat the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _documented(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """A docstring in Google's style: the description, and parameter -> its line."""
    text = inspect.getdoc(function)
    if not text:
        raise ValueError(f"tool {function.__name__}: give it a docstring that tells a model what it does")
    head, _, rest = text.partition("Args:\n")
    texts: dict[str, str] = {}
    last = ""
    for line in rest.splitlines():
        if not line.startswith(" "):
            if line.strip():  # the next section
                break
        elif line.startswith("     ") and last:
            texts[last] += f" {line.strip()}"
        elif match := _ENTRY.match(line.strip()):
            last = match[1]
            texts[last] = match[2]
    return re.sub(r"\s+", " ", head).strip(), texts


def _explain(name: str, error: ValidationError, parameters: Mapping[str, Any]) -> str:
    """Errors of the arguments: the first three faults, in one line."""
    faults = []
    for fault in error.errors(include_url=False, include_input=False, include_context=False)[:3]:
        where = ".".join(f"{part!s:.80}" for part in fault["loc"])
        if fault["type"] == "missing":
            faults.append(f"{where!r} is missing")
        elif fault["type"] == "extra_forbidden":
            faults.append(f"there is no argument {where!r}, only {', '.join(parameters) or 'none'}")
        else:
            faults.append(f"{where!r}: {fault['msg']}" if where else fault["msg"])
    return f"{name}: {'; '.join(faults)}"
