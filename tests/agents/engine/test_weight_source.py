"""What an engine copies must be what a checkpoint holds, under the same names."""

import copy

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file

from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.model.model_internals import without_peft_warning

pytestmark = pytest.mark.versions


@pytest.mark.parametrize("lora", [False, True], ids=["all weights", "adapters alone"])
def test_an_engine_gets_what_a_checkpoint_holds(tiny, tmp_path, lora):
    language = copy.copy(tiny())
    if lora:
        with without_peft_warning():
            language.model = get_peft_model(language.model, LoraConfig(r=2, target_modules="all-linear"))
    language.save(tmp_path)
    saved = load_file(next(tmp_path.glob("*.safetensors")))
    given = dict(ModuleWeights(language.model).tensors())
    assert given.keys() == saved.keys() and len(given) > 4
    assert all(torch.equal(given[name], tensor) for name, tensor in saved.items())
    assert not any(tensor.requires_grad for tensor in given.values())
