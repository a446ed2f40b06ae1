"""The page of an audit: one HTML file without scripts, in which each turn shows its true effect next to all credit."""

import base64
import hashlib
import math
from collections.abc import Sequence
from html import escape

from manyturn.audit.plots import plots
from manyturn.audit.result import CreditAudit
from manyturn.audit.table import interval, label, number
from manyturn.terminal.escape import visible
from manyturn.trainers.credit.audit.correlation import Estimate
from manyturn.trainers.credit.audit.turn_sample import OWN
from manyturn.trainers.credit.batch.turn_batch import FloatK
from manyturn.trainers.credit_audit.group_episodes import GroupEpisode

EPISODES = 48  # that the page shows turn by turn, in complete groups
_SHOWN = 600  # characters of an observation
_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; color: #1f2933; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; } th, td { padding: .2rem .6rem; text-align: right; vertical-align: top; }
th { border-bottom: 1px solid #9aa5b1; font-weight: 600; } td:first-child, th:first-child { text-align: left; }
tr:nth-child(even) td { background: #f5f7fa; } .turns td { font-variant-numeric: tabular-nums; }
.turns td.text { text-align: left; max-width: 28rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.turns { overflow-x: auto; } summary { cursor: pointer; padding: .3rem 0; } p.remark { color: #8a4b08; }
tr td.up3 { background: #9fd6a5; } tr td.up2 { background: #c5e8c9; } tr td.up1 { background: #e4f5e6; }
tr td.down3 { background: #f0a8a0; } tr td.down2 { background: #f6cbc6; } tr td.down1 { background: #fbe7e5; }
.sure { font-weight: 700; } svg { max-width: 100%; height: auto; }
"""


def audit_page(audit: CreditAudit) -> str:
    """The page as HTML; only its own style is admitted, and nothing is fetched."""
    style = f"sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}"
    policy = f"default-src 'none'; style-src '{style}'; base-uri 'none'; form-action 'none'"
    body = [_head(audit), _methods(audit), *plots(audit).values(), _anchors(audit), _episodes(audit)]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Credit audit: {escape(audit.env)}</title><style>{_STYLE}</style></head>\n"
        f"<body>{''.join(body)}</body></html>\n"
    )


def _head(audit: CreditAudit) -> str:
    truth, played = audit.truth, audit.played
    args = "".join(f", {name} {value}" for name, value in audit.env_args.items())
    facts = {
        "policy": audit.policy,
        "played": f"{len(played.tasks)} tasks, groups of {audit.config.group}, {len(audit.sample.task_K)} turns",
        "success": "-" if math.isnan(audit.success) else f"{audit.success:.0%}",
        "continuations": f"{played.continuations:,}, {played.steps:,} steps; ended by {played.ended}",
        "reliability of the truth": f"{truth.reliability:.2f}, within episodes {truth.reliability_within:.2f}",
        "turns of certain effect": f"{truth.certain:.0%}",
        "turns that carry nine tenths of all effect": "-" if math.isnan(truth.carrying) else f"{truth.carrying:.0%}",
        "seed": str(audit.config.seed),
    }
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in facts.items())
    remarks = "".join(f'<p class="remark">{escape(remark)}</p>' for remark in audit.remarks)
    return f"<h1>Credit audit: {escape(audit.env + args)}</h1><table>{rows}</table>{remarks}"


def _methods(audit: CreditAudit) -> str:
    first = audit.scores[0].method if audit.scores else ""
    names = ["method", "correlation", "within episodes", f"over {first}", "sign", "idle", "slope"]
    names += ["alignment", "spread"]
    rows = [_row(names, "th")]
    for score in (*audit.ranked, *audit.oracles):
        alignment = score.alignment
        over = "" if score.over_base is None else interval(score.over_base, "+")
        cells = [label(score), interval(score.correlation), interval(score.within), over, interval(score.sign)]
        cells += [number(score.idle), number(score.slope)]
        cells += ["", ""] if alignment is None else [interval(Estimate(*alignment[:3])), number(alignment.spread)]
        rows.append(_row(cells))
    skipped = "".join(f"<p>Not scored: {escape(name)}: {escape(why)}</p>" for name, why in audit.skipped.items())
    same = "".join(
        f"<p>No effect here: {escape(name)}: the same credit as {escape(other)}</p>"
        for name, other in audit.without_effect.items()
    )
    return f"<h2>Methods</h2><table>{''.join(rows)}</table>{same}{skipped}"


def _anchors(audit: CreditAudit) -> str:
    rows = [_row(["anchor", "turns with a companion", "share of value that it forgets"], "th")]
    rows += [_row([one.anchor, f"{one.shared:.0%}", interval(one.forgotten)]) for one in audit.anchors]
    kinds = list(audit.sample.anchors)
    matrix = [_row(["correlation by anchor", *kinds], "th")]
    for own in (*audit.ranked, *audit.oracles):
        others = {score.anchor: score for score in audit.scores if score.method == own.method}
        if len(others) > 1:
            matrix.append(_row([label(own), *(interval(others.get(kind, own).correlation) for kind in kinds)]))
    table = f"<p></p><table>{''.join(matrix)}</table>" if len(matrix) > 1 else ""
    return f"<h2>Anchors</h2><table>{''.join(rows)}</table>{table}"


def _episodes(audit: CreditAudit) -> str:
    """Complete groups turn by turn, as many as there is room for."""
    credits = {label(score): audit.credits[score.method, OWN] for score in (*audit.ranked, *audit.oracles)}
    parts, first, shown = ["<h2>Turns</h2>"], 0, 0
    parts.append(
        "<p>Each turn with its true effect ± standard error, bold where it is certain, and the credit of each method "
        "in units of the method's own standard deviation.</p>"
    )
    for task in audit.played.tasks:
        if shown and shown + len(task.episodes) > EPISODES:
            break
        for member, episode in enumerate(task.episodes):
            turns = range(first, first + len(episode.turns))
            parts.append(_episode(audit, f"{task.task}, member {member}", episode, turns, credits))
            first += len(episode.turns)
            shown += 1
    return "".join(parts)


def _episode(
    audit: CreditAudit, name: str, episode: GroupEpisode, turns: Sequence[int], credits: dict[str, FloatK]
) -> str:
    end = "truncated" if episode.truncated else "success" if episode.success else "failure"
    total = sum(turn.reward for turn in episode.turns)
    effects, certain_K = audit.sample.effects, audit.sample.effects.certain_K()
    spread = float(effects.effect_K.std()) or 1.0
    rows = [_row(["turn", "observation", "action", "reward", "value", "true effect", *credits], "th")]
    for k, turn in zip(turns, episode.turns, strict=True):
        effect = float(effects.effect_K[k])
        cells = [f"<td>{k - turns[0]}</td>", _text(turn.observation), _text(turn.action), f"<td>{turn.reward:g}</td>"]
        cells.append(f"<td>{effects.value_K[k]:.2f}</td>")
        sure = " sure" if certain_K[k] else ""
        cells.append(f'<td class="{_shade(effect / spread)}{sure}">{effect:+.3f} ± {effects.error_K[k]:.3f}</td>')
        for credit_K in credits.values():
            share = float(credit_K[k]) / (float(credit_K.std()) or 1.0)
            cells.append(f'<td class="{_shade(share)}">{share:+.2f}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f"<details><summary>{escape(name)}: {end}, return {total:g}, {len(episode.turns)} turns</summary>"
        f'<div class="turns"><table>{"".join(rows)}</table></div></details>'
    )


def _shade(share: float) -> str:
    """A class of colour by how many standard deviations a credit is."""
    size = 3 if abs(share) > 1.5 else 2 if abs(share) > 0.7 else 1 if abs(share) > 0.2 else 0
    return f"{'up' if share > 0 else 'down'}{size}" if size else ""


def _text(text: str) -> str:
    cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f'<td class="text">{escape(visible(cut))}</td>'


def _row(cells: Sequence[str], kind: str = "td") -> str:
    return f"<tr>{''.join(f'<{kind}>{escape(cell)}</{kind}>' for cell in cells)}</tr>"
