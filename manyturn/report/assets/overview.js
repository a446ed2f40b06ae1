// What the report says before any episode: facts, warnings, figures with intervals, curves, tables.

const WHISKER = { width: 96, height: 14 };

/** A point with its interval on a short scale. */
function whisker(value, low, high, [from, to]) {
  const x = (one) => 4 + ((Math.max(from, Math.min(to, one)) - from) / (to - from)) * (WHISKER.width - 8);
  const { width, height } = WHISKER;
  const middle = height / 2;
  const known = low !== null && high !== null;
  return draw(
    "svg",
    { class: "whisker", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    draw("line", { class: "track", x1: 2, x2: width - 2, y1: middle, y2: middle }),
    from < 0 && to > 0 ? draw("line", { class: "zero", x1: x(0), x2: x(0), y1: 1, y2: height - 1 }) : null,
    known
      ? draw("line", { class: "reach", x1: x(low), x2: Math.max(x(high), x(low) + 1), y1: middle, y2: middle })
      : null,
    value === null ? null : draw("circle", { class: "mean", cx: x(value), cy: middle, r: 3.2 }),
  );
}

function figure({ name, value, low, high, n, percent: fraction }) {
  const written = fraction ? percent : number;
  const details = [];
  if (low !== null && high !== null) details.push(range(low, high, fraction));
  if (n !== null) details.push(`n\u00a0=\u00a0${number(n)}`);
  const scale = value !== null && (value < 0 || low < 0) ? [-1, 1] : [0, 1];
  return make(
    "div",
    { class: "card figure" },
    make("dt", {}, said(name)),
    make("dd", { class: "big" }, written(value)),
    fraction && low !== null ? make("dd", {}, whisker(value, low, high, scale)) : null,
    make("dd", { class: "hint" }, details.join(" \u00b7 ")),
  );
}

function intervalCell([mean, low, high], scale) {
  const band = low === null || high === null ? "" : range(low, high, true);
  return make(
    "span",
    { class: "spread" },
    whisker(mean, low, high, scale),
    make("span", { class: "mean-text" }, percent(mean)),
    make("span", { class: "hint" }, band),
  );
}

function tableCell(cell, kind, scale) {
  if (cell === null) return "\u2013";
  if (kind === "interval") return intervalCell(cell, scale);
  if (kind === "percent") return percent(cell);
  if (kind === "number") return number(cell);
  return kind === "seconds" ? duration(cell) : said(String(cell));
}

function table({ title, columns, rows }) {
  const scales = columns.map(({ kind }, c) => {
    if (kind !== "interval") return null;
    const reach = extent(rows.flatMap((row) => (row[c] ?? []).filter((value) => value !== null)).concat(0));
    const most = Math.max(Math.abs(reach[0]), Math.abs(reach[1]));
    return reach[0] < 0 ? [-most, most] : [0, Math.max(1, reach[1])];
  });
  const head = columns.map(({ name, kind }) => make("th", { scope: "col", class: kind }, said(name)));
  const body = rows.map((row) =>
    make(
      "tr",
      {},
      columns.map(({ kind }, c) => make("td", { class: kind }, tableCell(row[c], kind, scales[c]))),
    ),
  );
  return make(
    "div",
    { class: columns.length > 6 ? "card table wide" : "card table" },
    make("h3", {}, said(title)),
    make(
      "div",
      { class: "scroll", tabindex: "0", role: "group", "aria-label": shown(title) },
      make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, body)),
    ),
  );
}

const facts = (pairs) =>
  make(
    "dl",
    { class: "facts" },
    pairs.map(([name, text]) => make("div", {}, make("dt", {}, said(name)), make("dd", {}, said(text)))),
  );

/** The overview in parts; only those are drawn again whose data changed, so that a live page stays calm. */
class Overview {
  #root;
  #drawn = new Map();

  constructor(root) {
    this.#root = root;
  }

  show(data) {
    const parts = [
      [
        "warnings",
        data.warnings,
        () =>
          make(
            "ul",
            { class: "warnings", "aria-label": "Warnings" },
            data.warnings.map((text) => make("li", {}, said(text))),
          ),
      ],
      ["figures", data.figures, () => make("dl", { class: "figures" }, data.figures.map(figure))],
      ["facts", data.facts, () => facts(data.facts)],
      ...data.curves.map((each, k) => [`curve ${k}`, [each], () => new Curve(each).node]),
      ...data.tables.map((each, k) => [`table ${k}`, [each], () => table(each)]),
    ].filter(([, content]) => content.length);
    const drawn = new Map();
    for (const [key, content, render] of parts) {
      const state = JSON.stringify(content);
      const before = this.#drawn.get(key);
      drawn.set(key, before?.state === state ? before : { state, node: render() });
    }
    this.#drawn = drawn;
    const nodes = (prefix) => [...drawn].filter(([key]) => key.startsWith(prefix)).map(([, { node }]) => node);
    const grid = (name, cards) => (cards.length ? [make("div", { class: name }, cards)] : []);
    this.#root.replaceChildren(
      ...nodes("warnings"),
      ...nodes("facts"),
      ...nodes("figures"),
      ...grid("curves", nodes("curve")),
      ...grid("tables", nodes("table")),
    );
  }
}
