/**
 * A day's budget among parts of the list of runs: the code of both sides, over rows in memory and a network whose messages wait until a
 * step delivers, loses or repeats them. An instance that crashes loses what it has not stored, and none of its promises goes on.
 */
import { DayPart, type OwnLease, type PartRows } from "../../durable-objects/directory/day-part.ts";
import { DayWhole, type WholeRows } from "../../durable-objects/directory/day-whole.ts";
import type { Lease, LeaseReply, LeaseRequest } from "../../src/run/money/day-lease.ts";

export const PARTS = 4;
const DAY = "2026-11-29";

export type Step =
  | { do: "open"; part: number; nanoUsd: number; limit: number }
  | { do: "end"; part: number; at: number; spent: number; overrun: number }
  | { do: "deliver" | "lose" | "repeat"; at: number }
  | { do: "crashPart"; part: number }
  | { do: "crashWhole" };

/** Promises that follow each other in one delivery, with room. */
const PROMISES_IN_A_ROW = 50;

/** Resolves when all has happened that needs no message. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < PROMISES_IN_A_ROW; turn++) await Promise.resolve();
}

type Message = { deliver: () => unknown; lose: () => void; repeat: (() => unknown) | null };
type OpenRun = { held: number };

/** One instance: what it has under way ends with it. */
class Life {
  readonly #end = Promise.withResolvers<never>();
  isAlive = true;

  constructor() {
    this.#end.promise.catch(() => undefined);
  }

  end(): void {
    this.isAlive = false;
    this.#end.reject(new Error("the instance has ended"));
  }

  /** The result of a call to this instance, unless it ends before. */
  until<T>(call: Promise<T>): Promise<T> {
    return Promise.race([call, this.#end.promise]);
  }

  /** Throws in an instance that has ended: it writes nothing any more. */
  check(): void {
    if (!this.isAlive) throw new Error("the instance has ended");
  }
}

class Part {
  own: OwnLease | null = null;
  committed = 0;
  readonly runs: OpenRun[] = [];
  life = new Life();
}

export class LeasedDay {
  readonly #parts = Array.from({ length: PARTS }, () => new Part());
  #instances: DayPart[] = [];
  readonly #leases = new Map<string, Lease>();
  #wholeLife = new Life();
  #whole: DayWhole;
  readonly #messages: Message[] = [];
  opened = 0;
  refused = 0;
  overruns = 0;
  requests = 0;
  repeatedReplies = 0;

  constructor() {
    this.#whole = this.#newWhole();
    this.#instances = this.#parts.map((part, name) => this.#newPart(part, name));
  }

  /** What is open and spent, what the whole has leased, and the parts that believe to have more than the whole knows. */
  look(): { committed: number; leased: number; aboveWhole: number[] } {
    const committed = this.#parts.reduce((sum, part) => sum + part.committed, 0);
    const aboveWhole = this.#parts.flatMap(({ own }, name) =>
      (own?.nanoUsd ?? 0) > (this.#leases.get(String(name))?.nanoUsd ?? 0) ? [name] : [],
    );
    return { committed, leased: this.#leased(), aboveWhole };
  }

  async step(step: Step): Promise<void> {
    if (step.do === "open") void this.open(step.part, step.nanoUsd, step.limit);
    else if (step.do === "end") void this.#end(step);
    else if (step.do === "crashPart") this.#crashPart(step.part);
    else if (step.do === "crashWhole") this.#crashWhole();
    else this.#onMessage(step);
    await settled();
  }

  /** Delivers every message in order, until there is none. */
  async quiet(): Promise<void> {
    await settled();
    for (let [message] = this.#messages; message !== undefined; [message] = this.#messages) {
      this.#messages.shift();
      message.deliver();
      await settled();
    }
  }

  /** Opens a run; false if the day's budget refuses it, or the request is lost. */
  async open(name: number, nanoUsd: number, limitNanoUsd: number): Promise<boolean> {
    const part = this.#partAt(name);
    const reserve = (): void => {
      part.committed += nanoUsd;
      part.runs.push({ held: nanoUsd });
    };
    try {
      const covered = this.#instanceAt(name).cover(DAY, { nanoUsd, limitNanoUsd }, reserve);
      const reply = await part.life.until(Promise.resolve(covered));
      if (reply.ok) this.opened += 1;
      else this.refused += 1;
      return reply.ok;
    } catch {
      return false;
    }
  }

  /** Opens a run while nothing else happens. */
  async openAlone(name: number, nanoUsd: number, limitNanoUsd: number): Promise<boolean> {
    const opening = this.open(name, nanoUsd, limitNanoUsd);
    await this.quiet();
    return await opening;
  }

  async #end({ part: name, at, spent, overrun }: Extract<Step, { do: "end" }>): Promise<void> {
    const part = this.#partAt(name);
    const [run] = part.runs.splice(at % Math.max(1, part.runs.length), 1);
    if (run === undefined) return;
    const counted = Math.min(spent, run.held + overrun);
    part.committed += counted - run.held;
    this.overruns += Math.max(0, counted - run.held);
    await this.#coverOverrun(name);
  }

  /** A run repeats its report until it has succeeded: here, once at the end of the history. */
  async reportAll(): Promise<void> {
    const reports = this.#parts.map((_, name) => this.#coverOverrun(name));
    await this.quiet();
    await Promise.all(reports);
  }

  async #coverOverrun(name: number): Promise<void> {
    const { life } = this.#partAt(name);
    await life.until(this.#instanceAt(name).coverOverrun(DAY)).catch(() => undefined);
  }

  #onMessage({ do: what, at }: Extract<Step, { at: number; do: "deliver" | "lose" | "repeat" }>): void {
    const index = at % Math.max(1, this.#messages.length);
    const message = this.#messages[index];
    if (message === undefined) return;
    if (what === "repeat") return void message.repeat?.();
    this.#messages.splice(index, 1);
    message[what]();
  }

  #crashPart(name: number): void {
    const part = this.#partAt(name);
    part.life.end();
    part.life = new Life();
    this.#instances[name] = this.#newPart(part, name);
  }

  #crashWhole(): void {
    this.#wholeLife.end();
    this.#wholeLife = new Life();
    this.#whole = this.#newWhole();
  }

  #newPart(part: Part, name: number): DayPart {
    const { life } = part;
    const rows: PartRows = {
      own: () => (life.check(), part.own),
      putOwn: (_, lease) => {
        life.check();
        part.own = lease;
      },
      committed: () => (life.check(), part.committed),
      transaction: (write) => {
        life.check();
        write();
      },
    };
    const ask = async (request: LeaseRequest): Promise<LeaseReply> => {
      this.requests += 1;
      const reply = await this.#send(life, () => this.#wholeLife.until(this.#whole.lease(DAY, String(name), request)));
      if (reply.covers === null) this.repeatedReplies += 1;
      return reply;
    };
    return new DayPart({ rows, ask: (_, request) => ask(request).catch(() => ask(request)) });
  }

  #newWhole(): DayWhole {
    const life = this.#wholeLife;
    const rows: WholeRows = {
      leaseOf: (_, part) => (life.check(), this.#leases.get(part) ?? { no: 0, nanoUsd: 0 }),
      putLeaseOf: (_, part, lease) => {
        life.check();
        this.#leases.set(part, lease);
      },
      lessees: () => [...this.#leases].flatMap(([part, { nanoUsd }]) => (nanoUsd > 0 ? [part] : [])),
      committed: () => (life.check(), this.#leased()),
    };
    const release = (part: string, _: string, no: number): Promise<Lease> =>
      this.#send(life, async () => this.#instanceAt(Number(part)).release(DAY, no));
    // Parts that are lost reject: none hangs here.
    return new DayWhole({ rows, release, timer: () => () => undefined });
  }

  /** Sends a call, and its reply when that is there. */
  #send<T>(from: Life, call: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const lose = (): void => {
        if (from.isAlive) reject(new Error("lost"));
      };
      const reply = (settle: () => void): void => {
        this.#messages.push({ deliver: () => from.isAlive && settle(), lose, repeat: null });
      };
      const arrive = (answer: (settle: () => void) => void): void => {
        call().then(
          (value) => answer(() => resolve(value)),
          (error: unknown) => answer(() => reject(error)),
        );
      };
      const late = { deliver: () => arrive(() => undefined), lose: () => undefined, repeat: null };
      this.#messages.push({ deliver: () => arrive(reply), lose, repeat: () => this.#messages.push(late) });
    });
  }

  #leased(): number {
    return [...this.#leases.values()].reduce((sum, { nanoUsd }) => sum + nanoUsd, 0);
  }

  #partAt(name: number): Part {
    const part = this.#parts[name];
    if (part === undefined) throw new Error(`no part ${name}`);
    return part;
  }

  #instanceAt(name: number): DayPart {
    const instance = this.#instances[name];
    if (instance === undefined) throw new Error(`no part ${name}`);
    return instance;
  }
}
