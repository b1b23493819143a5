/** Stores a planned run's work and gives it to its engine: settings, pages, facts. */
import type { CallFacts } from "../../src/call.ts";
import type { GroupHeader } from "../../src/run/group/group.ts";
import { groupIdOf } from "../../src/run/queue/group-id.ts";
import { emitGroupStarted, enqueueSlots } from "../../src/run/steps/enqueue.ts";
import { CallPageBuilder, readFacts, type CallPage } from "../../src/run/queue/call-page.ts";
import type { StoredLease, Target } from "../../src/run/leases/shard.ts";
import type { EngineState } from "../../src/run/state.ts";
import type { RunSettings } from "../../src/objects/methods/runs.ts";
import { makeHeader } from "./engine.ts";
import { LEASED, MODELS, type Plan, type PlannedCall } from "./engine-plan.ts";
import type { Rows } from "./engine-rows.ts";

export function settingsOf({ limits, width }: Plan): RunSettings {
  const rules = { maxDepth: 3, defaultModel: null, errorStyle: "bracket", unpriced: "free" } as const;
  const identity = {
    id: "r",
    name: null,
    parentId: null,
    ancestors: [],
    holder: null,
    depth: 0,
    createdAtMs: 0,
    expiresAtMs: Number.MAX_SAFE_INTEGER,
    retentionMs: 0,
  };
  return {
    ...identity,
    ...rules,
    models: [],
    limits,
    maxParallel: width,
    windowMs: 50,
    weight: 1,
    region: null,
    tools: [],
    metadataJson: "{}",
  };
}

/** The facts of a call, as its request would have them. */
export function factsOf({ model, dedupe, ...options }: PlannedCall): CallFacts {
  const facts = { ...options, messageCount: 1, mediaParts: 0, model: MODELS[model] ?? null, timeoutMs: null };
  return dedupe === null ? facts : { ...facts, dedupeKey: `key ${dedupe}` };
}

/** The target of a stored lease: the engine leases known targets only. */
export function targetOfLease({ upstream, model, key }: Pick<StoredLease, "upstream" | "model" | "key">): Target {
  const target = LEASED.find((each) => each.upstream === upstream && each.model === model && each.key === key);
  if (target === undefined) throw new Error(`no lease goes to ${upstream}/${model}`);
  return target;
}

/** Stores a group, like its opening does. */
export function storeGroup(
  rows: Rows,
  { seq, calls, rules }: { seq: number; calls: readonly PlannedCall[]; rules: Partial<GroupHeader> },
  nowMs: number,
): { header: GroupHeader; pages: CallPage[] } {
  const { pages, models } = pagesOf(calls);
  const id = groupIdOf(nowMs, seq, 0);
  const header = makeHeader({ seq, id, count: calls.length, openedAtMs: nowMs, models, ...rules });
  const kept = { openKey: `open ${seq}`, detach: true, errorStyle: "bracket", named: false } as const;
  rows.putGroup({ header, defaultsJson: "{}", sealed: true, ...kept }, pages);
  return { header, pages };
}

/** Queues a group's slots, page by page. */
export function startGroup(
  state: EngineState,
  { header, pages }: { header: GroupHeader; pages: readonly CallPage[] },
  keepPage: (page: CallPage) => void,
  nowMs: number,
): void {
  const group = state.openGroup(header);
  if (header.single !== null) group.joinWindow(state.window.current);
  emitGroupStarted(state, group, nowMs);
  for (const page of pages) {
    keepPage(page);
    enqueueSlots(state, group, page.firstIndex, readFacts(page.facts, header.models));
  }
}

/** The pages of a group, and the models that they refer to by index. */
function pagesOf(calls: readonly PlannedCall[]): { pages: CallPage[]; models: (string | null)[] } {
  const builder = new CallPageBuilder({});
  const pages: CallPage[] = [];
  for (const call of calls) {
    const page = builder.add({ body: { prompt: "p" }, facts: factsOf(call) });
    if (page !== null) pages.push(page);
  }
  const last = builder.flush();
  if (last !== null) pages.push(last);
  return { pages, models: builder.models };
}
