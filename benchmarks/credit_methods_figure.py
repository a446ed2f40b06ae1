"""The figure of the comparison of credit methods: where the gain of each recipe comes from."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from credit_methods_results import Split

PARTS = {"stage": ("own stage", "#2563eb"), "companions": ("settings published with it", "#d97706")}
WANTED = 8  # seeds from which a bar is drawn in full


def draw(splits: Sequence[Split], path: Path) -> None:
    """A panel for each world, two bars with 95 % intervals over seeds for each recipe, and a diamond for their sum."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    worlds = list(dict.fromkeys(split.world for split in splits if split.gain.seeds))
    if not worlds:
        return
    figure, axes = pyplot.subplots(
        1, len(worlds), figsize=(1.5 + 2.6 * len(worlds), 3.6), sharey=True, layout="constrained", squeeze=False
    )
    for panel, world in zip(axes[0], worlds, strict=True):
        found = [split for split in splits if split.world == world]
        for place, split in enumerate(reversed(found)):
            if split.gain.seeds:
                _recipe(panel, place, split)
        panel.axvline(0, color="black", lw=0.8)
        panel.set_yticks(range(len(found)), [split.method for split in reversed(found)])
        seeds = {split.gain.seeds for split in found}
        few = f" ({min(seeds)} to {max(seeds)} of {WANTED} seeds)" if min(seeds) < WANTED else ""
        panel.set_title(f"{world}{few}", fontsize=10)
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.tick_params(axis="y", length=0)
        panel.grid(axis="x", alpha=0.3)
    figure.supxlabel("gain in held-out success on GRPO's advantage with plain settings", fontsize=10)
    patches = [Patch(color=colour, label=name) for name, colour in PARTS.values()]
    total = Line2D([], [], color="black", marker="D", ls="", ms=5, label="full recipe")
    figure.legend(handles=[*patches, total], loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _recipe(panel: Any, place: int, split: Split) -> None:
    for offset, (part, (_, colour)) in zip((0.18, -0.18), PARTS.items(), strict=True):
        interval = getattr(split, part).by_seed
        reach = 0.0 if math.isnan(interval.low) else interval.high - interval.mean
        faint = 1.0 if split.gain.seeds >= WANTED else 0.4
        panel.barh(place + offset, interval.mean, height=0.32, color=colour, alpha=faint)
        if reach:
            panel.errorbar(interval.mean, place + offset, xerr=reach, color="black", lw=1, capsize=2)
    panel.plot([split.gain.by_seed.mean], [place], color="black", marker="D", ms=5, zorder=3)
