// Curves: lines with bands that tell their values to a pointer and to the keyboard.

const CHART = { height: 210, left: 46, right: 10, top: 8, bottom: 34 };
const COLOURS = 6; // classes series-0 … series-5 of the style sheet

/** At most about `count` round numbers that cover [low, high]. */
function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 2.5, 5].find((factor) => factor * power >= rough * 0.999) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: count + 2 }, (_, k) => (first + k) * step).filter((tick) => tick <= high + step * 1e-6);
}

/** [low, high] of the numbers, never empty. */
function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  if (low > high) return [0, 1];
  const margin = low === high ? Math.abs(low) * 0.1 || 1 : 0;
  return [low - margin, high + margin];
}

class Curve {
  #data;
  #width = 0;
  #plot = draw("svg", { class: "plot", height: CHART.height, tabindex: "0", role: "img" });
  #cursor = null;
  #readout = make("p", { class: "readout", "aria-live": "polite" });
  #at = null;

  constructor(data) {
    this.#data = data;
    this.xs = [...new Set(data.series.flatMap((one) => one.points.map((point) => point[0])))].sort((a, b) => a - b);
    const points = data.series.flatMap((one) => one.points);
    const ys = points.flatMap(([, ...values]) => values.filter((value) => value !== null));
    const [low, high] = extent(ys);
    // A share stands on the scale of all shares, unless it is so small that one would see a flat line.
    const top = high > 0.3 ? Math.max(1, high) : Math.max(high * 1.15, 0.01);
    this.yRange = data.percent ? [Math.min(0, low), top] : [low - (high - low) * 0.04, high + (high - low) * 0.04];
    this.xRange = extent(this.xs);
    this.#plot.setAttribute("aria-label", `${shown(data.title)}: left and right read the values`);
    this.#listen();
    const legend = data.series.map((one, k) =>
      make("li", {}, make("span", { class: `key series-${k % COLOURS}` }), said(one.name)),
    );
    this.node = make(
      "figure",
      { class: "card curve" },
      make("figcaption", {}, said(data.title), " ", said(data.y, "hint")),
      this.#plot,
      data.series.length > 1 ? make("ul", { class: "legend" }, legend) : null,
      this.#readout,
    );
    this.#tell();
    new ResizeObserver(([entry]) => this.#draw(Math.floor(entry.contentRect.width))).observe(this.node);
  }

  #x = (value) =>
    CHART.left +
    ((value - this.xRange[0]) / (this.xRange[1] - this.xRange[0])) * (this.#width - CHART.left - CHART.right);
  #y = (value) =>
    CHART.top +
    (1 - (value - this.yRange[0]) / (this.yRange[1] - this.yRange[0])) * (CHART.height - CHART.top - CHART.bottom);
  #written = (value) => (this.#data.percent ? percent(value) : number(value));

  #draw(width) {
    if (width === this.#width || width < 80) return;
    this.#width = width;
    this.#plot.setAttribute("width", width);
    this.#cursor = draw("line", {
      class: "cursor",
      y1: CHART.top,
      y2: CHART.height - CHART.bottom,
      visibility: "hidden",
    });
    const { series } = this.#data;
    this.#plot.replaceChildren(
      ...this.#axes(),
      ...series.map((one, k) => this.#band(one.points, k)),
      ...series.map((one, k) => this.#line(one.points, k)),
      this.#cursor,
    );
  }

  #axes() {
    const bottom = CHART.height - CHART.bottom;
    const nodes = ticks(...this.yRange, 4).flatMap((tick) => [
      draw("line", {
        class: "grid",
        x1: CHART.left,
        x2: this.#width - CHART.right,
        y1: this.#y(tick),
        y2: this.#y(tick),
      }),
      draw(
        "text",
        { class: "tick end", x: CHART.left - 6, y: this.#y(tick) + 4 },
        this.#written(Number(tick.toPrecision(6))),
      ),
    ]);
    for (const tick of ticks(...this.xRange, Math.max(2, Math.floor(this.#width / 90)))) {
      nodes.push(
        draw("text", { class: "tick middle", x: this.#x(tick), y: bottom + 15 }, number(Number(tick.toPrecision(6)))),
      );
    }
    nodes.push(draw("line", { class: "axis", x1: CHART.left, x2: this.#width - CHART.right, y1: bottom, y2: bottom }));
    nodes.push(
      draw("text", { class: "tick end", x: this.#width - CHART.right, y: CHART.height - 3 }, shown(this.#data.x)),
    );
    return nodes;
  }

  /** Runs of points without a gap. */
  #runs(points, whole) {
    const runs = [[]];
    for (const point of points) {
      if (whole(point)) runs.at(-1).push(point);
      else if (runs.at(-1).length) runs.push([]);
    }
    return runs.filter((run) => run.length);
  }

  #band(points, k) {
    const at = (x, y) => `${this.#x(x).toFixed(1)},${this.#y(y).toFixed(1)}`;
    const shapes = this.#runs(points, (point) => point[2] !== null && point[3] !== null).map((run) => {
      const above = run.toReversed().map(([x, , , high]) => at(x, high));
      return `M${[...run.map(([x, , low]) => at(x, low)), ...above].join("L")}Z`;
    });
    return draw("path", { class: `band series-${k % COLOURS}`, d: shapes.join("") });
  }

  #line(points, k) {
    const runs = this.#runs(points, (point) => point[1] !== null);
    const path = runs
      .map((run) => `M${run.map(([x, y]) => `${this.#x(x).toFixed(1)},${this.#y(y).toFixed(1)}`).join("L")}`)
      .join("");
    const few = points.length <= 40 ? runs.flat() : runs.filter((run) => run.length === 1).flat();
    return draw(
      "g",
      { class: `series-${k % COLOURS}` },
      draw("path", { class: `line dash-${Math.floor(k / COLOURS) % 3}`, d: path }),
      few.map(([x, y]) => draw("circle", { class: "dot", cx: this.#x(x), cy: this.#y(y), r: 2.4 })),
    );
  }

  #listen() {
    const move = (at) => {
      this.#at = at;
      this.#tell();
    };
    this.#plot.addEventListener("pointermove", (event) => {
      const x = event.clientX - this.#plot.getBoundingClientRect().left;
      const away = (value) => Math.abs(this.#x(value) - x);
      move(this.xs.reduce((best, value, k) => (away(value) < away(this.xs[best]) ? k : best), 0));
    });
    this.#plot.addEventListener("pointerleave", () => move(null));
    this.#plot.addEventListener("blur", () => move(null));
    this.#plot.addEventListener("focus", () => move(this.xs.length - 1));
    this.#plot.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      move(Math.max(0, Math.min(this.xs.length - 1, (this.#at ?? this.xs.length - 1) + by)));
    });
  }

  /** Write the values at the cursor; without a cursor, the last value of each series. */
  #tell() {
    const x = this.#at === null ? null : this.xs[this.#at];
    if (this.#cursor) {
      this.#cursor.setAttribute("visibility", x === null ? "hidden" : "visible");
      if (x !== null) for (const end of ["x1", "x2"]) this.#cursor.setAttribute(end, this.#x(x));
    }
    const values = this.#data.series.map((one, k) => {
      const known = one.points.filter((point) => point[1] !== null);
      const point = x === null ? known.at(-1) : known.find((each) => each[0] === x);
      if (!point) return null;
      const band = point[2] === null || point[3] === null ? "" : ` ${range(point[2], point[3], this.#data.percent)}`;
      return make(
        "span",
        { class: "value" },
        make("span", { class: `key series-${k % COLOURS}` }),
        `${this.#written(point[1])}${band}`,
      );
    });
    const where = x === null ? "last" : `${shown(this.#data.x)} ${number(x)}`;
    this.#readout.replaceChildren(make("span", { class: "where" }, where), ...values.filter(Boolean));
  }
}
