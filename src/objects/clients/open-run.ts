/** Opening a root run, and listing it in the directory. */
import { directoryOf, type Objects } from "../address.ts";
import { dayReason } from "../../run/money/admit.ts";
import type { LeavingSignal } from "../../call.ts";
import { Refusal, type Reason } from "../../errors.ts";
import type { DayReply, DayReservation, ListedRun, StoredSummary } from "../methods/directory-api.ts";
import type { RunSettings, StoredDocument } from "../methods/runs.ts";
import { RunCaller } from "./caller.ts";
import { withRetry } from "./retry.ts";
import { openingSummary } from "./run-summary.ts";

export type OpenRootDeps = {
  objects: Objects;
  /** The run's place in the list. */
  openedAt: number;
  /** Keeps the Worker running until the promise ends. */
  waitUntil: (promise: Promise<unknown>) => void;
  /** Whether the client has left. */
  signal: Pick<LeavingSignal, "aborted">;
};

/** Nobody hears it, as nobody has the run's token. */
const LEFT: Reason = { reason: "cancelled", message: "the client left before the run was opened" };

/**
 * Opens a root run. Without a root budget of the day it is listed at the same time; with one, its reservation there comes
 * first, for a run that the day does not cover must not exist: then this throws a Refusal. A reservation may take seconds; it is given
 * back if the client leaves meanwhile.
 */
export async function openRootRun(
  settings: RunSettings,
  reservation: DayReservation | null,
  deps: OpenRootDeps,
): Promise<StoredDocument> {
  const opening = openListed(settings, reservation, deps);
  // The runtime ends a request whose client has left, unless something keeps it.
  if (reservation !== null) deps.waitUntil(opening.catch(() => undefined));
  return await opening;
}

async function openListed(
  settings: RunSettings,
  reservation: DayReservation | null,
  { objects, openedAt, waitUntil, signal }: OpenRootDeps,
): Promise<StoredDocument> {
  const { id } = settings;
  const directory = new DirectoryEntry(objects, settings, openedAt);
  if (reservation !== null) {
    const added = await directory.add(reservation);
    if (!added.ok) throw new Refusal(dayReason(reservation.nanoUsd, reservation.limitNanoUsd, added.committedNanoUsd));
    if (signal.aborted) {
      await directory.remove(true);
      throw new Refusal(LEFT);
    }
  }
  const opening = new RunCaller(objects, id, settings.region).callWithRetry<StoredDocument | null>((run) =>
    run.open(settings),
  );
  const [opened, listed] = await Promise.allSettled([opening, reservation === null ? directory.add(null) : null]);
  if (opened.status === "fulfilled" && listed.status === "fulfilled" && opened.value !== null) return opened.value;
  // No client has the run's token: if its object exists, nothing ever calls it, and it deletes itself when its time is over.
  waitUntil(directory.remove(reservation !== null).catch(() => undefined));
  if (opened.status === "rejected") throw opened.reason;
  if (listed.status === "rejected") throw listed.reason;
  throw new Error(`${id} was ended before it was opened`);
}

/** A root run's entry in the part of the list that has it. Each call takes a fresh stub. */
class DirectoryEntry {
  readonly #objects: Objects;
  readonly #run: Pick<RunSettings, "id" | "holder">;
  readonly #listed: ListedRun;
  readonly #summary: StoredSummary;

  constructor(objects: Objects, run: RunSettings, openedAt: number) {
    this.#objects = objects;
    this.#run = run;
    this.#listed = { id: run.id, openedAt };
    this.#summary = { text: JSON.stringify(openingSummary(run)), atMs: run.createdAtMs };
  }

  add(reservation: DayReservation | null): Promise<DayReply> {
    return this.#call<DayReply>((directory) =>
      reservation === null
        ? directory.add(this.#listed, null, this.#summary)
        : directory.addOfDay(this.#listed, reservation, this.#summary),
    );
  }

  /** Removes the entry, and returns what was reserved for it. */
  async remove(isReserved: boolean): Promise<void> {
    const { id, openedAt } = this.#listed;
    if (isReserved) await this.#call<void>((directory) => directory.childEnded(id, 0, undefined, openedAt));
    await this.#call<void>((directory) => directory.forget(id, openedAt));
  }

  #call<T>(call: (directory: ReturnType<typeof directoryOf>) => PromiseLike<T>): Promise<T> {
    const once = async (): Promise<T> => await call(directoryOf(this.#objects, this.#run));
    return withRetry(once, { wait: (ms) => scheduler.wait(ms), random: Math.random });
  }
}
