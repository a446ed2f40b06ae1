// The list of episodes: sortable, and drawn only where it is looked at, so that ten thousand rows stay light.

const ROWS_BEYOND = 8; // rows drawn above and below what is seen

class EpisodeList {
  #report = null;
  #order = [];
  #current = null;
  #sort = { column: null, down: false };
  #heads = make("div", { class: "row heads" });
  #rows = make("ol", { class: "rows" });
  #space = make("li", { class: "space", "aria-hidden": "true" });
  #drawn = new Map(); // rows on the page, by place

  constructor(root) {
    this.filters = new Filters(() => this.#arrange());
    root.append(this.filters.node, this.#heads, this.#rows);
    this.#rows.addEventListener("scroll", () => this.#paint(), { passive: true });
    new ResizeObserver(() => this.#paint()).observe(this.#rows);
  }

  /** Take another state of the report, in which the episode that is open has the number `current`. */
  show(report, traces, current) {
    [this.#report, this.#current] = [report, current];
    for (const part of [this.#rows, this.#heads]) {
      part.classList.toggle("several", report.document.sources.length > 1);
      part.classList.toggle("credited", report.credited);
    }
    this.filters.show(report, traces);
  }

  /** Mark the episode that is open and bring it into view. */
  select(i) {
    this.#current = i;
    const at = this.#order.indexOf(i);
    const [height, top, seen] = [this.#rowHeight(), this.#rows.scrollTop, this.#rows.clientHeight];
    if (at >= 0 && (at * height < top || (at + 1) * height > top + seen)) this.#rows.scrollTop = at * height - seen / 2;
    this.#clear();
    this.#paint();
  }

  /** The episode `by` places further in the list, or null at its end. */
  neighbour(i, by) {
    const at = this.#order.indexOf(i);
    return (at < 0 ? this.#order[0] : this.#order[at + by]) ?? null;
  }

  #columns() {
    const { episodes, document } = this.#report;
    const outcomes = (i) => OUTCOMES.indexOf(this.#report.outcome(i));
    return [
      ["ok", "ok", outcomes],
      ["task", "task", (i) => episodes.task[i]],
      ["source", "source", (i) => document.sources[episodes.source[i]]],
      ["place", "stage \u00b7 member", (i) => `${episodes.stage[i]} ${episodes.member[i]}`],
      ["ending", "ending", (i) => episodes.ending[i] + episodes.cause[i]],
      ["return", "return", (i) => episodes.return[i]],
      ["turns", "turns", (i) => episodes.turns[i]],
      ["credit", "credit", (i) => episodes.credit[i]],
    ].filter(
      ([name]) => (name !== "source" || document.sources.length > 1) && (name !== "credit" || this.#report.credited),
    );
  }

  #arrange() {
    const order = this.filters.passing();
    const { column, down } = this.#sort;
    const key = this.#columns().find(([name]) => name === column)?.[2];
    if (key) {
      const compare = new Intl.Collator("en", { numeric: true }).compare;
      const keys = new Map(order.map((i) => [i, key(i)]));
      order.sort((i, j) => {
        const [a, b] = [keys.get(i), keys.get(j)];
        if (a === null || b === null) return (a === null) - (b === null); // unknown stands last in both directions
        return (typeof a === "string" ? compare(a, b) : a - b) * (down ? -1 : 1);
      });
    }
    this.#order = order;
    this.#heads.replaceChildren(...this.#columns().map(([name, label]) => this.#head(name, label)));
    this.#clear();
    this.#paint();
  }

  #head(name, label) {
    const { column, down } = this.#sort;
    const arrow = column === name ? (down ? " \u2193" : " \u2191") : "";
    const state = column === name ? `, sorted ${down ? "down" : "up"}` : "";
    return make(
      "button",
      {
        type: "button",
        class: name,
        "aria-label": `sort by ${label}${state}`,
        click: () => {
          this.#sort =
            column !== name
              ? { column: name, down: false }
              : down
                ? { column: null, down: false }
                : { column, down: true };
          this.#arrange();
          this.#heads.querySelector(`.${name}`).focus();
        },
      },
      label + arrow,
    );
  }

  #rowHeight() {
    return parseFloat(getComputedStyle(this.#rows).getPropertyValue("--row"));
  }

  #clear() {
    const none = this.#order.length ? [] : [make("li", { class: "none hint" }, "No episode passes these filters.")];
    this.#drawn.clear();
    this.#rows.replaceChildren(this.#space, ...none);
  }

  /** Draw what is in view. Rows that stay in view stay on the page: a click on a row that is drawn again is lost. */
  #paint() {
    const height = this.#rowHeight();
    const from = Math.max(0, Math.floor(this.#rows.scrollTop / height) - ROWS_BEYOND);
    const to = Math.min(
      this.#order.length,
      Math.ceil((this.#rows.scrollTop + this.#rows.clientHeight) / height) + ROWS_BEYOND,
    );
    this.#space.style.setProperty("height", `${this.#order.length * height}px`);
    for (const [at, row] of this.#drawn) {
      if (at < from || at >= to) {
        row.remove();
        this.#drawn.delete(at);
      }
    }
    let last = this.#space;
    for (let at = from; at < to; at += 1) {
      const row = this.#drawn.get(at) ?? this.#row(this.#order[at], at, height);
      if (!this.#drawn.has(at)) last.after(row);
      this.#drawn.set(at, row);
      last = row;
    }
  }

  #row(i, at, height) {
    const { task, source, stage, member, ending, cause, return: returns, turns, credit } = this.#report.episodes;
    const link = make(
      "a",
      {
        class: "row",
        href: this.#report.address(i),
        tabindex: i === this.#current ? "0" : "-1",
        "aria-current": i === this.#current && "true",
        title: shown(task[i]),
      },
      make("span", { class: "ok" }, outcomeSign(this.#report.outcome(i))),
      said(task[i], "task"),
      this.#report.document.sources.length > 1 ? said(this.#report.document.sources[source[i]], "source") : null,
      make("span", { class: "place" }, said(stage[i]), make("span", {}, `\u00a0\u00b7 ${member[i]}`)),
      make("span", { class: "ending", title: shown(cause[i]) }, said(ending[i])),
      make("span", { class: "return" }, number(returns[i])),
      make("span", { class: "turns" }, String(turns[i])),
      this.#report.credited
        ? make("span", { class: "credit" }, credit[i] === null ? "\u2013" : signed(Number(credit[i].toFixed(2))))
        : null,
    );
    const item = make("li", { "aria-setsize": this.#order.length, "aria-posinset": at + 1 }, link);
    item.style.setProperty("top", `${at * height}px`);
    return item;
  }
}
