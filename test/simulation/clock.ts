/** Time that passes only when nothing is left to do at the present moment: a queue of events, run one after another. */

/** An event that may be called off before it runs; `run` is null once it has been, or has run. */
export type Event = { readonly atMs: number; readonly order: number; run: (() => void) | null };

/** Events that were called off leave the queue together, once they are more than this and more than half of it. */
const CALLED_OFF_MIN = 10_000;

export class VirtualClock {
  #nowMs: number;
  #order = 0;
  #events: Event[] = [];
  #calledOff = 0;

  /** @param nowMs Where time begins, epoch ms. */
  constructor(nowMs: number) {
    this.#nowMs = nowMs;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Events run so far. */
  events = 0;

  /** Queues an event. Events of one moment run in the order in which they were queued. */
  at(atMs: number, run: () => void): Event {
    this.#order += 1;
    const event: Event = { atMs: Math.max(this.#nowMs, Math.ceil(atMs)), order: this.#order, run };
    this.#push(event);
    return event;
  }

  after(ms: number, run: () => void): Event {
    return this.at(this.#nowMs + Math.max(0, ms), run);
  }

  /** The event does not run, unless it has already. */
  callOff(event: Event): void {
    if (event.run === null) return;
    event.run = null;
    this.#calledOff += 1;
    if (this.#calledOff < CALLED_OFF_MIN || this.#calledOff < this.#events.length / 2) return;
    // In order, a list is a heap.
    this.#events = this.#events.filter(({ run }) => run !== null).sort((a, b) => a.atMs - b.atMs || a.order - b.order);
    this.#calledOff = 0;
  }

  /** Resolves after so much virtual time, for what has no activity of its own. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }

  /** Runs events until there is none, `untilMs` has come, or `isOver`. What promises an event resolves runs before the next event. */
  async run(untilMs: number, isOver: () => boolean = () => false): Promise<void> {
    await settled();
    await oneAfterAnother(() => !isOver() && this.#runNext(untilMs));
    if (untilMs !== Infinity && !isOver()) this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  /** Runs the next event; false if there is none until then. */
  #runNext(untilMs: number): boolean {
    for (;;) {
      const next = this.#events[0];
      if (next === undefined || next.atMs > untilMs) return false;
      this.#pop();
      const { run } = next;
      if (run === null) {
        this.#calledOff -= 1;
        continue;
      }
      next.run = null;
      this.#nowMs = next.atMs;
      this.events += 1;
      run();
      return true;
    }
  }

  #push(event: Event): void {
    const heap = this.#events;
    let child = heap.length;
    heap.push(event);
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if (!isBefore(event, heap[parent])) break;
      this.#place(child, heap[parent]);
      child = parent;
    }
    this.#place(child, event);
  }

  #pop(): void {
    const heap = this.#events;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let parent = 0;
    for (;;) {
      let child = 2 * parent + 1;
      if (child >= heap.length) break;
      if (isBefore(heap[child + 1], heap[child])) child += 1;
      if (!isBefore(heap[child], last)) break;
      this.#place(parent, heap[child]);
      parent = child;
    }
    this.#place(parent, last);
  }

  #place(index: number, event: Event | undefined): void {
    if (event !== undefined) this.#events[index] = event;
  }
}

function isBefore(a: Event | undefined, b: Event | undefined): boolean {
  if (a === undefined || b === undefined) return a !== undefined;
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** Steps that one iteration of the event loop makes: an iteration costs as much as a step. */
const STEPS_TOGETHER = 64;

/**
 * Makes steps until one returns false. Before each of them, every promise that could be resolved by then has been, with all that
 * follows from it: so Node runs the callbacks of one iteration.
 */
function oneAfterAnother(step: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    const end = (ends: () => void): void => {
      isOver = true;
      ends();
    };
    const next = (): void => {
      if (isOver) return;
      try {
        if (!step()) end(resolve);
      } catch (error) {
        end(() => reject(error));
      }
    };
    const together = (): void => {
      if (isOver) return;
      for (let at = 0; at < STEPS_TOGETHER; at += 1) setImmediate(next);
      setImmediate(together);
    };
    together();
  });
}

/** Resolves when every promise that could be resolved by now has been, with all that follows from it. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
