// Which episodes are listed: choices, a range of returns, and text found in ids, causes, observations and replies.

const OUTCOMES = ["success", "failure", "error"];

class Filters {
  #changed;
  #report = null;
  #traces = null;
  #found = null; // episodes that hold the text, or null without a text
  #search = 0; // number of the search under way; an older one stops when it sees another
  #outcome = "all";
  #choices = new Map();
  #outcomes = new Map(["all", ...OUTCOMES].map((name) => [name, this.#segment(name)]));
  #selects = make("div", { class: "selects" });
  #count = make("span", { class: "hint", role: "status" });
  #progress = make("p", { class: "hint progress", role: "status", hidden: true });

  constructor(changed) {
    this.#changed = changed;
    this.text = make("input", {
      type: "search",
      placeholder: "Search ids, causes, observations, replies",
      "aria-label": "Search",
      input: () => this.#seek(),
    });
    const bound = (label) =>
      make("input", {
        type: "number",
        step: "any",
        placeholder: label,
        "aria-label": `${label} return`,
        input: () => changed(),
      });
    [this.low, this.high] = [bound("least"), bound("most")];
    this.more = make(
      "details",
      { class: "more" },
      make("summary", {}, "Filters"),
      this.#selects,
      make(
        "div",
        { class: "range" },
        make("span", {}, "return"),
        this.low,
        "to",
        this.high,
        make("button", { type: "button", click: () => this.clear() }, "Clear"),
      ),
    );
    this.node = make(
      "form",
      { class: "filters", submit: (event) => event.preventDefault() },
      this.text,
      this.#progress,
      make("div", { class: "segments", role: "group", "aria-label": "Outcome" }, [...this.#outcomes.values()]),
      make("div", { class: "more-line" }, this.more, this.#count),
    );
  }

  /** Take another state of the report, keeping what is chosen. */
  show(report, traces) {
    [this.#report, this.#traces] = [report, traces];
    const { stage, difficulty, tags, ending, split, source } = report.episodes;
    const sources = source.map((number) => report.document.sources[number]);
    const columns = { ending, stage, difficulty, tag: tags, split, source: sources };
    const selects = Object.entries(columns)
      .map(([label, column]) => this.#offer(label, column))
      .filter(Boolean);
    // A menu that somebody may have opened is left alone while its choices are the same.
    if (selects.some((select) => !select.isConnected) || selects.length !== this.#selects.children.length)
      this.#selects.replaceChildren(...selects);
    this.#showOutcomes();
    if (this.text.value === "") this.#changed();
    else this.#seek();
  }

  #offer(label, column) {
    const values = [...new Set(column.flat())].filter((value) => value !== null);
    values.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const before = this.#choices.get(label);
    if (before && JSON.stringify(before.values) === JSON.stringify(values)) {
      before.column = column;
      return before.select;
    }
    this.#choices.delete(label);
    if (values.length < 2) return null;
    const select = make(
      "select",
      {
        "aria-label": label,
        change: () => {
          this.#choices.get(label).value = values[select.value] ?? null;
          this.#changed();
        },
      },
      make("option", { value: "all" }, `any ${label}`),
      values.map((value, k) => make("option", { value: String(k) }, shown(value))),
    );
    const value = values.includes(before?.value) ? before.value : null;
    if (value !== null) select.value = String(values.indexOf(value));
    this.#choices.set(label, { column, values, value, select });
    return select;
  }

  #segment(name) {
    return make("button", {
      type: "button",
      "aria-pressed": String(name === "all"),
      click: () => {
        this.#outcome = name;
        this.#showOutcomes();
        this.#changed();
      },
    });
  }

  #showOutcomes() {
    const counts = new Map(OUTCOMES.map((name) => [name, 0]));
    for (let i = 0; i < this.#report.count; i += 1)
      counts.set(this.#report.outcome(i), counts.get(this.#report.outcome(i)) + 1);
    for (const [name, button] of this.#outcomes) {
      button.setAttribute("aria-pressed", String(this.#outcome === name));
      button.replaceChildren(`${name} `, make("b", {}, String(counts.get(name) ?? this.#report.count)));
    }
  }

  clear() {
    this.text.value = this.low.value = this.high.value = "";
    this.#outcome = "all";
    for (const choice of this.#choices.values()) [choice.value, choice.select.value] = [null, "all"];
    this.#showOutcomes();
    this.#seek();
  }

  /** The numbers of the episodes that pass, in the document's order. */
  passing() {
    const returns = this.#report.episodes.return;
    const bound = (input) => (input.value === "" || Number.isNaN(input.valueAsNumber) ? null : input.valueAsNumber);
    const [low, high] = [bound(this.low), bound(this.high)];
    const chosen = [...this.#choices.values()].filter(({ value }) => value !== null);
    const passes = (i) =>
      (this.#outcome === "all" || this.#report.outcome(i) === this.#outcome) &&
      (this.#found === null || this.#found.has(i)) &&
      (low === null || (returns[i] !== null && returns[i] >= low)) &&
      (high === null || (returns[i] !== null && returns[i] <= high)) &&
      chosen.every(({ column, value }) => (Array.isArray(column[i]) ? column[i].includes(value) : column[i] === value));
    const passing = Array.from({ length: this.#report.count }, (_, i) => i).filter(passes);
    this.#count.textContent = `${passing.length} of ${this.#report.count}`;
    const active = chosen.length + (low !== null) + (high !== null);
    this.more.firstChild.textContent = active ? `Filters (${active})` : "Filters";
    return passing;
  }

  async #seek() {
    const search = (this.#search += 1);
    const wanted = this.text.value.toLowerCase();
    this.#progress.hidden = wanted === "";
    if (wanted === "") {
      this.#found = null;
      this.#changed();
      return;
    }
    const holds = (text) => text.toLowerCase().includes(wanted);
    const { task, cause } = this.#report.episodes;
    const found = (this.#found = new Set(task.flatMap((id, i) => (holds(id) || holds(cause[i]) ? [i] : []))));
    this.#changed();
    const size = this.#report.document.chunk_size;
    const chunks = Math.ceil(this.#report.count / size);
    for (let number = 0; number < chunks; number += 1) {
      this.#progress.textContent = `Searching traces: ${number} of ${chunks} parts, ${found.size} found`;
      let traces;
      try {
        traces = await this.#traces.chunk(number);
      } catch (error) {
        this.#progress.textContent = error.message;
        return;
      }
      if (search !== this.#search) return;
      const before = found.size;
      traces.forEach((trace, k) => {
        if (trace.observations.some(holds) || trace.replies.some(holds) || holds(trace.last))
          found.add(number * size + k);
      });
      if (found.size !== before) this.#changed();
    }
    this.#progress.textContent = `All ${chunks} parts searched: ${found.size} found`;
  }
}
