/**
 * Answers of another run, whose object has them: what the calls of a turn want is requested together, and they wait for the
 * reply. If the other run cannot be reached, it has no answers: a call is made rather than lost.
 */
import { answerChars } from "../../../src/answer.ts";
import { ANSWERS_ASKED_MAX, ANSWERS_READY_CHARS_MAX, RECORDED_ANSWERS_MAX } from "../../../src/limits.ts";
import type { AnswersWanted, NamedAnswer } from "../../../src/objects/methods/replay.ts";
import { BoundedMap } from "../../../src/renewed/bounded-map.ts";

/** What is wanted, and by which calls of which epoch. */
export type AnswersAsked = AnswersWanted & { epoch: string; calls: string[] };

export type OtherRunDeps = {
  /** Replies in the order of what is wanted; null = ask for it again. */
  request: (wanted: AnswersAsked[]) => Promise<(NamedAnswer[] | null)[]>;
  /** Calls back after the present turn. */
  soon: (callback: () => void) => void;
  /** Replies have come: who waits may look again. */
  arrived: () => void;
};

type Wanted = { epoch: string; key: string; without: readonly string[]; waiters: Set<string> };

export class OtherRun {
  readonly #deps: OtherRunDeps;
  /** By epoch and key. */
  readonly #wanted = new Map<string, Wanted>();
  /** Oldest first: answers that have come and were not taken yet. What nobody takes any more is dropped, and requested again if needed. */
  readonly #ready = new Map<string, NamedAnswer[]>();
  #readyChars = 0;
  /** What the other run has no (further) answer of. */
  readonly #missing = new BoundedMap<string, true>(RECORDED_ANSWERS_MAX);
  /** The answers that were taken, which need not be in the run's own rows yet. */
  readonly #taken = new BoundedMap<string, string[]>(RECORDED_ANSWERS_MAX);
  /** How often the other run sent an answer that the epoch had had. */
  readonly #repeats = new BoundedMap<string, number>(RECORDED_ANSWERS_MAX);
  #isRequesting = false;

  constructor(deps: OtherRunDeps) {
    this.#deps = deps;
  }

  /**
   * The next answer of a key for an epoch; `awaited` until the other run has replied; null if it has none.
   * @param waiter Names who wants it: a call that looks several times wants one answer.
   * @param had The ids of the key's answers that the epoch has had.
   */
  take(
    call: { epoch: string; key: string; waiter: string },
    had: () => readonly string[],
  ): NamedAnswer | "awaited" | null {
    const name = `${call.epoch} ${call.key}`;
    const ready = this.#ready.get(name);
    const answer = ready?.shift();
    if (ready?.length === 0) this.#ready.delete(name);
    if (answer !== undefined) {
      this.#readyChars -= answerChars(answer);
      this.#noteTaken(name, answer.id);
      return answer;
    }
    if (this.#missing.has(name)) return null;
    const wanted = this.#wanted.get(name);
    if (wanted !== undefined) wanted.waiters.add(call.waiter);
    else
      this.#wanted.set(name, {
        epoch: call.epoch,
        key: call.key,
        without: [...had(), ...(this.#taken.get(name) ?? [])],
        waiters: new Set([call.waiter]),
      });
    if (!this.#isRequesting) {
      this.#isRequesting = true;
      this.#deps.soon(() => void this.#requestWanted());
    }
    return "awaited";
  }

  /**
   * An answer that was taken is one that the epoch has had: of two equal calls, one has taken the answer that the other had
   * requested. The other run repeats its answer to a name that it knows, so calls get new names there from now on.
   */
  hadAlready({ epoch, key }: { epoch: string; key: string }): void {
    const name = `${epoch} ${key}`;
    this.#repeats.set(name, (this.#repeats.get(name) ?? 0) + 1);
  }

  #namesOf(name: string, waiters: ReadonlySet<string>): string[] {
    const repeats = this.#repeats.get(name);
    return [...waiters].map((waiter) => (repeats === undefined ? waiter : `${waiter}.${repeats}`));
  }

  #noteTaken(name: string, id: string): void {
    const taken = this.#taken.get(name);
    if (taken !== undefined) taken.push(id);
    else this.#taken.set(name, [id]);
  }

  /** Requests answers until nothing is wanted any more. Never rejects. */
  async #requestWanted(): Promise<void> {
    while (this.#wanted.size > 0) {
      const requested = [...this.#wanted].slice(0, ANSWERS_ASKED_MAX);
      const wanted = requested.map(([name, { epoch, key, without, waiters }]) => ({
        epoch,
        key,
        without: [...without],
        count: waiters.size,
        calls: this.#namesOf(name, waiters),
      }));
      const replies = await this.#deps.request(wanted).catch((error: unknown) => {
        console.error("the recorded answers of another run could not be requested", error);
        return wanted.map(() => []);
      });
      for (const [at, [name]] of requested.entries()) this.#replied(name, wanted[at]?.count ?? 0, replies[at] ?? null);
      this.#deps.arrived();
    }
    this.#isRequesting = false;
  }

  #replied(name: string, count: number, answers: NamedAnswer[] | null): void {
    if (answers === null) return;
    this.#wanted.delete(name);
    if (answers.length > 0) this.#keep(name, answers);
    if (answers.length < count) this.#missing.set(name, true);
  }

  /** Keeps answers for those that wait, who look again at once: older ones are of calls that were cancelled meanwhile. */
  #keep(name: string, answers: NamedAnswer[]): void {
    this.#drop(name);
    this.#ready.set(name, answers);
    for (const answer of answers) this.#readyChars += answerChars(answer);
    for (const oldest of this.#ready.keys()) {
      if (this.#readyChars <= ANSWERS_READY_CHARS_MAX || oldest === name) break;
      this.#drop(oldest);
    }
  }

  #drop(name: string): void {
    for (const answer of this.#ready.get(name) ?? []) this.#readyChars -= answerChars(answer);
    this.#ready.delete(name);
  }
}
