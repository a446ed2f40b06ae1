// A reply token by token: the less likely a token was, or the less certain the policy, the stronger its background.

const FULL_HEAT = { logprob: 3, entropy: 2 }; // nats at which the background is strongest

class Tokens {
  #pieces;
  #measures;
  #readout = make("p", { class: "readout", "aria-live": "polite" });
  #spans = [];
  #at = 0;

  constructor({ tokens, logprobs, entropies }) {
    this.#pieces = tokens;
    this.#measures = { logprob: logprobs, entropy: entropies };
    this.#spans = tokens.map((text, k) => said(text === "" ? "\u2205" : text.replace(/\n/g, "\u21b5\n"), "token"));
    this.#spans.forEach((span, k) => {
      span.tabIndex = k ? -1 : 0;
      span.dataset.token = k;
    });
    const choice = make(
      "select",
      { "aria-label": "colour of tokens", change: () => this.#heat(choice.value) },
      make("option", { value: "logprob" }, "log-probability"),
      entropies ? make("option", { value: "entropy" }, "entropy") : null,
    );
    const box = make(
      "div",
      {
        class: "tokens",
        role: "group",
        "aria-label": "Tokens of the reply: left and right walk through them",
        pointerover: (event) => this.#tell(event.target),
        focusin: (event) => this.#tell(event.target),
        click: (event) => this.#tell(event.target),
        keydown: (event) => this.#walk(event),
      },
      this.#spans,
    );
    this.node = make(
      "section",
      { class: "kind-tokens part" },
      make("h4", {}, "Tokens ", make("span", { class: "hint" }, String(tokens.length)), choice),
      box,
      this.#readout,
    );
    this.#heat("logprob");
    this.#readout.append(this.#summary());
  }

  #summary() {
    const [logprob, entropy] = [mean(this.#measures.logprob), mean(this.#measures.entropy)];
    const uncertainty = entropy === null ? "" : ` \u00b7 mean entropy ${number(entropy)} nats`;
    return `mean log-probability ${number(logprob)}${uncertainty}`;
  }

  #heat(measure) {
    this.#spans.forEach((span, k) => {
      const value = Math.abs(this.#measures[measure]?.[k] ?? 0);
      span.style.setProperty("--heat", String(Math.min(1, value / FULL_HEAT[measure])));
    });
  }

  #tell(target) {
    const span = target.closest(".token");
    if (!span) return;
    const k = Number(span.dataset.token);
    this.#spans[this.#at].tabIndex = -1;
    span.tabIndex = 0;
    this.#at = k;
    const [logprob, entropy] = [this.#measures.logprob?.[k] ?? null, this.#measures.entropy?.[k] ?? null];
    const parts = [
      `token ${k + 1}`,
      `log-probability ${number(logprob)}`,
      `probability ${percent(logprob === null ? null : Math.exp(logprob))}`,
    ];
    if (entropy !== null) parts.push(`entropy ${number(entropy)} nats`);
    this.#readout.replaceChildren(said(this.#pieces[k], "quote"), ` ${parts.join(" \u00b7 ")}`);
  }

  #walk(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.#spans[Math.max(0, Math.min(this.#spans.length - 1, this.#at + by))].focus();
  }
}
