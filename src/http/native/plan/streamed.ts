/**
 * `POST /plan` with `stream`: the plan runs while its model writes it. The planner is a streamed call of the run, whose text is a
 * plan that arrives, a task a line: the rest is as for a client's own plan.
 */
import type { Context } from "hono";
import { invalid } from "../../../contract/errors.ts";
import type { PlanRequest } from "../../../contract/graph/plan.ts";
import { Refusal } from "../../../errors.ts";
import { relayCall } from "../../../executors/relayed-call.ts";
import type { IdempotencyKey } from "../../../objects/methods/types.ts";
import { RunCaller } from "../../../objects/clients/caller.ts";
import { COMPLETION_TOKENS_DEFAULT } from "../../../limits.ts";
import { StreamedText, type TextEndpoint } from "../../../providers/formats/stream/streamed-text.ts";
import { requestReading } from "../../../providers/formats/request/read.ts";
import { inSlices, pause } from "../../../text/bytes/slices.ts";
import { clientTrace } from "../../client-trace.ts";
import type { AppEnv } from "../../context.ts";
import { spentBefore } from "../../replies/usage.ts";
import { answerGraph } from "../graph/answer.ts";
import { graphOfKey } from "../graph/open.ts";
import { executePlan } from "../graph/plan-stream.ts";
import { plannedLines } from "./planned-lines.ts";
import { linesPrompt, type OfferedTool } from "./prompts.ts";

/** `named`: the client's Idempotency-Key; null = it sent none. */
type StreamedPlan = { request: PlanRequest; tools: readonly OfferedTool[]; named: IdempotencyKey | null };

/**
 * Has a plan written and runs it meanwhile, or finds the graph that the key of its request has opened. Answers as `/dag` does. Throws a
 * Refusal if the planner is not answered.
 */
export async function streamedPlan(c: Context<AppEnv>, runId: string, plan: StreamedPlan): Promise<Response> {
  const { named } = plan;
  if (named === null) return writtenPlan(c, runId, plan);
  const found = await graphOfKey(c, runId, named);
  if (found !== null) return answerGraph(c, found.group, found.graph);
  const writing = writtenPlan(c, runId, plan);
  // Its client may leave and send the request once more.
  c.executionCtx.waitUntil(writing.catch(() => undefined));
  return writing;
}

async function writtenPlan(
  c: Context<AppEnv>,
  runId: string,
  { request, tools, named }: StreamedPlan,
): Promise<Response> {
  const { goal, tasksMax, plannerModel, model, notify } = request;
  const prompt = linesPrompt(goal, { tasksMax, tools });
  const body = await plannerText(c, runId, { prompt, model: plannerModel, endsWithClient: named === null });
  const written: Record<string, unknown>[] = [];
  const lines = plannedLines({ tasksMax, model, written });
  return executePlan(c, runId, { body, lines, written, named, ...(notify && { notify }) });
}

const encoder = new TextEncoder();

type Planner = { prompt: string; model: string | null; endsWithClient: boolean };

/** The planner's text as it comes. It breaks off where its answer does. */
async function plannerText(c: Context<AppEnv>, runId: string, planner: Planner): Promise<ReadableStream<Uint8Array>> {
  // A planner whose plan is refused, or not wanted any more, would write on, and stay reserved.
  const unwanted = new AbortController();
  const signal = planner.endsWithClient ? AbortSignal.any([c.req.raw.signal, unwanted.signal]) : unwanted.signal;
  const chat = await asked(c, runId, { ...planner, endpoint: "chat", signal });
  // Nothing was sent: the upstream of its model may speak the other protocol.
  const other = isOfModel(chat) ? await asked(c, runId, { ...planner, endpoint: "messages", signal }) : chat;
  // What else the run refuses, such as for its budget, is no fault of the model.
  const { end, usage, endpoint } = isOfModel(other) ? chat : other;
  c.set("remainingNanoUsd", usage.remainingNanoUsd);
  if (end.kind === "refused") throw new Refusal(end.reason, spentBefore(usage, end.reason));
  if (end.kind === "failed" && end.outcome.kind === "failure") {
    throw new Refusal(end.outcome.reason, spentBefore(usage, end.outcome.reason));
  }
  if (end.kind !== "answered") throw new Refusal(UNANSWERED);
  if (!(end.headers["content-type"] ?? "").includes("text/event-stream")) throw new Refusal(UNSTREAMED);
  return textOf(end.body, new StreamedText(endpoint), () => unwanted.abort());
}

/** Asks the planner at an endpoint of its upstream. */
async function asked(
  c: Context<AppEnv>,
  runId: string,
  {
    prompt,
    model,
    endpoint,
    signal,
  }: Omit<Planner, "endsWithClient"> & { endpoint: TextEndpoint; signal: AbortSignal },
) {
  const sent = {
    ...(model !== null && { model }),
    // A message has to name its cap.
    ...(endpoint === "messages" && { max_tokens: COMPLETION_TOKENS_DEFAULT }),
    ...{ messages: [{ role: "user", content: prompt }], stream: true },
  };
  const bytes = encoder.encode(JSON.stringify(sent));
  const facts = await inSlices(requestReading(endpoint, bytes), pause);
  if (!facts.ok) throw new Refusal(facts.reason);
  const waitUntil = (promise: Promise<unknown>): void => c.executionCtx.waitUntil(promise);
  const calling = relayCall(
    { bytes, facts: facts.value, query: "", header: () => undefined },
    {
      ...{ run: new RunCaller(c.env, runId), config: c.get("config"), signal, waitUntil },
      ...clientTrace(c),
      acceptedAtMs: c.get("acceptedAtMs"),
    },
  );
  // If the client leaves, the attempt is stopped and must still be settled.
  waitUntil(calling.catch(() => undefined));
  return { ...(await calling), endpoint };
}

/** Whether a call was refused for its model: there is none of that name, or not at its endpoint. */
function isOfModel({ end }: Awaited<ReturnType<typeof asked>>): boolean {
  return end.kind === "refused" && end.reason.reason === "invalid_request" && end.reason.param === "model";
}

const UNANSWERED = invalid(null, "the client left before its planner was answered").reason;
const UNSTREAMED = invalid("stream", "is not possible: the planner's upstream does not stream. Leave it out").reason;

function textOf(
  body: ReadableStream<Uint8Array> | Uint8Array,
  streamed: StreamedText,
  stop: () => void,
): ReadableStream<Uint8Array> {
  const reader = (body instanceof Uint8Array ? new Blob([body]).stream() : body).getReader();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      for (;;) {
        const { done, value } = await reader.read();
        if (done && streamed.isWhole) return controller.close();
        if (done) throw new Error("the planner's answer broke off");
        const more = streamed.feed(value);
        if (more !== "") return controller.enqueue(encoder.encode(more));
      }
    },
    cancel: stop,
  });
}
