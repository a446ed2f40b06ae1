"""Every key of ``metrics.jsonl``, defined once. One line of the file is one step.

Where an episode has several roles, ``ROLE/return`` is what one of them earned, and ``ROLE/invalid`` is of its
own turns.
Where several policies learn, the figures of each are under ``POLICY/...``. ``parts/NAME`` is the mean over episodes of
what a named part of their rewards came to. A plugin gives its own figures a meaning with ``define``.
"""

from collections.abc import Callable
from typing import Any

from manyturn.envs.contract.env.roles import PARTS

Log = Callable[[dict[str, Any]], None]  # receives each line as it is written

METRICS: dict[str, str] = {
    # --- where we are
    "step": "Reinforcement-learning step, from 1. Step 0 is the warmed-up policy.",
    "phase": "'demonstrations' once they are there, 'imitation' for the first update of the warm-up, 'warmup' for a "
    "measurement during it, 'exploration' for what is played before the first step so that an estimator or a critic "
    "can learn from it, 'estimator' and 'critic' for a pass of that, 'train' for a step, 'validation' for an "
    "evaluation.",
    "seconds": "Wall-clock seconds since this process began the run or resumed it.",
    "version": "Policy version: updates applied to the weights when the line was written.",
    # --- what the policy did
    "success": "Share of episodes that reached the goal, errors left out, at the sampling temperature.",
    "return": "Mean sum of rewards of an episode, errors left out.",
    "turns": "Mean number of turns of an episode, inner turns left out.",
    "inner_turns": "Under KIND/: mean number of inner turns of that kind in an episode, such as plan/inner_turns.",
    "reply_tokens": "Mean number of tokens of a reply.",
    "invalid": "Share of turns whose reply meant nothing to the format or the environment.",
    "broken_format": "Share of turns from whose reply no action could be read.",
    "not_understood": 'Share of turns whose action meant nothing to the environment, such as "Nothing happens".',
    "cut": "Share of replies that ended at sampling.max_tokens, and not by themselves.",
    "truncated": "Share of episodes cut off by a limit of turns or context.",
    "tampered": "Share of episodes whose result the environment found forged; they are no success.",
    "cost": "USD for the replies of the step's episodes, at the prices of the endpoint that plays the role.",
    "errors": "Episodes that ended in an error after all attempts; they are in no statistic and earn nothing.",
    "retried": "Share of episodes that needed more than one attempt.",
    "branched": "Branching: share of episodes that are branches; they repeat the turns of another up to their fork.",
    "guided": "Guidance: share of episodes that read a text, because all earlier ones of their group had failed.",
    "unguided": "Guidance: episodes that were to read a text where none could be made, or none fits agent.max_context.",
    "guided_success": "Guidance: share of episodes with a text that reached the goal.",
    "guided_likelihood": "Guidance: mean probability of guided tokens after the plain prompt, which the learner reads.",
    "plain_success": "Guidance: share of episodes without a text that reached the goal; success counts both.",
    "silent_groups": "Replay: share of groups in which no attempt reached its goal, before anything is replayed.",
    "replayed": "Replay: share of groups that got a stored success, because none of their own attempts had one.",
    "replay_age": "Replay: mean number of steps since replayed episodes were drawn; those of a source count from 0.",
    "replay_ratio": "Replay: mean over replayed tokens of the policy's probability before the updates over that which "
    "they were drawn with.",
    "imitated": "Replay: stored successes that the step imitated after its updates.",
    "imitation_loss": "Replay: mean negative log-probability of their tokens before that, in nats.",
    "stored_episodes": "Replay: successes in the buffer after the step.",
    "played_episodes": "Episodes played for training so far, those of exploration included.",
    "played_tokens": "Tokens that the policy said in them; what a branch repeats is not counted again.",
    # --- the judge
    "judge_agreement": "Share of pairs of a success and a failure of the step in which the success has the better "
    "verdict, ties half; 0.5 is chance.",
    "judge_abstained": "Share of verdicts that are missing; episodes without one leave their group.",
    "judge_length": "Correlation of verdicts with the logarithm of the replies' length.",
    "judge_tokens": "Tokens of an endpoint's verdicts in the step, prompts and replies together.",
    "judge_cost": "USD for them, at judge.endpoint's prices.",
    # --- credit
    "groups_without_signal": "Share of task groups whose scorable episodes all have one return: rewards teach nothing.",
    "penalised_turns": "Share of turns that a penalty is taken from.",
    "penalty_alone": "Share of task groups that have no signal and are told apart by a penalty alone.",
    "unscorable_episodes": "Share of episodes that left their group because a reward was not a number.",
    "overlong_share": "Share of replies, or of episodes, that are punished for their length.",
    "left_out_episodes": "Share of episodes that the update leaves out: truncated ones, or LOOP's of small advantage.",
    "open_gates": "G-RA: share of scorable episodes at which every gate is open.",
    "prior": "IGPO: mean probability of the true answer before an episode's first reply.",
    "belief": "IGPO: mean probability of the true answer before an episode's last reply.",
    "belief_seconds": "IGPO: seconds of asking for those probabilities.",
    "tool_calls": "Mean number of an episode's tool calls that can be read, of those tools that [[columns]] names.",
    "drift": "SPO: mean |change of a token's log-probability| since their last visit, over turns of tasks seen before.",
    "least_spread": "Least standard deviation of returns of the groups that rollout.spread_share keeps.",
    "rounds": "Rounds of play in the step.",
    "env_changed": "What differs in the environment since the step before; only where --accept-env accepted it.",
    "no_signal": "Why the step taught nothing: every advantage or the gradient was 0; only in those steps.",
    "singleton_anchors": "Share of turns whose anchor group has no other member, so that step-level credit is 0.",
    "mean_anchor_size": "Mean number of turns in an anchor group.",
    "goal_reached": "Share of groups in which an episode reached the goal, so that GraphGPO has distances.",
    "deepest_compared": "Share of turns that HGPO compares at its greatest depth of shared history.",
    "actions_compared": "Share of turns in situations in which the group took more than one action.",
    "successes": "Share of scorable episodes that psr_nsr takes for successes.",
    "risk_low": "RiskPO: low quantile of the scores of bundles, as it is tracked.",
    "risk_high": "RiskPO: high quantile of the scores of bundles, as it is tracked.",
    "paired_turns": "Share of turns in a pair that the advantage compares.",
    "pair_margin": "Mean over pairs of beta times how much likelier the better one has become than the worse one, "
    "against the reference policy.",
    "pairs_ranked": "Share of pairs in which that is above 0; ties count half.",
    "brier": "Mean squared distance between stated confidence and outcome, over episodes that state one.",
    "stated": "Share of scorable episodes that state a confidence.",
    "implicit_pairs": "iStar: pairs of episodes of one task whose outcomes differ.",
    "implicit_won": "iStar: share of them that the second policy had in the right order before it learnt from them.",
    "implicit_loss": "iStar: its loss on them before.",
    "implicit_std": "iStar: standard deviation of its rewards over turns.",
    "compared_draws": "Share of drawn turns that have siblings: other draws from the same past.",
    "repeated_turns": "Share of turns that a branch repeats and another member drew.",
    "teacher_gap": "Mean of what advice in the prompt adds to the log-probability of a reply token.",
    "drawn_entropy": "Mean entropy of the tokens drawn at the run's temperature, in nats.",
    "tempered_temperature": "Temperature that tempered members were drawn at.",
    "tempered_learnt": "Share of tempered episodes that are learnt from.",
    "trusted": "Mean trust of situation_gae in the values of situations: 1 - lambda.",
    "distinct_actions": "Different actions that the turns of a task took, in the mean over tasks.",
    "advantage_std": "Standard deviation of the advantage over turns.",
    # --- the update: means over the step's minibatches
    "loss": "Value of the objective with its regularisers; in the warm-up, mean negative log-probability of a token.",
    "policy_loss": "Value of the objective without regularisers.",
    "clip_fraction": "Share of tokens at which the ratio was clipped.",
    "low_clip_fraction": "GMPO: share of tokens with a negative advantage whose log-ratio was out of bounds.",
    "tapered_fraction": "TOPR: share of tokens whose weight was below 1.",
    "dual_clip_fraction": "Share of tokens at which the dual clip bounded a negative advantage.",
    "approx_kl": "Mean of old minus new log-probability of a token (k1): how far the step moved the policy.",
    "episode_kl": "Mean over episodes of old minus new log-probability of all that was said, in nats; learner.stop_kl.",
    "stopped": "1 where the step ended its updates early, at learner.stop_kl; the last one is not applied.",
    "entropy": "Mean entropy of the next-token distribution at said tokens, in nats; its history are the lines before.",
    "reference_kl": "Mean KL estimate to the reference model, by the estimator of the recipe.",
    "kl_clamped": "Share of tokens at which k3 is clamped at 10 nats: there the KL term has no gradient.",
    "grad_norm": "Norm of the gradient before clipping.",
    "skipped_updates": "Updates left out because loss or gradient was not finite; three in a row stop the run.",
    "lr": "Learning rate.",
    "engine_gap": "Largest |log-probability of the engine - of the learner| in the step's first update (of "
    "rank 0, where several ranks learn); the one such figure where learner.old_logprobs is 'engine'.",
    "engine_kl": "Mean KL(engine, learner) of a token before the updates, by k3, in nats.",
    "engine_ratio_p99": "99th percentile over tokens of the ratio of engine and learner, the larger over the smaller.",
    "engine_ratio_max": "Largest of those ratios.",
    "idle_advantage": "Name of the method, if it gave GRPO's advantages in the first step; only in that step.",
    "idle_wrappers": "Reward wrappers that changed no advantage of the first step, if any; only in that step.",
    "engine_alarm": "Why engine and learner judge the same tokens too differently; only in steps where they do.",
    "effective_samples": "Effective sample size of the correction's weights, or of the ratios of learner and engine "
    "where nothing corrects, as a share of the tokens.",
    "rejected_tokens": "Share of said tokens that the objective's rules leave out.",
    "kl_coef": "Weight of the KL term in this step, where it adapts.",
    "epo_weight": "EPO: weight of the penalty in this step, which its schedule sets.",
    "epo_reference": "EPO: mean entropy of earlier steps, in nats; as released, the mean over turns and this step too.",
    "epo_outside": "EPO: share of tokens whose entropy is out of the range around that.",
    "final_value": "Mean value of the final observation of truncated episodes; bootstrap.",
    "value_loss": "Loss of the critic: half the mean squared error, with PPO's clip.",
    "value_clip_fraction": "Share of tokens at which that clip was active.",
    "value_explained": "Share of the variance of the critic's targets that its values before the updates explain.",
    "contribution_error": "SPA: mean over episodes of the distance between the outcome and its estimate.",
    "contribution_explained": "SPA: share of the variance of the step's outcomes that the estimate explains, which has "
    "not learnt from them; where they are equal, that of the step before.",
    "contribution_weight": "SPA: weight of the contributions: that share, 0 below progress.least_explained.",
    "estimate_error": "SPA, exploration: mean squared difference between an episode's outcome and its estimate, on "
    "tasks that are held out. The estimate is the outcome expected before the last reply, or the sum of contributions.",
    "estimate_explained": "SPA, exploration: share of the outcome's variance on held-out tasks that the estimate "
    "explains; at 0 or below, it has learnt nothing that holds for other tasks.",
    "progress_loss": "SPA: mean squared difference between an episode's outcome and its estimate in a step, or the "
    "loss of a pass of the estimator's training.",
    # --- asynchronous order
    "staleness": "Mean over the step's episodes of how many steps lie between the weights that each began with and "
    "those that learn from it.",
    "staleness_max": "The same of the oldest one; never more than order.staleness.",
    "mixed_versions": "Share of the step's episodes whose turns were drawn by weights of more than one version.",
    "learner_idle": "Share of the time since the step before in which the learner waited for episodes.",
    "players_idle": "Share of the places for episodes that were empty meanwhile: as many as may be open together, by "
    "rollout.concurrency or because no more may begin.",
    "open_episodes": "Queue: episodes being played when the step was done.",
    "waiting_episodes": "Queue: episodes of later steps that had ended by then, and wait for theirs.",
    "dropped": "order.consume any and drop: share of groups that were dropped, of these and those learnt from. It is 0 "
    "with any.",
    "length_bias": "order.consume any and drop: mean turns of all episodes that were learnt from so far, over that of "
    "these, of all that were dropped and of all that are overtaken by now, minus 1. Of an episode that had not ended "
    "when it was dropped it is taken that it would have gone on like the others that came so far.",
    "redrawn_tokens": "Tokens of replies that began again because new weights came while they were drawn.",
    # --- hosts of environments, and samplers
    "lost_hosts": "Hosts that could not be reached when the line was written.",
    "moved_episodes": "Times that an episode went on at another host since the line before, as its own was lost.",
    "episodes_there": "Mean number of episodes open at a host since the line before.",
    "lost_samplers": "Samplers that could not be reached when the line was written.",
    "moved_draws": "Replies that were asked of another sampler since the line before, as theirs was lost.",
    "draws_there": "Mean number of replies that a sampler was asked for and owed, since the line before.",
    "idle_share": "Share of that time in which there was nothing there: no open episode, or no reply to draw.",
    # --- speed
    "env_turn_seconds": "Mean seconds in which an environment answers a turn, errors left out.",
    "slowest_env_seconds": "Seconds of the slowest of these answers in the step; of a host, since the line before.",
    "slowest_task": "The task whose answer that was.",
    "behind_seconds": "Seconds that turns waited in a worker behind those of other episodes, since the line before.",
    "rollout_seconds": "Seconds to play the step's episodes, or to wait for them in asynchronous order; in the "
    "warm-up, the demonstrations or the measurement's.",
    "rollout_cpu_seconds": "Seconds of the processor of this process meanwhile, all its threads together.",
    "read_seconds": "Seconds in which the engine read prompts, of those in which it computed for the line's episodes.",
    "draw_seconds": "Seconds in which it drew replies. A pass that does both is shared out by its tokens.",
    "learn_seconds": "Seconds of credit and updates; in the warm-up, of the updates since the line before.",
    "learn_cpu_seconds": "Seconds of the processor of this process meanwhile, all its threads together.",
    "batch_limit": "Replies that the engine computes together at most: engine.max_batch, or fewer once memory ran out.",
    "out_of_memory": "Times that the engine ran out of memory in the step: it began again in a smaller batch, and no "
    "episode was lost.",
    "micro_tokens": "Most tokens of a pass of the learner, where memory ran out in one of learner.micro_tokens.",
    "learner_out_of_memory": "Times that it ran out of memory in the step: the update began again in smaller passes.",
    "drawn_tokens": "Tokens that the policy said in the step; what a branch repeats is not counted again.",
    "trained_tokens": "Tokens in the sequences of the step, or of the updates since the line before; each is computed "
    "once for a forward pass.",
    "demonstrations": "Sequences to imitate: episodes, or turns where the context is a window; with warmup.episodes = "
    "'stream', the demonstrations that were played so far to learn from.",
    "demonstration_seconds": "Seconds in which demonstrations were played for the updates since the line before, with "
    "warmup.episodes = 'stream'.",
    "demonstration_cpu_seconds": "Seconds of the processor of this process meanwhile, all its threads together.",
    "cpu_seconds": "Seconds of the processor of this process, all its threads together, that the warm-up took so far.",
    "packing_ratio": "Tokens computed in the updates' passes for each token of their sequences: below 1 where they "
    "share beginnings, more where listed commands are read (agent.choices = 'command'). With learner.packing other "
    "than padding.",
    "warmup_left_seconds": "Seconds that the warm-up takes at most from here, if it reaches warmup.max_updates.",
    "updates": "Gradient updates so far, of the policy in the warm-up, and of the estimator in its own phase.",
}


def define(name: str, meaning: str) -> None:
    """Define a figure that a plugin adds, such as one of its columns or stages; the same again is allowed."""
    if METRICS.setdefault(name, meaning) != meaning:
        raise ValueError(f"the metric {name!r} is defined already, as {METRICS[name]!r}: choose another name")


def checked(line: dict[str, object]) -> dict[str, object]:
    """The line, if all its keys are defined."""
    unknown = {key for key in line if not key.startswith(PARTS) and key.rpartition("/")[2] not in METRICS}
    if unknown:
        raise KeyError(f"metrics without a definition in trainers/record/metrics.py: {', '.join(sorted(unknown))}")
    return line
