/**
 * The recorded answers of a run, by key, and which of them each epoch has had. An epoch is one life of a client's program: its
 * n-th call with a key gets the n-th recorded answer that the epoch has neither had nor made itself, so that n equal calls stay
 * n samples, in whatever order they arrive. Answers are named by ids; their texts are in the run's rows.
 */

export type TapeBounds = {
  /** Answers that are known; further ones are not recorded. */
  answersMax: number;
  /** Epochs that are remembered; the one that was used least recently is forgotten first, and would start over. */
  epochsMax: number;
  /** Answers that all remembered epochs have had. */
  usesMax: number;
};

/** A recorded answer. `at`: where its text is; unlike its id only for a copy of another run's answer. */
export type TapeAnswer = { id: string; at: string };

type Epoch = {
  had: Set<string>;
  /** By key: how many of its first answers the epoch has had. */
  passed: Map<string, number>;
};

export class Tape {
  readonly #bounds: TapeBounds;
  readonly #answers = new Map<string, TapeAnswer[]>();
  /** Of all answers. An answer has one key, and a key may have many answers: they are not searched one by one. */
  readonly #ids = new Set<string>();
  /** Least recently used first. */
  readonly #epochs = new Map<string, Epoch>();
  #uses = 0;

  constructor(bounds: TapeBounds) {
    this.#bounds = bounds;
  }

  /** Answers that are known. */
  get size(): number {
    return this.#ids.size;
  }

  has(key: string): boolean {
    return this.#answers.has(key);
  }

  /** Adds an answer after those of its key. False if there is no room, or the answer is known. */
  add(key: string, answer: TapeAnswer): boolean {
    if (this.size >= this.#bounds.answersMax || this.#ids.has(answer.id)) return false;
    this.#ids.add(answer.id);
    const known = this.#answers.get(key);
    if (known === undefined) this.#answers.set(key, [answer]);
    else known.push(answer);
    return true;
  }

  /** Notes that an epoch has had an answer, or made it. False if there is no room. */
  use(epoch: string, id: string): boolean {
    const { had } = this.#epochOf(epoch);
    if (had.has(id)) return true;
    this.#forgetEpochs(epoch);
    if (this.#uses >= this.#bounds.usesMax) return false;
    had.add(id);
    this.#uses += 1;
    return true;
  }

  /** The first answer of a key that the epoch has not had, which it has from now on; null if there is none. */
  take(epoch: string, key: string): TapeAnswer | null {
    const answers = this.#answers.get(key);
    if (answers === undefined) return null;
    const { had, passed } = this.#epochOf(epoch);
    let place = passed.get(key) ?? 0;
    while (place < answers.length && had.has(answers[place]?.id ?? "")) place += 1;
    // Most keys have one answer: then looking again costs less than remembering.
    if (place > 1) passed.set(key, place);
    const answer = answers[place];
    return answer !== undefined && this.use(epoch, answer.id) ? answer : null;
  }

  /** Any answer of a key, for calls that may share one; null if there is none. */
  any(key: string): TapeAnswer | null {
    return this.#answers.get(key)?.[0] ?? null;
  }

  /** Up to `count` answers of a key, without those of these ids. */
  others(key: string, without: ReadonlySet<string>, count: number): TapeAnswer[] {
    const found: TapeAnswer[] = [];
    for (const answer of this.#answers.get(key) ?? []) {
      if (found.length >= count) break;
      if (!without.has(answer.id)) found.push(answer);
    }
    return found;
  }

  /** Whether an epoch has had an answer. */
  hasHad(epoch: string, id: string): boolean {
    return this.#epochs.get(epoch)?.had.has(id) === true;
  }

  #epochOf(name: string): Epoch {
    const known = this.#epochs.get(name);
    const epoch = known ?? { had: new Set<string>(), passed: new Map<string, number>() };
    if (known !== undefined) this.#epochs.delete(name);
    this.#epochs.set(name, epoch);
    if (this.#epochs.size > this.#bounds.epochsMax) this.#forgetOldest(name);
    return epoch;
  }

  #forgetEpochs(present: string): void {
    while (this.#uses >= this.#bounds.usesMax && this.#forgetOldest(present));
  }

  #forgetOldest(present: string): boolean {
    const [name] = this.#epochs.keys();
    if (name === undefined || name === present) return false;
    this.#uses -= this.#epochs.get(name)?.had.size ?? 0;
    this.#epochs.delete(name);
    return true;
  }
}
