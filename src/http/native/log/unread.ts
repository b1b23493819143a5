/**
 * What followers of logs have been sent and not read, in this instance of the gateway: characters, by whose they are. Only numbers, for what
 * one request waits for must not come from another.
 */
import {
  LOG_PAGE_CHARS_MAX,
  FOLLOWERS_UNREAD_CHARS_MAX,
  INSTANCE_UNREAD_CHARS_MAX,
  UNREAD_MS_MAX,
} from "../../../limits.ts";

/** What one follower has not read. */
export type Hold = {
  /** Counts characters as unread. False, and nothing is counted, if there is no room for them. A first page always has room. */
  take: (chars: number, nowMs: number) => boolean;
  /** They were read, or never will be. */
  give: (chars: number) => void;
  /** The follower has left; again changes nothing. */
  release: () => void;
};

type Held = { owner: string; chars: number; sinceMs: number };

export class Unread {
  readonly #held = new Set<Held>();
  readonly #byOwner = new Map<string, number>();
  #sum = 0;

  /** A follower that has read everything. */
  hold(owner: string): Hold {
    const held: Held = { owner, chars: 0, sinceMs: 0 };
    return {
      take: (chars, nowMs) => this.#take(held, chars, nowMs),
      give: (chars) => this.#change(held, -Math.min(chars, held.chars)),
      release: () => this.#change(held, -held.chars),
    };
  }

  #take(held: Held, chars: number, nowMs: number): boolean {
    if (!this.#fits(held.owner, chars)) {
      // The runtime may drop a request whose client has left: then nothing of it is given back.
      for (const old of this.#held) if (nowMs - old.sinceMs >= UNREAD_MS_MAX) this.#change(old, -old.chars);
      if (!this.#fits(held.owner, chars)) return false;
    }
    held.sinceMs = nowMs;
    this.#change(held, chars);
    return true;
  }

  #fits(owner: string, chars: number): boolean {
    const own = this.#byOwner.get(owner) ?? 0;
    if (own < LOG_PAGE_CHARS_MAX) return true;
    return own + chars <= FOLLOWERS_UNREAD_CHARS_MAX && this.#sum + chars <= INSTANCE_UNREAD_CHARS_MAX;
  }

  #change(held: Held, chars: number): void {
    const own = (this.#byOwner.get(held.owner) ?? 0) + chars;
    if (own > 0) this.#byOwner.set(held.owner, own);
    else this.#byOwner.delete(held.owner);
    this.#sum += chars;
    held.chars += chars;
    if (held.chars > 0) this.#held.add(held);
    else this.#held.delete(held);
  }
}
