/**
 * A recording of what the Workers of a release send to objects: a script of calls, to be made again to the objects of
 * another version. Replies differ in ids and times, so a replay goes on with those that it gets.
 */

/** One call to an object: `id` or `name` says to which. */
export type RecordedCall = {
  object: { binding: string; id?: string; name?: string };
  method: string;
  args: unknown[];
  reply: unknown;
};

/** `recordedAtMs`: to move the times in it to the present. `commit`: the source of the Workers. */
export type Recording = { commit: string; recordedAtMs: number; calls: RecordedCall[] };

/** Numbers of so many ms since 1970 are times: from a day before the recording to a year after it. */
const DAY_MS = 86_400_000;

/** What a replay sends instead of what was recorded: ids and times of the present. */
export class Present {
  readonly #texts = new Map<string, string>();
  readonly #recordedAtMs: number;
  readonly #shiftMs: number;

  constructor(recordedAtMs: number, nowMs: number) {
    this.#recordedAtMs = recordedAtMs;
    this.#shiftMs = nowMs - recordedAtMs;
  }

  /** From now on this text stands for the recorded one, also inside of longer texts. */
  learn(recorded: string, present: string): void {
    if (recorded !== present) this.#texts.set(recorded, present);
  }

  /** Learns the texts of a reply that differ from those of the recorded one, such as the ids of attempts. */
  learnFrom(recorded: unknown, present: unknown): void {
    if (typeof recorded === "string" && typeof present === "string" && ID.test(recorded)) {
      return this.learn(recorded, present);
    }
    const parts = fieldsOf(present);
    for (const [key, value] of Object.entries(fieldsOf(recorded))) this.learnFrom(value, parts[key]);
  }

  of(value: unknown): unknown {
    if (typeof value === "string") return this.#text(value);
    if (typeof value === "number") return this.#isTime(value) ? value + this.#shiftMs : value;
    if (Array.isArray(value)) return value.map((item) => this.of(item));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, field]) => [this.#text(key), this.of(field)]));
  }

  #text(text: string): string {
    let present = text;
    for (const [recorded, replacement] of this.#texts) present = present.replaceAll(recorded, replacement);
    return present;
  }

  #isTime(value: number): boolean {
    return value > this.#recordedAtMs - DAY_MS && value < this.#recordedAtMs + 365 * DAY_MS;
  }
}

/** Texts that name something: long enough, and with digits; no sentences. */
const ID = /^(?=.*\d)[\w./:-]{8,}$/;

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** Fields by whose values a reader tells the forms of a reply apart. */
const FORMS = new Set(["ok", "kind"]);

/**
 * What a reader of the recorded reply does not find in the present one, as paths: fields that are gone, values of another
 * type, lists that are empty, replies of another form. What the present one has besides is ignored, as readers ignore it.
 */
export function missingIn(present: unknown, recorded: unknown, path = "reply"): string[] {
  if (recorded === null || recorded === undefined) return [];
  if (present === undefined) return [`${path} is gone`];
  if (present === null) return [`${path} is null`];
  if (typeof present !== typeof recorded || Array.isArray(present) !== Array.isArray(recorded)) {
    return [`${path} has another type`];
  }
  if (Array.isArray(recorded) && Array.isArray(present)) {
    if (recorded.length === 0) return [];
    return present.length === 0 ? [`${path} is empty`] : missingIn(present[0], recorded[0], `${path}[0]`);
  }
  const now = fieldsOf(present);
  return Object.entries(fieldsOf(recorded)).flatMap(([key, value]) =>
    FORMS.has(key) && value !== now[key] ? [`${path}.${key} differs`] : missingIn(now[key], value, `${path}.${key}`),
  );
}

/** What a group says only while slots of it are queued. */
const WHILE_QUEUED = new Set(["waitsFor", "queuedAhead"]);

/** The recorded state of a group as far as the present one can have it: time passes, and none of its slots may be queued any more. */
export function comparableState(recorded: unknown, present: unknown): unknown {
  const waits = Object.keys(fieldsOf(recorded)).some((key) => WHILE_QUEUED.has(key));
  if (!waits || fieldsOf(fieldsOf(present)["counts"])["queued"] !== 0) return recorded;
  return Object.fromEntries(Object.entries(fieldsOf(recorded)).filter(([key]) => !WHILE_QUEUED.has(key)));
}
