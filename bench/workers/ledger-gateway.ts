/**
 * The gateway, whose ledger can be asked directly: `POST /bench/reserve` with `{ run, call }` reserves for one call in the run
 * object and settles the calls before it, as a Worker without credit does, and sends nothing. `GET /bench/ledger` counts what run
 * objects have written so far. What a call costs beside its ledger is left out so.
 */
import { runOf, type Objects } from "../../src/objects/address.ts";
import type { AcquireRequest, SingleSettlement } from "../../src/objects/methods/calls.ts";
import gateway, { RunObject as Run } from "../../src/index.ts";
import { countWrites, written } from "./writes.ts";

export {
  BatchObject,
  CassetteObject,
  DirectoryObject,
  GateObject,
  LaneObject,
  ProviderBatchObject,
  ShelfObject,
  UpstreamObject,
} from "../../src/index.ts";

export class RunObject extends Run {
  constructor(context: DurableObjectState, env: Objects) {
    countWrites(context.storage.sql);
    super(context, env);
  }
}

type Env = Parameters<typeof gateway.fetch>[1] & Objects;

/** Settlements that the next reservation takes along. */
const settlements: SingleSettlement[] = [];

export default {
  async fetch(request: Request, env: Env, context: ExecutionContext): Promise<Response> {
    const path = new URL(request.url).pathname;
    if (path === "/bench/ledger") return Response.json(written);
    if (path !== "/bench/reserve") return gateway.fetch(request, env, context);
    const { run, call }: { run: string; call: number } = await request.json();
    const [reply] = await runOf(env, run).acquireMany([requestOf(call)], settlements.splice(0));
    if (reply?.ok !== true) return Response.json(reply ?? null, { status: 402 });
    settlements.push({ attemptId: reply.lease.attemptId, outcome: answerOf(reply.lease.model), stored: null });
    return new Response("{}");
  },
};

/** A call like those of the bench's other suites. */
function requestOf(call: number): AcquireRequest {
  const options = { model: null, maxTokens: 7, priority: 2, timeoutMs: null } as const;
  return {
    callId: `call-${call}`,
    attempt: 1,
    facts: { promptBytes: 52, messageCount: 1, mediaParts: 0, ...options },
    delayMs: 0,
    deadlineMs: null,
    onLost: "fail",
    parallelGroupId: null,
  };
}

function answerOf(model: string): SingleSettlement["outcome"] {
  const usage = { promptTokens: 12, completionTokens: 7, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: null };
  return { kind: "success", text: "", model, finishReason: "stop", usage, latencyMs: 1 };
}
