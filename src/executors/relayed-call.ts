/** A call whose answer is relayed to its client as it comes. It is settled when its last byte has been written. */
import type { StoredAnswer, SingleSettlement } from "../objects/methods/calls.ts";
import { cappedOf, markCapped } from "../run/money/capped.ts";
import type { Lease } from "../call.ts";
import type { Reason } from "../errors.ts";
import { RELAY_QUEUE_MS_MAX } from "../limits.ts";
import { member } from "../text/json/scan.ts";
import { rawCallFactsOf } from "../providers/formats/request/call-facts.ts";
import { gateNameOf } from "../providers/config/keys.ts";
import type { Recorded, RecordedCall } from "../objects/methods/replay.ts";
import type { RunCaller } from "../objects/clients/caller.ts";
import type { RelayAnswered, RelayEnd } from "../providers/relay/types.ts";
import { attemptRelay, takeSamples, type RelayedRequest, type RelayFailure } from "./attempt.ts";
import { executeCall, clientOutcome, recordedCall, settleLater, type CallDeps, type CallUsage } from "./call.ts";
import { bodyText, recordedStream } from "./recorded-body.ts";

/** How a relayed call ended; `answered`: its answer is on its way. */
export type RelayedCallEnd =
  /**
   * `cappedBy` is set if the budget cut the answer; it is unknown of an answer that comes in pieces. `upstream`: who answers a
   * call that asked for a route.
   */
  | (Pick<RelayAnswered, "kind" | "status" | "headers" | "body"> & { cappedBy?: "budget"; upstream?: string })
  /** It has a recorded answer. */
  | { kind: "replayed"; answer: Recorded }
  | RelayFailure
  | { kind: "refused"; reason: Reason }
  | { kind: "client_gone" };

/** Makes a call under a run. Rejects only if the run object is unreachable. */
export async function relayCall(
  request: RelayedRequest,
  deps: CallDeps,
  recording: Recording | null = null,
): Promise<{ end: RelayedCallEnd; usage: CallUsage }> {
  const { facts, shared } = request;
  const callFacts = rawCallFactsOf(facts, { model: facts.model, priority: 2, timeoutMs: null });
  if (shared !== undefined) callFacts.shared = shared;
  if (recording !== null) callFacts.content = recording.content;
  const { end, usage } = await executeCall(
    // What an upstream stores is written with the settlement, which credit does not carry. The run object has calls wait that share a beginning.
    {
      facts: callFacts,
      ...{ deadlineMs: RELAY_QUEUE_MS_MAX, onLost: "retry", waitsForGate: false },
      mayUseCredit: facts.endpoint !== "responses" && recording === null && shared === undefined,
      ...(recording === null ? {} : { epoch: recording.epoch }),
    },
    async (attempt) => {
      const relayed = await attemptRelay(attempt, request, { upstreams: deps.config.upstreams, run: deps.run });
      return relayed.kind === "answered"
        ? { kind: "answering" as const, answer: relayed, ended: relayed.ended }
        : { kind: "ended" as const, outcome: relayed.outcome, failure: relayed };
    },
    deps,
  );
  switch (end.kind) {
    case "answering":
      return { end: await answered(request, end, deps, recordedCall(end, recording?.epoch)), usage };
    case "ended":
      return { end: { ...end.failure, outcome: clientOutcome(end) }, usage };
    case "shared":
      return { end: { kind: "refused", reason: SHARED }, usage };
    default:
      return { end, usage };
  }
}

/** Under what a relayed call is recorded: its epoch, and the hash of its content. */
export type Recording = { epoch: string; content: string };

/** Relayed calls have no key, so none is shared. */
const SHARED: Reason = { reason: "internal", message: "a relayed call was answered by another call's attempt" };

async function answered(
  request: RelayedRequest,
  { answer, lease }: { answer: RelayAnswered; lease: Lease },
  { run, waitUntil }: Pick<CallDeps, "run" | "waitUntil">,
  recorded: RecordedCall | undefined,
): Promise<RelayedCallEnd> {
  const { kind, status, headers, ended } = answer;
  const more = lease.route === undefined ? {} : { upstream: lease.upstream };
  if (recorded !== undefined) {
    const body = await recordedAnswer(request, { answer, lease }, run, recorded);
    return { kind, status, headers, body, ...more };
  }
  const { body } = answer;
  const settled = (end: RelayEnd): void => void settleLater({ run, waitUntil }, settlementOf(request, lease, end));
  // Settled before the last bytes go to the client, so that what it reads next contains it.
  if (body instanceof Uint8Array) {
    const end = await ended;
    settled(end);
    return { kind, status, headers, body, ...cappedOf(markCapped(end.outcome, lease)), ...more };
  }
  // How an answer that is relayed in pieces will end is not known while its headers are sent.
  waitUntil(ended.then(settled));
  return { kind, status, headers, body, ...more };
}

/** The body of an answer that is recorded: it ends once it is stored. */
async function recordedAnswer(
  request: RelayedRequest,
  { answer, lease }: { answer: RelayAnswered; lease: Lease },
  run: RunCaller,
  call: RecordedCall,
): Promise<RelayAnswered["body"]> {
  const { status, headers, body, ended } = answer;
  const record = async (text: string | null): Promise<void> => {
    const settlement = settlementOf(request, lease, await ended);
    const { outcome } = settlement;
    const contentType = headers["content-type"] ?? "application/json";
    const recorded =
      text !== null && status === 200 && outcome.kind === "success"
        ? { ...settlement, outcome: { ...outcome, text }, recorded: { ...call, contentType } }
        : settlement;
    await run.callWithRetry<void>((stub) => stub.settleMany([recorded])).catch(() => undefined);
  };
  if (body instanceof Uint8Array) {
    await record(bodyText(body));
    return body;
  }
  const complete = ended.then(({ outcome }) => outcome.kind === "success");
  return recordedStream(body, { complete, ended: record });
}

function settlementOf(request: RelayedRequest, lease: Lease, { outcome, id }: RelayEnd): SingleSettlement {
  const stored: StoredAnswer | null =
    id !== null && isKept(request) ? { id, upstream: gateNameOf(lease.upstream, lease.key) } : null;
  return { attemptId: lease.attemptId, outcome, stored, ...takeSamples() };
}

/** Responses are stored by their upstream unless the request has `store: false`. */
function isKept({ bytes, facts: { endpoint, object } }: RelayedRequest): boolean {
  const store = member(object, "store");
  return endpoint === "responses" && (store?.kind !== "boolean" || bytes[store.start] === LETTER_T);
}

/** `true` begins with it. */
const LETTER_T = 0x74;
