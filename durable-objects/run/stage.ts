/** Groups on their way in: large ones arrive in several calls, and nothing of them starts before the last. */
import { shareOf } from "../../src/budget/admit.ts";
import { quoteOf, type Quote } from "../../src/budget/quote.ts";
import type { GroupHeader } from "../../src/engine/group.ts";
import { groupIdOf, groupSalt } from "../../src/engine/group-id.ts";
import { enqueueSlots, openGroup as openInEngine, tellOpened } from "../../src/engine/open.ts";
import { readFacts, type Page } from "../../src/engine/page.ts";
import type { Reason } from "../../src/errors.ts";
import { GROUPS_OPEN_MAX, PARALLEL_MAX } from "../../src/limits.ts";
import type { RunCore } from "./core.ts";
import { missingLanes } from "./lanes.ts";
import { countGroup } from "./rebuild.ts";
import type { OpenGroupReply, OpenGroupRequest, Refused } from "./rpc.ts";
import type { RunStore } from "./store.ts";
import type { StoredGroup } from "./stored.ts";

/** Stores pages of a group that is not open yet, at once. Storing the same pages again changes nothing. */
export function stagePages(
  core: RunCore,
  store: RunStore,
  { openKey, pages }: { openKey: string; pages: readonly Page[] },
  nowMs: number,
): void {
  const known = core.openings.find(openKey);
  const seq = known ?? core.nextSeq++;
  store.transaction(() => {
    // The row keeps the number taken across a restart; unsealed, it is never run.
    if (known === null) store.putGroup(stagedGroup(seq, openKey, nowMs));
    for (const page of pages) store.putPage(seq, page);
  });
  core.openings.add({ openKey, seq, stagedAtMs: nowMs });
}

/** Opens a group: resolves its models, queues its slots, and leaves its rows to the turn's transaction. */
export function openGroup(
  core: RunCore,
  store: RunStore,
  { request, pages }: { request: OpenGroupRequest; pages: readonly Page[] },
  nowMs: number,
): OpenGroupReply {
  const found = core.openings.find(request.openKey);
  const opened = found === null ? undefined : core.groupStored(found);
  // The first reply was lost on its way.
  if (opened?.sealed === true) return replyOf(core, opened, false);
  const staged = found;
  const drop = (): void => {
    // Nothing of a refused request stays stored, its earlier pages neither.
    if (staged !== null) core.writes.push(() => store.dropGroup(staged));
    core.openings.forget(request.openKey);
  };
  const { named } = request;
  const before = named === null ? null : core.named(named.key);
  if (named !== null && before !== null) {
    drop();
    const first = core.groupStored(before.seq);
    if (before.hash !== named.hash || first === undefined)
      return { ok: false, reason: { reason: "idempotency_conflict" } };
    return replyOf(core, first, true);
  }
  const refused = refusalOf(core, request);
  if (refused !== null) {
    drop();
    return { ok: false, reason: refused };
  }
  const seq = staged ?? core.nextSeq++;
  const stored = storedGroup(core, request, seq, nowMs);
  core.openings.add({ openKey: request.openKey, seq, stagedAtMs: null });
  if (named !== null) core.name(named, seq);
  core.writes.push(() => {
    store.putGroup(stored);
    for (const page of pages) store.putPage(seq, page);
  });
  start(core, store, { stored, pages, staged: staged !== null }, nowMs);
  return replyOf(core, stored, false);
}

/** Puts a group's slots into the queue. */
function start(
  core: RunCore,
  store: RunStore,
  { stored, pages, staged }: { stored: StoredGroup; pages: readonly Page[]; staged: boolean },
  nowMs: number,
): void {
  const { header } = stored;
  const { seq, models } = header;
  core.open.set(seq, stored);
  core.followed(seq, nowMs);
  countGroup(core.groupCounts, header);
  const group = openInEngine(core.state, header);
  if (header.single !== null) group.window = core.state.window.current;
  tellOpened(core.state, group, nowMs);
  if (staged) {
    for (const page of store.pageFacts(seq))
      enqueueSlots(core.state, group, page.firstIndex, readFacts(page.facts, models));
  }
  for (const page of pages) {
    core.keepPage(seq, page);
    enqueueSlots(core.state, group, page.firstIndex, readFacts(page.facts, models));
  }
}

function storedGroup(core: RunCore, request: OpenGroupRequest, seq: number, nowMs: number): StoredGroup {
  const { count, onError, onLost, models, deadlineMs, openKey, detach, namesCalls, defaultsJson } = request;
  const header: GroupHeader = {
    seq,
    id: groupIdOf(nowMs, seq, groupSalt(core.settings.id)),
    count,
    // The run's width bounds every group as it is at the time, so a group that names no cap follows when it is changed.
    concurrency: request.concurrency ?? PARALLEL_MAX,
    onError,
    onLost,
    single: request.single ? core.state.window.join(nowMs).place : null,
    share: request.split ? shareOf(core.state.ledger, count) : null,
    openedAtMs: nowMs,
    deadlineMs,
    models,
    ...(request.background ? { background: true as const } : {}),
  };
  const errorStyle = request.errorStyle ?? core.settings.errorStyle;
  return { header, defaultsJson, sealed: true, openKey, detach, errorStyle, named: namesCalls };
}

function replyOf(core: RunCore, { header, errorStyle }: StoredGroup, replayed: boolean): OpenGroupReply {
  const { seq, id, count } = header;
  const effectiveParallel = Math.min(header.concurrency, core.state.width);
  const lanes = core.hasGroupWork ? missingLanes(core) : [];
  const { remainingNanoUsd } = core;
  return { ok: true, seq, id, count, errorStyle, replayed, effectiveParallel, lanes, remainingNanoUsd };
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

function stagedGroup(seq: number, openKey: string, nowMs: number): StoredGroup {
  const header: GroupHeader = {
    seq,
    id: "",
    count: 0,
    concurrency: 1,
    onError: "continue",
    onLost: "retry",
    single: null,
    share: null,
    openedAtMs: nowMs,
    deadlineMs: null,
    models: [],
  };
  return { header, defaultsJson: "{}", sealed: false, openKey, detach: true, errorStyle: "bracket", named: false };
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
