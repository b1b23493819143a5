/** Opening a group: its calls become pages, large ones reach the run object in several calls, and its lanes are started. */
import { bodiesPrefix, type Objects } from "../../address.ts";
import type { RunCaller } from "../caller.ts";
import type { OpenGroupReply, OpenGroupRequest } from "../../methods/groups.ts";
import type { IdempotencyKey, Refused } from "../../methods/types.ts";
import type { CallBody, CallFacts, SharedBody } from "../../../call.ts";
import { modelsOfCalls } from "../../../run/answers/aggregate.ts";
import { hasCourse } from "../../../run/continuations/table.ts";
import type { Aged } from "../../../run/leases/age.ts";
import { CallPageBuilder, type CallPage } from "../../../run/queue/call-page.ts";
import type { CompiledGraph } from "../../../run/graph/types.ts";
import { Refusal, type Reason } from "../../../errors.ts";
import {
  GROUP_CHARS_MAX,
  GROUP_HASHED_CHARS_MAX,
  GROUP_MODELS_CHARS_MAX,
  PAGES_AHEAD_CHARS_MAX,
  PAGES_CALL_CHARS_MAX,
  SCAN_SLICE_BYTES,
} from "../../../limits.ts";
import { pause } from "../../../text/bytes/slices.ts";
import { bodyUploadTo, type BodyUpload } from "./body-upload.ts";
import { contentHash, dedupeKeyOf } from "../dedupe-key.ts";
import { startLanes } from "../lanes.ts";
import { loneCalls } from "../lone-calls.ts";
import { refuseUnpaid } from "./batch-refusal.ts";
import { RunningFloor } from "./running-floor.ts";
import { SendAhead } from "./send-ahead.ts";
import { settled } from "../settlements.ts";
import type { TraceContext } from "../../../trace-context.ts";

/** What is opened. `calls` are read once. */
export type Opening = {
  calls: Iterable<{ body: CallBody; facts: CallFacts; id: string | null }>;
  defaults: SharedBody;
  dedupe: boolean;
  /** Set if all calls are the same one; absent = each is its own. */
  isCopied?: true;
  rules: Omit<OpenGroupRequest, "openKey" | "models" | "defaultsJson" | "trace" | keyof Aged>;
  /** Of a single call: when this Worker got it, epoch ms. It belongs to the calls that arrived with it, however long its way takes. */
  acceptedAtMs?: number;
  /** Set if slots depend on each other: then `calls` has one call for each task. */
  graph?: CompiledGraph;
};

export type Opened = Extract<OpenGroupReply, { ok: true }>;

export type OpenGroupDeps = {
  objects: Objects;
  run: RunCaller;
  /** Aborts when the client has left. */
  signal: AbortSignal;
  /** Keeps the Worker running until the promise ends, whether its client waits or not. */
  waitUntil: (promise: Promise<unknown>) => void;
  /** The attempts that this Worker claims with the opening, if it executes the group; null = lanes do. */
  capacity: number | null;
  /** Where in a trace the client is; absent = in none. */
  trace?: TraceContext;
};

/**
 * Opens a group, or finds the one that its idempotency key has opened, and starts its lanes. Throws a Refusal if it may
 * not be opened, or if its client has left.
 */
export async function openGroup(opening: Opening, deps: OpenGroupDeps): Promise<Opened> {
  const { objects, run, signal, waitUntil, capacity, trace } = deps;
  const { runId } = run;
  const tooLarge = hashedExcess(opening);
  if (tooLarge !== null) throw new Refusal(tooLarge);
  // The object knows the group by this key: a call whose reply is lost can be repeated.
  const openKey = crypto.randomUUID();
  await settled(objects, runId);
  const isPriced = await refuseUnpaid(run, opening);
  // The run object reads the calls of graphs itself, to insert outputs, so they are rows.
  const bodies =
    objects.FILES === undefined || opening.graph !== undefined
      ? null
      : bodyUploadTo(objects.FILES, bodiesPrefix(runId, openKey));
  const upload = { opening, bodies, isPriced, capacity, traced: trace === undefined ? {} : { trace } };
  const pending = openWithPages(run, openKey, upload, signal).catch(async (error: unknown) => {
    // Nothing of a batch that is not opened stays stored. If this call is lost as well, the run's alarm drops it.
    const isDropped = await run.callWithRetry<boolean>((stub) => stub.dropStaged(openKey)).catch(() => false);
    // The run may have opened the group although its reply was lost: then its bodies are needed.
    if (isDropped) await bodies?.discard().catch(() => undefined);
    throw error;
  });
  // If the client leaves, what it has sent so far is still dropped.
  waitUntil(pending.catch(() => undefined));
  const opened = await pending;
  if (opened.window !== undefined) loneCalls.joined(runId, opened.window);
  // The group that the key had opened has its own.
  if (opened.replayed && bodies !== null) waitUntil(bodies.discard().catch(() => undefined));
  startNamed(opened, deps);
  return opened;
}

/** The group that a key has opened before; null = it has opened none. Throws a Refusal if that was another request. */
export async function openedBy(
  key: IdempotencyKey,
  deps: Pick<OpenGroupDeps, "objects" | "run" | "waitUntil">,
): Promise<Opened | null> {
  const reply = await deps.run.callWithRetry<OpenGroupReply | null>((stub) => stub.openedBy(key));
  if (reply === null) return null;
  if (!reply.ok) throw new Refusal(reply.reason);
  startNamed(reply, deps);
  return reply;
}

function startNamed(
  { lanes }: Opened,
  { objects, run: { runId }, waitUntil }: Pick<OpenGroupDeps, "objects" | "run" | "waitUntil">,
): void {
  // A lane that does not start is started again by the run's alarm.
  waitUntil(startLanes(objects, runId, lanes));
}

/** `bodies` null = the gateway has no R2: all bodies are rows. `isPriced`: the run has counted its floor, which fits. */
type Upload = { opening: Opening; bodies: BodyUpload | null; isPriced: boolean } & Pick<OpenGroupDeps, "capacity"> & {
    traced: Pick<OpenGroupDeps, "trace">;
  };

/** Sends the pages and opens the group. */
async function openWithPages(run: RunCaller, openKey: string, upload: Upload, signal: AbortSignal): Promise<Opened> {
  const { builder, pages } = await stage(run, openKey, upload, signal);
  const { opening, bodies, capacity, traced } = upload;
  const defaultsJson = JSON.stringify(opening.defaults);
  const { aggregate, judgeWhen } = opening.rules;
  // No call of the group has them: the run checks them with the others.
  const combining = aggregate === undefined ? [] : modelsOfCalls(aggregate);
  const judging = judgeWhen === undefined ? [] : [judgeWhen.model];
  const models = [...new Set([...builder.models, ...combining, ...judging])];
  const plain: OpenGroupRequest = { ...opening.rules, ...traced, openKey, models, defaultsJson };
  const bodyObjects = bodies?.objects;
  const sized = bodyObjects === undefined ? plain : { ...plain, bodyObjects, bodyBytes: bodies?.bytes ?? 0 };
  const { acceptedAtMs } = opening;
  const graphJson = opening.graph === undefined ? null : JSON.stringify(opening.graph);
  const opened = await run.callWithRetry<OpenGroupReply>((stub) => {
    // Of each try anew: the one before may have waited for an object that restarts.
    const sentAtMs = Date.now();
    const request = acceptedAtMs === undefined ? sized : { ...sized, ageMs: sentAtMs - acceptedAtMs, sentAtMs };
    return stub.openGroup(request, pages, capacity, graphJson);
  });
  if (!opened.ok) throw new Refusal(opened.reason);
  return opened;
}

const CLIENT_GONE: Reason = { reason: "cancelled", message: "the client left before its batch was opened" };

/** Why the calls so far are more than one group may have; null if they are not. */
export function excessOf({ totalChars, modelChars }: CallPageBuilder): Reason | null {
  if (totalChars > GROUP_CHARS_MAX) {
    const what = "the batch with its shared settings";
    return { reason: "payload_too_large", what, bytesMax: GROUP_CHARS_MAX, param: null };
  }
  if (modelChars <= GROUP_MODELS_CHARS_MAX) return null;
  const message = `model: the names of the batch's different models have more than ${GROUP_MODELS_CHARS_MAX} characters`;
  return { reason: "invalid_request", message, param: "model" };
}

/** Why the calls share too much to be compared one by one; null if they do not, or are not compared. */
function hashedExcess(opening: Opening): Reason | null {
  if (!isCompared(opening)) return null;
  const {
    defaults,
    rules: { count },
  } = opening;
  if (JSON.stringify(defaults).length * count <= GROUP_HASHED_CHARS_MAX) return null;
  const what = `what all ${count} calls share, once for each, in a batch with dedupe or in a run that records; as a context it counts once, so it`;
  return { reason: "payload_too_large", what, bytesMax: GROUP_HASHED_CHARS_MAX, param: null };
}

/** Sends all but the last pages ahead, several calls at once. Nothing is on its way any more when it resolves or rejects. */
async function stage(
  run: RunCaller,
  openKey: string,
  upload: Upload,
  signal: AbortSignal,
): Promise<{ builder: CallPageBuilder; pages: CallPage[] }> {
  const ahead = new SendAhead(PAGES_AHEAD_CHARS_MAX);
  const send = async (pages: CallPage[]): Promise<void> => {
    const refused = await run.callWithRetry<Refused | null>((stub) =>
      stub.stagePages(openKey, pages, upload.bodies?.bytes ?? 0),
    );
    if (refused !== null) throw new Refusal(refused.reason);
  };
  try {
    const { dedupe, rules } = upload.opening;
    // Of equal calls one is paid for, wherever in the batch they are: only the opening knows.
    const isAdded = rules.onBudget === "refuse" && !dedupe && !upload.isPriced;
    const floor = isAdded ? new RunningFloor(run, rules.idempotencyKey?.key ?? null) : null;
    const staged = await stagePages(upload, signal, floor, (pages, chars) => ahead.add(chars, () => send(pages)));
    await ahead.arrived();
    return staged;
  } finally {
    // A page that arrives after its upload was dropped would be stored until the run's alarm finds it.
    await ahead.settled();
  }
}

/**
 * Makes the pages, and gives all but the last to `send`, in calls of a bounded size.
 * @param floor Looks at pages before anything of them is stored; null = nobody does, and they are stored as they come.
 */
async function stagePages(
  { opening, bodies }: Upload,
  signal: AbortSignal,
  floor: RunningFloor | null,
  send: (pages: CallPage[], chars: number) => Promise<void>,
): Promise<{ builder: CallPageBuilder; pages: CallPage[] }> {
  const { calls, defaults, rules, isCopied = false } = opening;
  const builder = new CallPageBuilder(defaults);
  const unseen = new Unseen();
  let pages: CallPage[] = [];
  let chars = 0;
  let pausedChars = 0;
  const place = async (full: CallPage): Promise<void> => {
    const page = bodies === null ? full : await bodies.place(full);
    if (chars + charsOf(page) > PAGES_CALL_CHARS_MAX && pages.length > 0) {
      if (signal.aborted) throw new Refusal(CLIENT_GONE);
      await bodies?.stored();
      await send(pages, chars);
      pages = [];
      chars = 0;
    }
    pages.push(page);
    chars += charsOf(page);
  };
  /** What is the whole batch is looked at with its opening. */
  const placeUnseen = async (isWhole: boolean): Promise<void> => {
    const seen = unseen.take();
    if (!isWhole) await floor?.add(seen, builder.models);
    for (const page of seen) await place(page);
  };
  for (const { body, facts, id } of calls) {
    if (builder.totalChars - pausedChars > SCAN_SLICE_BYTES) {
      pausedChars = builder.totalChars;
      await pause();
    }
    // Most calls are not compared: then nothing is waited for, tens of thousands of times.
    const known = isCompared(opening) ? await knownFacts(opening, { body, facts }) : facts;
    const full = isCopied
      ? builder.copies({ body, facts: known }, rules.count)
      : builder.add({ body, facts: known, id });
    const tooLarge = excessOf(builder);
    if (tooLarge !== null) throw new Refusal(tooLarge);
    if (full === null) continue;
    if (floor === null) await place(full);
    else {
      if (unseen.chars > 0 && unseen.chars + charsOf(full) > PAGES_CALL_CHARS_MAX) await placeUnseen(false);
      unseen.add(full);
    }
    // The others are the same.
    if (isCopied) break;
  }
  const last = builder.flush();
  if (last !== null) unseen.add(last);
  await placeUnseen(floor === null || unseen.isWhole);
  await bodies?.stored();
  return { builder, pages };
}

/** Whether calls are compared with others: with equal ones of the batch, or with recorded ones. */
function isCompared({ dedupe, rules }: Pick<Opening, "dedupe" | "rules">): boolean {
  return dedupe || rules.replay !== undefined;
}

/** The facts of a call with the names of what it shares: its outcome with equal calls, and its recorded answer with later ones. */
async function knownFacts(
  { dedupe, rules }: Pick<Opening, "dedupe" | "rules">,
  { body, facts }: { body: CallBody; facts: CallFacts },
): Promise<CallFacts> {
  // A call that may be made several times has no one outcome to share, and no one answer to record.
  if (hasCourse(facts)) return facts;
  const shared = dedupe ? { ...facts, dedupeKey: await dedupeKeyOf(body, facts) } : facts;
  return rules.replay === undefined ? shared : { ...shared, content: await contentHash(body, facts) };
}

/** Pages whose floor nobody has looked at yet. */
class Unseen {
  #pages: CallPage[] = [];
  /** Whether none was taken before. */
  isWhole = true;
  chars = 0;

  add(page: CallPage): void {
    this.#pages.push(page);
    this.chars += charsOf(page);
  }

  take(): CallPage[] {
    const pages = this.#pages;
    this.#pages = [];
    this.chars = 0;
    this.isWhole = false;
    return pages;
  }
}

function charsOf({ facts, calls }: CallPage): number {
  return facts.length + calls.length;
}
