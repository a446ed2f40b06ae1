"""Models that come as one quantised GGUF file, converted once to an ordinary Hugging Face folder."""

import hashlib
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

from manyturn.agents.model.model_config import ModelError
from manyturn.envs.contract.atomic_files import cache_of

_MAGIC = b"GGUF"
_LAYOUT = "1"  # part of the cache key: raise it when the conversion changes


def cache_folder() -> Path:
    """Folder of converted models: ``$MANYTURN_CACHE/gguf``, or ``~/.cache/manyturn/gguf``."""
    return cache_of("gguf")


def gguf_in(path: Path) -> str | None:
    """Name of the GGUF file that a path means: the path's own, or that of the only one in a folder without a model.

    Raises:
        ModelError: the folder has several.
    """
    if path.is_file():
        return path.name if path.suffix == ".gguf" else None
    names = sorted(file.name for file in path.glob("*.gguf")) if path.is_dir() else []
    if not names or any((path / file).is_file() for file in ("config.json", "adapter_config.json")):
        return None
    if len(names) > 1:
        raise ModelError(f"{path} holds several GGUF files: name one, such as {path / names[0]}")
    return names[0]


def converted(source: Path, gguf_file: str) -> Path:
    """The folder of a GGUF model as float32 safetensors with its tokenizer and chat template.

    Dequantising takes a minute, so the result is kept under the hash of the file's content and found again.

    Args:
        source: folder that holds the file, or the file itself.
        gguf_file: name of the file.

    Raises:
        ModelError: the file is missing or cannot be read, or the package ``gguf`` is not installed.
    """
    file = source if source.is_file() else source / gguf_file
    if file.name != Path(gguf_file).name or not file.is_file():
        names = sorted(path.name for path in source.glob("*.gguf")) if source.is_dir() else []
        raise ModelError(f"no GGUF file {gguf_file!r} at {source}; there is {', '.join(names) or 'none'}")
    with file.open("rb") as stream:
        if stream.read(len(_MAGIC)) != _MAGIC:
            raise ModelError(f"{file} is no GGUF file: download it again, or name another")
    folder = cache_folder() / _content_hash(file)
    if folder.is_dir():
        return folder
    if find_spec("gguf") is None:
        raise ModelError(f"reading {file.name} needs the package gguf: pip install 'manyturn[gguf]'")
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".converting-", dir=folder.parent))
    try:
        _convert(file, aside)
        try:
            aside.rename(folder)  # completely or not at all, even if interrupted
        except OSError:
            if not folder.is_dir():  # else another process was first, and its copy is as good
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return folder


def _content_hash(file: Path) -> str:
    with file.open("rb") as stream:
        content = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16))
    content.update(_LAYOUT.encode())
    return content.hexdigest()


def _convert(file: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name, trust_remote_code=False)
        loaded = AutoModelForCausalLM.from_pretrained(
            file.parent, gguf_file=file.name, dtype=torch.float32, trust_remote_code=False
        )
    except Exception as error:  # the readers raise any error that a damaged file leads them into
        raise ModelError(
            f"{file} cannot be read as a GGUF model, as if a part was missing: download it again, or name another "
            f"({type(error).__name__}: {error})"
        ) from error
    # The loaded model counts as quantised and refuses to be saved; its weights, put into a fresh model, do not.
    config = loaded.config
    if hasattr(config, "quantization_config"):
        delattr(config, "quantization_config")
    with torch.random.fork_rng(devices=[]):
        model = type(loaded)(config)
    model.load_state_dict(loaded.state_dict())
    model.generation_config = loaded.generation_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
