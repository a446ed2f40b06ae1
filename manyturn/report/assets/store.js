// Where the report comes from: data inside this file, or a server that shows a run while it grows.

const CHUNKS_KEPT = 32;

/** Data inside this file: base64 of gzip of JSON, in elements that a browser does not run. */
class Enclosed {
  live = false;

  async #unpack(id) {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  }

  document() {
    return this.#unpack("document");
  }

  chunk(number) {
    return this.#unpack(`chunk-${number}`);
  }
}

/** A server on this machine. It gives its data to those who know the token, which came in the address. */
class Served {
  live = true;
  #token;
  #tag = null;

  constructor() {
    const parts = new URLSearchParams(location.hash.slice(1));
    const given = parts.get("token");
    if (given !== null) {
      sessionStorage.setItem("manyturn-token", given);
      // The token leaves the address, so that a copied link does not carry it.
      const rest = location.hash
        .slice(1)
        .split("&")
        .filter((part) => !part.startsWith("token="));
      history.replaceState(null, "", `#${rest.join("&")}`);
    }
    this.#token = given ?? sessionStorage.getItem("manyturn-token") ?? "";
  }

  async #get(path, headers = {}) {
    let answer;
    try {
      answer = await fetch(path, { headers: { "X-Manyturn-Token": this.#token, ...headers }, cache: "no-store" });
    } catch {
      throw new Error("The server has gone. Start manyturn view again, or wait: this page keeps asking.");
    }
    if (answer.status === 401 || answer.status === 403) {
      throw new Error("The server does not know this page's token: open the address that manyturn view printed.");
    }
    if (!answer.ok && answer.status !== 304) throw new Error(`The server answered ${answer.status} to ${path}.`);
    return answer;
  }

  /** The document, or null if it is the one that was given last. */
  async document() {
    const answer = await this.#get("api/document", this.#tag === null ? {} : { "If-None-Match": this.#tag });
    if (answer.status === 304) return null;
    const found = await answer.json();
    this.#tag = answer.headers.get("ETag");
    return found;
  }

  async chunk(number) {
    // Numbers mean something in one document only: the server refuses them once it has given another.
    return (await this.#get(`api/chunk/${number}`, this.#tag === null ? {} : { "If-Match": this.#tag })).json();
  }
}

/** Traces of episodes; the chunks used last stay in memory. */
class Traces {
  #chunks = new Map();
  #source;
  #report;

  constructor(source, report) {
    this.#source = source;
    this.#report = report;
  }

  chunk(number) {
    const found = this.#chunks.get(number) ?? this.#source.chunk(number);
    this.#chunks.delete(number); // the order of a Map is that of insertion: the first is the one unused for longest
    this.#chunks.set(number, found);
    found.catch(() => this.#chunks.delete(number));
    if (this.#chunks.size > CHUNKS_KEPT) this.#chunks.delete(this.#chunks.keys().next().value);
    return found;
  }

  /** The trace of an episode, by its number in the document. */
  async of(episode) {
    const size = this.#report.document.chunk_size;
    const trace = (await this.chunk(Math.floor(episode / size)))[episode % size];
    if (trace?.replies.length !== this.#report.episodes.turns[episode]) {
      throw new Error("The turns of this episode do not belong to this list: a run that grows shows them in a moment.");
    }
    return trace;
  }
}
