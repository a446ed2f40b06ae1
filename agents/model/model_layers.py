"""Whether a model's weights hold as many layers as its configuration asks for."""

import json
from pathlib import Path

from safetensors import safe_open

from manyturn.agents.model.model_config import ModelError

_LAYERS = ("num_hidden_layers", "n_layer", "num_layers")


def check_layers(folder: Path) -> None:
    """Refuse a folder that asks for more layers than it has weights for.

    What is missing would be drawn at random without a word; and millions of layers would be built until memory ends.
    A folder without a configuration or weights of its own says nothing here.

    Raises:
        ModelError: layers are missing.
        OSError, ValueError: a file cannot be read.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files or not (folder / "config.json").is_file():
        return
    values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    text = values.get("text_config") or values
    asked = next((text[name] for name in _LAYERS if isinstance(text.get(name), int)), 0)
    # Layers are numbered in the names of tensors, and so are experts: more numbers than layers do no harm.
    held = 1 + max((int(part) for file in files for part in _numbers(file)), default=-1)
    if held and asked > held:
        raise ModelError(
            f"{folder}/config.json asks for {asked:,} layers, and its weights hold at most {held:,}: get it again"
        )


def _numbers(file: Path) -> list[str]:
    with safe_open(file, framework="numpy") as stored:
        return [part for name in stored.keys() for part in name.split(".") if part.isdecimal()]  # noqa: SIM118
