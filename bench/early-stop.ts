/**
 * `npm run bench:early-stop` = `node bench/early-stop.ts [--rounds=1]`: what a batch costs with `stop_when`, beside the same batch without, in
 * dollars that the provider bills and that the run is charged: widths × streamed or not × rules. Exit status 1 if a cell costs
 * more with its rule, or saves less than a fifth at a width of at most the quorum and two.
 */
import { createServer, type ServerResponse } from "node:http";
import { parseArgs } from "node:util";
import { z } from "zod";
import { ADMIN_KEY, gatewayBundle, openRun } from "./servers/servers.ts";
import { startWorkerd } from "./servers/workerd.ts";
import { tableOf } from "./table.ts";

const { values } = parseArgs({ options: { rounds: { type: "string", default: "1" } } });

const WIDTHS = [1, 2, 5, 64];
const QUORUM = 3;
/** Five voters, as many as wait at the widest width. The other rules have a longer batch, so that they can save something. */
const callsOf = (rule: string, width: number): number => Math.max(rule === "quorum" ? 5 : 40, width);
const RULES: Record<string, object> = {
  quorum: { quorum: { of: QUORUM } },
  judge: { judge: { prompt: "Three answers are enough.", max_tokens: 60, every: QUORUM } },
  regex: { regex: "^yes" },
};
const PRICE = { input: 1, output: 2 };
const ANSWER_MS = 200;
const USAGE = { prompt_tokens: 20, completion_tokens: 30 };

const request = z.object({ stream: z.boolean().optional(), messages: z.array(z.object({ content: z.string() })) });

/** What the provider has billed since the last look, in millionths of a dollar. It bills each request in full, also one that is aborted. */
let billed = 0;

function answerOf(prompt: string): string {
  const shown = prompt.match(/^yes$/gm)?.length ?? 0;
  return prompt.includes("# Rule") ? JSON.stringify({ enough: shown >= QUORUM, reason: "counted" }) : "yes";
}

function send(response: ServerResponse, text: string, isStream: boolean): void {
  const base = { id: "c", created: 1, model: "m" };
  const usage = { ...USAGE, total_tokens: USAGE.prompt_tokens + USAGE.completion_tokens };
  if (!isStream) {
    const message = { role: "assistant", content: text };
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    response.setHeader("content-type", "application/json");
    return void response.end(JSON.stringify({ ...base, object: "chat.completion", choices, usage }));
  }
  response.setHeader("content-type", "text/event-stream");
  const chunk = (more: object): string =>
    `data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", ...more })}\n\n`;
  response.write(
    chunk({ choices: [{ index: 0, delta: { role: "assistant", content: text }, finish_reason: "stop" }] }),
  );
  response.end(`${chunk({ choices: [], usage })}data: [DONE]\n\n`);
}

const provider = createServer((incoming, response) => {
  let body = "";
  incoming.on("data", (part: Buffer) => (body += part.toString()));
  incoming.on("end", () => {
    const { stream = false, messages } = request.parse(JSON.parse(body));
    billed += USAGE.prompt_tokens * PRICE.input + USAGE.completion_tokens * PRICE.output;
    setTimeout(() => send(response, answerOf(messages.at(-1)?.content ?? ""), stream), ANSWER_MS);
  });
});
await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve));
const address = provider.address();
if (address === null || typeof address === "string") throw new Error("the provider has no port");

const upstreamOf = (aggregate: string) => ({
  kind: "openai",
  base_url: `http://127.0.0.1:${address.port}/v1`,
  models: [],
  prices: { "*": PRICE },
  aggregate,
  abort_cost: aggregate === "stream" ? "seen" : "reservation",
});
await using gateway = await startWorkerd({
  bundle: await gatewayBundle(),
  vars: {
    WAITING_FETCHES_MAX: "512",
    ADMIN_KEY,
    UPSTREAMS: JSON.stringify({ streamed: upstreamOf("stream"), unstreamed: upstreamOf("json") }),
    DEFAULT_MODEL: "unstreamed/m",
  },
  objects: "gateway",
  inspector: false,
});

const budgetForm = z.object({ usd: z.object({ spent: z.number() }) });

/** Dollars of one batch in a run of its own: what its provider bills, and what the run is charged. */
async function spentBy(
  model: string,
  { width, calls, rule }: { width: number; calls: number; rule: object | null },
): Promise<{ bill: number; spent: number }> {
  billed = 0;
  const token = await openRun(gateway, { usd: 1_000 }, { max_parallel: Math.max(2, width), default_model: model });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const prompts = Array.from({ length: calls }, (_, at) => `voter ${at}`);
  const stop = rule === null ? {} : { stop_when: rule };
  const json = { prompts, max_tokens: 200, concurrency: width, ...stop };
  const answer = await fetch(`${gateway.url}/batch`, { method: "POST", headers, body: JSON.stringify(json) });
  if (answer.status !== 200) throw new Error(await answer.text());
  await answer.json();
  const { usd } = budgetForm.parse(await (await fetch(`${gateway.url}/budget`, { headers })).json());
  return { bill: billed / 1e6, spent: usd.spent };
}

const usd = (value: number): string => value.toFixed(6);
const rows: Record<string, string>[] = [];
let faults = 0;
for (let round = 0; round < Number(values.rounds); round++) {
  for (const [name, rule] of Object.entries(RULES)) {
    for (const model of ["unstreamed", "streamed"]) {
      for (const width of WIDTHS) {
        const calls = callsOf(name, width);
        const plain = await spentBy(`${model}/m`, { width, calls, rule: null });
        const stopped = await spentBy(`${model}/m`, { width, calls, rule });
        const saved = 1 - stopped.spent / plain.spent;
        const isNear = width <= QUORUM + 2;
        const isWorse = stopped.spent > plain.spent + 1e-12 || stopped.bill > plain.bill + 1e-12;
        if (isWorse || (isNear && saved < 0.2)) faults += 1;
        const money = {
          "without $": usd(plain.spent),
          "with $": usd(stopped.spent),
          "bill without $": usd(plain.bill),
        };
        const percent = `${(100 * saved).toFixed(0)} %`;
        rows.push({
          rule: name,
          model,
          width: String(width),
          calls: String(calls),
          ...money,
          "bill with $": usd(stopped.bill),
          saved: percent,
        });
      }
    }
  }
}
provider.closeAllConnections();
provider.close();
console.log(`\n${tableOf(rows)}\n\n${faults} of ${rows.length} cells cost more, or save too little`);
process.exitCode = faults === 0 ? 0 : 1;
