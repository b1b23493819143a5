/**
 * Equal calls in flight: the first leads, the others follow. Followers wait outside the queue and end as their leader
 * does; should it be given up, they go back to where they were. Memory only: after a restart followers are queued slots
 * again and are sent themselves, which costs money but loses nothing.
 */
import type { LineKey } from "./queue.ts";
import type { SingleCall } from "./state.ts";

/** A call that waits for another's answer, and the line it came from. `place` is its slot or its place in the queue. */
export type Follower = { line: LineKey; place: number; call: SingleCall | null };

type Flight = { leader: string; followers: Follower[] };

export class Flights {
  #byKey = new Map<string, Flight>();

  /** The call with this name leads all that are equal to it, unless another does. */
  lead(key: string, leader: string): void {
    if (!this.#byKey.has(key)) this.#byKey.set(key, { leader, followers: [] });
  }

  /** Has a call wait for the one that leads its equals. False when there is none. */
  follow(key: string, leader: string, follower: Follower): boolean {
    const flight = this.#byKey.get(key);
    if (flight === undefined || flight.leader === leader) return false;
    flight.followers.push(follower);
    return true;
  }

  /** The leader has landed or was given up: takes out who waited for it. */
  end(key: string, leader: string): Follower[] {
    const flight = this.#byKey.get(key);
    if (flight === undefined || flight.leader !== leader) return [];
    this.#byKey.delete(key);
    return flight.followers;
  }

  /** Takes out the followers that `matches`: they are stopped. */
  remove(matches: (follower: Follower) => boolean): Follower[] {
    const removed: Follower[] = [];
    for (const flight of this.#byKey.values()) {
      const kept: Follower[] = [];
      for (const follower of flight.followers) (matches(follower) ? removed : kept).push(follower);
      flight.followers = kept;
    }
    return removed;
  }
}
