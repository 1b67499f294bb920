// Working time: the time between two actions of the rater, each gap counted up to a limit. It uses
// a clock that runs evenly, whatever happens to the time of day.

export const MAX_GAP_MS = 30000;

export class WorkClock {
  constructor(now = () => performance.now()) {
    this.now = now;
    this.total = 0;
    this.last = null; // null: not running
    for (const type of ["pointerdown", "pointermove", "keydown", "wheel", "scroll", "input"]) {
      window.addEventListener(type, () => this.tick(), { passive: true, capture: true });
    }
    document.addEventListener("visibilitychange", () => (document.hidden ? this.stop() : this.start()));
  }

  start() {
    if (this.last === null) this.last = this.now();
  }

  tick() {
    if (this.last === null) return;
    const now = this.now();
    this.total += Math.min(now - this.last, MAX_GAP_MS);
    this.last = now;
  }

  stop() {
    this.tick();
    this.last = null;
  }

  // Return the milliseconds since the last call.
  take() {
    this.tick();
    const taken = Math.round(this.total);
    this.total = 0;
    return taken;
  }
}
