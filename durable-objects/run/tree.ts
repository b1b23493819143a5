/**
 * A run among its relatives: opening children, changing limits, and telling who must know that it ended. A run tells its
 * children how it ended and its holder what it spent, each until it is heard; both may be told twice. The alarm does the
 * telling, for its calls start a fresh chain: chains of calls between objects are cut at a depth.
 */
import type { Limits } from "../../src/budget/ledger.ts";
import { usdOf } from "../../src/budget/money.ts";
import type { Reason } from "../../src/errors.ts";
import { directoryOf, runOf, type Objects } from "../address.ts";
import type { RunCore } from "./core.ts";
import { inherit, type RunAsked } from "./inherit.ts";
import type { Refused } from "./rpc.ts";
import { hasEnded, type RunSettings } from "./settings.ts";
import type { RunStore } from "./store.ts";
import { widthOf } from "./rebuild.ts";

/** New limits and switches of a run; what is left out stays. */
export type RunPatch = { limits: Partial<Limits>; maxParallel: number | null; paused: boolean | null };

/** Sets a child's budget aside and says what its object is to be opened with. */
export function addChild(
  core: RunCore,
  asked: RunAsked,
  id: string,
  nowMs: number,
): { ok: true; settings: RunSettings } | Refused {
  if (core.children.full) {
    const message = "too many child runs are open in this run; close one first";
    return { ok: false, reason: { reason: "overloaded", message, retryAfterMs: 1_000 } };
  }
  const inherited = inherit({ settings: core.settings, ledger: core.state.ledger }, asked, { id, nowMs });
  if (!inherited.ok) return inherited;
  const write = core.children.add(id, inherited.hold, nowMs);
  if (write === null) throw new Error(`the hold of ${id} was carved but does not fit`);
  core.writes.push(write);
  return { ok: true, settings: inherited.settings };
}

/** Applies a patch: new absolute limits, which may not be below what is committed. */
export function applyPatch(core: RunCore, store: RunStore, patch: RunPatch): Reason | null {
  const limits = { ...core.state.ledger.limits, ...patch.limits };
  const short = core.state.ledger.setLimits(limits);
  if (short !== null) {
    const shown = (amount: number): number => (short === "usd" ? usdOf(amount) : amount);
    const committed = shown(core.state.ledger.committed(short));
    return { reason: "budget_below_committed", dimension: short, limit: shown(limits[short] ?? 0), committed };
  }
  const maxParallel = patch.maxParallel ?? core.settings.maxParallel;
  core.settings = { ...core.settings, limits, maxParallel };
  core.state.width = widthOf(core.settings);
  core.writes.push(() => store.putSettings(core.settings));
  if (patch.paused !== null && !hasEnded(core.status)) {
    const status = patch.paused ? "paused" : "active";
    core.status = status;
    core.state.paused = patch.paused;
    core.writes.push(() => store.putStatus(status));
  }
  return null;
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
