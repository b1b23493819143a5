/**
 * What a run has recorded: the tape in memory, which is built from the rows when it is first needed, and the rows of its single
 * calls. What a turn records is replayed from the next turn on, when it is in storage.
 */
import { answerChars, partsOf } from "../../../src/answer.ts";
import type { SlotRecord } from "../../../src/run/group/record.ts";
import { groupSeqOf } from "../../../src/run/queue/slot.ts";
import {
  ANSWERS_REPLY_CHARS_MAX,
  RECORDED_ANSWERS_MAX,
  RECORDED_CHARS_MAX,
  REPLAY_EPOCHS_MAX,
  REPLAY_USES_MAX,
} from "../../../src/limits.ts";
import { Tape, type TapeAnswer } from "../../../src/recordings/tape.ts";
import type { AnswersWanted, NamedAnswer, Recorded } from "../../../src/objects/methods/replay.ts";
import type { RunStore } from "../store/store.ts";
import type { TapeMark } from "../store/tape.ts";

/** How the id of an answer begins that another run has recorded; the rest is its id there. */
export const OTHER_RUN = "r";

/** Characters of a mark, about: a key and an epoch. */
const MARK_CHARS = 250;

const BOUNDS = { answersMax: RECORDED_ANSWERS_MAX, epochsMax: REPLAY_EPOCHS_MAX, usesMax: REPLAY_USES_MAX };

export type RecordingsDeps = {
  store: Pick<RunStore, "groups" | "slots" | "tape" | "isFull">;
  /** Adds rows to the present turn. */
  addWrite: (write: () => void) => void;
};

/** Rows that the present turn writes for single calls. */
type TapeRow = { id: number; marks: TapeMark[]; answers: string[]; chars: number };

export class Recordings {
  readonly #deps: RecordingsDeps;
  #tape: Tape | null = null;
  #row: TapeRow | null = null;
  #nextRow = 0;
  /** What becomes known once the present turn is stored. */
  #unwritten: (() => void)[] = [];

  constructor(deps: RecordingsDeps) {
    this.#deps = deps;
  }

  /** The next answer of a key for an epoch, which the epoch has had from now on; null if there is none. */
  take(epoch: string, key: string): NamedAnswer | null {
    return this.#named(this.#known.take(epoch, key));
  }

  /** Any answer of a key; null if there is none. */
  any(key: string): NamedAnswer | null {
    return this.#named(this.#known.any(key));
  }

  has(key: string): boolean {
    return this.#known.has(key);
  }

  hasHad(epoch: string, id: string): boolean {
    return this.#known.hasHad(epoch, id);
  }

  /** Notes that an epoch has an answer of another run. */
  use(epoch: string, id: string): void {
    this.#known.use(epoch, id);
  }

  /** The ids of the answers of a key that come from another run, as that run names them. */
  fromOthers(key: string): string[] {
    const all = this.#known.others(key, new Set(), Infinity);
    return all.filter(({ id }) => id.startsWith(OTHER_RUN)).map(({ id }) => id.slice(OTHER_RUN.length));
  }

  /** Answers for another run, in the order of what it wants; null = not in this reply. */
  answersFor(wanted: readonly AnswersWanted[]): (NamedAnswer[] | null)[] {
    let chars = 0;
    return wanted.map(({ key, without, count }) => {
      if (chars > ANSWERS_REPLY_CHARS_MAX) return null;
      const found = this.#known.others(key, new Set(without), count).flatMap((answer) => this.#named(answer) ?? []);
      for (const answer of found) chars += answerChars(answer);
      return found;
    });
  }

  /** A slot has completed. `of`: the answer that it had; absent = it made one. */
  slotCompleted(
    epoch: string,
    { id: slotId, replay }: Pick<SlotRecord, "id"> & { replay: { key: string; of?: string } },
  ): void {
    const { key, of } = replay;
    const at = placeOfSlot(slotId);
    if (of === undefined) this.#learn(epoch, key, { id: at, at });
    else if (of.startsWith(OTHER_RUN)) this.#learn(epoch, key, { id: of, at });
  }

  /** A single call has made an answer, or had one of another run. False: it is too long for a row, or the run is full. */
  callAnswered({ key, epoch }: { key: string; epoch: string }, answer: Recorded, of?: string): boolean {
    const text = JSON.stringify(answer);
    if (text.length > RECORDED_CHARS_MAX || this.#isFull) return false;
    const row = this.#rowFor(text.length);
    const line = row.answers.push(text) - 1;
    row.marks.push({ key, epoch, ...(of === undefined ? {} : { of }), line });
    const at = `t${row.id}.${line}`;
    this.#learn(epoch, key, { id: of ?? at, at });
    return true;
  }

  /** A single call had an answer that the run has already, or that is too long for a row. */
  callReplayed({ key, epoch }: { key: string; epoch: string }, of: string): void {
    if (!this.#deps.store.isFull) this.#rowFor(0).marks.push({ key, epoch, of });
  }

  /** The turn is stored: what it has recorded is known from now on. */
  written(): void {
    this.#row = null;
    if (this.#unwritten.length === 0) return;
    const learned = this.#unwritten;
    this.#unwritten = [];
    for (const learn of learned) learn();
  }

  #learn(epoch: string, key: string, answer: TapeAnswer): void {
    // Before the rows of this turn are written: they would be read as well.
    const tape = this.#known;
    this.#unwritten.push(() => {
      tape.add(key, answer);
      tape.use(epoch, answer.id);
    });
  }

  get #known(): Tape {
    if (this.#tape !== null) return this.#tape;
    const tape = new Tape(BOUNDS);
    const epochs = new Map<number, string>();
    for (const { stored } of this.#deps.store.groups.all()) {
      const { seq, replay } = stored.header;
      if (replay !== undefined) epochs.set(seq, replay.epoch);
    }
    for (const { id, key, of } of this.#deps.store.slots.recorded()) {
      const epoch = epochs.get(groupSeqOf(id));
      if (epoch === undefined) continue;
      const at = placeOfSlot(id);
      if (of === null || of.startsWith(OTHER_RUN)) tape.add(key, { id: of ?? at, at });
      tape.use(epoch, of ?? at);
    }
    for (const { id: row, marks } of this.#deps.store.tape.all()) {
      for (const { key, epoch, of, line } of marks) {
        const at = `t${row}.${line}`;
        if (line !== undefined) tape.add(key, { id: of ?? at, at });
        tape.use(epoch, of ?? at);
      }
    }
    this.#tape = tape;
    return tape;
  }

  /** Whether no further answer of a single call is stored: its row would serve nothing. */
  get #isFull(): boolean {
    return this.#known.size >= RECORDED_ANSWERS_MAX || this.#deps.store.isFull;
  }

  #rowFor(answerChars: number): TapeRow {
    const chars = answerChars + MARK_CHARS;
    if (this.#row !== null && this.#row.chars + chars <= RECORDED_CHARS_MAX) {
      this.#row.chars += chars;
      return this.#row;
    }
    const { store, addWrite } = this.#deps;
    const id = Math.max(this.#nextRow, store.tape.lastId() + 1);
    this.#nextRow = id + 1;
    const row: TapeRow = { id, marks: [], answers: [], chars };
    this.#row = row;
    addWrite(() => store.tape.put(id, row));
    return row;
  }

  #named(answer: TapeAnswer | null): NamedAnswer | null {
    const recorded = answer === null ? null : this.#read(answer.at);
    return answer === null || recorded === null ? null : { ...recorded, id: answer.id };
  }

  #read(at: string): Recorded | null {
    const [first = 0, line] = at.slice(1).split(".").map(Number);
    if (line !== undefined) return this.#deps.store.tape.answer(first, line);
    const slot = this.#deps.store.slots.one(first);
    return slot?.text == null ? null : recordedOf({ ...slot, text: slot.text });
  }
}

function placeOfSlot(slotId: number): string {
  return `s${slotId}`;
}

function recordedOf(record: SlotRecord & { text: string }): Recorded {
  const { text, model, finishReason, upstream, checks } = record;
  return {
    text,
    ...partsOf(record),
    model: model ?? "",
    finishReason,
    ...(upstream === undefined ? {} : { upstream }),
    ...(checks?.violation === null ? { isJson: true } : {}),
  };
}
