/**
 * A run among its relatives: opening children, and telling who must know that it ended. A run tells its
 * children how it ended and its holder what it spent, each until it is heard; both may be told twice. The alarm does the
 * telling, for its calls start a fresh chain: chains of calls between objects are cut at a depth.
 */
import type { Reason } from "../../src/errors.ts";
import { directoryOf, runOf, type Objects } from "../address.ts";
import type { RunCore } from "./core.ts";
import { inherit, type RunAsked } from "./inherit.ts";
import type { Named, Refused } from "./rpc.ts";
import { hasEnded, type RunSettings } from "./settings.ts";

/** A child whose budget is set aside; `settings` null = its key has opened it before. */
type Added = { ok: true; id: string; settings: RunSettings | null } | Refused;

/** Sets a child's budget aside and says what its object is to be opened with. */
export function addChild(
  core: RunCore,
  asked: RunAsked,
  { id, named }: { id: string; named: Named | null },
  nowMs: number,
): Added {
  if (core.children.full) {
    const message = "too many child runs are open in this run; close one first";
    return { ok: false, reason: { reason: "overloaded", message, retryAfterMs: 1_000 } };
  }
  const inherited = inherit({ settings: core.settings, ledger: core.state.ledger }, asked, { id, nowMs });
  if (!inherited.ok) return inherited;
  const added = core.children.add(id, inherited.hold, nowMs);
  if (added === null) throw new Error(`the hold of ${id} was carved but does not fit`);
  core.writes.push(added.write);
  if (named !== null) core.name(named, added.seq);
  core.state.log.add({ event: "child_opened", childRunId: id, reserved: inherited.hold }, null, nowMs);
  return { ok: true, id, settings: inherited.settings };
}

/** The child that a key has opened; a refusal where the key asked for something else; null where it is new. */
export function namedChild(core: RunCore, { key, hash }: Named): Added | null {
  const before = core.named(key);
  if (before === null) return null;
  // What a key asked for is part of its hash, its path too: the number is a child's.
  const id = before.hash === hash ? core.children.idOf(before.seq) : null;
  return id === null ? { ok: false, reason: { reason: "idempotency_conflict" } } : { ok: true, id, settings: null };
}

/** Why there is no child where its budget was set aside. */
export function notOpened(core: RunCore, childId: string): Reason {
  // Its first request is still on its way, or was lost there: then the alarm gives the child up.
  if (core.children.isOpening(childId))
    return { reason: "overloaded", message: "the child run is still being opened", retryAfterMs: 1_000 };
  return { reason: "cancelled", message: "the child run was ended before it was opened; its budget has flowed back" };
}

/** Tells open children that this run has ended, and how. One that never came to be is ended here. */
export async function tellChildren(
  core: RunCore,
  objects: Objects,
  ended: (childId: string) => Promise<void>,
): Promise<void> {
  const { status } = core;
  if (!hasEnded(status) || core.toldChildren === status) return;
  await Promise.all(core.children.open.map((childId) => endChild(objects, childId, status, ended)));
  core.toldChildren = status;
}

/** Cancels children whose opening was never confirmed. */
export async function cancelAbandoned(
  core: RunCore,
  objects: Objects,
  ended: (childId: string) => Promise<void>,
  nowMs: number,
): Promise<void> {
  await Promise.all(core.children.abandoned(nowMs).map((childId) => endChild(objects, childId, "cancelled", ended)));
}

async function endChild(
  objects: Objects,
  childId: string,
  status: "closed" | "cancelled" | "expired",
  ended: (childId: string) => Promise<void>,
): Promise<void> {
  const exists = await runOf(objects, childId).end(status);
  if (!exists) await ended(childId);
}

/** Tells whoever holds this run's budget what it spent. True when it was heard, or nobody needs to know. */
export async function report(core: RunCore, objects: Objects): Promise<boolean> {
  const { holder, parentId, id } = core.settings;
  if (!core.isFinal || core.reported || holder === null) return false;
  const spent = { ...core.state.ledger.spent };
  if (holder === "directory") await directoryOf(objects).childEnded(id, spent.usd);
  else if (parentId !== null) await runOf(objects, parentId).childEnded(id, spent);
  return true;
}
