/**
 * Single flight: equal calls share one upstream attempt. The first call with an in-flight key leads, the others follow.
 * Of the equal slots of a batch one is queued when it is opened, and has the others for copies: they follow whom it follows, or
 * itself. Followers wait outside the queue and get their leader's outcome; if the leader is given up, they return to their
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

/**
 * Slots that are equal to a queued one of their group, and wait in the same bucket: thousands of them are a list of numbers, from
 * `head` on.
 */
type Copies = { bucket: BucketKey; ids: number[]; head: number };

export class SingleFlight {
  #byKey = new RenewedMap<string, Flight>();
  #keyByLeader = new RenewedMap<string, string>();
  /** By the name of the slot that is queued for all of them. */
  readonly #copies = new RenewedMap<string, Copies>();

  /** How many calls wait for another's outcome. Costs a pass over the calls that they wait for. */
  get waiting(): number {
    let waiting = 0;
    for (const { followers } of this.#byKey.values()) waiting += followers.length;
    for (const { ids, head } of this.#copies.values()) waiting += ids.length - head;
    return waiting;
  }

  /** Makes a call the leader of all that have its in-flight key, unless the key has a leader. Its copies follow it. */
  lead(key: string, leader: string): void {
    if (this.#byKey.has(key)) return;
    this.#byKey.set(key, { leader, followers: this.#takeCopies(leader) });
    this.#keyByLeader.set(leader, key);
  }

  /** The call that leads those with this key; undefined = none does. */
  leaderOf(key: string): string | undefined {
    return this.#byKey.get(key)?.leader;
  }

  /** Adds a slot to the copies of a queued one. */
  addCopy(of: string, bucket: BucketKey, id: number): void {
    const known = this.#copies.get(of);
    if (known === undefined) this.#copies.set(of, { bucket, ids: [id], head: 0 });
    else known.ids.push(id);
  }

  /** Adds a call and its copies to the followers of its in-flight key. False if the key has no leader, or the call is the leader. */
  follow(key: string, name: string, follower: Follower): boolean {
    const flight = this.#byKey.get(key);
    if (flight === undefined || flight.leader === name) return false;
    flight.followers.push(follower);
    for (const copy of this.#takeCopies(name)) flight.followers.push(copy);
    return true;
  }

  /** A queued slot ends: the first of its copies takes its place, with the others as its own. That one; null = it has none. */
  passOn(of: string): Follower | null {
    const copies = this.#copies.get(of);
    if (copies === undefined) return null;
    this.#copies.delete(of);
    const { bucket, ids, head } = copies;
    const id = ids[head];
    if (id === undefined) return null;
    copies.head += 1;
    if (copies.head < ids.length) this.#copies.set(String(id), copies);
    return { bucket, id, call: null };
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

  /** Removes and returns the followers and copies that `matches`: they end without their leader's outcome. */
  remove(matches: (follower: Follower) => boolean): Follower[] {
    const removed: Follower[] = [];
    for (const flight of this.#byKey.values()) {
      const kept: Follower[] = [];
      for (const follower of flight.followers) (matches(follower) ? removed : kept).push(follower);
      flight.followers = kept;
    }
    for (const [of, copies] of this.#copies) {
      const { bucket } = copies;
      const isKept = (id: number): boolean => {
        const follower = { bucket, id, call: null };
        const isRemoved = matches(follower);
        if (isRemoved) removed.push(follower);
        return !isRemoved;
      };
      copies.ids = copies.ids.slice(copies.head).filter(isKept);
      copies.head = 0;
      if (copies.ids.length === 0) this.#copies.delete(of);
    }
    return removed;
  }

  #takeCopies(of: string): Follower[] {
    const copies = this.#copies.get(of);
    if (copies === undefined) return [];
    this.#copies.delete(of);
    const { bucket, ids, head } = copies;
    return ids.slice(head).map((id) => ({ bucket, id, call: null }));
  }
}
