"""The figure of the comparison of credit methods: where the gain of each recipe comes from."""

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from credit_methods_results import Split

PARTS = {"stage": ("own stage", "#2563eb"), "companions": ("settings published with it", "#d97706")}
APART = ("gra",)  # on a scale of its own: rewards for turns can ruin a policy
WANTED = 8  # seeds from which a bar is drawn in full


def draw(splits: Sequence[Split], path: Path, idle: Collection[tuple[str, str]] = ()) -> None:
    """A column for each world; for each recipe two bars with 95 % intervals over seeds, and a diamond for their sum.

    Args:
        idle: worlds and methods that were left out there, since their first cell was that of another row.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    drawn = [split for split in splits if split.gain.seeds]
    worlds = list(dict.fromkeys(split.world for split in drawn))
    if not worlds:
        return
    rows = [list(dict.fromkeys(s.method for s in splits if (s.method in APART) == apart)) for apart in (False, True)]
    figure, axes = pyplot.subplots(
        len(rows), len(worlds), figsize=(1.5 + 2.6 * len(worlds), 4.4), sharex="row", sharey="row", squeeze=False,
        layout="constrained", height_ratios=[len(methods) for methods in rows],
    )  # fmt: skip
    for methods, panels in zip(rows, axes, strict=True):
        for world, panel in zip(worlds, panels, strict=True):
            of_world = {split.method: split for split in drawn if split.world == world}
            _panel(panel, methods, of_world, [method for where, method in idle if where == world])
    for world, panel in zip(worlds, axes[0], strict=True):
        seeds = sorted({split.gain.seeds for split in drawn if split.world == world})
        few = f" ({' to '.join(map(str, {seeds[0]: 0, seeds[-1]: 0}))} of {WANTED} seeds)" if seeds[0] < WANTED else ""
        panel.set_title(f"{world}{few}", fontsize=10)
    figure.supxlabel("gain in held-out success on GRPO's advantage with plain settings", fontsize=10)
    patches = [Patch(color=colour, label=name) for name, colour in PARTS.values()]
    total = Line2D([], [], color="black", marker="D", ls="", ms=5, label="full recipe")
    figure.legend(handles=[*patches, total], loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _panel(panel: Any, methods: Sequence[str], splits: dict[str, Split], idle: Collection[str]) -> None:
    for place, method in enumerate(reversed(methods)):
        if method in splits:
            _recipe(panel, place, splits[method])
        elif method in idle:
            panel.text(0.02, place, "left out", va="center", fontsize=9, color="gray")
    panel.axvline(0, color="black", lw=0.8)
    panel.set_yticks(range(len(methods)), list(reversed(methods)))
    panel.set_ylim(-0.5, len(methods) - 0.5)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.tick_params(axis="y", length=0)
    panel.grid(axis="x", alpha=0.3)


def _recipe(panel: Any, place: int, split: Split) -> None:
    faint = 1.0 if split.gain.seeds >= WANTED else 0.4
    for offset, (part, (_, colour)) in zip((0.18, -0.18), PARTS.items(), strict=True):
        interval = getattr(split, part).by_seed
        panel.barh(place + offset, interval.mean, height=0.32, color=colour, alpha=faint)
        if not math.isnan(interval.low):
            reach = interval.high - interval.mean
            panel.errorbar(interval.mean, place + offset, xerr=reach, color="black", lw=1, capsize=2)
    panel.plot([split.gain.by_seed.mean], [place], color="black", marker="D", ms=5, zorder=3)
