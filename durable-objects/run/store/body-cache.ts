/**
 * Bodies of large groups, which are in R2, in the memory of the run object: an object of R2 is read when dispatch comes to
 * it, together with those after it, and forgotten when others are read. Dispatch is synchronous, so it passes a slot over
 * until its body is here. Memory is bounded: the least recently used are dropped first.
 */
import type { BodyPlace } from "../../../src/run/queue/call-page.ts";
import type { BodyState } from "../../../src/run/state.ts";
import {
  BODY_CACHE_CHARS_MAX,
  BODY_LOADS_MAX,
  BODY_OBJECT_CHARS_MAX,
  BODY_OBJECTS_AHEAD,
  BODY_RETRY_MS,
  LOAD_RETRY_MS,
} from "../../../src/limits.ts";
import { RenewedMap } from "../../../src/renewed/map.ts";
import { RenewedSet } from "../../../src/renewed/set.ts";
import type { InstanceMemory, Member } from "./instance-memory.ts";

/** A group with bodies in R2, in objects numbered from 0. */
export type BodyGroup = { seq: number; openKey: string; objects: number };

export type BodyCacheDeps = {
  /** The text of an object: one body per line; null if there is no such object. Rejects if it cannot be read now. */
  load: (openKey: string, object: number) => Promise<string | null>;
  /** Called when a slot that was passed over may have its body. */
  arrived: () => void;
  wait: (ms: number) => Promise<void>;
  now: () => number;
  /** What the bodies of all run objects of the isolate count in. */
  memory: InstanceMemory;
};

type Held = { seq: number; lines: readonly string[]; chars: number };

export class BodyCache {
  readonly #deps: BodyCacheDeps;
  /** By name, least recently used first. */
  readonly #held = new RenewedMap<string, Held>();
  /** Objects that are being read, or wait for it. */
  readonly #loading = new RenewedSet<string>();
  /** Objects that are not in R2. */
  readonly #lost = new Map<string, number>();
  #chars = 0;
  readonly #member: Member;
  /** Whether it looks again soon whether there is room for a read. */
  #isWaiting = false;

  constructor(deps: BodyCacheDeps) {
    this.#deps = deps;
    this.#member = deps.memory.member(() => this.#giveBack());
  }

  /**
   * Whether the bodies of an object can be read; if not, it is loaded, and the next ones with it. While too many are being
   * loaded it is not: the turn that follows the next of them asks once more.
   */
  stateOf(group: BodyGroup, object: number): BodyState {
    const state = this.#demand(group, object);
    const last = Math.min(object + BODY_OBJECTS_AHEAD, group.objects - 1);
    for (let next = object + 1; next <= last; next++)
      if (!this.#knows(nameOf(group.seq, next))) this.#load(group, next);
    return state;
  }

  /** A body, as JSON text. Throws unless its object is `here`. */
  line(seq: number, { object, line }: BodyPlace): string {
    const text = this.#held.get(nameOf(seq, object))?.lines[line];
    if (text === undefined) throw new Error(`line ${line} of bodies ${object} of group ${seq} is not in memory`);
    return text;
  }

  /** Forgets a group that has ended. What is being read for it is dropped as it arrives, by later reads. */
  forget(seq: number): void {
    for (const [name, held] of this.#held) {
      if (held.seq !== seq) continue;
      this.#held.delete(name);
      this.#chars -= held.chars;
    }
    this.#member.keeps(this.#chars);
    for (const [name, of] of this.#lost) if (of === seq) this.#lost.delete(name);
  }

  #demand(group: BodyGroup, object: number): BodyState {
    const name = nameOf(group.seq, object);
    const held = this.#held.get(name);
    if (held !== undefined) {
      this.#held.delete(name);
      this.#held.set(name, held);
      return "here";
    }
    if (this.#lost.has(name)) return "lost";
    if (!this.#loading.has(name)) this.#load(group, object);
    return "awaited";
  }

  #knows(name: string): boolean {
    return this.#held.has(name) || this.#loading.has(name) || this.#lost.has(name);
  }

  #load(group: BodyGroup, object: number): void {
    if (this.#loading.size >= BODY_LOADS_MAX) return;
    const room = this.#deps.memory.load(BODY_OBJECT_CHARS_MAX, this.#deps.now());
    if (room === null) return this.#lookAgain();
    const name = nameOf(group.seq, object);
    this.#loading.add(name);
    void this.#read(group, object, name).then(() => {
      room.release();
      this.#loading.delete(name);
      this.#deps.arrived();
    });
  }

  /** The reads of other objects have all the room. None of them can call this one. */
  #lookAgain(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    void this.#deps.wait(LOAD_RETRY_MS).then(() => {
      this.#isWaiting = false;
      this.#deps.arrived();
    });
  }

  /** Other objects need the memory: what is dropped is read again when dispatch comes to it. */
  #giveBack(): number {
    this.#held.clear();
    this.#chars = 0;
    return 0;
  }

  /** Never rejects: an object that could not be read is read again once it is demanded after a pause. */
  async #read({ seq, openKey }: BodyGroup, object: number, name: string): Promise<void> {
    try {
      const text = await this.#deps.load(openKey, object);
      if (text === null) this.#lost.set(name, seq);
      else this.#keep(name, { seq, lines: text.split("\n"), chars: text.length });
    } catch (error) {
      console.error(`bodies ${object} of group ${seq} could not be read from R2; retrying`, error);
      await this.#deps.wait(BODY_RETRY_MS);
    }
  }

  #keep(name: string, held: Held): void {
    this.#held.set(name, held);
    this.#chars += held.chars;
    for (const [oldest, { chars }] of this.#held) {
      if (this.#chars <= BODY_CACHE_CHARS_MAX || oldest === name) break;
      this.#held.delete(oldest);
      this.#chars -= chars;
    }
    this.#member.keeps(this.#chars);
  }
}

function nameOf(seq: number, object: number): string {
  return `${seq}/${object}`;
}
