/** Checks a run's log: every event once, one start and one end per attempt, one end per slot. */
import { z } from "zod";

const line = z.looseObject({ seq: z.int(), event_type: z.string(), parallel_group_id: z.string().nullable() });
const at = { ts: z.iso.datetime() };
const attempt = { index: z.int(), attempt: z.int() };
const attemptStarted = z.looseObject({ ...attempt, reserved: z.looseObject({ usd: z.number() }) });
const attemptEnded = z.looseObject({
  ...at,
  ...attempt,
  outcome: z.string(),
  estimated: z.boolean(),
  charged: z.looseObject({ usd: z.number(), calls: z.number() }),
});
const slotCompleted = z.looseObject({ index: z.int(), status: z.string() });
const slotsCancelled = z.looseObject({ count: z.int() });

/** An attempt that has ended, at epoch ms. */
export type LoggedAttempt = {
  index: number;
  outcome: string;
  estimated: boolean;
  chargedNanoUsd: number;
  endedAtMs: number;
};

export class LogAudit {
  readonly faults: string[] = [];
  readonly attempts: LoggedAttempt[] = [];
  readonly groupIds: string[] = [];
  /** Ends of each slot that had one of its own. */
  readonly endsOf = new Map<number, number>();
  /** Slots that ended together with others, without ever running. */
  cancelled = 0;
  spentNanoUsd = 0;
  calls = 0;
  /** What each attempt reserved, nano-USD; null once it has ended. */
  readonly #reserved = new Map<string, number | null>();
  #groupsCompleted = 0;

  /** Reads a log from its first line to its last. */
  constructor(lines: readonly string[]) {
    for (const [place, text] of lines.entries()) {
      const event = line.parse(JSON.parse(text));
      if (event.seq !== place + 1) this.faults.push(`line ${place + 1} has seq ${event.seq}`);
      if (this.#groupsCompleted > 0) this.faults.push(`${event.event_type} after the group's end`);
      this.#read(event);
    }
    if (this.#groupsCompleted !== 1) this.faults.push(`the log has ${this.#groupsCompleted} ends of the group`);
    for (const [key, reserved] of this.#reserved)
      if (reserved !== null) this.faults.push(`${key} began and never ended`);
  }

  #read(event: z.infer<typeof line>): void {
    switch (event.event_type) {
      case "group_started":
        this.groupIds.push(event.parallel_group_id ?? "none");
        break;
      case "attempt_started":
        this.#begin(attemptStarted.parse(event));
        break;
      case "attempt_ended":
        this.#end(attemptEnded.parse(event));
        break;
      case "slot_completed": {
        const { index } = slotCompleted.parse(event);
        this.endsOf.set(index, (this.endsOf.get(index) ?? 0) + 1);
        break;
      }
      case "slots_cancelled":
        this.cancelled += slotsCancelled.parse(event).count;
        break;
      case "group_completed":
        this.#groupsCompleted += 1;
        break;
    }
  }

  #begin({ index, attempt, reserved }: z.infer<typeof attemptStarted>): void {
    const key = `attempt ${index}.${attempt}`;
    if (this.#reserved.has(key)) this.faults.push(`${key} began twice`);
    this.#reserved.set(key, nanoUsd(reserved.usd));
  }

  #end({ index, attempt, ts, outcome, estimated, charged }: z.infer<typeof attemptEnded>): void {
    const key = `attempt ${index}.${attempt}`;
    const reserved = this.#reserved.get(key) ?? null;
    if (reserved === null) this.faults.push(`${key} ended without having begun, or twice`);
    this.#reserved.set(key, null);
    const chargedNanoUsd = nanoUsd(charged.usd);
    if (estimated && chargedNanoUsd !== reserved) this.faults.push(`${key} is an estimate and not its reservation`);
    this.attempts.push({ index, outcome, estimated, chargedNanoUsd, endedAtMs: Date.parse(ts) });
    this.spentNanoUsd += chargedNanoUsd;
    this.calls += charged.calls;
  }
}

function nanoUsd(usd: number): number {
  return Math.round(usd * 1e9);
}
