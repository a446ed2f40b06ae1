"""vLLM's own check at its start, with what is free on a card at each moment of a run."""

from types import SimpleNamespace

import pytest
from card_moments import H100, MOMENTS, SIZES, setting

from manyturn.envs.contract.options.options import ConfigError

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("vllm_package")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("rank", [0, 16], ids=["all weights", "adapters"])
@pytest.mark.parametrize("name", SIZES)
def test_vllm_takes_the_planned_share_of_the_card_or_the_plan_refuses(name, rank, moment):
    from vllm.utils.mem_utils import MemorySnapshot  # pyright: ignore[reportMissingImports]
    from vllm.v1.worker.utils import request_memory  # pyright: ignore[reportMissingImports]

    made = setting(name, rank)
    free = MemorySnapshot(free_memory=made.free(moment), total_memory=int(H100), device="cuda:0", auto_measure=False)
    try:
        plan = made.plan()
    except ConfigError:
        assert (name, rank) == ("qwen2.5-7b", 0)
        return
    taken = request_memory(free, SimpleNamespace(gpu_memory_utilization=plan.utilization))
    assert plan.awake <= taken <= made.free(moment)
    if not rank:
        with pytest.raises(ValueError, match="less than desired GPU memory utilization"):
            request_memory(free, SimpleNamespace(gpu_memory_utilization=0.92))
