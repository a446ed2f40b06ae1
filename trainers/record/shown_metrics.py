"""Metrics as people meet them: in a printed line, as curves of the report, and under the names of trackers.

One row for each key of ``metrics.jsonl`` that is shown. Where several policies learn, each has its own, ``OWNER/KEY``.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from manyturn.envs.contract.env.roles import PARTS


class ShownMetric(NamedTuple):
    """A key of a line of metrics.

    Attributes:
        key: in ``metrics.jsonl``, without its owner.
        form: in a printed line; empty where it is not there.
        curve, label: title of the curve that it is drawn in, and its name there; empty where it is not drawn.
        other_name: name that users of other trainers look for in a tracker.
    """

    key: str
    form: str = ""
    curve: str = ""
    label: str = ""
    other_name: str = ""


class Curve(NamedTuple):
    """A curve's axis: its unit, and whether its values are shares."""

    unit: str
    percent: bool = False


CURVES = {
    "Return": Curve("mean of an episode"),
    "Turns": Curve("mean of an episode"),
    "Invalid, cut, truncated and tampered": Curve("share", percent=True),
    "Groups that teach nothing": Curve("share", percent=True),
    "Entropy": Curve("nats"),
    "KL divergence": Curve("nats"),
    "Gradient norm": Curve("norm"),
    "Clipped tokens": Curve("share", percent=True),
    "Loss": Curve("objective"),
    "Advantage": Curve("standard deviation"),
    "Reply length": Curve("tokens"),
    "Learning rate": Curve(""),
    "Errors": Curve("episodes"),
    "Updates left out": Curve("updates"),
    "Engine and learner": Curve("largest gap of log-probability"),
    "Time": Curve("seconds a step"),
    "Answers of the environment": Curve("seconds"),
    "Staleness": Curve("steps"),
    "Idle": Curve("share of the time", percent=True),
    "Queues": Curve("episodes"),
    "Dropped groups, and what that does to lengths": Curve("share", percent=True),
}
_INVALID, _GROUPS, _DROPPED = (list(CURVES)[place] for place in (2, 3, -1))
SHOWN = (
    ShownMetric("success", "success {:.2f}"),
    ShownMetric("return", "", "Return", "return", "reward"),
    ShownMetric("turns", "turns {:.1f}", "Turns", "turns"),
    ShownMetric("invalid", "invalid {:.0%}"),
    ShownMetric("broken_format", "", _INVALID, "broken formats"),
    ShownMetric("not_understood", "", _INVALID, "actions not understood"),
    ShownMetric("cut", "cut {:.0%}", _INVALID, "cut replies"),
    ShownMetric("truncated", "", _INVALID, "truncated episodes"),
    ShownMetric("tampered", "", _INVALID, "tampered episodes"),
    ShownMetric("entropy", "entropy {:.3f}", "Entropy", "entropy"),
    ShownMetric("approx_kl", "kl {:+.4f}", "KL divergence", "of the step", "kl"),
    ShownMetric("reference_kl", "", "KL divergence", "to the reference"),
    ShownMetric("groups_without_signal", "no signal {:.0%}", _GROUPS, "groups without signal"),
    ShownMetric("penalty_alone", "", _GROUPS, "of these told apart by a penalty alone"),
    ShownMetric("singleton_anchors", "", _GROUPS, "turns alone at their anchor"),
    ShownMetric("unscorable_episodes", "", _GROUPS, "unscorable episodes"),
    ShownMetric("packing_ratio", "computed {:.0%}"),
    ShownMetric("grad_norm", "grad {:.2f}", "Gradient norm", "before clipping"),
    ShownMetric("clip_fraction", "", "Clipped tokens", "ratio"),
    ShownMetric("dual_clip_fraction", "", "Clipped tokens", "dual clip"),
    ShownMetric("loss", "", "Loss", "with regularisers"),
    ShownMetric("policy_loss", "", "Loss", "policy"),
    ShownMetric("advantage_std", "", "Advantage", "advantage"),
    ShownMetric("reply_tokens", "", "Reply length", "mean of a reply"),
    ShownMetric("lr", "", "Learning rate", "learning rate", "learning_rate"),
    ShownMetric("errors", "", "Errors", "errors"),
    ShownMetric("skipped_updates", "", "Updates left out", "not finite"),
    ShownMetric("engine_gap", "", "Engine and learner", "gap"),
    ShownMetric("rollout_seconds", "", "Time", "playing"),
    ShownMetric("learn_seconds", "", "Time", "learning"),
    ShownMetric("env_turn_seconds", "", "Answers of the environment", "mean of a turn"),
    ShownMetric("slowest_env_seconds", "", "Answers of the environment", "the slowest"),
    ShownMetric("behind_seconds", "", "Answers of the environment", "waited behind others"),
    ShownMetric("staleness", "staleness {:.1f}", "Staleness", "mean of an episode"),
    ShownMetric("staleness_max", "", "Staleness", "of the oldest"),
    ShownMetric("learner_idle", "", "Idle", "learner"),
    ShownMetric("players_idle", "", "Idle", "places for episodes"),
    ShownMetric("idle_share", "", "Idle", "idle"),
    ShownMetric("open_episodes", "", "Queues", "being played"),
    ShownMetric("waiting_episodes", "", "Queues", "waiting to be learnt from"),
    ShownMetric("episodes_there", "", "Queues", "open"),
    ShownMetric("dropped", "dropped {:.0%}", _DROPPED, "dropped groups"),
    ShownMetric("length_bias", "length {:+.1%}", _DROPPED, "bias of the length"),
    ShownMetric("warmup_left_seconds", "at most {:.0f} s left"),
    ShownMetric("estimate_error", "missed {:.3f}"),
    ShownMetric("estimate_explained", "explained {:.0%}"),
    ShownMetric("value_explained", "critic explained {:.0%}"),
)
_OWNER_FORMS = {"return": "return {:.2f}"}  # of a role: in most games success is one side's alone


def owned_keys(lines: Iterable[Mapping[str, Any]], metric: str) -> list[tuple[str, str]]:
    """Owner and key of a metric in lines of metrics; the owner is empty where there is one policy and one host.

    >>> owned_keys([{"entropy": 0.5, "buyer/entropy": 0.4, "parts/entropy": 1.0}], "entropy")
    [('', 'entropy'), ('buyer', 'buyer/entropy')]
    """
    keys = dict.fromkeys(key for line in lines for key in line if not key.startswith(PARTS))
    return [(key.rpartition("/")[0], key) for key in keys if key.rpartition("/")[2] == metric]


def figures_in_line(line: Mapping[str, Any]) -> list[str]:
    """The figures of a line as they are printed: those of the run, then those of each policy after its name.

    >>> figures_in_line({"success": 0.5, "buyer/entropy": 0.25, "buyer/grad_norm": 1.0})
    ['success 0.50', 'buyer: entropy 0.250  grad 1.00']
    >>> figures_in_line({"success": 0.5, "return": 1.0, "buyer/return": 0.25, "buyer/invalid": 0.0})
    ['success 0.50', 'buyer: return 0.25']
    """
    by_owner: dict[str, list[str]] = {"": []}
    for shown in SHOWN:
        for owner, key in owned_keys([line], shown.key):
            form = _OWNER_FORMS.get(shown.key, shown.form) if owner else shown.form
            if form and line[key] is not None and not (owner and shown.key == "invalid" and not line[key]):
                by_owner.setdefault(owner, []).append(form.format(line[key]))
    return by_owner.pop("") + [f"{owner}: {'  '.join(figures)}" for owner, figures in by_owner.items()]
