"""Modulations against golden files."""

from dataclasses import replace

import numpy as np
from golden_advantages import on_tokens, turns
from golden_frame import Case, close, golden

from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.modulations.agentopsd import AgentopsdConfig, agentopsd
from manyturn.trainers.credit.modulations.empg import EmpgConfig, empg
from manyturn.trainers.credit.modulations.high_entropy_tokens import HighEntropyTokensConfig, high_entropy_tokens


@golden("agentopsd")
def check_agentopsd(case: Case) -> None:
    inputs, places = case["inputs"], iter(range(len(case["inputs"]["ratios"])))
    rows = [[next(places) for _ in range(length)] for length in inputs["lengths"]]
    batch = TurnBatch.from_episodes(
        [[0.0] * (len(row) - 1) + [outcome] for row, outcome in zip(rows, inputs["outcomes"], strict=True)],
        inputs["groups"],
        tokens=[[inputs["tokens"][place] for place in row] for row in rows],
        token_columns={"teacher": [[inputs["ratios"][place] for place in row] for row in rows]},
    )
    weighed_K = agentopsd(batch, np.array(inputs["advantages"]), AgentopsdConfig(**case["params"]))
    close(case, weighed_K, case["expected"]["weighed"])


@golden("empg_thirdparty")
def check_empg(case: Case) -> None:
    inputs, params = case["inputs"], case["params"]
    mask_KL = np.array(inputs["response_mask"], bool)
    batch = turns({**inputs, "group_index": inputs["traj_index"]}, np.zeros(len(mask_KL)), inputs["traj_index"])
    assert batch.turn_K.tolist() == inputs["turn_index"]
    batch = replace(batch, token_columns={"entropy": np.array(inputs["entropy"])[mask_KL]})
    config = EmpgConfig(k=params["k"], k_f=params["k_f"], zeta=params["zeta"])
    advantage_K = empg(batch, np.array(inputs["advantages"])[:, 0], config)
    close(case, on_tokens(case, advantage_K), case["expected"]["advantages"])


@golden("high_entropy_tokens")
def check_high_entropy_tokens(case: Case) -> None:
    inputs, mask_BL = case["inputs"], np.array(case["inputs"]["response_mask"], bool)
    batch = turns(inputs, np.zeros(len(mask_BL)))
    batch = replace(batch, token_columns={"entropy": np.array(inputs["entropy"])[mask_BL]})
    given_T = np.array(inputs["advantages"])[batch.turn_of_T]
    chosen_T = high_entropy_tokens(batch, given_T, HighEntropyTokensConfig(**case["params"]))
    assert ((chosen_T != 0) == np.array(case["expected"]["mask"], bool)[mask_BL]).all()
    close(case, chosen_T.mean(), case["expected"]["token_mean"])
