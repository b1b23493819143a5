/**
 * Single flight: equal calls share one upstream attempt. The first call with an in-flight key leads, the others follow.
 * Followers wait outside the queue and get their leader's outcome; if the leader is given up, they return to their
 * buckets. Followers are kept in memory only: after a restart they are queued again, and follow again a leader whose
 * attempt is in flight, because its lease has the key. Of a leader that waited for its retry they are sent themselves.
 */
import type { SingleCall } from "./single-call.ts";
import type { BucketKey } from "../queue/queue.ts";
import { RenewedMap } from "../../renewed/map.ts";

/**
 * A call that waits for another's outcome, with its queue bucket. `id`: of a slot, or the position of a single call.
 */
export type Follower = { bucket: BucketKey; id: number; call: SingleCall | null };

type Flight = { leader: string; followers: Follower[] };

export class SingleFlight {
  #byKey = new RenewedMap<string, Flight>();
  #keyByLeader = new RenewedMap<string, string>();

  /** Makes a call the leader of all that have its in-flight key, unless the key has a leader. */
  lead(key: string, leader: string): void {
    if (this.#byKey.has(key)) return;
    this.#byKey.set(key, { leader, followers: [] });
    this.#keyByLeader.set(leader, key);
  }

  /** Adds a call to the followers of its in-flight key. False if the key has no leader, or the call is the leader. */
  follow(key: string, name: string, follower: Follower): boolean {
    const flight = this.#byKey.get(key);
    if (flight === undefined || flight.leader === name) return false;
    flight.followers.push(follower);
    return true;
  }

  /** Ends what a call leads, and returns its followers; empty if it leads nothing. */
  end(leader: string): Follower[] {
    const key = this.#keyByLeader.get(leader);
    if (key === undefined) return [];
    const followers = this.#byKey.get(key)?.followers ?? [];
    this.#keyByLeader.delete(leader);
    this.#byKey.delete(key);
    return followers;
  }

  /** Removes and returns the followers that `matches`: they end without their leader's outcome. */
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
