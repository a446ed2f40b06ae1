"""What each option of a run is set to, and in which world, for its effect on the weights to show.

A ``*`` stands for part of a word; the first entry that fits counts. What is inside of a choice, or of a section that
may be left out, has what stands in the entry of that. Keys of a world are names of options; see ``setting``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from training_options import UNSET
from two_steps import CALLING, CALLS, FRESH, LAMPS, STATES, STATING, TAGGED, TAGS, TEACHING, TINY

World = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """Two runs that differ in an option.

    Attributes:
        other: what the second run has; of a choice, the options that are given with it.
        world: what both runs have.
        needs: what the second run has to have with it, and the first could not have.
        first: what the first run has.
        steps: of both.
    """

    other: Any = None
    world: World = field(default_factory=dict)
    needs: World = field(default_factory=dict)
    first: Any = UNSET
    steps: int = 2


class Matters(Case):
    """Their weights must differ."""


@dataclass(frozen=True)
class Unchanged(Case):
    """No run learns anything else by it, for this reason. Where ``other`` is given, weights are held to that."""

    why: str = field(kw_only=True)
    other: Any = UNSET


GIGPO: World = {"credit.advantage": "gigpo"}
CRITIC: World = {"value": {"lr": 0.1}}
ESTIMATOR: World = {"progress": {"lr": 0.1, "trust": "full"}}
OWN_CRITIC: World = {"value": {"body": "own", "lr": UNSET, "clip": UNSET}}
EXPLORES = {"episodes": 16, "passes": 2}
EXPLORER = {"body": "own", "lr": UNSET, "trust": "full"}
EXPLORING: World = {"progress": {**EXPLORER, "exploration": EXPLORES}}
LEARNT: World = {"model": {**TINY}, "warmup": {**TEACHING, "max_updates": 6, "check_every": 6, "until_success": 0.0}}
DUET: World = {**LEARNT, "env.id": LAMPS["env"]["id"].replace("lamps.py:Lamps", "duet.py:Duet")}
MEASURED = {"until_success": 1.0, "check_every": 1, "check_episodes": 12, "max_updates": 12}
CHOSEN: World = {**LEARNT, "warmup": {**TEACHING, **MEASURED}, "agent.only_admissible": True}
TWELVE: World = {"env.args": {"copies": 1}, "rollout.tasks": 8}  # of 12 tasks, so that they come again
DEEP: World = {**LEARNT, "model": {**TINY, "layers": 2}, "learner.lora_rank": 4}
MANY: World = {"env.args": {"copies": 9}, "rollout.tasks": 2}  # of 108 tasks
ALL: World = {"env.args": {"copies": 1}, "rollout.tasks": 12}
UNSCORED: World = {
    "env.args": {"unscored": True},
    "rollout.group": 2,
    "rollout.tasks": 8,
}  # groups of which one is left
ONCE: World = {"learner.minibatch": 16}
COARSE: World = {"engine": "coarse"}
FLAT: World = {"credit.rewards=invalid_penalty": {"flag": "understood"}, "rollout.group": 2, "rollout.tasks": 8}
SHARES: World = {"credit.rewards=overlong": {"max_tokens": None, "buffer": None, "over": "reply", "buffer_share": 0.5}}
SPLIT: World = {"rollout.branching": {"initial": 2, "threshold": 0.5}}
HARD: World = {"env.args": {"limit": 2}, "rollout.tasks": 8}  # in so few turns most attempts fail
AGAIN: World = {"env.args": {"limit": 2, "copies": 1}, "rollout.tasks": 12}  # the same tasks, most attempts fail
GROWS: World = {"rollout.horizon": {"first": 1, "by": 2, "every": 1, "last": 4}}
SURE: World = {"model.path": STATING, **STATES}  # of commands that are numbers
SECOND: World = {"implicit": {"beta": 0.5}}  # a second policy, which rewards from the second step on
PAIRED: World = {"objective": {"name": "reinforce", "aggregation": "token-sum", "reference": True}}
JUDGE = {"verdicts": "episode", "min_agreement": 0.0}
JUDGED: World = {  # both runs have verdicts on turns, and the part in their returns
    "judge": {"min_agreement": 0.0},
    "credit.rewards=part_weights": {"weights": {"judge": 0.5}},
}
ELSEWHERE = "of endpoints that judge; play/judges/test_judging.py asks one"
GATE = {"part": "outcome", "threshold": 0.5}
ONE_MODEL = "engine and learner are one model here"
RECORD = "of what is recorded"
SERVICE = "of how a worker is watched, which decides whether an episode counts"
DEFAULTED = "without an entry it has its defaults"
OPTIONS: dict[str, Matters | Unchanged] = {
    # Where, and how it is paid.
    "envs": Unchanged(why="of environments that trainers/run/loop/test_mixture.py trains in, with weights that differ"),
    "envs[].*": Unchanged(why="of what env has, for each"),
    "envs[].*.*": Unchanged(why="of what env has, for each"),
    "env.id": Matters(f"{LAMPS['env']['id'].replace('lamps.py:Lamps', 'doors.py:Doors')}"),
    "env.args": Matters({"counted": True}),
    "env.wrappers=progress_reward.gamma": Matters(0.5),
    "env.wrappers=progress_reward": Matters(world=GIGPO),
    "env.wrappers=adviser.when": Matters("start"),
    "env.wrappers=adviser": Matters(world=LEARNT),
    "env.wrappers=*.*": Matters(0.7),
    "env.wrappers=*": Matters(),
    "env.workers": Unchanged(1, why="of where episodes run"),
    "env.timeout": Unchanged(why=SERVICE),
    "env.limits.*": Unchanged(why=SERVICE),
    # Who plays.
    "model=pretrained": Matters(first=TINY),
    "model=pretrained.path": Matters(FRESH),
    "model=pretrained.dtype": Matters("bfloat16", {"learner.lora_rank": 4}),
    "model=pretrained.head_dtype": Matters("float32", {"learner.lora_rank": 4, "model.dtype": "bfloat16"}),
    "model=pretrained.gguf_file": Unchanged(why="of the file that the weights are in"),
    "model=tiny-*.*": Unchanged(why="of the options of tiny, which are tried"),
    "model=tiny-*": Unchanged(why="of a size that the options of tiny give too"),
    "model=tiny": Matters(TINY),
    "model=tiny.width": Matters(8, LEARNT),
    "model=tiny.layers": Matters(2, LEARNT),
    "model=tiny.heads": Matters(1, LEARNT),
    "model=tiny.sample_tasks": Matters(1, LEARNT),
    "model=tiny.query_key_init": Matters("equal", LEARNT),
    "model=tiny.numbers": Matters("digits", {**LEARNT, "env.args": {"counted": True, "limit": 12}}),
    "agent.format=free_text": Matters(first="tagged"),
    "agent.format=native_tools": Unchanged(why="of endpoints, which do not learn"),
    "agent.format=tagged": Matters(),
    "agent.format=tagged.tag": Matters("do", {**LEARNT, "sampling.max_tokens": 12}),
    "agent.format=tagged.think": Matters(True, {**LEARNT, "sampling.max_tokens": 12}),
    "agent.format=tool_call": Matters(world=LEARNT),
    "agent.format=tool_call.think": Matters(True, LEARNT),
    "agent.context=whole": Matters(first="window"),
    "agent.context=window": Matters(),
    "agent.context=window.turns": Matters(0),
    "agent.system": Matters("red"),
    "agent.template_system": Unchanged(why="of templates that add a system text; that of a tiny model adds none"),
    "agent.instructions": Matters(True),
    "agent.show_admissible": Matters(True),
    "agent.only_admissible": Matters(True),
    "agent.max_context": Matters(24),
    "agent.max_episode_tokens": Matters(3),
    "agent.cut": Matters("end"),
    "agent.reasoning": Unchanged(why="of reasoning in the history, which a tiny model does not write"),
    "roles": Matters({"caller": "one", "liar": "random"}, DUET),
    "roles[].policy": Matters({"liar": "past:1"}),
    "roles[].agent": Unchanged(why="of models that are no policy of the run, which has its own tests"),
    "roles[].sampling": Matters(
        {"caller": {"policy": "past:1", "sampling": {"temperature": 0.1}}, "liar": "one"},
        {"agent.only_admissible": True, "sampling.max_tokens": 8},
        first={"caller": "past:1", "liar": "one"},
    ),
    "roles[].sampling.*": Unchanged(why="of endpoints, but for two that sampling tries"),
    "roles[].endpoint": Unchanged(why="of how an endpoint is reached"),
    "roles[].endpoint.*": Unchanged(why="of how an endpoint is reached"),
    "sampling.temperature": Matters(0.5),
    "sampling.max_tokens": Matters(2),
    "engine=transformers": Matters(first="coarse"),
    "engine=transformers.max_batch": Unchanged(3, why="of how many replies are computed side by side"),
    "engine=transformers.reproducible": Unchanged(False, why="of which replies are computed side by side"),
    "engine=transformers.merge_adapters": Unchanged(why="of when adapters are added to weights, and has its own tests"),
    "engine=transformers.cache_gb": Unchanged(1.0, why="there is room for all that is kept"),
    "engine=vllm": Unchanged(why="of an engine that is in an environment of its own, and has its own tests"),
    "engine=vllm.*": Unchanged(why="see vllm"),
    "engine=vllm-server": Unchanged(why="of an engine that asks servers, and has its own tests"),
    "engine=vllm-server.*": Unchanged(why="see vllm-server"),
    # The warm-up.
    "warmup.from_run": Unchanged(why="of the weights of the run that it names"),
    "warmup.trajectories": Unchanged(why="of what the file that it names holds, and has its own tests"),
    "warmup.episodes": Matters(12, LEARNT),
    "warmup.labels": Matters("expert", LEARNT),
    "warmup.policy_share": Matters(1.0, {**LEARNT, "warmup.labels": "expert", "warmup.episodes": "stream"}),
    "warmup.noise": Matters(0.0, LEARNT),
    "warmup.invalid": Matters(0.3, LEARNT),
    "warmup.batch": Matters(4, LEARNT),
    "warmup.lr": Matters(3e-3, LEARNT),
    "warmup.max_updates": Matters(12, {**LEARNT, "warmup.until_success": 1.0}),
    "warmup.until_success": Matters(1.0, {**LEARNT, "warmup.max_updates": 12}),
    "warmup.must_succeed": Unchanged(why="of whether a run stops"),
    "warmup.observed": Matters(0.5, LEARNT),
    "warmup.plateau": Matters(1, CHOSEN),
    "warmup.check_every": Matters(3, LEARNT),
    "warmup.check_episodes": Matters(12, {**LEARNT, "warmup.max_updates": 24, "warmup.until_success": 0.3}, first=1),
    # Rollouts.
    "rollout.tasks": Matters(3),
    "rollout.group": Matters(3),
    "rollout.concurrency": Unchanged(3, why="of how many episodes run side by side"),
    "rollout.max_turns": Matters(2),
    "rollout.horizon": Matters(GROWS["rollout.horizon"]),
    "rollout.horizon.first": Matters(2),
    "rollout.horizon.by": Matters(1),
    "rollout.horizon.every": Matters(2, steps=3),
    "rollout.horizon.last": Matters(2),
    "rollout.rounds": Matters(3, {"rollout.group": 2}),
    "rollout.spread_share": Matters(0.3),
    "rollout.branching": Matters(SPLIT["rollout.branching"]),
    "rollout.branching.initial": Matters(1),
    "rollout.branching.weight": Matters(9.0),
    "rollout.branching.threshold": Matters(0.2),
    "rollout.branching.tokens": Matters(1, {"rollout.branching": {"weight": 3.0}}),
    "rollout.branching.order": Matters("random"),
    "rollout.branching.siblings": Matters(2, {"rollout.group": 5}),
    "rollout.tempering": Matters({"target": 9.0}, needs={"credit.advantage": "arbitrary_entropy"}),
    "rollout.tempering.target": Matters(1e-6),
    "rollout.tempering.members": Matters(1),
    "rollout.tempering.high": Matters(3.0),
    "rollout.tempering.low": Matters(0.1, {"rollout.tempering": {"target": 1e-6}}),
    "rollout.guidance=hints": Matters({"members": 2, "tiers": [0.5, 1.0]}, HARD),
    "rollout.guidance=critique": Matters({"members": 2}, HARD),
    "rollout.guidance=*.members": Matters(3),
    "rollout.guidance=*.reads": Matters("guided"),
    "rollout.guidance=*.after": Matters(1),
    "rollout.guidance=hints.tiers": Matters([1.0]),
    "rollout.guidance=critique.rounds": Matters(1),
    "rollout.guidance=critique.critic": Unchanged(why="of who writes; play/guidance/test_guidance.py asks an endpoint"),
    "rollout.guidance=critique.turns": Matters(1),
    "rollout.replay": Matters({}, AGAIN, steps=3),
    "rollout.replay.members": Matters(2, steps=3),
    "rollout.replay.use": Matters("imitation", steps=3),
    "rollout.replay.rate": Matters(9.0, {"rollout.replay": {"use": "imitation"}}, steps=3),
    "rollout.replay.per_task": Matters(1, {"rollout.replay": {"members": 2}}, steps=3),
    "rollout.replay.size": Matters(1, needs={"rollout.replay.per_task": 1}, steps=3),
    "rollout.replay.source": Unchanged(why="of a folder; play/rollout/test_replay.py begins with some"),
    # Who judges.
    "judge": Matters(JUDGE),
    "judge.by": Unchanged(why=ELSEWHERE),
    "judge.verdicts": Matters("turn", {"credit.advantage": "capo"}),
    "judge.part": Unchanged(why="of the name of a part"),
    "judge.criteria": Matters([{"name": "valid", "rule": "valid"}]),
    "judge.criteria[].*": Unchanged(why="of how criteria are decided, which play/judges/test_rules.py tries"),
    "judge.criteria[].*.*": Unchanged(why="of how criteria are decided, which play/judges/test_rules.py tries"),
    "judge.votes": Matters(3, {"judge.noise": 0.4}),
    "judge.vote": Matters("majority", {"judge.noise": 0.4, "judge.votes": 3}),
    "judge.noise": Matters(0.4),
    "judge.length": Matters("regressed"),
    "judge.min_agreement": Unchanged(why="of whether a run stops"),
    "judge.longest": Unchanged(why=ELSEWHERE),
    "judge.readings": Unchanged(why=ELSEWHERE),
    "judge.unreadable": Unchanged(why=ELSEWHERE),
    "judge.sampling": Unchanged(why=ELSEWHERE),
    "judge.endpoint": Unchanged(why=ELSEWHERE),
    "judge.budget": Unchanged(why=ELSEWHERE),
    "judge.budget.*": Unchanged(why=ELSEWHERE),
    "rollout.attempts": Unchanged(why="of episodes that end in errors"),
    "rollout.error_share": Unchanged(why="of whether a run stops"),
    "rollout.cut_share": Unchanged(why="of whether a run stops"),
    # Which tasks.
    "curriculum=grow": Unchanged(why="of a world that varies tasks; run/loop/test_growing_tasks.py trains in one"),
    "curriculum=grow.*": Unchanged(why="of a world that varies tasks; run/loop/test_growing_tasks.py trains in one"),
    "curriculum=uniform": Matters(first="sec"),
    "curriculum=band.low": Matters(0.8, steps=3),
    "curriculum=band.high": Matters(0.3, steps=3),
    "curriculum=band.explore": Matters(0.9),
    "curriculum=band.rate": Matters(0.1, {"curriculum=band": {"low": 0.4, "high": 0.7}}, steps=4),
    "curriculum=dump.window": Matters(1, {**MANY, "curriculum=dump": {"temperature": 0.03}}, steps=4),
    "curriculum=sec.temperature": Matters(50.0, {**MANY, "curriculum=sec": {"temperature": 0.01}}),
    "curriculum=mopps.target": Matters(0.0, steps=3),
    "curriculum=mopps.decay": Matters(0.1, steps=4),
    "curriculum=pcl.target": Matters(0.0, steps=3),
    "curriculum=pcl.candidates": Matters(30, {**MANY, "curriculum=pcl": {"target": 0.4}}, steps=4),
    "curriculum=pcl.lr": Matters(0.001, {"curriculum=pcl": {"target": 0.4}}, steps=4),
    "curriculum=*.temperature": Matters(50.0),
    "curriculum=sec.rate": Matters(0.01, {"curriculum=sec": {"temperature": 0.02}}),
    "curriculum=spo_weights.exploration": Matters(9.0),
    "curriculum=spo_weights.rho": Matters(0.01, steps=3),
    "curriculum=*": Matters(world=TWELVE),
    # Rewards.
    "credit.rewards=calibration": Matters(world=SURE, needs={"columns=confidence": {"tag": "action"}}),
    "credit.rewards=calibration.weight": Matters(3.0),
    "credit.rewards=clip_delta": Matters({"part": "step"}, GIGPO),
    "credit.rewards=clip_delta.part": Matters("outcome"),
    "credit.rewards=clip_delta.eta": Matters(0.5),
    "credit.rewards=clip_delta.delta": Matters(False, {"credit.rewards=clip_delta": {"eta": 0.5}}),
    "credit.rewards=gated": Matters({"gates": [{"part": "outcome", "threshold": 0.5}]}),
    "credit.rewards=gated.gates": Matters([{"part": "step", "threshold": 0.1}]),
    "credit.rewards=gated.gates[].part": Matters([{**GATE, "part": "step"}], first=[GATE]),
    "credit.rewards=gated.gates[].threshold": Matters([{**GATE, "threshold": 0.0}], first=[GATE]),
    "credit.rewards=gated.equal": Matters("closes", {"credit.rewards=gated": {"gates": [{**GATE, "threshold": 1.0}]}}),
    "credit.rewards=gated.ungated": Matters(["step"]),
    "credit.rewards=igpo.measure": Matters("log", first="probability"),
    "credit.rewards=igpo.weight": Matters(3.0),
    "credit.rewards=igpo": Matters(world={"credit.advantage": "igpo"}),
    "credit.rewards=invalid_penalty": Matters(world={"model.path": TAGGED, **TAGS}),
    "credit.rewards=invalid_penalty.coef": Matters(0.7),
    "credit.rewards=invalid_penalty.flag": Matters("understood"),
    "credit.rewards=opsd": Matters(world=GIGPO),
    "credit.rewards=opsd.over": Matters("reply"),
    "credit.rewards=opsd.weight": Matters(3.0),
    "credit.rewards=overlong": Matters({"max_tokens": 8, "buffer": 5}),
    "credit.rewards=overlong.max_tokens": Matters(10),
    "credit.rewards=overlong.buffer": Matters(2),
    "credit.rewards=overlong.share": Matters(0.7, SHARES),
    "credit.rewards=overlong.buffer_share": Matters(0.9, SHARES),
    "credit.rewards=overlong.factor": Matters(0.2),
    "credit.rewards=overlong.over": Matters("reply", {"credit.rewards=overlong": {"max_tokens": 3, "buffer": 2}}),
    "credit.rewards=renorm": Matters(world=JUDGED),
    "credit.rewards=renorm.part": Unchanged(why="of the name of a part"),
    "credit.rewards=attribution": Matters(world=JUDGED),
    "credit.rewards=attribution.part": Unchanged(why="of the name of a part"),
    "credit.rewards=rubric": Matters({"part": "step"}),
    "credit.rewards=rubric.part": Matters("progress_gain", {"env.wrappers=progress_gain": {}}),
    "credit.rewards=rubric.share": Matters(0.9),
    "credit.rewards=rubric.over": Matters("all"),
    "credit.rewards=rubric.normalised": Matters(False),
    "credit.rewards=part_weights": Matters({"weights": {"step": 9.0}}),
    "credit.rewards=part_weights.weights": Matters({"step": 0.0}),
    "credit.rewards=spa": Matters(needs=ESTIMATOR, world=GIGPO),
    "credit.rewards=spa.form": Matters("released", needs={"progress": None}),
    "credit.rewards=spa.alpha": Matters(9.0),
    "credit.rewards=spa.beta": Matters(0.1),
    "credit.rewards=spa.wage": Matters("by_turn"),
    "credit.rewards=spa.span": Matters(4.0),
    "credit.rewards=spa.completeness": Matters("none"),
    "credit.rewards=tiers": Matters(),
    "credit.rewards=tiers.tiers": Matters([[0.5, 0.9], [1.0, 1.0]]),
    "credit.rewards=tiers.alpha": Matters(0.9),
    "credit.rewards=tiers.gap": Unchanged(2.0, why="a bound that alpha is held to"),
    "credit.rewards=tiers.paid": Matters("turns", GIGPO),
    # What a turn is compared with.
    "credit.advantage=situation_gae": Matters(),
    "credit.advantage=*gae.gamma": Matters(0.5),
    "credit.advantage=*gae.lam": Matters(0.3),
    "credit.advantage=*gae.bootstrap": Matters(True),
    "credit.advantage=dual_gae.lam_turn": Matters(0.1),
    "credit.advantage=dual_gae.critic_lam": Matters(0.2),
    "credit.advantage=*_gae.gamma_turn": Matters(0.3),
    "credit.advantage=turn_gae.value_at": Matters("last"),
    "credit.advantage=*gae": Matters(needs=CRITIC),
    "credit.advantage=hgpo.stats_over": Matters("rows", {"credit.advantage=hgpo": {"episodes": True}}),
    "credit.advantage=hgpo.singleton": Matters("raw", {**UNSCORED, "credit.advantage=hgpo": {"episodes": True}}),
    "credit.advantage=turn_dpo.depth": Matters(1, {"credit.advantage=turn_dpo": {"situation": "history"}}, first=3),
    "credit.advantage=turn_dpo.threshold": Matters(0.5),
    "credit.advantage=*.beta": Matters(9.0, steps=3),
    "credit.advantage=*_dpo": Matters(needs=PAIRED, world=ONCE),
    "credit.advantage=copg": Matters(needs=PAIRED, world=ONCE),
    "credit.advantage=*.stats_over": Matters("rows"),
    "credit.advantage=opo.singleton": Matters("raw", UNSCORED),
    "credit.advantage=*.singleton": Matters("raw", UNSCORED),
    "credit.advantage=arbitrary_entropy": Matters(needs={"rollout.tempering": {"target": 9.0}}),
    "credit.advantage=arbitrary_entropy.threshold": Matters(5.0),
    "credit.advantage=hgpo.mode": Matters("mean_norm"),
    "credit.advantage=hgpo.history": Matters(0),
    "credit.advantage=hgpo.alpha": Matters(9.0),
    "credit.advantage=hgpo.episodes": Matters(True),
    "credit.advantage=g*po.mode": Matters("mean_std_norm"),
    "credit.advantage=g*po.turn_weight": Matters(0.0),
    "credit.advantage=g*po.episode_weight": Matters(0.0),
    "credit.advantage=g*po.gamma": Matters(0.3),
    "credit.advantage=*.situation": Matters("clock"),
    "credit.advantage=gigpo.depth": Matters(1, {"credit.advantage=gigpo": {"situation": "history"}}, first=3),
    "credit.advantage=graphgpo.depth": Matters(1, {"credit.advantage=graphgpo": {"situation": "history"}}, first=3),
    "credit.advantage=g2po.depth": Matters(1, {"credit.advantage=g2po": {"situation": "history"}}, first=3),
    "credit.advantage=rtmc.depth": Matters(1, {"credit.advantage=rtmc": {"situation": "history"}}, first=3),
    "credit.advantage=*.similarity": Matters(0.9, {"env.args": {"counted": True}}),
    "credit.advantage=istar.eps": Matters(1.0, {"credit.advantage=istar": {"norm": "std"}}),
    "credit.advantage=gigpo.eps": Matters(1.0, {"credit.advantage=gigpo": {"mode": "mean_std_norm"}}),
    "credit.advantage=graphgpo.eps": Matters(1.0, {"credit.advantage=graphgpo": {"mode": "mean_std_norm"}}),
    "credit.advantage=g2po.eps": Matters(1.0, {"credit.advantage=g2po": {"mode": "mean_std_norm"}}),
    "credit.advantage=gigpo.flat_std": Matters("zero", {**FLAT, "credit.advantage=gigpo": {"mode": "mean_std_norm"}}),
    "credit.advantage=graphgpo.flat_std": Matters(
        "zero", {**FLAT, "credit.advantage=graphgpo": {"mode": "mean_std_norm"}}
    ),
    "credit.advantage=g2po.flat_std": Matters("zero", {**FLAT, "credit.advantage=g2po": {"mode": "mean_std_norm"}}),
    "credit.advantage=graphgpo.measure": Matters("progress"),
    "credit.advantage=graphgpo.goal": Matters(9.0),
    "credit.advantage=g2po.compare": Matters("edge"),
    "credit.advantage=g2po.gain": Matters("td"),
    "credit.advantage=rtmc.prior": Matters(0.0),
    "credit.advantage=situation_gae.depth": Matters(
        1, {"credit.advantage=situation_gae": {"situation": "history"}}, first=3
    ),
    "credit.advantage=situation_gae.prior": Matters(9.0),
    "credit.advantage=situation_gae.critic": Matters(True, needs={"value": {"lr": 0.1, "clip": None}}),
    "credit.advantage=forks": Matters(world={"rollout.branching": SPLIT["rollout.branching"]}),
    "credit.advantage=forks.baseline": Matters("all"),
    "credit.advantage=forks.between": Matters("zero"),
    "credit.advantage=grpo": Matters(first="rloo"),
    "credit.advantage=igpo.flat_std": Matters(
        "zero", {**FLAT, "env.args": {"limit": 2}, "credit.advantage=igpo": {"baseline": "first"}}
    ),
    "credit.advantage=*.flat_std": Matters("zero", FLAT),
    "credit.advantage=*.std": Matters(False, first=True),
    "credit.advantage=*.eps": Matters(1.0),
    "credit.advantage=igpo.outcome": Matters("step"),
    "credit.advantage=igpo.baseline": Matters("turn"),
    "credit.advantage=loop.threshold": Matters(0.3),
    "credit.advantage=mt_grpo.outcome": Matters("step"),
    "credit.advantage=istar.norm": Matters("mean"),
    "credit.advantage=istar.turn_weight": Matters(9.0, steps=3),
    "credit.advantage=istar.stats_over": Matters("rows"),
    "credit.advantage=istar": Matters(needs=SECOND),
    "credit.advantage=capo": Matters(world=JUDGED),
    "credit.advantage=capo.part": Unchanged(why="of the name of a part"),
    "credit.advantage=capo.whole": Matters(9.0),
    "credit.advantage=capo.process": Matters(0.1),
    "credit.advantage=psr_nsr.learns": Matters("negative"),
    "credit.advantage=psr_nsr.weight": Matters(1.0),
    "credit.advantage=psr_nsr.goal": Matters(9.0),
    "credit.advantage=riskpo.bundle": Matters(1),
    "credit.advantage=riskpo.low": Matters(0.6),
    "credit.advantage=riskpo.high": Matters(0.5),
    "credit.advantage=riskpo.weight": Matters(9.0),
    "credit.advantage=riskpo.rate": Matters(2.0, steps=3),
    "credit.advantage=riskpo.std": Matters(False),
    "credit.advantage=riskpo": Matters({"bundle": 2}),
    "credit.advantage=*.gamma": Matters(0.3),
    "credit.advantage=spo.forgetting": Matters("steady", steps=3),
    "credit.advantage=spo.half": Matters(9.0, {"credit.advantage=spo": {"rho_min": 0.01}}, steps=3),
    "credit.advantage=spo.rho_min": Matters(0.1, steps=3),
    "credit.advantage=spo.rho_max": Matters(0.9, steps=3),
    "credit.advantage=spo.low": Matters(-9.0, {"rollout.tasks": 8}, steps=3),
    "credit.advantage=spo.high": Matters(9.0, {"rollout.tasks": 8}, steps=3),
    "credit.advantage=spo": Matters({"low": -3.0, "high": 3.0}, ALL),
    "credit.advantage=stratified.stratum": Matters("progress"),
    "credit.advantage=stratified.edges": Matters([3.0]),
    "credit.advantage=stratified.blend": Matters(0.2),
    "credit.advantage=stratified": Matters({"stratum": "turns"}),
    "credit.advantage=*": Matters(),
    "credit.truncated": Matters("left_out"),
    "credit.modulation=agentopsd.mix": Matters(1.0),
    "credit.modulation=agentopsd.band": Matters(0.9),
    "credit.modulation=agentopsd.decay": Matters(0.0),
    "credit.modulation=empg.k": Matters(5.0),
    "credit.modulation=empg.k_f": Matters(5.0),
    "credit.modulation=empg.zeta": Matters(0.9),
    "credit.modulation=entropy_weight.a": Matters(0.9),
    "credit.modulation=high_entropy_tokens.share": Matters(0.7),
    "credit.modulation=semantic_entropy.alpha": Matters(1.0),
    "credit.modulation=semantic_entropy.falls": Matters("exponential"),
    "credit.modulation=semantic_entropy.meaning": Matters("actions"),
    "credit.modulation=policy_shaping": Matters(
        world={**HARD, "rollout.guidance=hints": {"members": 2, "tiers": [0.5, 1.0]}}
    ),
    "credit.modulation=policy_shaping.gamma": Matters(2.0),
    "credit.modulation=*": Matters(),
    # The loss.
    "objective=*.aggregation": Matters("seq-mean-token-mean", first="token-mean"),
    "objective=*.scale": Matters(
        3.0, {"objective": {"aggregation": "seq-mean-token-sum-norm"}, "learner.max_grad_norm": 9.0}, first=0.3
    ),
    "objective=*.sequence": Matters("branch", {"objective": {"aggregation": "seq-mean-token-mean"}}),
    "objective=*.kl": Matters({"coef": 0.5}),
    "objective=clip.kl.coef": Matters(0.1),
    "objective=clip.kl.estimator": Matters("k2"),
    "objective=clip.kl.place": Matters("reward", {"credit.advantage": "reinforce_pp"}),
    "objective=clip.kl.target": Matters(1e-4, needs={"objective": {"kl": {"horizon": 1}}}),
    "objective=clip.kl.horizon": Matters(1, {"objective": {"kl": {"target": 1e-4}}}),
    "objective=*.reference": Unchanged(why="of whether credit can compare with a reference policy, see turn_dpo"),
    "objective=*.entropy": Matters({"coef": 0.1}),
    "objective=*.entropy.coef": Matters(0.5),
    "objective=*.epo": Matters({"coef": 0.1, "alpha": 1.0}),
    "objective=clip.epo.form": Matters("released"),
    "objective=clip.epo.coef": Matters(0.5),
    "objective=clip.epo.alpha": Matters(5.0),
    "objective=clip.epo.kappa_l": Matters(0.1),
    "objective=clip.epo.kappa_r": Matters(1.9),
    "objective=clip.epo.gamma": Matters(50.0),
    "objective=clip.epo.horizon": Matters(2, steps=4),
    "objective=*.correction": Matters({}, COARSE),
    "objective=clip.correction.level": Matters("sequence"),
    "objective=clip.correction.cap": Matters(1.001),
    "objective=clip.correction.floor": Matters(0.999),
    "objective=clip.correction.normalise": Matters(
        True, {"objective": {"correction": {"cap": 1.001}, "kl": {"coef": 0.5}}}
    ),
    "objective=*.reject": Matters([{"upper": 1e-3}], COARSE),
    "objective=clip.reject[].divergence": Matters([{"divergence": "k1", "upper": 1.1}], first=[{"upper": 1.1}]),
    "objective=clip.reject[].over": Matters([{"over": "sum", "upper": 1e-3}], first=[{"upper": 1e-3}]),
    "objective=clip.reject[].upper": Matters([{"upper": 1e-4}], first=[{"upper": 1e-3}]),
    "objective=clip.reject[].lower": Matters(
        [{"divergence": "k1", "upper": 1.1, "lower": 0.5}], first=[{"divergence": "k1", "upper": 1.1}]
    ),
    "objective=rec.clipping": Matters("none", {"learner.epochs": 3}),
    "objective=rec.low": Matters(0.01, {"learner.epochs": 3}),
    "objective=rec.high": Matters(0.01, {"learner.epochs": 3}),
    "objective=rec.far_*": Matters(
        0.01, {"learner.epochs": 3, "objective": {"clipping": "ring", "low": 0.005, "high": 0.005}}
    ),
    "objective=rec.importance": Matters(True, {"learner.epochs": 3}),
    "objective=rec.k2": Matters(3.0, {"learner.epochs": 3}),
    "objective=rec.shift": Matters(0.5),
    "objective=*.low": Matters(0.01, {"learner.epochs": 3}),
    "objective=*.high": Matters(0.01, {"learner.epochs": 3}),
    "objective=clip.dual": Matters(1.01, {"learner.epochs": 3}),
    "objective=*.ratio": Matters(
        "token", {"learner.epochs": 3, "objective": {"aggregation": "seq-mean-token-mean"}}, first="sequence"
    ),
    "objective=sapo.tau_*": Matters(9.0, {"learner.epochs": 3}),
    "objective=clip": Matters(first="sapo"),
    "objective=reinforce": Matters(world=ONCE, first={"name": "clip", "aggregation": "seq-mean-token-sum"}),
    "objective=*": Matters(),
    # The learner, and its heads.
    "learner.lr": Matters(3e-3),
    "learner.lr_end": Matters(1.0),
    "learner.lr_schedule": Matters("constant"),
    "learner.lr_warmup": Matters(1),
    "learner.stop_kl": Matters(1e-6),
    "learner.weight_decay": Matters(1.0),
    "learner.max_grad_norm": Matters(0.01),
    "learner.minibatch": Matters(4),
    "learner.epochs": Matters(2),
    "learner.packing": Unchanged("padding", why="of how sequences go through the model"),
    "learner.micro_tokens": Unchanged(64, why="of how much is computed at once"),
    "learner.engine_alarm": Unchanged("note", why="of whether a run stops"),
    "learner.old_logprobs": Matters("engine", COARSE),
    "order.kind": Matters("asynchronous"),
    "order.consume": Unchanged(why="of how long each episode takes; test_ahead.py holds what a step learns from"),
    "order.staleness": Matters(3, {"order.kind": "asynchronous"}, first=1, steps=4),
    "placement.*": Unchanged(
        why="of where episodes run and tokens are drawn; test_hosted_run.py, test_sampled_run.py and test_ray_run.py "
        "hold that no weight differs"
    ),
    "learner.lora_rank": Matters(4),
    "learner.lora_alpha": Matters(4, {"learner.lora_rank": 4}),
    "learner.lora_layers": Matters([1, 2], DEEP),
    "learner.states_gb": Unchanged(
        0.0, {**DEEP, "learner.lora_layers": [1, 2]}, why="of what is kept, and what is computed again"
    ),
    "learner.gradient_checkpointing": Unchanged(True, why="of what is kept for the backward pass"),
    "learner.compile": Unchanged(True, {"learner.packing": "padding"}, why="of how layers are computed"),
    "learner.offload_optimizer": Unchanged(why="of where AdamW's moments are, which on a CPU is refused"),
    "value": Matters({"lr": 0.1, "clip": None}, {"credit.advantage": "turn_gae"}, first={"fit": "least_squares"}),
    "value.fit": Matters("gradient", {"value": {"lr": UNSET, "clip": UNSET}}, first="least_squares"),
    "value.lr": Matters(1e-3),
    "value.hidden": Matters(8),
    "value.ridge": Matters(0.1, {"value": {"fit": "least_squares", "lr": UNSET, "clip": UNSET}}),
    "value.keep": Matters(0.1, {"value": {"fit": "least_squares", "lr": UNSET, "clip": UNSET}}, steps=3),
    "value.clip": Matters(0.01, {"learner.epochs": 3}),
    "value.into_policy": Matters(9.0),
    "value.body": Matters("own", {"value": {"lr": UNSET, "clip": UNSET}}),
    "value.pretraining": Matters({"episodes": 8, "passes": 1}),
    "value.pretraining.episodes": Matters(16),
    "value.pretraining.passes": Matters(3),
    "value.own.lr": Matters(1e-3, OWN_CRITIC),
    "value.own.hidden": Matters(8, OWN_CRITIC),
    "value.own.clip": Matters(0.01, {**OWN_CRITIC, "learner.epochs": 3}),
    "progress": Matters(
        {"lr": 0.1, "trust": "full"},
        {**GIGPO, "credit.rewards=spa": {}},
        first={"fit": "least_squares", "trust": "full"},
    ),
    "progress.fit": Matters("gradient", {"progress": {"lr": UNSET}}, first="least_squares"),
    "progress.lr": Matters(1e-3),
    "progress.body": Matters("own", {"progress": {"lr": UNSET}}, needs={"progress": {"exploration": EXPLORES}}),
    "progress.trust": Matters("explained"),
    "progress.least_explained": Matters(0.999, {"progress": {"trust": "explained"}}),
    "progress.exploration.target": Matters("sum", EXPLORING),
    "progress.exploration.unexplained": Unchanged("stop", why="it ends a run, or nothing"),
    "progress.exploration.episodes": Matters(32, EXPLORING),
    "progress.exploration.held_out": Matters(0.5, EXPLORING),
    "progress.exploration.trains": Matters("layers", EXPLORING),
    "progress.exploration.hidden": Matters(0, EXPLORING),
    "progress.exploration.lr": Matters(1e-3, EXPLORING),
    "progress.exploration.batch": Matters(2, EXPLORING),
    "progress.exploration.passes": Matters(8, EXPLORING),
    "progress.exploration.patience": Matters(1, {"progress": {**EXPLORER, "exploration": {**EXPLORES, "passes": 40}}}),
    "progress.hidden": Matters(8),
    "progress.ridge": Matters(0.1, {"progress": {"fit": "least_squares", "lr": UNSET}}),
    "progress.keep": Matters(0.1, {"progress": {"fit": "least_squares", "lr": UNSET}}, steps=3),
    "implicit": Matters({"beta": 3.0}, {"credit.advantage": "istar"}, first={}, steps=3),
    "implicit.beta": Matters(3.0, steps=3),
    "implicit.lr": Matters(0.3, steps=3),
    "columns=confidence": Unchanged({}, {**SURE, "credit.rewards=calibration": {"weight": 3.0}}, why=DEFAULTED),
    "columns=confidence.tag": Matters("action"),
    "columns=drift": Unchanged({}, {**ALL, "credit.advantage=spo": {"low": -3.0, "high": 3.0}}, why=DEFAULTED),
    "columns=drift.most_tokens": Matters(5, steps=3),
    "columns=teacher": Unchanged({}, {**GIGPO, "credit.rewards=opsd": {"weight": 3.0}}, why=DEFAULTED),
    "columns=teacher.advice": Matters("answer"),
    "columns=tool_calls": Unchanged(
        {}, {"model.path": CALLING, **CALLS, "credit.advantage=stratified": {"stratum": "tool_calls"}}, why=DEFAULTED
    ),
    "columns=tool_calls.tools": Matters(["red"]),
    "columns=*": Unchanged(why="it has no options, and is there where a stage needs it"),
    # The run.
    "tasks": Unchanged(why="of which tasks are drawn; tests/manyturn/test_task_choice.py holds it"),
    "evaluation.*": Unchanged(why=RECORD),
    "stopping.no_signal": Unchanged(why="of when a run ends; test_no_signal.py holds it"),
    "loggers=csv": Unchanged({}, why=RECORD),
    "loggers=*": Unchanged(why="of who watches, which tests/trainers/record/test_sinks.py holds the weights to"),
    "loggers=*.*": Unchanged(why="of what they are shown"),
    "keep_tokens": Unchanged(True, why=RECORD),
    "steps": Unchanged(why="of how long the run is"),
    "seed": Matters(1),
    "device": Unchanged(why="of where the run is"),
    "threads": Unchanged(2, why="of how many cores compute"),
    "checkpoint_every": Unchanged(1, why=RECORD),
    "keep_checkpoints": Unchanged(2, why=RECORD),
}
