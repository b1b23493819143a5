/**
 * What all run objects of this isolate keep of their calls' bodies: they may share its 128 MB, so bounds for each alone do not protect it. One
 * account of characters, by member; whoever has changed least recently gives its own back first, and reads it again when it needs it. An instance
 * that is gone gives back nothing by itself, and so is the first to be called on.
 */
import { HeldBytes, type Hold } from "../../../src/text/bytes/held-bytes.ts";
import { INSTANCE_BODIES_CHARS_MAX, INSTANCE_LOADS_CHARS_MAX, LOAD_MS_MAX } from "../../../src/limits.ts";
import { RenewedMap } from "../../../src/renewed/map.ts";

/** A cache that counts here. */
export type Member = {
  /** It keeps so many characters from now on. Others may have to give theirs back for it. */
  keeps: (chars: number) => void;
};

export class InstanceMemory {
  /** Characters by member, least recently changed first; and what makes it give back what it can, and returns the rest. */
  readonly #members = new RenewedMap<Member, { chars: number; giveBack: () => number }>();
  readonly #loads = new HeldBytes({
    bytesMax: INSTANCE_LOADS_CHARS_MAX,
    largeBytesMin: 0,
    ageMsMax: LOAD_MS_MAX,
  });
  #chars = 0;

  /** Characters that all members keep. */
  get chars(): number {
    return this.#chars;
  }

  member(giveBack: () => number): Member {
    const member: Member = { keeps: (chars) => this.#keeps(member, chars, giveBack) };
    return member;
  }

  /** Room for a text of so many characters that is being read; null if there is none now. */
  load(chars: number, nowMs: number): Hold | null {
    const hold = this.#loads.hold();
    return hold.take(chars, nowMs) ? hold : null;
  }

  #keeps(member: Member, chars: number, giveBack: () => number): void {
    this.#chars += chars - (this.#members.get(member)?.chars ?? 0);
    this.#members.delete(member);
    if (chars > 0) this.#members.set(member, { chars, giveBack });
    if (this.#chars <= INSTANCE_BODIES_CHARS_MAX) return;
    for (const [other, kept] of this.#members) {
      if (this.#chars <= INSTANCE_BODIES_CHARS_MAX) break;
      if (other === member) continue;
      const left = kept.giveBack();
      this.#chars += left - kept.chars;
      kept.chars = left;
      if (left === 0) this.#members.delete(other);
    }
  }
}

/** Of all run objects of this isolate. */
export const instanceMemory = new InstanceMemory();
