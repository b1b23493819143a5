/**
 * One attempt whose answer is read whole: one request to one upstream, one outcome. Retries, budgets and permits are the
 * caller's; so is the lease, whose time limit starts to count here.
 */
import type { CallBody, Classification, Lease, Outcome } from "../call.ts";
import type { AggregatedFamily } from "./formats/aggregate/stream.ts";
import { discard, readBody } from "./read-body.ts";
import { type HttpAnswer, classify, failed } from "./classify.ts";
import type { Upstream } from "./config/types.ts";
import type { BuiltRequest } from "./kinds/kind.ts";
import { isFetched, kindOf } from "./kinds/table.ts";
import { Exchange, notSent, type ExchangeDeps } from "./exchange.ts";
import { buildRawRequest, classifyRaw } from "./stored-request.ts";
import { StreamProgress } from "./read-stream.ts";
import { bodyToSend, RefusedSchemas, refusesSchema, type SchemaPlace } from "../text/schema/sent.ts";
import { withSeen } from "./seen.ts";
import { choosesStream, NO_HISTORY, type CallHistories } from "./stream-choice.ts";
import { arrivedOf, isEventStream, streamedClassification } from "./streamed-answer.ts";
import { streamedRequest, streamFamilyOf } from "./streamed-request.ts";
import { withTierRefusal } from "./limits/tier-refusal.ts";

/** What is sent to which upstream under which lease; `lease.model` and `body` go out as they are. */
export type AttemptJob = { upstream: Upstream; lease: Lease; body: CallBody };

export type AttemptDeps = ExchangeDeps & {
  /** What this executor's isolate knows of earlier calls, by which `aggregate: "auto"` decides; absent = nothing. */
  histories?: CallHistories;
  /** The schemas that upstreams have refused, as this isolate has seen it; absent = nothing is known. */
  refusedSchemas?: RefusedSchemas;
  /** Whether few fetches of this executor may wait for headers at once; absent = no. */
  headersLimited?: boolean;
  /** Called before a request is sent: whether it is for JSON, whose headers come with the whole answer, or for a stream. */
  requests?: ((isJson: boolean) => void) | undefined;
  /** Called when the headers of the answer have come, or will not come. */
  headersArrived?: (() => void) | undefined;
};

/**
 * Makes one attempt. Never rejects, and ends by the lease's time limit even if `fetch` heeds no abort; a cancelled attempt
 * ends once `fetch` or the body reports the abort.
 */
export async function attempt(job: AttemptJob, deps: AttemptDeps): Promise<Outcome> {
  if (deps.controller.signal.aborted) return notSent();
  const exchange = new Exchange(job, deps);
  const progress = new StreamProgress();
  const stopped = (): Classification => stoppedWith(exchange, progress);
  try {
    const whole = answer({ job, deps, exchange, progress });
    return exchange.end(await Promise.race([whole, exchange.timedOut.then(stopped)]));
  } catch {
    // Only a bug gets here. Whether the request went out is not known, so its reservation stays charged.
    return exchange.end(failed("unknown", { reason: "internal", message: "the attempt failed inside the gateway" }));
  }
}

/**
 * An attempt in progress. `asksJson`: its upstream has refused to stream the same call. `sent`: the body as it was sent last,
 * which is the job's but for its schema.
 */
type InProgress = {
  job: AttemptJob;
  sent?: CallBody;
  deps: AttemptDeps;
  exchange: Exchange;
  progress: StreamProgress;
  asksJson?: boolean;
};

async function answer(inProgress: InProgress): Promise<Classification> {
  const { job, deps, exchange, progress } = inProgress;
  const { upstream, lease } = job;
  const place = schemaPlace(upstream, lease.model);
  const body = inProgress.sent ?? bodyToSend(place, job.body, deps.refusedSchemas);
  const built = builtRequest({ upstream, lease, body });
  if (!built.ok) return failed("rejected", built.reason);
  const family = streamFamily(inProgress);
  const sentMs = deps.now();
  deps.requests?.(family === null);
  const sent = await exchange.send(family === null ? built.request : streamedRequest(built.request, family));
  deps.headersArrived?.();
  if (!sent.ok) return exchange.isStopped ? stoppedWith(exchange, progress) : sent.classification;
  const { response } = sent;
  if (exchange.isStopped) {
    // The caller has stopped the attempt and does not read the answer; the body must still be freed.
    await discard(response);
    return stoppedWith(exchange, progress);
  }
  const { status } = response;
  const read = await readAnswer(inProgress, response, family);
  const classification = lease.tier === undefined ? read : withTierRefusal(status, read);
  if (family !== null && upstream.aggregate === "auto" && refusesStream(status, classification)) {
    deps.histories?.refusedStream(upstream.name, lease.model);
    return answer({ ...inProgress, asksJson: true });
  }
  if (body.schema !== undefined && refusesSchema(status, classification)) {
    const refused = deps.refusedSchemas ?? new RefusedSchemas();
    refused.add(upstream.name, lease.model, body.schema);
    return answer({ ...inProgress, sent: bodyToSend(place, job.body, refused) });
  }
  deps.histories?.answered(upstream.name, lease.model, { status, latencyMs: deps.now() - sentMs });
  return classification;
}

/** Reads the answer: a stream if one came, else JSON, whatever was requested. */
async function readAnswer(
  { job, deps, exchange, progress }: InProgress,
  response: Response,
  family: AggregatedFamily | null,
): Promise<Classification> {
  const { upstream, lease } = job;
  const { raw } = job.body;
  const { status, headers } = response;
  const arrived: HttpAnswer = { status, headers, nowMs: deps.now(), body: null };
  const classified = (body: HttpAnswer["body"]): Classification => {
    const whole = { ...arrived, body };
    return raw === undefined
      ? classify(upstream, lease.model, whole, job.body.include)
      : classifyRaw(upstream, lease, raw, whole);
  };
  if (family !== null && response.ok && isEventStream(response)) {
    progress.family = family;
    const how = await progress.read(response, upstream.abortCost === "seen", () => exchange.streamBegun());
    if (exchange.isStopped) return stoppedWith(exchange, progress);
    return streamedClassification(upstream, { progress, family, how }, classified);
  }
  try {
    return classified(await readBody(response));
  } catch {
    // The classifier knows what a broken body means for each status.
    return exchange.isStopped ? stoppedWith(exchange, progress) : classified(null);
  }
}

/** The family of the stream that an attempt requests; null = it requests JSON. */
function streamFamily({ job: { upstream, lease, body }, deps, asksJson }: InProgress): AggregatedFamily | null {
  if (asksJson === true) return null;
  const history = deps.histories?.of(upstream.name, lease.model) ?? NO_HISTORY;
  // Others wait for the beginning of the answer, which a stream has at once.
  const hurries = lease.leads === true && isFetched(upstream) && upstream.aggregate === "auto";
  const isStream = hurries && !history.refusesStreams;
  if (
    !isStream &&
    !choosesStream(upstream.aggregate, history, {
      isRemote: isFetched(upstream),
      headersLimited: deps.headersLimited ?? false,
    })
  )
    return null;
  return streamFamilyOf(upstream, body);
}

/** Whether the upstream refused a request because it is for a stream: at no cost, so the same attempt requests JSON. */
function refusesStream(status: number, classification: Classification): boolean {
  if (status !== 400 && status !== 422) return false;
  return (
    classification.kind === "failure" &&
    classification.class === "rejected" &&
    "message" in classification.reason &&
    /\bstream/i.test(classification.reason.message)
  );
}

/** Where the schema of a call goes at an upstream. */
export function schemaPlace(upstream: Upstream, model: string): SchemaPlace {
  return { upstream: upstream.name, model, takesSchema: kindOf(upstream).takesSchema };
}

function builtRequest({ upstream, lease, body }: AttemptJob): BuiltRequest {
  if (body.raw !== undefined) return buildRawRequest(upstream, lease, body.raw);
  return kindOf(upstream).request(upstream, lease, body);
}

/** The classification of a stopped attempt, with what its stream is known to have used. */
function stoppedWith(exchange: Exchange, progress: StreamProgress): Classification {
  return withSeen(exchange.stopped(), exchange.upstream, arrivedOf(progress));
}
