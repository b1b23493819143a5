/** The clients of the storm: all calls at once, sent again when an answer was lost, some given up on the way. */
import { z } from "zod";
import { nameOf, promptOf, type StormCall, type StormPlan } from "./calls.ts";
import { post, type Answer } from "./post.ts";
import { draw } from "./tariff.ts";

/** The gateway's charge for a name, nano-USD. `estimated`: not the upstream's figure. */
export type Charged = { nanoUsd: number; estimated: boolean };

export type StormResult = {
  charged: Map<string, Charged>;
  completed: number;
  /** Refused for good because the budget was spent. */
  refused: number;
  failed: number;
  /** Given up by their client. */
  left: number;
  /** Answers that were lost with the gateway; their calls were sent again. */
  lost: number;
  /** The least that was spent, as a share of the limit, when a call was refused; Infinity without a refusal. */
  spentAtRefusalMin: number;
};

export type Target = { url: string; token: string; clientsLeave: boolean };

const reply = z.looseObject({ usage: z.looseObject({ cost: z.number() }) });
const failure = z.looseObject({
  code: z.string(),
  retryable: z.boolean(),
  limit: z.number().optional(),
  spent: z.number().optional(),
});
type Failure = z.infer<typeof failure>;
const failureBody = z.looseObject({ error: failure });
const group = z.looseObject({
  errors: z.array(failure.nullable()),
  items: z.array(z.looseObject({ usage: z.looseObject({ cost: z.number() }).nullable(), estimated: z.boolean() })),
});

/** Sendings of one call by its client, at most; pauses between them, ms, are as long as a gateway's restart. */
const SENDINGS_MAX = 60;
const PAUSE_MS = 500;
/** Sendings of a call that failed for a reason which may pass. */
const RETRIES_MAX = 2;

/** Sends the whole plan at once; resolves when every client has its reply or has failed. */
export async function fire(plan: StormPlan, target: Target): Promise<StormResult> {
  const result: StormResult = {
    charged: new Map(),
    completed: 0,
    refused: 0,
    failed: 0,
    left: 0,
    lost: 0,
    spentAtRefusalMin: Infinity,
  };
  await Promise.all([
    ...plan.batches.map((calls) => sendBatch(calls, target, result)),
    ...plan.single.map((call) => askSingle(call, target, result)),
  ]);
  return result;
}

async function askSingle(call: StormCall, target: Target, result: StormResult): Promise<void> {
  for (let sending = 1, retries = 0; sending <= SENDINGS_MAX; sending += 1) {
    const name = nameOf(call, sending);
    const leaves = target.clientsLeave && draw(call.number, "leaves") < 0.05;
    const leavesAfterMs = leaves ? 200 + 1_000 * draw(call.number, "leaves after") : null;
    const posted = await post(`${target.url}/query`, target.token, bodyOf(call, name), leavesAfterMs);
    if (posted === "left") return void (result.left += 1);
    if (posted === "lost") {
      result.lost += 1;
      await pause();
      continue;
    }
    if (posted.status === 200) {
      const { usage } = reply.parse(JSON.parse(posted.text));
      result.charged.set(name, { nanoUsd: Math.round(usage.cost * 1e9), estimated: false });
      return void (result.completed += 1);
    }
    const { error } = failureBody.parse(JSON.parse(posted.text));
    if (!error.retryable || retries === RETRIES_MAX) return countFailure(error, result);
    retries += 1;
    await pause();
  }
  result.failed += 1;
}

async function sendBatch(calls: readonly StormCall[], target: Target, result: StormResult): Promise<void> {
  for (let sending = 1; sending <= SENDINGS_MAX; sending += 1) {
    const names = calls.map((call) => nameOf(call, sending));
    const items = calls.map((call, index) => bodyOf(call, names[index] ?? ""));
    const posted = await post(`${target.url}/batch`, target.token, { items });
    if (typeof posted !== "string" && isWhole(posted)) return countGroup(posted, names, result);
    result.lost += 1;
    await pause();
  }
  result.failed += calls.length;
}

/** Headers of a batch go out at once, so one that is lost with the gateway has a status and no end. */
function isWhole({ status, text }: Answer): boolean {
  return status === 200 && text.trimEnd().endsWith("}");
}

function countGroup({ text }: Answer, names: readonly string[], result: StormResult): void {
  const { errors, items } = group.parse(JSON.parse(text));
  for (const [index, name] of names.entries()) {
    const [error, item] = [errors[index], items[index]];
    if (item?.usage)
      result.charged.set(name, { nanoUsd: Math.round(item.usage.cost * 1e9), estimated: item.estimated });
    if (error === null) result.completed += 1;
    else if (error !== undefined) countFailure(error, result);
  }
}

function countFailure({ code, limit, spent }: Failure, result: StormResult): void {
  if (code !== "budget_exhausted") return void (result.failed += 1);
  result.refused += 1;
  if (limit === undefined || spent === undefined) throw new Error("a refusal without its figures");
  result.spentAtRefusalMin = Math.min(result.spentAtRefusalMin, spent / limit);
}

function bodyOf(call: StormCall, name: string) {
  return { prompt: promptOf(call, name), ...(call.maxTokens === null ? {} : { max_tokens: call.maxTokens }) };
}

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
