/** The slots of a group that go through batches of their provider, for the object that feeds these: claims, answers, ends. */
import { leaseOf, timeoutOf } from "../../../src/run/steps/dispatch.ts";
import type { Group } from "../../../src/run/group/group.ts";
import type { AttemptInFlight } from "../../../src/run/leases/shard.ts";
import { claimPage, sendLive } from "../../../src/run/steps/provider-claim.ts";
import { endPage, settleAtProvider, storedPage } from "../../../src/run/steps/provider-settle.ts";
import { PROVIDER_POLL_MS_DEFAULT } from "../../../src/limits.ts";
import type {
  ProviderClaim,
  ProviderGroup,
  ProviderJob,
  ProviderSettlement,
} from "../../../src/objects/methods/provider-batch.ts";
import type { RunState } from "../state.ts";
import type { RunStore } from "../store/store.ts";

/** A group that is no longer open. */
const GONE: ProviderGroup = { isStopped: true, liveAtMs: 0, deadlineAtMs: 0, pollMs: PROVIDER_POLL_MS_DEFAULT };

export function claimProviderPage(
  run: RunState,
  store: RunStore,
  { seq, page }: { seq: number; page: number },
  nowMs: number,
): ProviderClaim {
  const { engine } = run;
  const group = engine.groups.get(seq);
  if (group === undefined || group.done) return { ...GONE, kind: "none" };
  const isKnown = group.provider?.page(page) !== undefined;
  const claimed = claimPage(engine, group, page, nowMs);
  const about = aboutOf(run, group);
  if (!Array.isArray(claimed)) return { ...about, kind: claimed };
  if (!isKnown) run.addWrite(() => store.putProviderPage(seq, storedPage(page, claimed)));
  // If a page is given out again, its bodies may have to be read again.
  const states = claimed.map(({ slotId }) => engine.deps.bodyOf?.(slotId ?? 0) ?? "here");
  if (states.includes("awaited")) return { ...about, kind: "later" };
  const here = claimed.filter((_, at) => states[at] === "here");
  const jobs = here.map((lease) => jobOf(run, lease));
  return { ...about, kind: "page", jobs, defaultsJson: run.openGroups.get(seq)?.defaultsJson ?? "{}" };
}

/** Settles answers of a page, and with `rest` the others. What has ended before stays as it is. */
export function settleProviderPage(
  run: RunState,
  store: RunStore,
  seq: number,
  { page, answers, rest, releases }: ProviderSettlement,
  nowMs: number,
): ProviderGroup {
  const group = run.engine.groups.get(seq);
  if (group === undefined) return GONE;
  for (const { index, outcome } of answers) settleAtProvider(run.engine, group, { page, index, outcome }, nowMs);
  if (rest !== null) endPage(run.engine, group, page, rest, nowMs);
  if (releases === true && group.drained === null) {
    for (const index of group.provider?.takeUnclaimed() ?? []) sendLive(run.engine, group, index);
  }
  // Those that are sent live now: their lanes have never been started.
  if (group.startableSlots > 0) run.laneStarts.need();
  if (group.done) run.addWrite(() => store.dropProviderPages(seq));
  return aboutOf(run, group);
}

function aboutOf(run: RunState, group: Group): ProviderGroup {
  const { liveAtMs = 0, openedAtMs, deadlineMs, models } = group.header;
  const target = run.targets.resolve(models[0] ?? null);
  const pollMs = ("reason" in target ? undefined : target.batch?.pollMs) ?? PROVIDER_POLL_MS_DEFAULT;
  return { isStopped: group.drained !== null, liveAtMs, deadlineAtMs: openedAtMs + (deadlineMs ?? 0), pollMs };
}

function jobOf(run: RunState, lease: AttemptInFlight): ProviderJob {
  const timeoutMs = timeoutOf({ timeoutMs: null }, lease.target);
  const { tier: _, ...sent } = leaseOf({ lease, timeoutMs });
  // A line of a batch names no tier: the batch is one.
  return { lease: sent, callJson: run.storedCalls.bodyOf(lease.slotId ?? 0) };
}
