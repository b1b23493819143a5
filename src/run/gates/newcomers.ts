/**
 * What runs begin with at a gate that has not replied to them yet. Their first calls must not wait for a reply; but hundreds of runs may
 * begin at once, so those of one isolate share what they take. Where a gate has told a run of this isolate that its key is limited, they
 * take little: the gate hands out what there is within milliseconds.
 */
import type { GateGrant } from "../../gate/wire.ts";
import {
  GATE_FREE_PERMITS,
  GATE_KNOWN_TTL_MS,
  GATE_LIMITED_FREE_MAX,
  GATE_REPLY_MS_MAX,
  GATE_UNKNOWN_IN_FLIGHT_MAX,
} from "../../limits.ts";

/** What a grant says of the key. */
type Verdict = Pick<GateGrant, "class" | "newRuns">;

/** What new runs may have in flight: all of them together, and each. */
type Room = { all: number; each: number };

const UNKNOWN: Room = { all: GATE_UNKNOWN_IN_FLIGHT_MAX, each: GATE_FREE_PERMITS };

/** A run that is new at a gate: what it has in flight there, and until when that counts. */
type Taken = { attempts: number; untilMs: number };

/** The runs of an isolate that are new at one gate. */
class Beginnings {
  /** In the order in which they began. */
  readonly #taken = new Map<Newcomer, Taken>();
  #sum = 0;
  #room = UNKNOWN;
  #knownUntilMs = -Infinity;

  /** Attempts that a run may have in flight now. */
  permitsOf(run: Newcomer, nowMs: number): number {
    this.#expire(nowMs);
    const { all, each } = nowMs < this.#knownUntilMs ? this.#room : UNKNOWN;
    const ofOthers = this.#sum - (this.#taken.get(run)?.attempts ?? 0);
    return Math.min(each, Math.max(0, all - ofOthers));
  }

  add(run: Newcomer, by: 1 | -1, nowMs: number): void {
    const known = this.#taken.get(run);
    if (by < 0 && (known === undefined || known.attempts === 0)) return;
    if (known === undefined) {
      this.#taken.set(run, { attempts: 1, untilMs: nowMs + GATE_REPLY_MS_MAX });
    } else known.attempts += by;
    this.#sum += by;
  }

  delete(run: Newcomer): void {
    this.#sum -= this.#taken.get(run)?.attempts ?? 0;
    this.#taken.delete(run);
  }

  know(verdict: Verdict, nowMs: number): void {
    this.#room = roomOf(verdict);
    this.#knownUntilMs = nowMs + GATE_KNOWN_TTL_MS;
  }

  /** A run whose object was lost says nothing more. One whose gate has not replied by then decides alone. */
  #expire(nowMs: number): void {
    for (const [run, { untilMs }] of this.#taken) {
      if (nowMs < untilMs) return;
      this.delete(run);
    }
  }
}

/** A key that lets its calls wait has nothing for a burst. */
function roomOf({ class: gateClass, newRuns = UNKNOWN.all }: Verdict): Room {
  if (gateClass !== "open") return { all: GATE_LIMITED_FREE_MAX, each: 1 };
  const all = Math.max(GATE_LIMITED_FREE_MAX, newRuns);
  return { all, each: Math.min(UNKNOWN.each, all) };
}

/** One run at one gate, as long as the gate has not replied to it. */
export class Newcomer {
  readonly #beginnings: Beginnings;

  constructor(beginnings: Beginnings) {
    this.#beginnings = beginnings;
  }

  /** Attempts that it may have in flight. */
  permitsAt(nowMs: number): number {
    return this.#beginnings.permitsOf(this, nowMs);
  }

  started(nowMs: number): void {
    this.#beginnings.add(this, 1, nowMs);
  }

  /** An attempt has ended, whenever it was started. */
  ended(): void {
    this.#beginnings.add(this, -1, 0);
  }

  /** The gate has replied: what the run has in flight counts there. */
  replied(verdict: Verdict, nowMs: number): void {
    this.#beginnings.know(verdict, nowMs);
    this.left();
  }

  /** The gate cannot be reached: the run decides alone. */
  left(): void {
    this.#beginnings.delete(this);
  }
}

/** The runs that are new at the gates of an isolate. */
export class Newcomers {
  readonly #gates = new Map<string, Beginnings>();

  /** A run that meets a gate. */
  at(gate: string): Newcomer {
    let known = this.#gates.get(gate);
    if (known === undefined) {
      known = new Beginnings();
      this.#gates.set(gate, known);
    }
    return new Newcomer(known);
  }

  /** Forgets all gates: for tests, whose gates know nothing in the beginning. */
  forget(): void {
    this.#gates.clear();
  }
}
