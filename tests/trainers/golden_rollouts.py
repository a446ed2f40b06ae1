"""Rollouts against golden files."""

import numpy as np
from golden_frame import Case, close, golden

from manyturn.trainers.play.rollout.branching import branch_score, start_entropy


@golden("arpo_branching")
def check_branching(case: Case) -> None:
    """The file tells log-probabilities of the likeliest tokens, of which the authors' entropies are."""
    inputs, params, expected = case["inputs"], case["params"], case["expected"]

    def entropy(name: str) -> float:
        logprobs_TV = np.array(inputs[name])
        entropies_T = -(np.exp(logprobs_TV) * logprobs_TV).sum(1)
        return start_entropy(entropies_T, params["vocab_size"], params["max_tokens"])

    now, first = entropy("top_logprobs_after_tool"), entropy("top_logprobs_initial")
    close(case, [now, first], [expected["entropy_now"], expected["entropy_initial"]])
    scores = [branch_score(u, now, first, params["entropy_weight"]) for u in inputs["uniform_draws"]]
    close(case, scores, [decision["score"] for decision in expected["decisions"]])
    branched = [score <= params["branch_probability"] for score in scores]
    assert branched == [decision["branch"] for decision in expected["decisions"]]
