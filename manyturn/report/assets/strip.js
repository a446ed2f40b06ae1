// The turns of an episode in a row: a cell each to jump to, and lanes of signed bars for credit, rewards and entropy.

const mean = (values) => {
  const known = (values ?? []).filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
};

const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value ?? 0)), 0);

/** Sums of the rewards up to each turn. */
function cumulative(rewards) {
  let sum = 0;
  return rewards.map((reward) => (reward === null ? null : (sum += reward)));
}

/** What the lanes show: kind, name, a value a turn, and the size that fills a bar. */
function lanesOf(trace) {
  const credit = Object.entries(trace.columns).map(([name, values]) => ({ kind: "credit", name, values }));
  const most = largest(credit.flatMap(({ values }) => values)); // levels of credit share a scale: they are summands
  const entropy = trace.entropies.map(mean);
  const others = [
    ["reward", trace.rewards],
    ["return to go", trace.to_go],
    ["cumulative", cumulative(trace.rewards)],
    ["progress", trace.progress],
    ["entropy", entropy],
  ].filter(([, values]) => values.some((value) => value !== null));
  return [
    ...credit.map((lane) => ({ ...lane, most })),
    ...others.map(([name, values]) => ({
      kind: name === "entropy" ? "tokens" : "rewards",
      name,
      values,
      most: largest(values),
    })),
  ];
}

/** What is wrong with a turn's reply, as words; empty if nothing is. */
const faultOf = (trace, turn) =>
  (trace.faults[turn] === "cut"
    ? ["cut: nothing was done"]
    : [!trace.format_valid[turn] && "broken format", !trace.understood[turn] && "not understood"])
    .filter(Boolean)
    .join(", ");

class Strip {
  #cells;
  #turns;

  /** `go(turn)` is called with the turn that is clicked. */
  constructor(trace, go, { lanes = true } = {}) {
    const colour = totalCredit(trace) ?? trace.rewards;
    const most = largest(colour);
    this.#turns = trace.replies.length;
    this.#cells = colour.map((value, turn) => this.#cell(turn, value, most, faultOf(trace, turn)));
    const head = make("span", { class: "lane-name" }, "turn");
    const rows = lanes && this.#turns ? lanesOf(trace).flatMap((lane) => this.#lane(lane)) : [];
    this.node = make(
      "div",
      {
        class: "strip",
        click: (event) => {
          const turn = event.target.closest("[data-turn]")?.dataset.turn;
          if (turn !== undefined) go(Number(turn));
        },
      },
      head,
      this.#cells,
      rows,
    );
    this.node.style.setProperty("--turns", String(Math.max(1, this.#turns)));
  }

  /** Mark the turn that is shown. */
  select(turn) {
    this.node.querySelectorAll(".here").forEach((cell) => {
      cell.classList.remove("here");
      cell.removeAttribute("aria-current");
      if (cell.tabIndex === 0) cell.tabIndex = -1;
    });
    this.node.querySelectorAll(`[data-turn="${turn}"]`).forEach((cell) => cell.classList.add("here"));
    const cell = this.#cells[turn];
    if (!cell) return;
    cell.setAttribute("aria-current", "step");
    cell.tabIndex = 0;
    const [box, one] = [this.node.getBoundingClientRect(), cell.getBoundingClientRect()];
    if (one.left < box.left + 110 || one.right > box.right)
      this.node.scrollLeft += one.left - (box.left + box.right) / 2;
  }

  #cell(turn, value, most, fault) {
    const note = `turn ${turn + 1}: ${signed(value)}${fault && `, ${fault}`}`;
    const cell = make(
      "button",
      {
        type: "button",
        class: `cell ${sign(value)}${fault && " invalid"}`,
        "data-turn": turn,
        tabindex: "-1",
        "aria-label": note,
        title: note,
      },
      String(turn + 1),
    );
    cell.style.setProperty("--heat", String(most ? Math.abs(value ?? 0) / most : 0));
    return cell;
  }

  #lane({ kind, name, values, most }) {
    const bars = values.map((value, turn) => {
      const bar = make("span", {
        class: `bar kind-${kind} ${sign(value)}`,
        "data-turn": turn,
        title: `turn ${turn + 1}: ${shown(name)} ${signed(value)}`,
      });
      bar.style.setProperty("--size", String(most && value !== null ? Math.abs(value) / most : 0));
      return bar;
    });
    return [
      make("span", { class: `lane-name kind-${kind}`, title: `a full bar is ${number(most)}` }, said(name)),
      ...bars,
    ];
  }
}

const sign = (value) => (value === null || value === 0 ? "none" : value > 0 ? "plus" : "minus");
