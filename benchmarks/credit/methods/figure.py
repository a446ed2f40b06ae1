"""The figures of the comparison of credit methods: what was tested, and what each part of a method gains."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.credit.methods.plan import seeds
from benchmarks.credit.methods.results import Difference, Split

OWN, WITH, WHOLE, NOT_SHOWN = "#2563eb", "#d97706", "black", "silver"
NAMES = {
    OWN: "the method's own part",
    WITH: "what comes with it: a setting, or the world's rewards",
    WHOLE: "all of it",
}
METHODS = {"gigpo": "GiGPO", "ppo": "PPO", "turn-ppo": "Turn-PPO", "gra": "G-RA"}
APART = ("gra",)  # on a scale of its own: rewards for turns can ruin a policy


class Bar(NamedTuple):
    """One line of a panel; ``gain`` is None where the row did nothing."""

    name: str
    colour: str
    gain: Difference | None


def draw_tested(tested: Iterable[tuple[Mapping[str, Any], Difference, str]], path: Path) -> None:
    """A line for each hypothesis: the difference that it is about, with its interval over seeds, and the verdict."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.patches import Patch

    entries = [each for each in tested if each[1].seeds]
    if not entries:
        return
    figure, panel = pyplot.subplots(figsize=(8, 1.2 + 0.42 * len(entries)), layout="constrained")
    colours = [OWN if verdict == "shown" else NOT_SHOWN for *_, verdict in entries]
    names = [f"{_tested(h)}, {h['world']}" for h, *_ in entries]
    gains = [difference for _, difference, _ in entries]
    _panel(panel, [Bar(*cells) for cells in zip(names, colours, gains, strict=True)])
    panel.set_xlabel("gain in held-out success, with its 95 % interval over seeds")
    patches = [Patch(color=OWN, label="shown"), Patch(color=NOT_SHOWN, label="not shown")]
    figure.legend(handles=patches, loc="outside upper center", ncols=2, frameon=False)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _tested(hypothesis: Mapping[str, Any]) -> str:
    method, _, part = str(hypothesis["row"]).partition("/")
    against = "" if hypothesis["against"] == "base" else f" on its {str(hypothesis['against']).partition('/')[2]}"
    return f"{METHODS[method]}'s {part}{against}"


def draw(splits: Sequence[Split], path: Path) -> None:
    """A column for each world, a line for each part of a method, with 95 % intervals over seeds.

    Each panel has a scale of its own: in some worlds a rate ruins policies, and in others gains are small.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.patches import Patch

    drawn = [split for split in splits if split.full is None or split.full.seeds]
    worlds = list(dict.fromkeys(split.world for split in drawn))
    if not worlds:
        return
    lines = {
        (split.world, split.method in APART): [
            *([bar for other in drawn if (other.world, other.method in APART) == (split.world, split.method in APART)
               for bar in _bars(other)])
        ]
        for split in drawn
    }  # fmt: skip
    heights = [max((len(bars) for (_, apart), bars in lines.items() if apart == row), default=1) for row in (0, 1)]
    figure, axes = pyplot.subplots(
        2, len(worlds), figsize=(2.2 + 2.5 * len(worlds), 0.9 + 0.27 * sum(heights)), sharey="row",
        squeeze=False, layout="constrained", height_ratios=heights,
    )  # fmt: skip
    for apart, panels in enumerate(axes):
        for world, panel in zip(worlds, panels, strict=True):
            _panel(panel, lines.get((world, bool(apart)), []))
    for world, panel in zip(worlds, axes[0], strict=True):
        there = [split.full.seeds for split in drawn if split.world == world and split.full is not None]
        few = f" ({min(there)} of {len(seeds())} seeds)" if there and min(there) < len(seeds()) else ""
        panel.set_title(f"{world}{few}", fontsize=10)
    figure.supxlabel(
        "gain in held-out success on GRPO's advantage with plain settings; each panel has its own scale", fontsize=10
    )
    patches = [Patch(color=colour, label=name) for colour, name in NAMES.items()]
    figure.legend(handles=patches, loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _bars(split: Split) -> Iterator[Bar]:
    """Lines of a method. G-RA's own part is its gate, whose gain is that on its reward."""
    name = METHODS[split.method]
    yield Bar(name, WHOLE, split.full)
    for row, gain in split.parts.items():
        part = row.partition("/")[2]
        yield Bar(f"{part}", OWN if part == "stage" else WITH, gain)
    if split.method == "gra":
        yield Bar("gate on it", OWN, split.rest)


def _panel(panel: Any, bars: Sequence[Bar]) -> None:
    for place, bar in enumerate(reversed(bars)):
        if bar.gain is None:
            panel.text(0.005, place, "does nothing", va="center", fontsize=7, color="gray")
            continue
        interval = bar.gain.by_seed
        panel.barh(place, interval.mean, height=0.7, color=bar.colour, alpha=0.9 if bar.colour != WHOLE else 0.75)
        if not math.isnan(interval.low):
            reach = interval.high - interval.mean
            panel.errorbar(interval.mean, place, xerr=reach, color="dimgray", lw=1, capsize=2)
    panel.axvline(0, color="black", lw=0.8)
    panel.set_yticks(range(len(bars)), [bar.name for bar in reversed(bars)], fontsize=9)
    # The labels are those of the first panel of a row: the others share its axis and hide theirs.
    for label, bar in zip(panel.get_yticklabels(), reversed(bars), strict=False):
        label.set_fontweight("bold" if bar.colour == WHOLE else "normal")
    panel.set_ylim(-0.6, len(bars) - 0.4)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.tick_params(axis="y", length=0)
    panel.grid(axis="x", alpha=0.3)
