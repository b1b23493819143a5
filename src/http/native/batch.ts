/** `POST /batch`: an ordered list of calls, opened as one group. */
import type { Context } from "hono";
import { RunCaller } from "../../objects/clients/caller.ts";
import type { IdempotencyKey } from "../../objects/methods/types.ts";
import type { AnswerSettingsReply } from "../../objects/methods/runs.ts";
import { requireRun } from "../auth/middleware.ts";
import type { AppEnv } from "../context.ts";
import { parseQuote, type BatchRequest } from "../../contract/batch.ts";
import { readJsonBytes } from "../../contract/body.ts";
import type { IndependenceReply } from "../../contract/independence.ts";
import { prefersAsync } from "../../contract/groups.ts";
import { batchReading } from "../../contract/large-batch.ts";
import { Refusal, type Reason } from "../../errors.ts";
import { aggregationOf } from "../replies/aggregation.ts";
import { emptyBatch } from "../replies/batch-json.ts";
import { emptyEvent } from "../replies/batch-lines.ts";
import { stopFields, tierFields } from "../replies/rule-fields.ts";
import { bodyRoom } from "../body-bound.ts";
import { inSlices, pause } from "../../text/bytes/slices.ts";
import { recordingOf } from "../recording.ts";
import { groupOfClient, openGroupDeps } from "./client-group.ts";
import { answerAccepted, answerGroup, framingOf, isAccepted, type GroupAnswer } from "./group-answer.ts";
import { batchWithContexts } from "../contexts/find.ts";
import type { CompiledGraph } from "../../run/graph/types.ts";
import { stoppingOf } from "../../run/rules/table.ts";
import { openGroup, type Opened } from "../../objects/clients/groups/open-group.ts";
import { PLAIN_RULES } from "../../objects/clients/groups/plain-rules.ts";
import { firstCapacity } from "../../executors/group-executor.ts";
import { startWorkflow, WORKFLOW_CAPACITY } from "../../executors/workflow-group.ts";
import { GroupReader, type GroupSource } from "../../objects/clients/groups/group-reader.ts";
import { independenceOf, serialOrderOf } from "./independence.ts";
import { namedOf } from "./idempotency.ts";
import { batchWithTools } from "./tool-use.ts";
import { quoteBatch } from "./quote.ts";
import type { Handlers } from "../handler.ts";
import { noteGroup } from "../trace-header.ts";
import { requireWebhook } from "./webhook-rule.ts";

export const batchHandlers = {
  "POST /batch": batch,
} satisfies Partial<Handlers>;

async function batch(c: Context<AppEnv>): Promise<Response> {
  const runId = requireRun(c);
  const isQuote = parseQuote(c.req.query("quote"));
  if (!isQuote.ok) throw new Refusal(isQuote.reason);
  const body = await readJsonBytes(c.req.raw, bodyRoom(c));
  if (!body.ok) throw new Refusal(body.reason);
  const named = await namedOf(c, body.value);
  const parsed = await inSlices(batchReading(body.value), pause);
  if (!parsed.ok) throw new Refusal(parsed.reason);
  const request = await batchWithContexts(c, runId, await batchWithTools(c, runId, parsed.value));
  if (isQuote.value) return quoteBatch(c, runId, request);
  const order = serialOrderOf(request);
  return answerBatch(c, runId, { request, named, independence: independenceOf(request), order });
}

/** A batch to open; `named` is its Idempotency-Key, if it has one. `independence`: what its answer says about that. */
export type RequestedBatch = {
  request: BatchRequest;
  named: IdempotencyKey | null;
  independence?: IndependenceReply;
  /** In which order its calls run, if some must not run at the same time. */
  order?: CompiledGraph | null;
  /** Set if its client knows no answer but results: then it waits for the confirmation that the batch may need. */
  awaitsConfirmation?: true;
};

/** Opens a batch under a run and answers in the form that the client requests: whole, as events, or with its location. */
export async function answerBatch(c: Context<AppEnv>, runId: string, requested: RequestedBatch): Promise<Response> {
  if (requested.request.calls.length === 0) return answerEmpty(c, runId, requested.request);
  const { isHeld, ...opened } = await openBatch(c, runId, requested);
  const held = isHeld === true && requested.awaitsConfirmation !== true ? { isHeld } : {};
  const group = { ...opened, ...held, independence: requested.independence ?? {} };
  if (isAccepted(c, group)) return answerAccepted(c, group, await group.reader.look());
  return answerGroup(c, group);
}

/** Opens a batch that has calls, or finds the group that its key has opened. This Worker executes what it opens. */
export async function openBatch(
  c: Context<AppEnv>,
  runId: string,
  { request, named, order = null }: RequestedBatch,
): Promise<GroupAnswer> {
  const run = new RunCaller(c.env, runId);
  requireWebhook(c, request);
  if (request.viaBatches && !prefersAsync(c.req.header("prefer"))) throw new Refusal(NEEDS_ASYNC);
  const isAsync = prefersAsync(c.req.header("prefer"));
  const { waitingFetchesMax, mayUseWorkflows } = c.get("config");
  const workflows = isAsync && mayUseWorkflows ? c.env.WORKFLOW : undefined;
  const ownCapacity = isAsync ? null : firstCapacity(waitingFetchesMax);
  const capacity = workflows === undefined ? ownCapacity : WORKFLOW_CAPACITY;
  const opening = openingOf(request, named, await recordingOf(c, runId));
  const opened = await openGroup(
    order === null ? opening : { ...opening, graph: order },
    openGroupDeps(c, run, capacity),
  );
  noteGroup(c, runId, opened);
  if (workflows !== undefined && opened.claim !== null) {
    c.executionCtx.waitUntil(startWorkflow(workflows, run, opened.seq));
  }
  const showsSlots = framingOf(c.req.header("accept")) !== null;
  const reader = isAsync
    ? new GroupReader(run, opened.seq, c.req.raw.signal)
    : groupOfClient(c, run, opened, { ids: request.ids, detach: request.detach, showsSlots });
  return groupAnswer(runId, opened, reader);
}

const NEEDS_ASYNC: Reason = {
  reason: "invalid_request",
  message: 'service_tier: "batch" requires the header "Prefer: respond-async", because results can take hours',
  param: "service_tier",
};

function openingOf(request: BatchRequest, named: IdempotencyKey | null, recording: { epoch: string } | null) {
  const { calls, isCopied, ids, hasLabels = false, defaults, dedupe, concurrency, onError, onBudget, onLost } = request;
  const { split, deadlineMs, detach, errorStyle } = request;
  const hasCustomIds = ids.length > 0 || hasLabels;
  const rules = { ...PLAIN_RULES, idempotencyKey: named, count: calls.length, hasCustomIds };
  const combined = request.aggregate === null ? {} : { aggregate: request.aggregate };
  const tiers = request.tiers === null ? {} : { tiers: request.tiers };
  const replay = recording === null ? {} : { replay: recording };
  const { onExhausted, notify } = request;
  const provider = request.viaBatches ? { viaBatches: true as const } : {};
  const guards = {
    ...(onExhausted !== null && { onExhausted }),
    ...(notify && { notify }),
  };
  const options = { concurrency, onError, onBudget, onLost, split, deadlineMs, detach, errorStyle };
  return {
    calls,
    ...(isCopied === true ? { isCopied } : {}),
    defaults,
    dedupe,
    rules: { ...rules, ...options, ...request.rules, ...combined, ...tiers, ...replay, ...guards, ...provider },
  };
}

/** The answer of a group that was just opened, or found. */
export function groupAnswer(runId: string, opened: Opened, reader: GroupSource): GroupAnswer {
  const { id, count, effectiveParallel, errorStyle: style, remainingNanoUsd, replayed } = opened;
  const headers: Record<string, string> = replayed ? { "idempotent-replayed": "true" } : {};
  const held = opened.isHeld === true ? { isHeld: opened.isHeld } : {};
  return { runId, id, count, effectiveParallel, reader, style, remainingNanoUsd, headers, ...held };
}

/** No calls: no group and no cost; a stream has its last event only. */
async function answerEmpty(c: Context<AppEnv>, runId: string, request: BatchRequest): Promise<Response> {
  const { concurrency } = request;
  const width = await widthOf(c, runId);
  const effectiveParallel = Math.min(concurrency ?? width, width);
  const framing = framingOf(c.req.header("accept"));
  const more = await emptyFields(request);
  if (framing === null) return c.json({ ...emptyBatch(effectiveParallel, new Date().toISOString()), ...more });
  const event = { ...emptyEvent(effectiveParallel), ...more };
  const headers = { "content-type": framing.contentType, "cache-control": "no-store" };
  return c.body(framing.frame(event.type, 1, JSON.stringify(event)), 200, headers);
}

/** What the rules of a batch say of no answers. */
async function emptyFields({ rules: asked, aggregate, tiers }: BatchRequest): Promise<object> {
  const { shadow } = stoppingOf(asked) ?? {};
  const judged = asked.judgeWhen === undefined ? {} : { judges: [] };
  const stop = shadow === undefined ? undefined : { shadow, saved: null, hasCancelled: false, ...judged };
  const rules = { ...stopFields(stop), ...tierFields(tiers === null ? undefined : []) };
  if (aggregate === null) return rules;
  const aggregation = await aggregationOf(aggregate, { group: { count: 0 }, slotsFrom: () => Promise.resolve([]) });
  return { ...rules, aggregation };
}

/** The width of a run as it is now. Throws a Refusal if the run accepts no calls. */
export async function widthOf(c: Context<AppEnv>, runId: string): Promise<number> {
  const settings = await new RunCaller(c.env, runId).callWithRetry<AnswerSettingsReply>((run) => run.answerSettings());
  if (!settings.ok) throw new Refusal(settings.reason);
  return settings.width;
}
