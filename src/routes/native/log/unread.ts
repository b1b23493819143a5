/**
 * What followers of logs have been sent and not read, in this instance of the gateway: characters, by whose they are. Only numbers, for what
 * one request waits for must not come from another.
 */
import { FOLLOWER_PAGE_CHARS_MAX, FOLLOWERS_UNREAD_CHARS_MAX, INSTANCE_UNREAD_CHARS_MAX } from "../../../limits.ts";

export class Unread {
  readonly #chars = new Map<string, number>();
  #sum = 0;

  /** Counts characters as unread. False, and nothing is counted, if there is no room for them. A first page always has room. */
  take(owner: string, chars: number): boolean {
    const own = this.#chars.get(owner) ?? 0;
    const fits = own + chars <= FOLLOWERS_UNREAD_CHARS_MAX && this.#sum + chars <= INSTANCE_UNREAD_CHARS_MAX;
    if (!fits && own >= FOLLOWER_PAGE_CHARS_MAX) return false;
    this.#chars.set(owner, own + chars);
    this.#sum += chars;
    return true;
  }

  /** They were read, or will never be. */
  give(owner: string, chars: number): void {
    const left = (this.#chars.get(owner) ?? 0) - chars;
    this.#sum -= chars;
    if (left > 0) this.#chars.set(owner, left);
    else this.#chars.delete(owner);
  }
}
