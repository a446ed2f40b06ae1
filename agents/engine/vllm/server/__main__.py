"""Starts a server of vLLM's that the engine ``vllm-server`` can use.

    python -m manyturn.agents.engine.vllm.server MODEL --port 8000

MODEL is the folder or id of the model that is going to learn; the engine puts its weights in place of those. A server
takes weights and orders from whoever reaches it, so it listens only to this machine. With another ``--host`` it wants
a token in MANYTURN_VLLM_TOKEN. With adapters it has to know their rank: ``--lora-rank 16``.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from manyturn.agents.engine.card.card_plan import plan_card
from manyturn.agents.engine.card.vllm_share import PASS_TOKENS, card_model
from manyturn.agents.engine.vllm.authentication import check_reach, token
from manyturn.agents.engine.vllm.process import room_for, settle
from manyturn.agents.engine.vllm.reply_request import PROCESSOR
from manyturn.agents.engine.vllm.versions import installed
from manyturn.agents.engine.vllm.worker import EXTENSION
from manyturn.envs.contract.options.options import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_GUARD = "manyturn.agents.engine.vllm.authentication.TokenGuard"
_ORDERS = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}


def words_for_vllm(
    folder: Path, options: argparse.Namespace, precision: str, utilization: float | None = None
) -> list[str]:
    """Command line of vLLM's own server.

    Args:
        utilization: of the GPU, as a share of its memory; None on a CPU.
    """
    adapters = ["--enable-lora", "--max-loras", "1", "--max-lora-rank", str(room_for(options.lora_rank or 1))]
    return [
        *("--model", str(folder), "--host", options.host, "--port", str(options.port), "--middleware", _GUARD),
        *("--max-model-len=-1", "--dtype", precision, "--max-num-seqs", str(options.max_batch)),
        *("--kv-cache-memory-bytes", str(int(options.kv_gib * 2**30))),
        *("--logprobs-mode", "processed_logprobs", "--generation-config", "vllm"),
        *("--worker-extension-cls", EXTENSION, "--logits-processors", PROCESSOR),
        *("--enable-prefix-caching", "--seed", "0"),
        *("--tokens-only", "--enable-prompt-tokens-details", "--disable-log-stats", "--disable-uvicorn-access-log"),
        *(adapters if options.lora_rank else []),
        *(
            ["--enforce-eager"]
            if utilization is None
            else ["--enable-sleep-mode", "--gpu-memory-utilization", f"{utilization:.4f}"]
        ),
        *([] if utilization is None else ["--max-num-batched-tokens", str(PASS_TOKENS)]),
    ]


def utilization_of(model: "PreTrainedModel", options: argparse.Namespace, precision: str) -> float:
    """The share of the GPU that a server takes. Raises ConfigError where a card has less."""
    import torch

    from manyturn.agents.engine.decoding.memory import device_bytes

    dtype, device = getattr(torch, precision), torch.device("cuda")
    share = card_model(model, dtype, options.max_batch)
    return plan_card(device_bytes(device), 0.0, share, 1, options.max_batch, options.kv_gib * 2**30).utilization


def serve(words: Sequence[str]) -> None:
    """Serve until a signal ends it. Raises ConfigError for what cannot be served."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--dtype", choices=("auto", "float32", "bfloat16"), default="auto")
    parser.add_argument("--kv-gib", type=float, default=1.0, help="memory for keys and values")
    parser.add_argument("--max-batch", type=int, default=256, help="replies that are computed together, at most")
    parser.add_argument("--lora-rank", type=int, default=0, help="of the adapters that will be learnt; 0: none")
    options = parser.parse_args(words)
    token()
    check_reach(options.host, f"a server on {options.host}")
    installed()
    import torch

    from manyturn.agents.engine.vllm.model_folder import ModelFolder
    from manyturn.agents.engine.vllm.options import VllmConfig
    from manyturn.agents.model.language_model import load_pretrained

    cuda = torch.cuda.is_available()
    precision = VllmConfig(dtype=options.dtype).precision(on_gpu=cuda)
    model = load_pretrained(options.model, torch.device("cpu")).model
    utilization = utilization_of(model, options, precision) if cuda else None
    # As the engine writes it, tensor by tensor, so that what arrives later has a place.
    folder = ModelFolder(model, getattr(torch, precision))
    settle()
    os.environ.update(_ORDERS)
    sys.argv[1:] = words_for_vllm(folder.path, options, precision, utilization)
    from vllm.entrypoints.launchers.api_server.entry import main  # pyright: ignore[reportMissingImports]

    try:
        main()
    finally:
        folder.remove()


if __name__ == "__main__":
    try:
        serve(sys.argv[1:])
    except ConfigError as error:
        sys.exit(f"manyturn: {error}")
