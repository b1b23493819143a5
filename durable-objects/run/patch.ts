/**
 * Changing a run's limits, width or pause. Whoever holds the run's budget must agree: what is set aside for it there rises
 * before its limits do and falls after them, so that at no instant it may spend more than is held.
 */
import { holdOf } from "../../src/budget/hold.ts";
import { DIMENSIONS, type Amounts, type Limits } from "../../src/budget/ledger.ts";
import { budgetReason } from "../../src/budget/admit.ts";
import { usdOf } from "../../src/budget/money.ts";
import type { Reason } from "../../src/errors.ts";
import { directoryOf, runOf, type Objects } from "../address.ts";
import type { RunCore } from "./core.ts";
import { missingLanes } from "./lanes.ts";
import { widthOf } from "./rebuild.ts";
import { hasEnded } from "./settings.ts";
import type { RunShell } from "./shell.ts";
import type { RunStore } from "./store.ts";

/** New limits and switches of a run; what is left out stays. */
export type RunPatch = {
  limits: Partial<Limits>;
  maxParallel: number | null;
  paused: boolean | null;
  /** What all runs of a day may spend together, as configured now; null = no such budget. */
  rootNanoUsdPerDay: number | null;
};

/** Applies a patch, in its turn. */
export async function patchRun(
  shell: RunShell,
  core: RunCore,
  objects: Objects,
  patch: RunPatch,
): Promise<Reason | null> {
  const before = holdOf(core.state.ledger.limits);
  const wanted = holdOf({ ...core.state.ledger.limits, ...patch.limits });
  const moves = DIMENSIONS.some((dimension) => wanted[dimension] !== before[dimension]);
  if (core.settings.holder === null || !(moves || core.holdInDoubt)) return apply(shell, core, patch);
  // From here on a crash may leave more set aside than the limits come to: the row has the next instance tell the holder.
  await shell.write(() => {
    core.holdInDoubt = true;
    return () => shell.store.putHoldInDoubt(true);
  });
  const reason = (await raiseHold(core, objects, wanted, patch.rootNanoUsdPerDay)) ?? (await apply(shell, core, patch));
  await settleHold(shell, core, objects);
  return reason;
}

/**
 * Has the holder set aside what the limits come to, where a patch has left that in doubt: never more than before. In a turn
 * of its own, for a patch beside it would raise what this then lowers.
 */
export async function settleHold(shell: RunShell, core: RunCore, objects: Objects): Promise<void> {
  if (!core.holdInDoubt) return;
  // A run that has ended meanwhile is held no more: then this changes nothing.
  await resizeHold(core, objects, holdOf(core.state.ledger.limits), Number.MAX_SAFE_INTEGER);
  await shell.write(() => {
    core.holdInDoubt = false;
    return () => shell.store.putHoldInDoubt(false);
  });
}

/** Has the holder set aside what `wanted` has more than the limits of now; or why it does not. */
async function raiseHold(
  core: RunCore,
  objects: Objects,
  wanted: Amounts,
  rootNanoUsdPerDay: number | null,
): Promise<Reason | null> {
  const most = holdOf(core.state.ledger.limits);
  const rises = DIMENSIONS.some((dimension) => wanted[dimension] > most[dimension]);
  for (const dimension of DIMENSIONS) most[dimension] = Math.max(most[dimension], wanted[dimension]);
  return rises ? resizeHold(core, objects, most, rootNanoUsdPerDay) : null;
}

async function apply(shell: RunShell, core: RunCore, patch: RunPatch): Promise<Reason | null> {
  const reason = await shell.submit<Reason | null>((reply) => reply(applyPatch(core, shell.store, patch)));
  // A wider run needs lanes that nobody has started. The alarm does, for its calls start a fresh chain.
  if (reason === null && core.hasGroupWork && missingLanes(core).length > 0) shell.wake();
  return reason;
}

/** Has the holder set aside `hold`; or why it does not, in its own figures. */
async function resizeHold(
  { settings, state }: RunCore,
  objects: Objects,
  hold: Amounts,
  rootNanoUsdPerDay: number | null,
): Promise<Reason | null> {
  const { holder, parentId, id } = settings;
  if (holder === "run" && parentId !== null) return runOf(objects, parentId).resizeChild(id, hold);
  if (holder !== "directory" || rootNanoUsdPerDay === null) return null;
  if (await directoryOf(objects).resizeChild(id, hold.usd, rootNanoUsdPerDay)) return null;
  return { ...budgetReason("budget_exhausted", "usd", hold, state.ledger), param: "budget.usd" };
}

/** Changes what a run holds for a child. Returns the row to write, or why it may not. */
export function resizeChild(core: RunCore, childId: string, hold: Amounts): (() => void) | Reason {
  const { ledger } = core.state;
  const before = core.children.holdOf(childId);
  if (before === null) return { reason: "cancelled", message: "the run has ended, and its budget has flowed back" };
  const row = core.children.resize(childId, hold);
  if (row !== null) return row;
  const short = DIMENSIONS.find(
    (dimension) => hold[dimension] - before[dimension] > (ledger.remaining(dimension) ?? Infinity),
  );
  const dimension = short ?? "usd";
  return { ...budgetReason("budget_exhausted", dimension, hold, ledger), param: `budget.${dimension}` };
}

/** Sets what the patch names: absolute limits, which may not be below what is committed. */
function applyPatch(core: RunCore, store: RunStore, patch: RunPatch): Reason | null {
  const { ledger } = core.state;
  const limits = { ...ledger.limits, ...patch.limits };
  const open = DIMENSIONS.find((dimension) => ledger.limits[dimension] === null && limits[dimension] !== null);
  if (open !== undefined && core.children.open.length > 0) {
    // A child of an unlimited run may have no limit either, and then nothing is set aside for what it spends.
    const message = `budget.${open}: cannot be limited while child runs are open; close them first`;
    return { reason: "invalid_request", message, param: `budget.${open}` };
  }
  const short = ledger.setLimits(limits);
  if (short !== null) {
    const shown = (amount: number): number => (short === "usd" ? usdOf(amount) : amount);
    const committed = shown(ledger.committed(short));
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
