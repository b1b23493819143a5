/** Calls of an upstream with a tape: recorded calls are answered from it, and calls that are sent are recorded. */
import { markCapped } from "../../run/money/capped.ts";
import type { CallBody, Endpoint, FailureClass, Lease, Outcome } from "../../call.ts";
import { callRequest, keptRequest, relayedRequest, requestText } from "../../recordings/request.ts";
import type { Exchange, TapedAnswer, TapedRequest } from "../../recordings/types.ts";
import type { Reason } from "../../errors.ts";
import { CASSETTE_LINE_BYTES_MAX, CASSETTE_RETRY_MS } from "../../limits.ts";
import type { Taken, TapeLine, TapeUse } from "../../objects/methods/cassette-api.ts";
import type { RunCaller } from "../../objects/clients/caller.ts";
import { objectFailure } from "../../objects/clients/retry.ts";
import { NEWER_STORAGE } from "../../newer-rows.ts";
import { sha256Hex } from "../../objects/clients/dedupe-key.ts";
import { failed } from "../../providers/classify.ts";
import type { Upstream } from "../../providers/config/types.ts";
import type { ExchangeDeps } from "../../providers/exchange.ts";
import { withoutOwnSecrets } from "../../providers/redact.ts";
import { AnswerCopy, playedResponse } from "./answer.ts";

type Fetch = ExchangeDeps["fetch"];

/** How a call reaches the object of its tape. */
export type TapeRun = Pick<RunCaller, "runId" | "callCassette">;

/** Headers of the client's that change the answer. Others, with the keys among them, are on no tape. */
const TAPED_HEADERS = ["anthropic-version", "anthropic-beta", "openai-beta"];

/** Refusals of a provider that the same request meets each time. */
const RECORDED_REFUSALS: ReadonlySet<number> = new Set([400, 404, 413, 415, 422]);

/** A call whose upstream has a tape, which has been looked up there. */
export class TapedCall {
  readonly #upstream: Upstream;
  readonly #lease: Lease;
  readonly #run: TapeRun;
  readonly #use: TapeUse;
  readonly #tape: string;
  readonly #request: { taped: TapedRequest; text: string };
  readonly #played: TapedAnswer | null;
  readonly #copy = new AnswerCopy();

  private constructor({ upstream, lease, run, use, tape, request }: Opened, played: TapedAnswer | null) {
    this.#upstream = upstream;
    this.#lease = lease;
    this.#run = run;
    this.#use = use;
    this.#tape = tape;
    this.#request = request;
    this.#played = played;
  }

  /** Looks the call up. A failure: it is not on the tape and may not be sent, or the tape cannot be reached. Never rejects. */
  static async open(call: TapedAttempt): Promise<TapedCall | TapeFailure> {
    const { upstream, lease, run, cassette, taped } = call;
    const { tape, mode } = cassette;
    const text = requestText(taped);
    try {
      const key = await sha256Hex(new TextEncoder().encode(text));
      const use = { runId: run.runId, attemptId: lease.attemptId, key, mode };
      const opened = { upstream, lease, run, use, tape, request: { taped, text } };
      if (mode === "record") return new TapedCall(opened, null);
      const taken = await run.callCassette<Taken>(tape, (object) => object.take(use));
      if ("answer" in taken) return new TapedCall(opened, taken.answer);
      if (mode === "hybrid") return new TapedCall(opened, null);
      const { had } = taken;
      const reason = await run.callCassette<Reason>(tape, (object) => object.miss(taped, text, had));
      return { failure: "rejected", reason };
    } catch (error) {
      console.error(`the tape ${tape} cannot be read`, error);
      const failure = objectFailure(error);
      if (failure === "newer") return { failure: "rejected", reason: NEWER_STORAGE };
      if (failure === "bug") {
        const message = `the tape "${tape}" could not be read`;
        return { failure: "rejected", reason: { reason: "internal", message } };
      }
      const message = `the tape "${tape}" cannot be reached`;
      return { failure: "transient", reason: { reason: "overloaded", message, retryAfterMs: CASSETTE_RETRY_MS } };
    }
  }

  /** A `fetch` that gives the recorded answer, or copies the one that it gets. */
  fetchWith(fetch: Fetch): Fetch {
    const played = this.#played;
    if (played !== null) return () => Promise.resolve(playedResponse(played));
    return async (url, init) => this.#copy.copied(await fetch(url, init));
  }

  /** The attempt has ended: a whole answer is recorded, and so is a refusal that the request would meet again. Never rejects. */
  async record(outcome: Outcome): Promise<void> {
    if (this.#played !== null || !isRecorded(outcome, this.#lease)) return;
    try {
      const line = this.#line();
      await this.#run.callCassette<void>(this.#tape, (object) => object.record(this.#use, line));
    } catch (error) {
      console.error(`an answer could not be recorded on the tape ${this.#tape}`, error);
    }
  }

  /** The exchange as it is stored; null = it is too long, or no text. */
  #line(): TapeLine | null {
    const { answer } = this.#copy;
    if (answer === null) return null;
    const { taped, text } = this.#request;
    const { key } = this.#use;
    // A provider, or a client, may have written the gateway's key into its text, and pieces may end inside of it.
    const whole = answer.chunks.join("");
    const clean = withoutOwnSecrets(whole, this.#upstream);
    const kept = clean === whole ? answer : { ...answer, chunks: [clean] };
    const exchange: Exchange = { ...keptRequest(taped, text, key), answer: kept };
    const line = withoutOwnSecrets(JSON.stringify(exchange), this.#upstream);
    return line.length > CASSETTE_LINE_BYTES_MAX / 3 && new TextEncoder().encode(line).length > CASSETTE_LINE_BYTES_MAX
      ? null
      : { key, line, text };
  }
}

/** Why a call with a tape is not made. */
export type TapeFailure = { failure: FailureClass; reason: Reason };

/** An attempt of an upstream with a tape. */
type TapedAttempt = {
  upstream: Upstream;
  cassette: NonNullable<Upstream["cassette"]>;
  lease: Lease;
  run: TapeRun;
  taped: TapedRequest;
};

type Opened = Pick<TapedAttempt, "upstream" | "lease" | "run"> & {
  use: TapeUse;
  tape: string;
  request: { taped: TapedRequest; text: string };
};

/** The tape of a native call; null = its upstream has none. */
export async function tapeOfCall(
  upstream: Upstream,
  lease: Lease,
  body: CallBody,
  run: TapeRun,
): Promise<TapedCall | TapeFailure | null> {
  const { cassette } = upstream;
  if (cassette === undefined) return null;
  return await TapedCall.open({
    upstream,
    cassette,
    lease,
    run,
    taped: callRequest(body, lease.model, requestedCap(lease)),
  });
}

/** What a tape reads of a relayed request. */
type Relayed = {
  bytes: Uint8Array;
  facts: { endpoint: Endpoint };
  query: string;
  header: (name: string) => string | undefined;
};

/** The tape of a relayed request; null = its upstream has none. */
export async function tapeOfRelay(
  upstream: Upstream,
  lease: Lease,
  { bytes, facts: { endpoint }, query, header }: Relayed,
  run: TapeRun,
): Promise<TapedCall | TapeFailure | null> {
  const { cassette } = upstream;
  if (cassette === undefined) return null;
  const named = TAPED_HEADERS.flatMap((name) => {
    const value = header(name);
    return value === undefined ? [] : [[name, value] as const];
  });
  const json = new TextDecoder().decode(bytes);
  const request = { endpoint, model: lease.model, json, headers: Object.fromEntries(named), query };
  return await TapedCall.open({ upstream, cassette, lease, run, taped: relayedRequest(request) });
}

/** The cap that the client requests: budgets and learned caps change it from run to run. */
function requestedCap({ capTokens, capKind, requestedCap: requested }: Lease): number | null {
  if (capKind === "budget") return requested ?? null;
  return capKind === "default" || capKind === "learned" ? null : capTokens;
}

function isRecorded(outcome: Outcome, lease: Lease): boolean {
  const marked = markCapped(outcome, lease);
  if (marked.kind === "success") return marked.cappedBy === undefined;
  const { reason } = marked;
  return reason.reason === "upstream_error" && marked.answered && RECORDED_REFUSALS.has(reason.status ?? 0);
}

/** The outcome of a call that was not made because of its tape: it costs nothing. */
export function untapedOutcome({ failure, reason }: TapeFailure): Outcome {
  return { ...failed(failure, reason), unsent: true, latencyMs: 0 };
}
