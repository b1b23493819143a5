/**
 * `npm run bench:contexts` = `node bench/contexts/contexts.ts [--calls=n] [--width=n]`: many questions on one document of 100,000 tokens, at
 * providers that cache prompts and bill as Anthropic and OpenAI (from GPT-5.6 on) do. What do they bill, against the least that
 * they can, and what does it cost in time that one call goes first? Then what the isolate holds of large texts. README.md explains the figures.
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { z } from "zod";
import { CACHING_PRICES, costOf, startCachingProvider } from "../../test/support/caching-provider.ts";
import { startGateway } from "../../test/support/gateway.ts";
import { machine, writeResult } from "../results.ts";
import { atMost, exact, plain, shownRow, type Row } from "../parts/row.ts";
import { tableOf } from "../table.ts";
import { measureMemory } from "./memory.ts";

const { values } = parseArgs({
  options: { calls: { type: "string", default: "1000" }, width: { type: "string", default: "512" } },
});
const calls = Number(values.calls);
const width = Number(values.width);
const FIRST_MS = 1_500;
const WHOLE_MS = 3_000;
const BILL_MAX = 1.05;
const REQUEST_BYTES_MAX = 120_000;

const text = "Here are some of the words of a long document. ".repeat(8_511).slice(0, 400_000);
const questions = Array.from({ length: calls }, (_, index) => `What does it say about the subject of number ${index}?`);
const tokens = (chars: number): number => Math.ceil(chars / 4);

const provider = await startCachingProvider({ firstMs: FIRST_MS, wholeMs: WHOLE_MS });
const shared = { api_key: "secret:KEY", prices: { "*": CACHING_PRICES } };
const UPSTREAMS = {
  claude: { kind: "anthropic", base_url: provider.origin, ...shared, models: ["claude-*"] },
  gpt: { kind: "openai", base_url: `${provider.origin}/v1`, ...shared, models: ["gpt-*"], prompt_cache: "breakpoint" },
};
const gateway = await startGateway({ vars: { UPSTREAMS, KEY: "k", WAITING_FETCHES_MAX: "512" } });
const idleMb = residentMb("VmRSS");

type Measured = { billUsd: number; chargedUsd: number; savedUsd: number; wallMs: number; requestBytes: number };

async function ask(model: string, cache: string): Promise<Measured> {
  provider.forget();
  const { token } = await gateway.openRun({ max_parallel: width, budget: { usd: 10_000 } });
  const stored = await gateway.fetch("/contexts", { json: { text }, token });
  const { id } = z.looseObject({ id: z.string() }).parse(await stored.json());
  const json = { context: id, prompts: questions, model, max_tokens: 16, cache };
  const start = performance.now();
  const reply = await (await gateway.fetch("/batch", { json, token })).json();
  const wallMs = performance.now() - start;
  const usage = z.looseObject({ cost: z.number(), saved_usd: z.number().default(0) });
  const group = z.looseObject({ status: z.literal("completed"), usage }).parse(reply);
  const { cost: chargedUsd, saved_usd: savedUsd } = group.usage;
  const requestBytes = Buffer.byteLength(JSON.stringify(json));
  return { billUsd: provider.bill().usd, chargedUsd, savedUsd, wallMs, requestBytes };
}

/** The least that the provider can bill: one write, reads, and each question. */
function least(separators: number): number {
  const tails = questions.map((question) => tokens(text.length + separators + question.length) - tokens(text.length));
  return tails.reduce((sum, tail, index) => {
    const prefix = { read: index === 0 ? 0 : tokens(text.length), write: index === 0 ? tokens(text.length) : 0 };
    return sum + costOf({ input: tail, ...prefix });
  }, 0);
}

/** A figure of the gateway's process, MB. */
function residentMb(name: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${gateway.pid}/status`, "utf8");
  return Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? Number.NaN) / 1_024;
}

const rows: Row[] = [];
const measured: Record<string, Measured> = {};
for (const model of ["claude/claude-x", "gpt/gpt-x"]) {
  const name = model.startsWith("claude") ? "Anthropic's rules" : "GPT-5.6's rules";
  const off = await ask(model, "off");
  const auto = await ask(model, "auto");
  measured[`${model} off`] = off;
  measured[model] = auto;
  const waits = Math.ceil(calls / width);
  rows.push(
    atMost(`${name}: bill ÷ (1 write + ${calls - 1} reads + questions)`, auto.billUsd / least(2), BILL_MAX),
    plain(`${name}: the same without marks and leader`, (off.billUsd / least(2)).toFixed(2)),
    exact(
      `${name}: charged`,
      auto.chargedUsd.toFixed(6),
      `= the bill, ${auto.billUsd.toFixed(6)} USD`,
      Math.abs(auto.chargedUsd - auto.billUsd) < 0.000_01,
    ),
    atMost(`${name}: time beyond all at once ÷ time to first byte`, (auto.wallMs - off.wallMs) / FIRST_MS, 1),
    plain(`${name}: time, all at once`, `${(off.wallMs / 1_000).toFixed(2)} s of ${(waits * WHOLE_MS) / 1_000} s`),
    atMost(`${name}: request`, auto.requestBytes, REQUEST_BYTES_MAX, " bytes"),
  );
}
rows.push(
  plain("resident memory of the gateway's process, beyond idle", `${(residentMb("VmHWM") - idleMb).toFixed(1)} MB`),
);
await gateway.stop();
await provider.stop();
rows.push(...(await measureMemory()));
const shape = `${calls} questions on a document of ${tokens(text.length)} tokens, width ${width}`;
console.log(`${shape}; first byte after ${FIRST_MS} ms, answer after ${WHOLE_MS} ms\n`);
console.log(`${tableOf(rows.map(shownRow))}\n`);
const result = { at: new Date().toISOString(), machine: machine(), calls, width, rows, measured };
console.log(`figures: ${writeResult("contexts.json", JSON.stringify(result, null, 2))}`);
process.exit(rows.some(({ met, exact: isExact }) => isExact && met === false) ? 1 : 0);
