"""Curricula against golden files."""

import numpy as np
from golden_frame import Case, close, golden

from manyturn.trainers.credit.batch.turn_batch import ids_of
from manyturn.trainers.play.rollout.dynamic_sampling import with_spread
from manyturn.trainers.play.tasks.curricula.dump import DumpConfig, scores, taught
from manyturn.trainers.play.tasks.curriculum_input import TaskFeedback
from manyturn.trainers.play.tasks.task_draws import softmax


@golden("dump_curriculum")
def check_dump(case: Case) -> None:
    """A sample of the file is an episode of a task of its own here."""
    params = case["params"]
    config, memory = DumpConfig(temperature=params["temperature"], window=params["window_size"]), {}
    updates = zip(case["inputs"]["updates"], case["expected"]["weights_after_each_update"], strict=True)
    for update, expected in updates:
        samples = [(source, a) for source, told in update.items() for a in told["advantages"]]
        found = [TaskFeedback(n, source, 0.0, 0.0, abs(a), True, 1) for n, (source, a) in enumerate(samples)]
        memory = taught(memory, found, config)
        labels = sorted(expected)
        close(case, softmax(scores(labels, memory, config)), [expected[label] for label in labels])


@golden("dynamic_sampling_filter")
def check_dynamic_sampling(case: Case) -> None:
    inputs = case["inputs"]
    group_E = ids_of(inputs["group_index"])
    assert (np.bincount(group_E) == case["params"]["group_size"]).all()
    kept_E = with_spread(np.array(inputs["episode_rewards"]), group_E)
    assert np.flatnonzero(kept_E).tolist() == case["expected"]["kept_rows"]
