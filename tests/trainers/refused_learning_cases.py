"""Options of learning that do not go together: (entries, a pattern of what is said, the change that works)."""

from typing import Any

SPA = {"name": "spa", "completeness": "residual_to_last"}
OUTCOME_GATE = {"name": "gated", "gates": [{"threshold": 0.5}]}
CONTRIBUTION_GATE = {"name": "gated", "gates": [{"part": "contribution", "threshold": 0.5}]}
PAIRS = {
    "credit.advantage": "step_dpo",
    "objective": {"name": "reinforce", "aggregation": "token-sum", "reference": True},
    "learner.minibatch": 128,
}

REFUSED_OF_LEARNING: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    (
        {"credit.rewards": {"part": "judge"}},
        'these are stages, each with its options: write --credit.rewards \'.*part = "judge"',
        {"credit.rewards": ["invalid_penalty"]},
    ),
    (
        {"credit.rewards": ["igpo"], "agent.only_admissible": True},
        "asks how likely the true answer is as a reply, which need not be an admissible command: leave",
        {"agent.only_admissible": False},
    ),
    (
        {
            "credit": {"advantage": "gae", "rewards": ["spa"]},
            "value": {"pretraining": {}},
            "progress": {"body": "own"},
        },
        "value.pretraining learns what an estimator pays, .* leave value.pretraining out",
        {"progress": {"body": "policy"}},
    ),
    (
        {"credit.advantage": "gae", "value": {"pretraining": {"episodes": 4}}},
        r"value\.pretraining\.episodes = 4 are less than a group of 8: give 8 or more",
        {"value": {"pretraining": {"episodes": 8}}},
    ),
    (
        {"credit.advantage": "istar"},
        r"istar needs the column 'implicit', which a second policy gives: add a section \[implicit\]",
        {"implicit": {}},
    ),
    (
        {"credit.advantage": "grpo", "implicit": {}},
        r"\[implicit\] has no effect: no stage of credit needs what it gives; leave it out",
        {"implicit": None},
    ),
    (
        {"credit.modulation": ["high_entropy_tokens", "empg"]},
        "high_entropy_tokens weighs tokens, and empg after it turns: put high_entropy_tokens last",
        {"credit.modulation": ["empg", "high_entropy_tokens"]},
    ),
    (
        {"credit.modulation": ["high_entropy_tokens"], "objective": {"name": "gmpo"}},
        "high_entropy_tokens weighs tokens, which gmpo averages away over a reply: leave it out, or take another",
        {"objective": {"name": "clip"}},
    ),
    (
        {"credit.rewards": ["calibration"], "agent.only_admissible": True},
        "calibration needs the column 'confidence', which reads <confidence> in replies, which with .*: leave",
        {"agent.only_admissible": False},
    ),
    (
        {"credit.advantage": "grpo", "credit.rewards": ["opsd"]},
        "grpo compares full returns, where opsd pays turns: take .*, or the modulation agentopsd",
        {"credit.advantage": "gigpo"},
    ),
    (
        {"credit.modulation": ["agentopsd"], "roles": {"a": "one", "b": "other"}},
        "asks a teacher of one policy in one role, and here there are several: leave that stage out",
        {"roles": {}},
    ),
    (
        {"credit.modulation": ["agentopsd"], "rollout": {"group": 4, "branching": {"initial": 2}}},
        "asks a teacher about what the policy draws, and rollout.branching .*: leave one of them out",
        {"rollout": {"group": 4, "branching": None}},
    ),
    (
        {"credit.advantage": "gae", "value": {}, "credit.modulation": ["empg"]},
        "empg weighs turns, but gae gives credit to tokens: take an advantage of turns .*, turn_gae.* out",
        {"credit.advantage": "turn_gae"},
    ),
    (
        {"credit.modulation": ["empg", "entropy_weight"]},
        "empg and entropy_weight both weigh turns by their entropy",
        {"credit.modulation": ["empg"]},
    ),
    (
        {"credit.rewards": [SPA, OUTCOME_GATE], "progress": {}},
        "gated names the part 'outcome', which spa has paid out before it and left at 0: put it before spa, "
        r"or name a part that spa adds \(contribution, grounding\)",
        {"credit.rewards": [OUTCOME_GATE, SPA]},
    ),
    (
        {"credit.advantage": "arbitrary_entropy"},
        "arbitrary_entropy needs the column 'tempered', which says .* without rollout.tempering none is: set it",
        {"rollout.tempering": {"target": 0.5}},
    ),
    (
        {"credit.advantage": "arbitrary_entropy", "rollout.tempering": {"target": 0.5, "members": 7}},
        r"rollout\.tempering\.members = 7 leaves fewer than two of rollout\.group = 8 to compare",
        {"rollout.tempering": {"target": 0.5, "members": 6}},
    ),
    (
        {"credit.advantage": "arbitrary_entropy", "rollout.tempering": {"target": 0.5, "low": 1.0}},
        r"are to lie below and above sampling\.temperature = 1: move them",
        {"rollout.tempering": {"target": 0.5, "low": 0.9}},
    ),
    (
        {
            "credit.advantage": "arbitrary_entropy",
            "rollout": {"tempering": {"target": 0.5}, "branching": {"initial": 2}},
        },
        r"rollout\.tempering and rollout\.branching do not go together: leave one of them out",
        {"rollout": {"tempering": {"target": 0.5}}},
    ),
    (
        {
            "credit.advantage": "arbitrary_entropy",
            "rollout.tempering": {"target": 0.5},
            "learner.old_logprobs": "engine",
        },
        r"learner\.old_logprobs = 'engine' would take those for the policy's: set it to 'learner'",
        {"learner.old_logprobs": "learner"},
    ),
    (
        {"credit.advantage": "forks"},
        "forks needs the column 'drawer', which says .* without rollout.branching nothing branches: set it",
        {"rollout.branching": {"initial": 2}},
    ),
    (
        {"credit.advantage": "pav"},
        "pav needs the column 'drawer', which says .* without rollout.branching nothing branches: set it",
        {"rollout.branching": {"initial": 2}},
    ),
    (
        {"credit.rewards": [SPA], "credit.advantage": "graphgpo", "progress": {}},
        "graphgpo reads the part 'outcome', which spa has paid out and left at 0: leave spa out, or take an advantage",
        {"credit.advantage": "gigpo"},
    ),
    (
        {"credit.rewards": [SPA, {"name": "part_weights", "weights": {"outcome": 2.0}}], "progress": {}},
        "part_weights names the part 'outcome', which spa has paid out",
        {"credit.rewards": [{"name": "part_weights", "weights": {"outcome": 2.0}}, SPA]},
    ),
    (
        {"credit.rewards": [CONTRIBUTION_GATE, SPA], "progress": {}},
        "gated names the part 'contribution', which spa adds: put it after that stage",
        {"credit.rewards": [SPA, CONTRIBUTION_GATE]},
    ),
    (
        {"credit.advantage": "gae"},
        r"gae needs the column 'value', which a critic predicts: add a section \[value\]",
        {"value": {}},
    ),
    (
        {"credit.rewards": ["spa"]},
        r"spa needs the column 'contribution', which an estimator predicts: add a section \[progress\]",
        {"progress": {}},
    ),
    (
        {"credit.advantage": {"name": "gae", "bootstrap": True}, "credit.truncated": "left_out", "value": {}},
        r"gae\.bootstrap says how truncated episodes go on, and .* leave one of the two out",
        {"credit.truncated": "as_ended"},
    ),
    ({"value": {}}, r"\[value\] has no effect: .*; leave it out", {"credit.advantage": "gae"}),
    (
        {"learner.offload_optimizer": True, "device": "cpu"},
        r"learner\.offload_optimizer has no effect on a CPU, .*: leave it out, or set device = 'cuda'",
        {"learner.offload_optimizer": False},
    ),
    (
        {"learner.packing": "padding", "agent": {"only_admissible": True, "choices": "command"}},
        r"learner\.packing = 'padding' has no place for the commands .*: leave one of them out",
        {"agent": {"only_admissible": True}},
    ),
    (
        {"learner.compile": True},
        r"would compile each layout of learner\.packing = 'auto' again: set learner\.packing = 'padding', or leave",
        {"learner.packing": "padding"},
    ),
    (
        {"learner.compile": True, "learner.packing": "padding", "learner.gradient_checkpointing": True},
        r"learner\.compile does not go together with learner\.gradient_checkpointing: leave one of them out",
        {"learner.gradient_checkpointing": False},
    ),
    (
        {"learner.lora_rank": 4, "learner.lora_layers": [0, 1], "learner.states_gb": 2.0},
        r"learner\.states_gb has no effect: layer 0 learns, and there is nothing below it; leave it out",
        {"learner.lora_layers": [1, 2]},
    ),
    (
        {"learner.lr_warmup": 60},
        r"learner\.lr_warmup = 60 steps are not over in 60, .* lower it, such as to 0\.1",
        {"learner.lr_warmup": 0.1},
    ),
    (
        {"learner.stop_kl": 1.0, "learner.minibatch": 128},
        r"learner\.stop_kl has no effect: a step makes one update, .* lower learner\.minibatch = 128",
        {"learner.minibatch": 64},
    ),
    (
        {"objective": {"name": "clip", "epo": {"horizon": 61}}},
        r"objective\.epo\.horizon = 61 is a schedule of 61 steps, of which a run of 60 sees the start alone: leave it",
        {"objective": {"name": "clip", "epo": {}}},
    ),
    (
        {"columns": ["drift", "drift"]},
        "columns names drift twice: put its options into one entry",
        {"columns": []},
    ),
    (
        {"loggers": ["csv", "csv"]},
        r"loggers names csv twice, and both would write metrics\.csv: leave one out",
        {"loggers": ["csv"]},
    ),
    (
        {"loggers": ["wandb", "wandb"]},
        "loggers names wandb twice, and the run would be there twice: leave one out",
        {"loggers": ["wandb"]},
    ),
    (
        {"columns": [{"name": "drift"}]},
        "columns holds options of drift, which no stage of credit needs: leave them out",
        {"columns": []},
    ),
    (
        {"credit.advantage": {"name": "stratified", "stratum": "reward"}},
        r"stratified needs the column 'reward', which objective\.kl charges: set objective\.kl\.place",
        {"objective": {"name": "clip", "kl": {"coef": 0.1, "place": "reward"}}},
    ),
    (
        {"credit.advantage": {"name": "stratified", "stratum": "calls"}},
        "stratified needs the unknown column 'calls'.* There are action, belief, .*tool_calls, value",
        {"credit.advantage": {"name": "stratified", "stratum": "progress"}},
    ),
    (
        {"objective": {"name": "clip", "kl": {"coef": 0.1, "place": "reward"}}},
        "place = 'reward' has no effect with gigpo",
        {"credit.advantage": "reinforce_pp"},
    ),
    (
        {"credit.advantage": "reinforce_pp", "objective": {"name": "gmpo"}},
        "reinforce_pp gives credit to tokens, which gmpo averages away over a reply: take .* of turns .*gigpo",
        {"objective": {"name": "gspo"}},
    ),
    (
        {"credit.advantage": {"name": "spo", "forgetting": "steady"}, "rollout": {"group": 1, "rounds": 3}},
        "rollout.rounds = 3 plays groups again .* raise rollout.group, or leave rounds out",
        {"rollout": {"group": 2, "rounds": 3}},
    ),
    (
        {"objective": {"name": "clip", "correction": {}}, "learner.old_logprobs": "engine"},
        "objective.correction compares the engine with the learner, .* set it to 'learner'",
        {"learner.old_logprobs": "learner"},
    ),
    (
        {"objective": {"name": "clip", "reject": [{"upper": 0.1}]}, "learner.old_logprobs": "engine"},
        "objective.reject compares the engine with the learner",
        {"objective": {"name": "clip"}},
    ),
    (
        {"objective": {"name": "clip", "reject": [{"upper": 0.1}, {"upper": 0.2}]}},
        "objective.reject has two rules of k3 over token, of which the narrower counts alone: keep that one",
        {"objective": {"name": "clip", "reject": [{"upper": 0.1}, {"upper": 0.2, "over": "max"}]}},
    ),
    (
        {"credit.advantage": "turn_dpo", "objective": {"reference": True}},
        "turn_dpo learns from pairs, with weights of the policy before .* only update, and clip is made for",
        PAIRS,
    ),
    (
        {**PAIRS, "objective.reference": False},
        r"step_dpo needs the column 'reference', .*: set objective\.reference = true",
        {"objective.reference": True},
    ),
    (
        {**PAIRS, "objective.aggregation": "token-mean"},
        "weighs what step_dpo has divided by the number of pairs already: set it to 'token-sum'",
        {"objective.aggregation": "token-sum"},
    ),
    (
        {**PAIRS, "objective.correction": {}},
        r"objective\.correction weighs the two of a pair apart, .*: leave it out",
        {"objective.correction": None},
    ),
    (
        {**PAIRS, "objective.reject": [{"upper": 2.0}]},
        r"objective\.reject weighs the two of a pair apart, .*: leave it out",
        {"objective.reject": []},
    ),
    (
        {**PAIRS, "credit.modulation": ["empg"]},
        "empg weighs the two of a pair apart, and step_dpo compares them: leave it out",
        {"credit.modulation": []},
    ),
    (
        {**PAIRS, "credit.truncated": "left_out"},
        r"credit\.truncated = 'left_out' would tear pairs of step_dpo apart: leave it out",
        {"credit.truncated": "as_ended"},
    ),
    (
        {**PAIRS, "learner.epochs": 2},
        "learns from samples of an older policy, for which reinforce has no ratio: set it to 1",
        {"learner.epochs": 1},
    ),
    (
        {"credit.advantage": "step_dpo", "objective": {"reference": True}, "order.kind": "asynchronous"},
        "learns from episodes of earlier weights, and step_dpo prefers among .*: leave order.kind out",
        {**PAIRS, "order.kind": "synchronous"},
    ),
    (
        {**PAIRS, "order.kind": "asynchronous"},
        "reinforce has no ratio for what earlier weights drew, from which order.kind = 'asynchronous' learns",
        {"order.kind": "synchronous"},
    ),
    (
        {"objective": {"reference": True}},
        r"objective\.reference has no effect: no stage of credit compares with the reference policy; leave it out",
        {"objective": {}},
    ),
    (
        {"objective": {"name": "reinforce"}, "learner.epochs": 2},
        "learner.epochs = 2 learns from samples of an older policy, .* set it to 1, or take an objective .*clip",
        {"objective": {"name": "clip"}},
    ),
    (
        {"objective": {"name": "reinforce"}, "learner.minibatch": 127},
        "learner.minibatch = 127 makes several updates of 128 episodes, .* no ratio: set it to 128",
        {"learner.minibatch": 128},
    ),
    (
        {"credit.advantage": "grpo", "credit.rewards": [SPA], "progress": {}},
        "grpo compares full returns, where spa pays turns, .*: take .*turn_gae",
        {"credit.advantage": "mt_grpo"},
    ),
    (
        {"model": {"name": "pretrained", "path": "x", "dtype": "bfloat16"}, "learner": {"lora_rank": 0}},
        "model.dtype = 'bfloat16' loses small updates: leave it at auto, or set learner.weights = 'bfloat16' or",
        {"learner.weights": "bfloat16"},
    ),
    (
        {"model": {"name": "pretrained", "path": "x", "dtype": "float32"}, "learner.weights": "bfloat16"},
        "model.dtype = 'float32' is not learner.weights = 'bfloat16': leave one of them out",
        {"model": {"name": "pretrained", "path": "x"}, "learner.lora_rank": 0},
    ),
    (
        {"learner.weights": "bfloat16", "learner.lora_rank": 4},
        r"learner\.weights = 'bfloat16' has no effect on adapters, .*: leave it out, or set learner\.lora_rank to 0",
        {"learner.lora_rank": 0},
    ),
    (
        {"model": {"name": "pretrained", "path": "x", "head_dtype": "float32"}, "device": "cpu"},
        "model.head_dtype = 'float32' has no effect: on a CPU all of the model is float32; leave it out",
        {"model": {"name": "pretrained", "path": "x"}},
    ),
    (
        {"objective": {"name": "clip", "epo": {"horizon": 60}}, "steps": 15},
        r"epo\.horizon = 60 is a schedule of 60 steps, of which a run of 15 sees the start alone: leave it out",
        {"objective": {"name": "clip", "epo": {}}},
    ),
    (
        {"credit.rewards": ["spa"], "progress": {"body": "own", "exploration": {"episodes": 8}}, "rollout.group": 8},
        r"progress\.exploration\.episodes = 8 are of one task in groups of 8, .*: give 16 or more",
        {"progress": {"body": "own", "exploration": {"episodes": 16}}},
    ),
    (
        {"credit.rewards": [{"name": "spa", "completeness": "none"}], "progress": {}},
        r"pays only what the estimator predicts, which progress\.trust = 'explained' may weigh by 0: set",
        {"progress": {"trust": "full"}},
    ),
    (
        {"credit.rewards": [{"name": "overlong", "max_tokens": 40, "buffer": 24, "over": "reply"}]},
        "overlong has no effect: it begins after 16 tokens of a reply, .* lower its max_tokens",
        {"sampling.max_tokens": 17},
    ),
    (
        {"credit.advantage": "grpo", "env.wrappers": [{"name": "progress_reward", "gamma": 0.9}]},
        "with gamma = 0.9 takes 0.1 x the sum of its progress off the return of each episode, which grpo compares: ",
        {"env.wrappers": ["progress_gain"]},
    ),
    (
        {"credit.advantage": "gigpo", "env.wrappers": [{"name": "progress_reward", "gamma": 0.95}]},
        "cancels in gigpo's comparison of turns, and takes 0.05 x the sum of its progress off the return .* charged",
        {"env.wrappers": [{"name": "progress_reward", "gamma": 1.0}]},
    ),
    (
        {"credit.advantage": {"name": "gigpo", "gamma": 1.0}, "env.wrappers": ["progress_reward"]},
        "to the returns of all episodes of a task and of all turns in one situation, and gigpo compares nothing else: "
        "take progress_gain",
        {"env.wrappers": ["progress_gain"]},
    ),
    (
        {"credit.advantage": "grpo", "env.wrappers": ["progress_reward"]},
        "progress_reward has no effect: with gamma = 1 it adds the same to the returns .* grpo compares nothing else",
        {"credit.advantage": "gigpo"},
    ),
]
