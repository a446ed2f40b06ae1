"""Embeddings of a Hugging Face model in this process: the mean of the last layer's hidden states over the tokens."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from manyturn.agents.experience.retrieval.vectors import Embedded
from manyturn.agents.tokens.usage import Usage
from manyturn.envs.contract.options.options import ConfigError

_FIX = "give a folder with config.json, *.safetensors and a tokenizer as --retrieval.model, or openai:MODEL"
_LONGEST = 8192  # tokens, where the model sets no limit


class ModelEmbeddings:
    """Vectors of a model in a folder, which is loaded with the first text.

    Texts are read one by one on the CPU, so that a vector does not depend on the texts next to it.

    Args:
        word: the folder; a decoder or an encoder.

    Attributes:
        name: of the folder, with a hash of what is in it.

    Raises:
        ConfigError: it holds no model.
    """

    batch = 16

    def __init__(self, word: str):
        folder = Path(word)
        weights = sorted(folder.glob("*.safetensors"))
        if not (folder / "config.json").is_file() or not weights:
            raise ConfigError(f"{word} holds no model: {_FIX}")
        state = hashlib.sha256()
        for path in (folder / "config.json", *sorted(folder.glob("tokenizer*")), *weights):
            with path.open("rb") as file:
                state.update(hashlib.file_digest(file, "sha256").digest())
        self._folder, self.name = folder, f"{folder.resolve().name}, weights {state.hexdigest()[:16]}"
        self._model: Any = None
        self._tokenizer: Any = None

    async def embed(self, texts: Sequence[str]) -> Embedded:
        if self._model is None:
            self._load()
        vectors, tokens = list[list[float]](), 0
        for text in texts:
            vector, count = self._mean(text)
            vectors.append(vector)
            tokens += count
        return Embedded(vectors, Usage(tokens, 0))

    def _load(self) -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer

        safe: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(self._folder, **safe)
            model = AutoModel.from_pretrained(self._folder, dtype=torch.float32, use_safetensors=True, **safe)
        except Exception as error:  # whatever the libraries make of files that are broken or hostile
            raise ConfigError(f"{self._folder} cannot be read ({type(error).__name__}: {error}): {_FIX}") from error
        self._model = model.eval()

    def _mean(self, text: str) -> tuple[list[float], int]:
        """The vector of a text, and the tokens that were read."""
        import torch

        limits = (getattr(self._model.config, "max_position_embeddings", None), self._tokenizer.model_max_length)
        longest = min(_LONGEST, *(limit for limit in limits if limit))
        read = self._tokenizer(text, truncation=True, max_length=longest, return_tensors="pt")
        with torch.inference_mode():
            try:
                hidden = self._model(**read).last_hidden_state[0]
            except (TypeError, ValueError, AttributeError) as error:
                raise ConfigError(f"{self._folder} gives no hidden states of a text ({error}): {_FIX}") from error
        return hidden.double().mean(0).tolist(), int(read["input_ids"].numel())
