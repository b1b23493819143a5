/**
 * A message batch of a client that goes through the provider's own Message Batches, on a gateway that is killed (SIGKILL) again and
 * again: entries that fail, entries that expire at the provider, and the bill.
 */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { MESSAGE_USD, MessageBatchProvider, REFUSED_WORD } from "../../test/support/message-batch-provider.ts";
import { startR2Gateway } from "../../test/support/r2-gateway.ts";
import type { Gateway } from "../../test/support/gateway.ts";
import { exact, plain, type Part } from "../parts/row.ts";

export type MessageKillsPlan = { entries: number; kills: number };

const KEY = "sk-ant-provider-90ce";
/** Calls in flight of the run: what a kill may make the provider bill twice. */
const WIDTH = 16;
/** One entry of so many is refused. */
const REFUSED_OF = 10;
/** One request of so many expires in each batch of the provider. */
const EXPIRED_OF = 100;
/** Time that a live message takes, ms: long enough that kills find some in flight. */
const LIVE_MS = 100;
const PAUSE_MS_MIN = 200;
const PAUSE_MS_STEP = 170;
const PAUSES = 7;
const LOOK_MS = 200;
const END_MS_MAX = 900_000;

const batch = z.object({ id: z.string(), processing_status: z.string() });
const line = z.object({ custom_id: z.string(), result: z.looseObject({ type: z.string() }) });
const figures = z.object({ spent: z.number(), reserved: z.number() });
const run = z.object({ budget: z.object({ usd: figures }) });
const event = z.object({ event_type: z.string() });
const attemptEnded = z.object({ outcome: z.string(), estimated: z.boolean(), charged: z.object({ usd: z.number() }) });

const isRefused = (at: number): boolean => at % REFUSED_OF === 3;
const promptOf = (at: number): string => (isRefused(at) ? `${REFUSED_WORD} ${at}` : `prompt ${at}`);

/** Kills at uneven moments, from before the batches are made until after their results came. */
export async function measureMessageKills(
  { entries, kills }: MessageKillsPlan,
  report: (text: string) => void,
): Promise<Part> {
  const provider = await new MessageBatchProvider(KEY).start();
  const dataDir = await mkdtemp(join(tmpdir(), "fanout-message-kills-"));
  const start = () => startR2Gateway({ dataDir, vars });
  const vars = { ADMIN_KEY: randomUUID(), UPSTREAMS: { up: upstreamAt(provider) } };
  let gateway = await start();
  try {
    provider.behave({ worksOn: () => 0, liveMs: LIVE_MS });
    const opened = await gateway.openRun({ budget: { usd: 10 }, max_parallel: WIDTH });
    const startedMs = performance.now();
    const id = await create(gateway, opened.token, entries);
    for (let kill = 1; kill <= kills; kill++) {
      // Until then nobody works on the batches; from then on they end while the gateway dies.
      if (kill === Math.ceil(kills / 3)) {
        provider.behave({ worksOn: (count) => count - Math.ceil(count / EXPIRED_OF), expires: true, liveMs: LIVE_MS });
      }
      await sleep(PAUSE_MS_MIN + PAUSE_MS_STEP * (kill % PAUSES));
      await gateway.kill();
      gateway = await start();
      const { batches, live } = provider;
      report(`kill ${kill}: ${batches.length} batches at the provider, ${live.length} live messages`);
    }
    const lines = await resultsOf(gateway, { id, token: opened.token });
    const answer = await gateway.fetch(`/runs/${opened.id}`, { token: opened.token });
    const { usd } = run.parse(await answer.json()).budget;
    const seconds = (performance.now() - startedMs) / 1_000;
    const log = await gateway.fetch(`/runs/${opened.id}/log`, { token: opened.token });
    const lostUsd = chargedAsLost(await log.text());
    return partOf({ entries, kills, seconds, lines, usd, lostUsd, provider });
  } finally {
    await gateway.stop();
    await provider.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
}

function upstreamAt({ origin }: MessageBatchProvider): object {
  const rates = (usd: number) => ({ input: usd, output: usd });
  const prices = { "*": { ...rates(MESSAGE_USD.live), batch: rates(MESSAGE_USD.batch) } };
  const common = { kind: "anthropic", base_url: origin, api_key: KEY, models: ["*"], prompt_tokens_per_call: 0 };
  return { ...common, prices, batch: { poll_ms: LOOK_MS } };
}

async function create(gateway: Gateway, token: string, entries: number): Promise<string> {
  const requests = Array.from({ length: entries }, (_, at) => ({
    custom_id: `r${at}`,
    params: { model: "claude-x", max_tokens: 20, messages: [{ role: "user", content: promptOf(at) }] },
  }));
  const created = await gateway.fetch("/v1/messages/batches", { token, json: { requests } });
  return batch.parse(await created.json()).id;
}

/** The results, once the batch has ended. Throws if it does not. */
async function resultsOf(gateway: Gateway, { id, token }: { id: string; token: string }) {
  const path = `/v1/messages/batches/${id}`;
  const startedMs = performance.now();
  for (;;) {
    const { processing_status } = batch.parse(await (await gateway.fetch(path, { token })).json());
    if (processing_status === "ended") break;
    if (performance.now() - startedMs > END_MS_MAX) throw new Error("the batch does not end");
    await sleep(LOOK_MS);
  }
  const text = await (await gateway.fetch(`${path}/results`, { token })).text();
  return text
    .trimEnd()
    .split("\n")
    .map((each) => line.parse(JSON.parse(each)));
}

/** What a run was charged for attempts whose end it does not know: a kill took them, before or after the provider got them. */
function chargedAsLost(log: string): number {
  const events = log.split("\n").filter((text) => text !== "");
  const ended = events
    .map((text): unknown => JSON.parse(text))
    .filter((each) => event.parse(each).event_type === "attempt_ended");
  const lost = ended
    .map((each) => attemptEnded.parse(each))
    .filter(({ outcome, estimated }) => outcome === "unknown" && estimated);
  return lost.reduce((sum, { charged }) => sum + charged.usd, 0);
}

type Measured = MessageKillsPlan & {
  seconds: number;
  lines: z.infer<typeof line>[];
  usd: z.infer<typeof figures>;
  lostUsd: number;
  provider: MessageBatchProvider;
};

function partOf({ entries, kills, seconds, lines, usd, lostUsd, provider }: Measured): Part {
  const ids = new Set(lines.map(({ custom_id: customId }) => customId));
  const lost = Array.from({ length: entries }, (_, at) => `r${at}`).filter((id) => !ids.has(id)).length;
  const ofType = (type: string): number => lines.filter(({ result }) => result.type === type).length;
  const refused = Array.from({ length: entries }, (_, at) => at).filter(isRefused).length;
  const made = provider.batches.reduce((sum, { requests }) => sum + requests.length, 0);
  const expired = provider.batches.reduce((sum, { counts }) => sum + counts.expired, 0);
  const answered = provider.batches.reduce((sum, { counts }) => sum + counts.succeeded, 0);
  const paidLive = provider.live.filter((prompt) => !prompt.includes(REFUSED_WORD)).length;
  const twice = answered + paidLive - (entries - refused);
  const inFlight = kills * WIDTH;
  const bill = provider.billUsd();
  const shown = (amount: number): string => `$${amount.toFixed(6)}`;
  const rows = [
    exact("entries without a result", String(lost), "= 0", lost === 0),
    exact("results", String(lines.length), `= ${entries}`, lines.length === entries && ids.size === entries),
    exact(
      "succeeded, errored",
      `${ofType("succeeded")}, ${ofType("errored")}`,
      `= ${entries - refused}, ${refused}`,
      ofType("succeeded") === entries - refused && ofType("errored") === refused,
    ),
    exact("requests in the provider's batches", String(made), `= ${entries}`, made === entries),
    exact(
      "answers that the provider bills twice",
      String(twice),
      `0 to ${inFlight}, in flight at kills`,
      twice >= 0 && twice <= inFlight,
    ),
    exact(
      "spent, beside the provider's bill",
      `${shown(usd.spent)}, of it ${shown(lostUsd)} for attempts that kills took; ${shown(bill)}`,
      "no less, and no more than for such attempts",
      usd.spent > bill - 1e-9 && usd.spent - lostUsd < bill + 1e-9,
    ),
    plain("spent, of what the same answers cost live", (usd.spent / liveUsd(entries)).toFixed(3)),
    plain("expired at the provider, and sent live", `${expired}, ${provider.live.length}`),
    plain("batches at the provider, kills", `${provider.batches.length}, ${kills}`),
    plain("from create to the results", `${seconds.toFixed(1)} s`),
  ];
  return { rows, faults: [] };
}

/** What all entries that are answered cost as live messages. */
function liveUsd(entries: number): number {
  const prompts = Array.from({ length: entries }, (_, at) => at).filter((at) => !isRefused(at));
  const tokens = prompts.reduce((sum, at) => sum + 2 * Math.ceil(promptOf(at).length / 4), 0);
  return (tokens * MESSAGE_USD.live) / 1e6;
}
