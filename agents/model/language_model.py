"""Models: a tiny decoder whose vocabulary is an environment's words, or any Hugging Face causal model."""

import json
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from huggingface_hub import try_to_load_from_cache
from huggingface_hub.errors import HFValidationError
from peft import PeftModel, set_peft_model_state_dict
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from manyturn.agents.model.gguf_conversion import converted, gguf_in
from manyturn.agents.model.model_config import ModelError
from manyturn.agents.model.model_internals import move, on_host, output_head, without_peft_warning
from manyturn.agents.text.chat_template import ChatTemplate

# Words, single digits and runs of signs, each with the space before it, and what is left of white space.
_PIECES = r" ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_TEMPLATE_SECONDS = 10.0  # for a template that takes milliseconds
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers")
END, USER, AGENT, SYSTEM = "<|end|>", "<|user|>", "<|agent|>", "<|system|>"
_TINY_TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'assistant' %}{{ m['content'] + '" + END + "' }}"
    "{% elif m['role'] == 'system' %}{{ '" + SYSTEM + "' + m['content'] }}"
    "{% else %}{{ '" + USER + "' + m['content'] + '" + AGENT + "' }}{% endif %}{% endfor %}"
)


@dataclass
class LanguageModel:
    """A model with what is needed to talk to it."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    template: ChatTemplate

    def save(self, folder: Path) -> None:
        """Write weights (safetensors), configuration and tokenizer; of a model with adapters only the adapters."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def held(self) -> Callable[[Path], None]:
        """As ``save``, for a thread of its own: writes the weights as they are now, even if they change later.

        They are copied to the host's memory, and so are the tokenizer's files, which no other thread may be using then.
        """
        weights, adapters = self.model.state_dict(), isinstance(self.model, PeftModel)
        copied = on_host({name: value for name, value in weights.items() if not adapters or "lora_" in name})
        with tempfile.TemporaryDirectory() as folder:
            self.tokenizer.save_pretrained(folder)
            files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}

        def write(folder: Path) -> None:
            self.model.save_pretrained(folder, state_dict=copied)
            for name, content in files.items():
                (folder / name).write_bytes(content)

        return write

    def load_weights(self, folder: Path) -> None:
        """Put the weights of a folder written by ``save`` into this model."""
        tensors = {name: t for file in sorted(folder.glob("*.safetensors")) for name, t in load_file(file).items()}
        if not tensors:
            raise ModelError(f"{folder} holds no weights (*.safetensors)")
        if isinstance(self.model, PeftModel):
            set_peft_model_state_dict(self.model, tensors)
            return
        mismatch = self.model.load_state_dict(tensors, strict=False)
        tied = set(self.model.all_tied_weights_keys)
        if mismatch.unexpected_keys or set(mismatch.missing_keys) - tied:
            names = [*mismatch.unexpected_keys, *mismatch.missing_keys][:4]
            raise ModelError(f"the weights in {folder} belong to another model: {names}")
        self.model.tie_weights()


def _splitter(*, digits: bool) -> pre_tokenizers.PreTokenizer:
    if not digits:
        return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    pieces = pre_tokenizers.Split(Regex(_PIECES), "isolated")
    return pre_tokenizers.Sequence([pieces, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def words_of(texts: Iterable[str], *, digits: bool = False) -> list[str]:
    """The distinct pieces that texts consist of, a word carrying the space before it; sorted.

    Args:
        digits: whether each digit is a piece, with the space before it too; all ten are there.
    """
    splitter = _splitter(digits=digits)
    spelt = {*texts, *(f" {digit}" for digit in range(10))} if digits else set(texts)
    return sorted({piece for text in spelt for piece, _ in splitter.pre_tokenize_str(text)})


def tiny_tokenizer(texts: Iterable[str], *, digits: bool = False) -> PreTrainedTokenizerBase:
    """A tokenizer with one token for each word of the texts; any other text falls back to bytes, so nothing is lost.

    Decoding is the exact inverse of encoding.

    Args:
        digits: whether each digit is a token of its own.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = [END, USER, AGENT, SYSTEM]
    pieces = [*special, *alphabet, *(w for w in words_of(texts, digits=digits) if w not in set(alphabet))]
    core = Tokenizer(models.BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=[], ignore_merges=True))
    core.pre_tokenizer = _splitter(digits=digits)
    core.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token=END,
        pad_token=END,
        additional_special_tokens=[USER, AGENT, SYSTEM],
        chat_template=_TINY_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def build_tiny(
    texts: Iterable[str],
    seed: int,
    max_context: int,
    device: torch.device,
    *,
    width: int = 64,
    layers: int = 2,
    heads: int = 4,
    digits: bool = False,
    equal_keys: bool = False,
) -> LanguageModel:
    """A tiny decoder with random weights that depend only on the seed.

    Args:
        texts: observations and commands of the environment, from training tasks.
        max_context: longest sequence in tokens.
        width: hidden size D.
        layers: decoder layers.
        heads: attention heads.
        digits: whether each digit of a number is a token of its own.
        equal_keys: begin with keys equal to queries, so that a word attends to earlier ones of the same name:
            mimetic initialisation (arXiv:2305.09828, section 4) of queries and keys.

    Raises:
        ModelError: the heads do not divide the width.
    """
    if width % heads:
        raise ModelError(f"model.heads = {heads} must divide model.width = {width}")
    tokenizer = tiny_tokenizer(texts, digits=digits)
    template = ChatTemplate(tokenizer)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=len(tokenizer),
                hidden_size=width,
                intermediate_size=4 * width,
                num_hidden_layers=layers,
                num_attention_heads=heads,
                num_key_value_heads=heads,
                max_position_embeddings=max_context,
                tie_word_embeddings=True,
                # The library's 0.02 is meant for widths in the thousands; at 64 it costs three quarters of the warm-up.
                initializer_range=width**-0.5,
                bos_token_id=None,
                eos_token_id=template.end_id,
                pad_token_id=None,
            )
        )
    if equal_keys:
        weights = dict(model.named_parameters())
        for name in (name for name in weights if name.endswith("k_proj.weight")):
            weights[name].data.copy_(weights[name.replace("k_proj", "q_proj")].data)
    move(model, device)
    return LanguageModel(model, tokenizer, template)


def load_pretrained(
    path: str, device: torch.device, *, trainable: bool = False, dtype: str = "auto", gguf_file: str | None = None
) -> LanguageModel:
    """A Hugging Face model by id, folder or GGUF file; code from the hub is never run.

    Args:
        trainable: whether small updates must add up in the weights, for which auto means float32.
        dtype: float32, bfloat16, or auto: bfloat16 on a GPU unless ``trainable``, else float32.
        gguf_file: name of a GGUF file in the folder, needed where there are several.

    Raises:
        ModelError: there is no such model, it cannot be read, or it is not supported.
    """
    if gguf_file := gguf_file or gguf_in(Path(path)):
        path = str(converted(Path(path), gguf_file))
    check_place(path)
    if dtype == "auto":
        dtype = "bfloat16" if device.type == "cuda" and not trainable else "float32"
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=False)
        model = _weights(path, getattr(torch, dtype))
    except (OSError, HFValidationError, SafetensorError) as error:
        offline = " (HF_HUB_OFFLINE is set)" if os.environ.get("HF_HUB_OFFLINE") else ""
        raise ModelError(
            f"cannot load {path}{offline}: give a local folder, or an id that the hub or its cache has; {error}"
        ) from error
    except ModelError:
        raise
    except Exception as error:  # whatever the libraries make of files that are broken or hostile
        raise ModelError(
            f"{path} cannot be read as a model ({type(error).__name__}): get it again, or give another folder"
        ) from error
    move(model, device)
    check_supported(model)
    template = ChatTemplate(tokenizer)
    _check_template(path, template)
    return LanguageModel(model, tokenizer, template)


def _check_template(path: str, template: ChatTemplate) -> None:
    """Render a template once: it is a program that came with the model, and may loop for ever or ask for all memory.

    Only the main thread can be called back; elsewhere there is no limit.
    """
    alarmed = threading.current_thread() is threading.main_thread()

    def late(number: int, frame: object) -> None:
        raise ModelError(f"the chat template of {path} takes over {_TEMPLATE_SECONDS:g} s for two lines: give another")

    before, timer = signal.signal(signal.SIGALRM, late) if alarmed else None, (0.0, 0.0)
    try:
        if alarmed:
            # Again and again: what looks for abilities of a template takes any error for an answer.
            timer = signal.setitimer(signal.ITIMER_REAL, _TEMPLATE_SECONDS, 0.1)
        template.end_ids  # noqa: B018  # rendered when it is first asked for
    except MemoryError as error:
        raise ModelError(f"the chat template of {path} asks for more memory than there is: give another") from error
    finally:
        if alarmed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)
            signal.setitimer(signal.ITIMER_REAL, *timer)  # an alarm of the caller goes on


def _weights(path: str, dtype: torch.dtype) -> PreTrainedModel:
    """A model's weights; a folder with adapters gets them on top of the model that it names."""
    check_layers(Path(path))
    adapters = Path(path) / "adapter_config.json"
    if not adapters.is_file():
        return AutoModelForCausalLM.from_pretrained(path, dtype=dtype, trust_remote_code=False, use_safetensors=True)
    if not adapters.with_name("adapter_model.safetensors").is_file():
        raise ModelError(f"{path} has no adapter_model.safetensors: save the adapters so, for pickles are not read")
    base = _base_of(adapters)
    check_layers(Path(base))
    # A file's word fetches nothing: a base on a hub has to be in its cache.
    model = AutoModelForCausalLM.from_pretrained(
        base, dtype=dtype, trust_remote_code=False, use_safetensors=True, local_files_only=True
    )
    with without_peft_warning():
        return PeftModel.from_pretrained(model, path).merge_and_unload()


def _base_of(adapters: Path) -> str:
    """Model that adapters name: a folder with weights of its own, or an id that the hub's cache has.

    Raises ModelError for all else, since a file must not decide what is fetched.
    """
    base = str(json.loads(adapters.read_text(encoding="utf-8"))["base_model_name_or_path"])
    folder = Path(base)
    if folder.exists():
        if (folder / "config.json").is_file() and not (folder / "adapter_config.json").exists():
            return base
        raise ModelError(f"{adapters} names the base model {base}, which is no folder of a model: correct it there")
    if _is_cached(base):
        return base
    raise ModelError(
        f"{adapters} names the base model {base}, which is not here: if you trust it, fetch it (hf download {base})"
    )


@torch.inference_mode()
def check_supported(model: PreTrainedModel) -> None:
    """Refuse models that engine and learner would compute wrongly.

    Both apply the output head to chosen positions themselves, and keys and values are kept for every position.
    """
    name, config = type(model).__name__, model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ())
    if getattr(config, "sliding_window", None) and not kinds:
        kinds = {"sliding_attention"}
    if kinds - {"full_attention"}:
        raise ModelError(f"{name} has layers of {', '.join(sorted(kinds))}; only full attention is supported yet")
    ids = torch.arange(1, 5, device=model.device)[None]
    theirs = model(input_ids=ids, use_cache=False).logits[0, -1].float()
    head = output_head(model)
    ours = head(model.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state[0, -1]).float()
    if not torch.allclose(theirs, ours, rtol=1e-2, atol=1e-2):
        raise ModelError(f"{name} scales or caps its logits after the output head, which is not supported yet")


def is_model_folder(path: Path) -> bool:
    """True if a folder holds a model, or adapters for one."""
    return (path / "config.json").is_file() or (path / "adapter_config.json").is_file()


def check_place(path: str) -> None:
    """Raise ModelError for a path without a model, and for a word that is no id, which no hub has to be asked about."""
    local = Path(path)
    if local.exists() and not is_model_folder(local):
        raise ModelError(
            f"{path} holds no model (config.json or one *.gguf): give the folder of a model or a checkpoint's model "
            "folder"
        )
    if not local.exists() and (path.count("/") != 1 or path.endswith(".gguf")) and not _is_cached(path):
        raise ModelError(f"there is no {path}: give a model's folder, a GGUF file, or an id of the hub, OWNER/NAME")


def _is_cached(word: str) -> bool:
    try:
        return isinstance(try_to_load_from_cache(word, "config.json"), str)
    except HFValidationError:
        return False


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
    configured = next((text[name] for name in _LAYERS if isinstance(text.get(name), int)), 0)
    # Layers are numbered in the names of tensors, and so are experts: more numbers than layers do no harm.
    held = 1 + max((int(part) for file in files for part in _numbers(file)), default=-1)
    if held and configured > held:
        raise ModelError(
            f"{folder}/config.json asks for {configured:,} layers, and its weights hold at most {held:,}: get it again"
        )


def _numbers(file: Path) -> list[str]:
    with safe_open(file, framework="numpy") as stored:
        return [part for name in stored.keys() for part in name.split(".") if part.isdecimal()]  # noqa: SIM118
