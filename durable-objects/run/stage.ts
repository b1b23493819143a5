/** Groups on their way in: large ones arrive in several calls, and nothing of them starts before the last. */
import { shareOf } from "../../src/budget/admit.ts";
import type { Reason } from "../../src/errors.ts";
import { groupIdOf } from "../../src/engine/window.ts";
import type { GroupHeader } from "../../src/engine/group.ts";
import { enqueueSlots, openGroup as openInEngine } from "../../src/engine/open.ts";
import { readFacts, type Page } from "../../src/engine/page.ts";
import { GROUPS_OPEN_MAX, PARALLEL_MAX } from "../../src/limits.ts";
import type { RunCore } from "./core.ts";
import { missingLanes } from "./lanes.ts";
import { countGroup } from "./rebuild.ts";
import { quoteOf, type Quote } from "../../src/budget/quote.ts";
import type { OpenGroupReply, OpenGroupRequest, Refused } from "./rpc.ts";
import type { RunStore, StoredGroup } from "./store.ts";

/** Stores pages of a group that is not open yet. Returns its number. */
export function stagePages(core: RunCore, store: RunStore, pages: readonly Page[], staged: number | null): number {
  const seq = staged ?? core.nextSeq++;
  store.transaction(() => {
    // The row keeps the number taken across a restart; unsealed, it is never run.
    if (staged === null) store.putGroup({ header: emptyHeader(seq), defaultsJson: "{}", sealed: false });
    for (const page of pages) store.putPage(seq, page);
  });
  return seq;
}

/** Opens a group: resolves its models, queues its slots, and leaves its rows to the turn's transaction. */
export function openGroup(
  core: RunCore,
  store: RunStore,
  { request, pages, staged }: { request: OpenGroupRequest; pages: readonly Page[]; staged: number | null },
  { nowMs, random }: { nowMs: number; random: number },
): OpenGroupReply {
  const refused = refusalOf(core, request);
  if (refused !== null) {
    // Nothing of a refused request stays stored, its earlier pages neither.
    if (staged !== null) core.writes.push(() => store.dropGroup(staged));
    return { ok: false, reason: refused };
  }
  const seq = staged ?? core.nextSeq++;
  // The run's width bounds every group as it is at the time, so a group that names no cap follows when it is changed.
  const concurrency = request.concurrency ?? PARALLEL_MAX;
  const { count, onError, models, deadlineMs } = request;
  const share = request.split ? shareOf(core.state.ledger, count) : null;
  const header: GroupHeader = {
    seq,
    id: groupIdOf(nowMs, random),
    count,
    concurrency,
    onError,
    share,
    openedAtMs: nowMs,
    deadlineMs,
    models,
  };
  const stored: StoredGroup = { header, defaultsJson: request.defaultsJson, sealed: true };
  core.writes.push(() => {
    store.putGroup(stored);
    for (const page of pages) store.putPage(seq, page);
  });
  core.open.set(seq, stored);
  countGroup(core.groupCounts, header);
  const group = openInEngine(core.state, header);
  if (staged !== null) {
    for (const page of store.pageFacts(seq))
      enqueueSlots(core.state, group, page.firstIndex, readFacts(page.facts, models));
  }
  for (const page of pages) {
    core.keepPage(seq, page);
    enqueueSlots(core.state, group, page.firstIndex, readFacts(page.facts, models));
  }
  const { remainingNanoUsd } = core;
  const effectiveParallel = Math.min(concurrency, core.state.width);
  return { ok: true, seq, id: header.id, effectiveParallel, lanes: missingLanes(core), remainingNanoUsd };
}

/** Why a group may not be opened, or null. */
function refusalOf(core: RunCore, request: OpenGroupRequest): Reason | null {
  for (const model of request.models) {
    const target = core.resolve(model);
    if ("reason" in target) return target;
  }
  if (core.open.size < GROUPS_OPEN_MAX) return null;
  const message = `this run has ${GROUPS_OPEN_MAX} groups open already`;
  return { reason: "overloaded", message, retryAfterMs: 1_000 };
}

function emptyHeader(seq: number): GroupHeader {
  return {
    seq,
    id: "",
    count: 0,
    concurrency: 1,
    onError: "continue",
    share: null,
    openedAtMs: 0,
    deadlineMs: null,
    models: [],
  };
}

/** Quotes every slot of a group that is not opened: nothing is stored or reserved. */
export function quoteGroup(
  core: RunCore,
  models: readonly (string | null)[],
  pages: readonly Page[],
): Quote[] | Refused {
  const quotes: Quote[] = [];
  for (const page of pages) {
    for (const facts of readFacts(page.facts, models)) {
      const target = core.resolve(facts.model);
      if ("reason" in target) return { ok: false, reason: target };
      quotes.push(quoteOf(facts, target.price, target.bounds));
    }
  }
  return quotes;
}
