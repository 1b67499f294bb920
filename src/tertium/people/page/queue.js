// Events that the server has not confirmed yet. Each is one entry of localStorage, so that tabs do
// not overwrite each other, and stays there until the server has it on disk. Ids are made here:
// an event that is sent twice is stored once.

const FIRST_RETRY_MS = 1000;
const MAX_RETRY_MS = 15000;
const MAX_EVENTS = 50;

function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class EventQueue {
  // `send(events)` resolves to {saved, rejected} or throws; `onStatus` gets {waiting, error}.
  constructor(prefix, send, onStatus) {
    this.prefix = prefix;
    this.send = send;
    this.onStatus = onStatus;
    this.memory = new Map(); // only where localStorage cannot be used
    this.isSending = false;
    this.error = null;
    this.delay = FIRST_RETRY_MS;
    this.counter = 0;
    window.addEventListener("online", () => this.flush());
    window.addEventListener("beforeunload", (event) => {
      if (this.memory.size) event.preventDefault();
    });
  }

  keys() {
    const keys = [...this.memory.keys()];
    try {
      for (let n = 0; n < localStorage.length; n += 1) {
        const key = localStorage.key(n);
        if (key.startsWith(this.prefix)) keys.push(key);
      }
    } catch {
      /* no storage */
    }
    return keys.sort();
  }

  entries() {
    const read = (key) => this.memory.get(key) ?? localStorage.getItem(key);
    return this.keys().flatMap((key) => {
      const text = read(key);
      return text ? [[key, JSON.parse(text)]] : []; // another tab may have sent it
    });
  }

  add(body) {
    const newest = this.keys().at(-1)?.slice(this.prefix.length, this.prefix.length + 12) ?? "0";
    this.counter = Math.max(this.counter, parseInt(newest, 10)) + 1;
    const id = newId();
    const key = `${this.prefix}${String(this.counter).padStart(12, "0")}-${id}`;
    const text = JSON.stringify({ id, body });
    try {
      localStorage.setItem(key, text);
    } catch {
      this.memory.set(key, text);
    }
    this.report();
    this.flush();
  }

  remove(key) {
    this.memory.delete(key);
    try {
      localStorage.removeItem(key);
    } catch {
      /* no storage */
    }
  }

  report() {
    this.onStatus({ waiting: this.keys().length, error: this.error });
  }

  async flush() {
    if (this.isSending) return;
    this.isSending = true;
    clearTimeout(this.timer);
    try {
      for (;;) {
        const entries = this.entries().slice(0, MAX_EVENTS);
        if (!entries.length) break;
        const { saved, rejected } = await this.send(entries.map(([, event]) => event));
        const answered = new Set([...saved, ...rejected.map((entry) => entry.id)]);
        for (const [key, event] of entries) if (answered.has(event.id)) this.remove(key);
        this.error = rejected.length ? { kind: "rejected", message: rejected[0].message } : null;
        this.delay = FIRST_RETRY_MS;
        this.report();
        if (!answered.size) throw { kind: "server", message: "" };
      }
    } catch (problem) {
      this.error = problem.kind ? problem : { kind: "offline", message: String(problem) };
      if (this.error.kind !== "link") {
        this.timer = setTimeout(() => this.flush(), this.delay);
        this.delay = Math.min(MAX_RETRY_MS, 2 * this.delay);
      }
    } finally {
      this.isSending = false;
      this.report();
    }
  }
}
