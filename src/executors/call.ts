/**
 * A call executed by its client's Worker: permit, attempt, settlement, retried while the run object allows it. Waiting here
 * is free, and a Worker request has its own six connections.
 */
import type { AcquireReply, AcquireRequest, Permit, SettleReply, SingleSettlement } from "../objects/methods/calls.ts";
import type { WindowGroup } from "../run/leases/concurrency-window.ts";
import { wasStopped } from "../run/leases/settled.ts";
import { leaseOf } from "../run/steps/dispatch.ts";
import type { Target } from "../run/leases/shard.ts";
import { cappedOf, markCapped } from "../run/money/capped.ts";
import { addTold } from "../run/measures/told-tokens.ts";
import { chargeFor } from "../run/money/charge.ts";
import type { Amounts } from "../run/money/ledger.ts";
import {
  neededEndpoint,
  type CallFacts,
  type CallRules,
  type Lease,
  type LeavingSignal,
  type Outcome,
} from "../call.ts";
import type { Reason } from "../errors.ts";
import { RUN_TARGETS_CACHED_MAX, SLICED_BODY_BYTES_MIN } from "../limits.ts";
import type { Recorded, RecordedCall } from "../objects/methods/replay.ts";
import type { RunCaller } from "../objects/clients/caller.ts";
import type { CreditRun } from "../objects/clients/credit/credits.ts";
import type { Started } from "../objects/clients/credit/holder.ts";
import { creditRun, credits } from "../objects/clients/credit/instance.ts";
import { loneCalls } from "../objects/clients/lone-calls.ts";
import { settleSoon } from "../objects/clients/settlements.ts";
import { SharedRequests } from "../objects/clients/shared-requests.ts";
import type { TraceContext } from "../trace-context.ts";
import { smallRequests } from "../text/bytes/slices.ts";
import type { Route } from "../providers/config/routes.ts";
import type { Upstream } from "../providers/config/types.ts";
import { priceOf } from "../providers/config/registry.ts";
import { isPulled as isPulledUpstream } from "../providers/kinds/table.ts";
import { targetOf, type ModelRules } from "../providers/target.ts";
import { takeSamples, type Attempt } from "./attempt.ts";
import { acquire, attemptTimer, endedWithin, watchClient, type ClientWatch } from "./permit.ts";

/** What all attempts of a call took and cost. */
export type CallUsage = {
  attempts: number;
  latencyMs: number;
  queuedMs: number;
  promptTokens: number;
  completionTokens: number;
  costNanoUsd: number;
  /** Prompt tokens that the provider's cache had, and completion tokens that were reasoning; absent = none. */
  cacheHitTokens?: number;
  reasoningTokens?: number;
  parallelGroupId: string | null;
  /** Set when the last attempt's answer was cut by the budget. */
  cappedBy?: "budget";
  remainingNanoUsd: number | null;
};

/** An attempt that has ended, or whose answer is on its way to the client: then the caller settles it. */
type Attempted =
  /** `nextFacts`: the facts of the call's next attempt, if that differs from the one that ended; absent = it does not. */
  | { kind: "ended"; outcome: Outcome; nextFacts?: CallFacts }
  /** `ended` settles once the last of the answer is on its way. */
  | { kind: "answering"; ended: Promise<unknown> };

/** How a call ended: by its last attempt, or without one. */
export type CallEnd<A extends Attempted> =
  /** `endedAs`: why the run has ended the attempt by itself; absent = it has not. */
  | (A & { lease: Lease; recordKey?: string; endedAs?: Reason })
  /** An equal call made the attempt, and paid for it. */
  | { kind: "shared"; outcome: Outcome }
  /** The run has recorded an answer. */
  | { kind: "replayed"; answer: Recorded }
  /** The run refused the permit. */
  | { kind: "refused"; reason: Reason }
  /** The client left before an attempt was made. */
  | { kind: "client_gone" };

/** What of the gateway's configuration a call needs. */
type CallConfig = {
  upstreams: readonly Upstream[];
  routes: readonly Route[];
  defaultModel: string | null;
  /** Whether this instance may start calls inside credit. */
  leasedCredit: boolean;
};

export type CallDeps = {
  run: RunCaller;
  config: CallConfig;
  /** Aborts when the client has left. */
  signal: LeavingSignal;
  /** Keeps the Worker running until the promise ends, whether its client waits or not. */
  waitUntil: (promise: Promise<unknown>) => void;
  /** Where in a trace the client is; absent = in none. */
  trace?: TraceContext;
  /** When this Worker got the call, epoch ms; absent = now, because the gateway itself makes it. */
  acceptedAtMs?: number;
};

/** A call under a run. */
export type Call = CallRules & {
  facts: CallFacts;
  /** Whether a key that does not work, or a rate limit, makes the call wait rather than fail. */
  waitsForGate: boolean;
  /** Whether a 429 of a key whose width is limited uses up no attempt while the call is young; absent = it uses up one. */
  waitsForWidth?: boolean;
  /** False for a call that the run object itself must start, because it may wait there or share an answer. */
  mayUseCredit: boolean;
  /** The epoch in which its answer is recorded and replayed; absent = its run records none. */
  epoch?: string;
};

type Granted = Permit & { remainingNanoUsd: number | null };

/** The parallel group of a call in flight: known once its window has a second call. */
class GroupWatch {
  readonly #idNow: () => string | null;
  readonly end: () => void;

  constructor(idNow: () => string | null, end: () => void = () => undefined) {
    this.#idNow = idNow;
    this.end = end;
  }

  get id(): string | null {
    return this.#idNow();
  }
}

/**
 * Makes a call under a run. Rejects only if the run object is unreachable.
 * @param attempt Makes one attempt. It must not reject.
 */
export async function executeCall<A extends Attempted>(
  call: Call,
  attempt: (attempt: Attempt) => Promise<A>,
  deps: CallDeps,
): Promise<{ end: CallEnd<A>; usage: CallUsage }> {
  const isSmall = call.facts.promptBytes < SLICED_BODY_BYTES_MIN;
  const hasEnded = isSmall ? smallRequests.begin(Date.now()) : null;
  const watch = watchClient(deps.signal);
  let answering: Promise<unknown> | null = null;
  try {
    const made = await makeAttempts(call, attempt, { ...deps, watch });
    if (made.end.kind === "answering") answering = made.end.ended;
    return made;
  } finally {
    hasEnded?.();
    if (answering === null) watch.end();
    else void answering.then(watch.end, watch.end);
  }
}

async function makeAttempts<A extends Attempted>(
  call: Call,
  attempt: (attempt: Attempt) => Promise<A>,
  deps: CallDeps & { watch: ClientWatch },
): Promise<{ end: CallEnd<A>; usage: CallUsage }> {
  const { signal, trace, watch } = deps;
  const { onLost, waitsForGate, waitsForWidth = false } = call;
  let { facts } = call;
  // A deadline counts from here: the body has arrived by now.
  const startedAtMs = Date.now();
  const { acceptedAtMs = startedAtMs } = deps;
  const callId = crypto.randomUUID();
  const usage = noUsage();
  let end: CallEnd<A> = { kind: "client_gone" };
  let tried: Tried = {};
  for (let delayMs = 0, number = 1; ; number++) {
    // A retry is queued for the time that its call has left.
    const nowMs = Date.now();
    const ageMs = nowMs - acceptedAtMs;
    const deadlineMs = call.deadlineMs === null ? null : Math.max(1, call.deadlineMs - (nowMs - startedAtMs));
    const { parallelGroupId } = usage;
    const times = { delayMs, ageMs, deadlineMs };
    const recording = call.epoch === undefined ? {} : { epoch: call.epoch };
    const rules = { onLost, waitsForGate, waitsForWidth, parallelGroupId, ...tried, ...recording };
    const traced = trace === undefined ? facts : { ...facts, trace };
    const request = { callId, attempt: number, facts: traced, ...times, ...rules };
    const { granted, group } = await permitOf(call, request, deps, watch);
    if (granted === null) return { end, usage };
    usage.remainingNanoUsd = granted.remainingNanoUsd;
    if (granted.ok === "shared") {
      const { parallelGroupId, outcome } = granted;
      return { end: { kind: "shared", outcome }, usage: { ...usage, parallelGroupId, ...cappedOf(outcome) } };
    }
    if (granted.ok === "replayed") return { end: { kind: "replayed", answer: granted.answer }, usage };
    if (!granted.ok) return { end: { kind: "refused", reason: granted.reason }, usage };
    if (number === 1) usage.queuedMs = granted.queuedMs;
    const attempted = await attempt(underWatch(granted.lease, deps, watch));
    group.end();
    usage.parallelGroupId ??= group.id;
    const { recordKey } = granted;
    end = { ...attempted, lease: granted.lease, ...(recordKey === undefined ? {} : { recordKey }) };
    if (attempted.kind === "answering") return { end, usage };
    const isShared = facts.dedupeKey !== undefined;
    const settled = await settle(granted, attempted.outcome, {
      ...deps,
      groupId: group.id,
      isShared,
      epoch: call.epoch,
    });
    if (settled.endedAs !== undefined) end = { ...end, endedAs: settled.endedAs };
    addAttempt(usage, attempted.outcome, settled);
    if (settled.retryInMs === null || signal.aborted) return { end, usage };
    delayMs = settled.retryInMs;
    facts = attempted.nextFacts ?? facts;
    tried = { ...triedBy(settled), earlier: { latencyMs: usage.latencyMs, queuedMs: usage.queuedMs } };
  }
}

/** What a retry's request says of the attempts before. */
type Tried = Pick<AcquireRequest, "position" | "uncounted" | "earlier">;

/** What it repeats of the reply to the settlement before. */
function triedBy({ position, uncounted = 0 }: Settled): Tried {
  return { uncounted, ...(position === undefined ? {} : { position }) };
}

/** The permit of an attempt: from this instance's credit, or from the run object. */
async function permitOf(
  { mayUseCredit }: Call,
  request: AcquireRequest,
  { run, config, waitUntil }: CallDeps,
  watch: ClientWatch,
): Promise<{ granted: Exclude<AcquireReply, { ok: "wait" }> | null; group: GroupWatch }> {
  const { callId, attempt, ageMs = 0, facts, onLost } = request;
  const { runId } = run;
  const lender = creditRunOf(run, waitUntil);
  const isFirst = attempt === 1 && config.leasedCredit;
  if (isFirst && mayUseCredit && !watch.signal.aborted) {
    const targetOf = (rules: ModelRules): Target | null => targetUnder(rules, facts, config);
    const started = credits.start(lender, { callId, ageMs, facts, onLost, targetOf }, waitUntil);
    if (started !== null) return { granted: permitInCredit(started), group: watchOf(started.group) };
  }
  const place = isFirst ? credits.place(runId, ageMs) : null;
  const labelled = place === null ? request : { ...request, label: place.label };
  const granted = await acquire(run, labelled, watch);
  if (granted?.ok !== true) return { granted, group: NO_GROUP };
  const mayLend =
    request.epoch === undefined && !hasChoices(granted.lease) && !isPulled(granted.lease, config.upstreams);
  if (isFirst && mayLend) credits.permitted(lender, granted, waitUntil);
  return { granted, group: place === null ? loneWatch(runId, granted) : watchOf(place.group) };
}

/** Whether the run object chooses where attempts of the call go. */
function hasChoices({ key, route }: Lease): boolean {
  return key !== undefined || route !== undefined;
}

/** The run object as credit needs it: a settlement is sent to it once this request has been answered. */
function creditRunOf(run: RunCaller, waitUntil: CallDeps["waitUntil"]): CreditRun {
  return creditRun(run, (settlement) => settleSoon(run, settlement, waitUntil));
}

/** The targets of models and endpoints under the rules that came with a credit, resolved once. */
const targets = new WeakMap<ModelRules, Map<string, Target | null>>();

function targetUnder(rules: ModelRules, facts: CallFacts, config: CallDeps["config"]): Target | null {
  const endpoint = neededEndpoint(facts);
  const resolved = targets.get(rules) ?? new Map<string, Target | null>();
  targets.set(rules, resolved);
  const key = `${endpoint ?? ""}${facts.model === null ? "" : ` ${facts.model}`}`;
  const before = resolved.get(key);
  if (before !== undefined) return before;
  const found = targetOf(facts.model, rules, config, endpoint);
  // Where such a call goes depends on every call in flight, which the run object knows.
  const target = found.ok && found.target.choices === undefined ? found.target : null;
  if (resolved.size < RUN_TARGETS_CACHED_MAX) resolved.set(key, target);
  return target;
}

function permitInCredit(started: Started & { remainingNanoUsd: number | null }): { ok: true } & Granted {
  const { lease, group, remainingNanoUsd } = started;
  return {
    ok: true,
    lease: leaseOf(started),
    queuedMs: 0,
    reserved: lease.amounts,
    parallelGroupId: group.id,
    windowOpenedAtMs: null,
    remainingNanoUsd,
  };
}

const NO_GROUP = new GroupWatch(() => null);

function watchOf(group: WindowGroup): GroupWatch {
  return new GroupWatch(() => group.id);
}

function loneWatch(runId: string, permit: Permit): GroupWatch {
  const call = loneCalls.add(runId, permit);
  return new GroupWatch(
    () => call.parallelGroupId,
    () => loneCalls.remove(runId, call),
  );
}

/** An attempt that ends when the client leaves, and whose timer keeps its lease alive. */
function underWatch(lease: Lease, { run, waitUntil }: CallDeps, watch: ClientWatch): Attempt {
  // One for each attempt: the last one's was aborted if it took too long, which must not stop this one.
  const controller = new AbortController();
  if (watch.signal.aborted) controller.abort();
  watch.controller = controller;
  const known = (): Promise<void> => knownToRun(run, lease.attemptId, waitUntil);
  return { lease, controller, timer: attemptTimer(run, lease.attemptId, { controller, known }) };
}

/** Resolves once the run object knows of the attempt. */
async function knownToRun(run: RunCaller, attemptId: string, waitUntil: CallDeps["waitUntil"]): Promise<void> {
  if (credits.holds(run.runId, attemptId)) await credits.flush(creditRunOf(run, waitUntil));
}

/**
 * Settles a success while its client has the answer already. The charge, if the attempt ended inside this instance's
 * credit; null = the run object computes it.
 */
export function settleLater(
  { run, waitUntil }: Pick<CallDeps, "run" | "waitUntil">,
  settlement: SingleSettlement,
): ReturnType<typeof credits.end> {
  const ended = credits.end(run.runId, settlement);
  if (ended === null) settleSoon(run, settlement, waitUntil);
  return ended;
}

/** What the client of a call is shown of an attempt's settlement. */
type Settled = Pick<
  SettleReply,
  | "endedAs"
  | "retryInMs"
  | "position"
  | "uncounted"
  | "costNanoUsd"
  | "promptTokens"
  | "completionTokens"
  | "cappedBy"
  | "parallelGroupId"
  | "remainingNanoUsd"
>;

/**
 * Settles an attempt. The run decides what follows a failure. A success is final, and what it costs follows from its
 * permit: so it is settled while its client has the answer already.
 */
async function settle(
  permit: Granted,
  outcome: Outcome,
  {
    run,
    config,
    signal,
    waitUntil,
    groupId,
    isShared,
    epoch,
  }: CallDeps & { groupId: string | null; isShared: boolean; epoch: string | undefined },
): Promise<Settled> {
  const { attemptId } = permit.lease;
  const recorded = recordedCall(permit, epoch);
  // The text is the client's; the run object needs it only if equal calls wait for it, or if it records it.
  const isNeeded = isShared || recorded !== undefined || outcome.kind === "failure";
  const settled = isNeeded ? outcome : { ...outcome, text: "" };
  // A recorded answer is stored before its client has it, so that it is never paid for again.
  if (!endsCall(settled) || recorded !== undefined) {
    // The run object holds back all calls to an upstream that limits rates: none may start without it.
    if (settled.kind === "failure" && (settled.class === "rate_limited" || settled.stop !== undefined)) {
      credits.stop(run.runId);
    }
    await knownToRun(run, attemptId, waitUntil);
    const plain = { attemptId, outcome: settled, stored: null, ...takeSamples() };
    const settlement = recorded === undefined ? plain : { ...plain, recorded };
    if (signal.aborted && settled.kind === "failure") {
      await settleLeft(run, settlement);
      const charge = chargeOfPermit(permit, outcome, config.upstreams);
      const remainingNanoUsd = remainingAfter(permit, charge);
      return { retryInMs: null, ...costOf(charge), parallelGroupId: groupId, remainingNanoUsd };
    }
    const reply = await run.callWithRetry<SettleReply>((stub) => stub.settle(settlement));
    if (reply.known || reply.endedAs !== undefined) return reply;
    // The reply to the same settlement was lost, or the run has forgotten the attempt: its own outcome says what it cost.
    return { ...reply, ...costOf(chargeOfPermit(permit, outcome, config.upstreams)) };
  }
  const ended = settleLater({ run, waitUntil }, { attemptId, outcome: settled, stored: null, ...takeSamples() });
  const charge = ended?.charge ?? chargeOfPermit(permit, outcome, config.upstreams);
  return {
    retryInMs: null,
    ...costOf(charge),
    ...cappedOf(markCapped(outcome, permit.lease)),
    parallelGroupId: groupId,
    remainingNanoUsd: ended === null ? remainingAfter(permit, charge) : ended.remainingNanoUsd,
  };
}

const leftSettlements = new SharedRequests<SingleSettlement, null>();

/** Settles a failed attempt whose client has left: nobody waits for what follows, and those of a killed program are many at once. */
async function settleLeft(run: RunCaller, settlement: SingleSettlement): Promise<void> {
  const send = async (settlements: readonly SingleSettlement[]): Promise<null[]> => {
    await run.callWithRetry<void>((stub) => stub.settleMany([...settlements]));
    return settlements.map(() => null);
  };
  await leftSettlements.replyTo(run.runId, settlement, { send, endedWithin, now: Date.now });
}

/** Under what the answer of a permitted attempt is recorded; undefined = it is not. */
export function recordedCall(
  { recordKey, lease }: { recordKey?: string; lease: Lease },
  epoch: string | undefined,
): RecordedCall | undefined {
  if (recordKey === undefined || epoch === undefined) return undefined;
  return { key: recordKey, epoch, ...(lease.route === undefined ? {} : { upstream: lease.upstream }) };
}

/** Whether an outcome ends its call, whatever the run says: an answer, unless it does not fit its schema. */
function endsCall(outcome: Outcome): outcome is Outcome & { kind: "success" } {
  return outcome.kind === "success" && (outcome.checked?.violation ?? null) === null;
}

/** What the run charges for an attempt, computed as the run object does. */
function chargeOfPermit({ lease, reserved }: Permit, outcome: Outcome, upstreams: readonly Upstream[]): Amounts {
  const { upstream: name, model, priced = {} } = lease;
  const upstream = upstreams.find((configured) => configured.name === name);
  const price = upstream === undefined ? null : priceOf(upstream, model);
  // The run object has refused what a pull worker reported above the reservation.
  return chargeFor(outcome, { amounts: reserved, price, priced }).charge;
}

/** Whether pull workers make the attempt: the run object compares their reports with its reservation, so it must have that. */
function isPulled({ upstream }: Lease, upstreams: readonly Upstream[]): boolean {
  const found = upstreams.find(({ name }) => name === upstream);
  return found !== undefined && isPulledUpstream(found);
}

function costOf({ usd, prompt_tokens: promptTokens, completion_tokens: completionTokens }: Amounts) {
  return { costNanoUsd: usd, promptTokens, completionTokens };
}

/** The outcome that the client gets. If the run had ended the attempt, and so stopped it, the reason is that of the run. */
export function clientOutcome({ outcome, endedAs }: { outcome: Outcome; endedAs?: Reason }): Outcome {
  return endedAs === undefined || !wasStopped(outcome) ? outcome : { ...outcome, reason: endedAs };
}

/** What is left of the budget in USD, as of the permit, without the reservation and with the charge; null = no limit. */
function remainingAfter(
  permit: { reserved: Amounts; remainingNanoUsd: number | null },
  charge: Amounts,
): number | null {
  const { reserved, remainingNanoUsd } = permit;
  return remainingNanoUsd === null ? null : Math.max(0, remainingNanoUsd + reserved.usd - charge.usd);
}

function noUsage(): CallUsage {
  return {
    attempts: 0,
    latencyMs: 0,
    queuedMs: 0,
    promptTokens: 0,
    completionTokens: 0,
    costNanoUsd: 0,
    parallelGroupId: null,
    remainingNanoUsd: null,
  };
}

function addAttempt(usage: CallUsage, outcome: Outcome, settled: Settled): void {
  if (outcome.kind === "success" || outcome.unsent !== true) usage.attempts += 1;
  usage.latencyMs += outcome.latencyMs;
  usage.promptTokens += settled.promptTokens;
  usage.completionTokens += settled.completionTokens;
  usage.costNanoUsd += settled.costNanoUsd;
  if (outcome.kind === "success" && outcome.usage !== null) {
    const { cachedTokens: cacheHitTokens, reasoningTokens } = outcome.usage;
    addTold(usage, { cacheHitTokens, reasoningTokens });
  }
  usage.parallelGroupId ??= settled.parallelGroupId;
  usage.remainingNanoUsd = settled.remainingNanoUsd;
  if (settled.cappedBy !== undefined) usage.cappedBy = settled.cappedBy;
}
