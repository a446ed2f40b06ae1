"""vLLM that does not start next to the learner, at some moment of a run, on a card that has room for both."""

import math
import re

import pytest
from card_moments import H100, MOMENTS, SIZES, setting

from manyturn.agents.engine.card.card_plan import CardPlan
from manyturn.agents.engine.vllm.options import VllmConfig
from manyturn.agents.engine.vllm.process import engine_args
from manyturn.envs.contract.options.options import ConfigError

TOO_LARGE = {("qwen2.5-7b", 0)}  # 16 bytes a weight are more than the card
VLLMS_OWN = 0.92  # utilization that vLLM takes if none is given


def vllm_starts(free: int, utilization: float) -> bool:
    """``request_memory`` of vLLM 0.32 by its documented formula; ``test_vllm_card.py`` calls the function itself."""
    return free >= math.ceil(int(H100) * utilization)


@pytest.mark.parametrize("rank", [0, 16], ids=["all weights", "adapters"])
@pytest.mark.parametrize("name", SIZES)
def test_vllm_starts_at_every_moment_or_the_plan_names_the_fix(name, rank):
    made = setting(name, rank)
    if (name, rank) in TOO_LARGE:
        with pytest.raises(ConfigError, match=r"set learner.lora_rank to 16"):
            made.plan()
        return
    plan = made.plan()
    assert all(vllm_starts(made.free(moment), plan.utilization) for moment in MOMENTS)
    assert plan.wake_bytes <= made.free("restart") - (plan.awake - plan.wake_bytes)
    assert plan.learning > 0 and plan.cache >= 2560 * plan.model.token
    if not rank:
        assert not vllm_starts(made.free("restart"), VLLMS_OWN), "without the plan it is refused"


def test_what_vllm_is_started_with_is_the_plan(tmp_path):
    plan = setting("qwen2.5-1.5b", 0).plan(max_batch=128)
    args = engine_args(tmp_path, VllmConfig(max_batch=128), "bfloat16", 0, plan)
    assert args["kv_cache_memory_bytes"] == int(plan.cache) == 128 * 2560 * 28_672, "room for every episode"
    assert plan.awake <= args["gpu_memory_utilization"] * plan.total <= plan.awake + 1e-4 * plan.total
    assert args["enable_sleep_mode"] and not args["enforce_eager"]
    on_cpu = engine_args(tmp_path, VllmConfig(), "float32", 0, None)
    assert "gpu_memory_utilization" not in on_cpu and on_cpu["kv_cache_memory_bytes"] == 2**30


def planned(**options: float) -> CardPlan:
    return setting("qwen2.5-3b", 0).plan(**options)


def test_a_cache_that_was_asked_for_fits_or_the_plan_says_how_much_does():
    with pytest.raises(ConfigError, match=r"engine.kv_gib = 60 .*: set it to at most") as refusal:
        planned(kv_gib=60)
    fits = re.search(r"at most ([\d.]+)", str(refusal.value))
    assert fits and planned(kv_gib=float(fits[1])).cache == float(fits[1]) * 2**30
    with pytest.raises(ConfigError, match=r"engine.kv_gib = 0.01 .*: set it to at least") as refusal:
        planned(kv_gib=0.01)
    fits = re.search(r"at least ([\d.]+)", str(refusal.value))
    assert fits and planned(kv_gib=float(fits[1]))
