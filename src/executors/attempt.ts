/**
 * The one executor: makes the attempt that a lease permits, for a client's Worker and for lanes alike.
 * Permits, settlements and retries are the caller's.
 */
import { chargeOf } from "../run/money/estimate.ts";
import { usdOf } from "../run/money/money.ts";
import type { CallBody, Endpoint, Lease, Outcome, SharedPrefix, ToolRound } from "../call.ts";
import type { Reason } from "../errors.ts";
import { rewriteRequest } from "../providers/formats/request/rewrite.ts";
import type { RequestFacts } from "../providers/formats/request/read.ts";
import type { RunCaller } from "../objects/clients/caller.ts";
import { pulledFetch, type PullRun } from "../objects/clients/pulled-fetch.ts";
import { simulatedAnswer } from "../providers/simulated/provider.ts";
import { attempt } from "../providers/attempt.ts";
import { failed } from "../providers/classify.ts";
import { withQuery } from "../providers/config/address.ts";
import { underKey } from "../providers/config/keys.ts";
import type { Sampled } from "../objects/methods/types.ts";
import { gateNameOf } from "../providers/config/keys.ts";
import type { Upstream } from "../providers/config/types.ts";
import type { ReadyUpstream } from "../providers/credentials/access-tokens.ts";
import { signedFetch } from "../providers/credentials/signed-fetch.ts";
import { endpointUrl, relayHeaders } from "../providers/endpoints.ts";
import { senderOf, type ExchangeDeps, type StartTimer } from "../providers/exchange.ts";
import type { Sender } from "../providers/kinds/kind.ts";
import { isPulled, isRemote, kindOf } from "../providers/kinds/table.ts";
import { AI_BINDING } from "../providers/kinds/workers-ai.ts";
import { boundFetch } from "../providers/bound-fetch.ts";
import { ReachedHosts } from "../providers/reached.ts";
import { priceOf } from "../providers/config/registry.ts";
import { RateSampler } from "../providers/limits/sampler.ts";
import { EditedStreams } from "../providers/relay/batches.ts";
import { ownSecrets } from "../providers/redact.ts";
import { relay } from "../providers/relay/relay.ts";
import type { RelayAnswered, RelayEnd, RelayFailed } from "../providers/relay/types.ts";
import { TapedCall, tapeOfCall, tapeOfRelay, untapedOutcome, type TapeRun } from "./cassettes/taped-call.ts";
import { checkedOutcome } from "./checked-outcome.ts";
import { withMarkedSystem } from "./contexts/insert.ts";
import { announcing } from "./contexts/leader.ts";
import { ContextCall, type TextRun } from "./contexts/send.ts";
import { RefusedSchemas } from "../text/schema/sent.ts";
import { CallHistories } from "../providers/stream-choice.ts";
import { RelayedContent, withContent } from "./tracing/content.ts";
import { withTrace } from "./tracing/trace-headers.ts";
import { connectOnce } from "./connect-once.ts";
import { accessTokens, forgetRefused } from "./credentials.ts";

/** An attempt as its executor makes it: what permits it, what stops it, and what keeps its time and its lease. */
export type Attempt = {
  lease: Lease;
  /** One for each attempt: an attempt that takes too long aborts its own. */
  controller: AbortController;
  timer: StartTimer;
  /** Called before a request is sent, if anyone needs to know whether it is for JSON or for a stream. */
  requests?: (isJson: boolean) => void;
  /** Called when the headers of the answer have come, if anyone counts the attempts that wait for them. */
  headersArrived?: () => void;
};

/** What this isolate knows of the calls that it has made. */
const histories = new CallHistories();

/** The hosts of upstreams that this isolate has reached. */
const reached = new ReachedHosts(connectOnce);

/** What this isolate has seen of the rate limits of keys. */
const rates = new RateSampler();

/** What was seen of rate limits since the last call, to travel with a settlement; empty = nothing. */
export function takeSamples(): Sampled {
  const samples = rates.take(Date.now());
  return samples === null ? {} : { samples };
}

/** The schemas that upstreams have refused to this isolate. */
const refusedSchemas = new RefusedSchemas();

/** The streams that this isolate edits. */
const edited = new EditedStreams();

/** Makes the attempts of slots that call tools of the run: of a task that is one, and all calls that a model asks for. Never rejects. */
export type ToolAttempts = {
  task: (attempt: Attempt, body: CallBody) => Promise<Outcome>;
  round: (attempt: Attempt, round: ToolRound) => Promise<Outcome>;
};

/** Where an attempt is made. `headersLimited`: whether few fetches of this executor may wait for headers at once. */
export type AttemptPlace = {
  upstreams: readonly Upstream[];
  headersLimited: boolean;
  run: PullRun & TextRun & TapeRun;
  /** Absent = no call uses tools. */
  callTools?: ToolAttempts;
};

/**
 * Sends a call and reads its whole answer. Never rejects.
 */
export async function attemptCall(made: Attempt, stored: CallBody, place: AttemptPlace): Promise<Outcome> {
  const { lease, controller, timer, requests, headersArrived } = made;
  const { upstreams, headersLimited, run, callTools } = place;
  if (stored.tool !== undefined && callTools !== undefined) return await callTools.task(made, stored);
  const configured = upstreamOf(lease, upstreams);
  if (configured === null) return unsent(notConfigured(lease));
  const ready = await readyOf(configured, run);
  if (!ready.ok) return keyless(ready);
  const { upstream } = ready;
  const tape = await tapeOfCall(upstream, lease, stored, run);
  if (tape !== null && !(tape instanceof TapedCall)) return untapedOutcome(tape);
  const context = stored.context === undefined ? null : new ContextCall(stored.context, run);
  const body = context === null ? markedBody(stored, lease) : context.bodyOf(stored, lease.mark);
  // An item on the board keeps no other call of this executor from its headers.
  if (isPulled(upstream)) headersArrived?.();
  const endpoint = body.raw?.endpoint ?? "chat";
  const plain = SENDERS[kindOf(upstream).sends]({ upstream, lease, endpoint, signal: controller.signal, run });
  const deps = exchangeDeps({ upstream, configured }, { lease, controller, timer }, plain);
  const sending = context === null ? deps.fetch : context.fetchWith(deps.fetch);
  const answering = tape === null ? sending : tape.fetchWith(sending);
  const fetch = lease.leads === true ? announcing(answering, begunOf(lease, run)) : answering;
  const watched = { ...deps, fetch, histories, refusedSchemas, headersLimited, requests, headersArrived };
  const ended = await attempt({ upstream: await withTrace(upstream, lease, run.runId), lease, body }, watched);
  const outcome = context === null ? ended : context.outcomeOf(ended);
  await tape?.record(outcome);
  const checked = body.schema === undefined ? outcome : checkedOutcome(outcome, body.schema, lease);
  return withContent(upstream, stored, checked);
}

type Notified = Pick<RunCaller, "notify">;

/** Tells the run that the answer of an attempt has begun, for which others wait. */
function begunOf({ attemptId }: Lease, run: Notified): () => void {
  return () => void run.notify((stub) => stub.answerBegun(attemptId));
}

/** The body of a call that refers to no context. */
function markedBody(body: CallBody, { mark }: Lease): CallBody {
  return mark === undefined ? body : withMarkedSystem(body, mark);
}

/** A request whose bytes are relayed, as its client wrote it. */
export type RelayedRequest = {
  bytes: Uint8Array;
  facts: RequestFacts;
  /** The part of the client's query that goes on, with its `?`; else empty. */
  query: string;
  /** Looks up a header of the client's. */
  header: (name: string) => string | undefined;
  /** The beginning that its client has marked for the provider's cache; absent = it has marked none. */
  shared?: SharedPrefix;
};

/** A relayed attempt that failed before the first byte of an answer. `upstream` null = its lease names none that is configured. */
export type RelayFailure = RelayFailed & { upstream: Upstream | null };

/** Sends a request on and relays the answer as it comes. Never rejects. */
export async function attemptRelay(
  { lease, controller, timer }: Attempt,
  relayedRequest: RelayedRequest,
  { upstreams, run }: Pick<AttemptPlace, "upstreams"> & { run: TapeRun & Notified },
): Promise<RelayAnswered | RelayFailure> {
  const { bytes, facts, query, header } = relayedRequest;
  const configured = upstreamOf(lease, upstreams);
  if (configured === null) return unsentRelay(notConfigured(lease), null);
  const { endpoint, stream, base64 } = facts;
  const target = endpointUrl(configured, endpoint, lease.model);
  if (!target.ok) return unsentRelay(target.reason, configured);
  const ready = await readyOf(configured, run);
  if (!ready.ok) return { kind: "failed", outcome: keyless(ready), answer: null, upstream: configured };
  const { upstream } = ready;
  const tape = await tapeOfRelay(upstream, lease, relayedRequest, run);
  if (tape !== null && !(tape instanceof TapedCall)) {
    return { kind: "failed", outcome: untapedOutcome(tape), answer: null, upstream };
  }
  const { model, capTokens: cap } = lease;
  const price = priceOf(upstream, model);
  const passes = passesOf(upstream, facts);
  const job = {
    upstream,
    lease,
    endpoint,
    request: {
      url: withQuery(target.url, query.slice(1)),
      headers: relayHeaders(await withTrace(upstream, lease, run.runId), header),
      body: rewriteRequest(bytes, facts, { model, cap, capField: upstream.capField, includeUsage: true }),
    },
    stream,
    usageChunk: usageChunkOf(facts),
    passes,
    moves: passes && mayMove(upstream),
    base64,
    costUsdOf: (usage: Parameters<typeof chargeOf>[0]) => usdOf(chargeOf(usage, price, lease.priced).usd),
  };
  const pipe = (): IdentityTransformStream => new IdentityTransformStream();
  const network = SENDERS[kindOf(upstream).sends]({ upstream, lease, endpoint, signal: controller.signal });
  const exchanged = exchangeDeps({ upstream, configured }, { lease, controller, timer }, network);
  const sending = tape === null ? exchanged.fetch : tape.fetchWith(exchanged.fetch);
  const content = RelayedContent.of(upstream, relayedRequest);
  const fetch = content === null ? sending : content.fetchWith(sending);
  const begun = lease.leads === true ? { begun: begunOf(lease, run) } : {};
  const relayed = await relay(job, { ...exchanged, fetch, pipe, lookTimer: plainTimer, edited, ...begun });
  if (relayed.kind === "failed") {
    await tape?.record(relayed.outcome);
    return { ...relayed, outcome: content?.in(relayed.outcome) ?? relayed.outcome, upstream };
  }
  if (tape === null && content === null) return relayed;
  return { ...relayed, ended: followedEnd(relayed.ended, tape, content) };
}

/** The end of an answer. It is recorded first, so a client that waits for the settlement finds it on the tape. */
async function followedEnd(
  ended: Promise<RelayEnd>,
  tape: TapedCall | null,
  content: RelayedContent | null,
): Promise<RelayEnd> {
  const end = await ended;
  await tape?.record(end.outcome);
  return content === null ? end : { ...end, outcome: content.in(end.outcome) };
}

/** The outcome of an attempt that could not be sent. It costs nothing. */
export function unsent(reason: Reason): Outcome {
  return { ...failed("rejected", reason), unsent: true, latencyMs: 0 };
}

function unsentRelay(reason: Reason, upstream: Upstream | null): RelayFailure {
  return { kind: "failed", outcome: unsent(reason), answer: null, upstream };
}

/** The upstream of a lease, under the lease's key. */
function upstreamOf({ upstream, key }: Lease, upstreams: readonly Upstream[]): Upstream | null {
  const found = upstreams.find(({ name }) => name === upstream);
  return found === undefined ? null : underKey(found, key);
}

/** The configuration has changed since the call was admitted. */
function notConfigured({ upstream, key }: Lease): Reason {
  const message = `upstream ${upstream}${key === undefined ? "" : " with this key"} is not configured any more`;
  return { reason: "misconfigured", variable: "UPSTREAMS", message };
}

/** The Worker has no binding over which the upstream could be reached. */
function unbound({ name }: Upstream): Reason {
  const message = `${name} needs the binding of Workers AI, which wrangler.toml does not have: [ai] binding = "${AI_BINDING}"`;
  return { reason: "misconfigured", variable: AI_BINDING, message };
}

/** The upstream with a key that can be sent. Nothing is sent to a tape, so nothing is fetched for it. */
function readyOf(upstream: Upstream, owner: object): Promise<ReadyUpstream> {
  if (upstream.cassette?.mode === "replay") return Promise.resolve({ ok: true, upstream });
  if (kindOf(upstream).sends === "binding" && upstream.bound?.binding === undefined) {
    return Promise.resolve({ ok: false, reason: unbound(upstream), retryable: false });
  }
  return accessTokens.ready(upstream, owner);
}

/** The outcome of an attempt without a key that could be sent. It costs nothing. */
function keyless({ reason, retryable, stop }: ReadyUpstream & { ok: false }): Outcome {
  const failure = failed(retryable ? "transient" : "rejected", reason);
  return { ...failure, ...(stop === undefined ? {} : { stop }), unsent: true, latencyMs: 0 };
}

/** `configured`: the upstream with the key that its configuration names, in place of the one that is sent. */
function exchangeDeps(
  { upstream, configured }: { upstream: Upstream; configured: Upstream },
  { lease, controller, timer }: Attempt,
  send: ExchangeDeps["fetch"],
): ExchangeDeps {
  const headersSeen = (response: Response, sentMs: number): void => {
    const shown = kindOf(upstream).limitHeaders;
    forgetRefused(configured, response);
    rates.see(gateNameOf(lease.upstream, lease.key), response, { sentMs, nowMs: Date.now(), shown });
  };
  const reach = upstream.connectsFirst === true ? { reach: (url: string) => reached.look(url) } : {};
  return { ...senderOf(send), now: Date.now, timer, controller, headersSeen, ...reach };
}

/** What a sender needs; `run` absent = of a relayed call, which no pull worker gets. */
type Sending = { upstream: Upstream; lease: Lease; endpoint: Endpoint; signal: AbortSignal; run?: PullRun };

/** How an attempt reaches its upstream, by its kind. */
const SENDERS: Readonly<Record<Sender, (sending: Sending) => ExchangeDeps["fetch"]>> = {
  network: ({ upstream }) => signedFetch(upstream, fetch),
  binding: ({ upstream: { name, bound }, endpoint }) => {
    if (bound?.binding === undefined) throw new Error(`${name} was found ready without its binding`);
    return boundFetch(endpoint, { ...bound, binding: bound.binding, now: Date.now, id: () => crypto.randomUUID() });
  },
  simulated: simulatedFetch,
  pull: ({ run, lease, signal }) => {
    if (run === undefined) throw new Error(`pull workers take no relayed calls, such as ${lease.attemptId}`);
    return pulledFetch(run, lease, signal);
  },
};

/** The simulated upstream in place of the network. */
function simulatedFetch({ lease, endpoint, signal }: Sending): ExchangeDeps["fetch"] {
  const deps = { now: Date.now, timer: plainTimer, signal, attempt: lease.attempt ?? 1 };
  return async (_url, { body }) => simulatedAnswer(endpoint, await new Response(body).text(), deps);
}

/** A timer that renews no lease, unlike an attempt's, of which one is enough. */
const plainTimer: StartTimer = (ms, elapsed) => {
  const handle = setTimeout(elapsed, ms);
  return () => clearTimeout(handle);
};

/**
 * Whether a stream goes to its client as the upstream writes it: if the client gets all of its events anyway. The simulated
 * upstream's, and one that is recorded, replayed or exported, is made in JavaScript, so that the runtime could not move it.
 */
function passesOf(upstream: Upstream, facts: RequestFacts): boolean {
  const { streamUsage, cassette, exportsContent } = upstream;
  const isRead = cassette !== undefined || exportsContent === true;
  if (!isRemote(upstream) || isRead || streamUsage === "edit") return false;
  return streamUsage === "pass" || usageChunkOf(facts) !== "injected";
}

/** Whether the runtime may move what passes: there is no key that the upstream could quote, or the operator trusts it not to. */
function mayMove(upstream: Upstream): boolean {
  return upstream.streamUsage === "pass" || ownSecrets(upstream).length === 0;
}

function usageChunkOf({ endpoint, stream, includeUsage }: RequestFacts): "requested" | "injected" | "absent" {
  if (!stream || (endpoint !== "chat" && endpoint !== "completions")) return "absent";
  return includeUsage ? "requested" : "injected";
}
