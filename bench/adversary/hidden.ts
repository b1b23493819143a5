/**
 * `node bench/adversary/hidden.ts [--requests=100000 --seed=26]`: does any reservation stay below the bill of an upstream that
 * resolves references and bills them? It draws requests with something foreign to its place in each, reads and admits them
 * as the gateway does under a limit, and has the upstream bill what would be sent. There is no network, so it takes minutes
 * on a busy machine; the campaign (`--foreign=1 --only=resolves,claude-resolves`) sends the same requests. Exit status 1 if a
 * bill is above its reservation.
 */
import { parseArgs } from "node:util";
import { admit } from "../../src/run/money/admit.ts";
import { Ledger, NO_LIMITS } from "../../src/run/money/ledger.ts";
import {
  PROMPT_TOKENS_FIXED_ANTHROPIC,
  PROMPT_TOKENS_FIXED_OPENAI,
  PROMPT_TOKENS_FIXED_TOOLS,
} from "../../src/limits.ts";
import { callFactsOf } from "../../src/providers/formats/request/call-facts.ts";
import { readRequest, withBetas } from "../../src/providers/formats/request/read.ts";
import { rewriteRequest } from "../../src/providers/formats/request/rewrite.ts";
import { tableOf } from "../table.ts";
import { billOf, type Family } from "./bill.ts";
import { foreignHeaders } from "./foreign.ts";
import { drawLine } from "./grammar.ts";
import { write } from "./json-text.ts";
import { parseLenient } from "./lenient-json.ts";
import { FILE_TOKENS, MEDIA_TOKENS, PERSONALITIES, TOKEN_PRICE, type Personality } from "./personalities.ts";
import { Random } from "./random.ts";

const OPENAI: readonly Family[] = ["chat", "completions", "responses", "embeddings"];
const LIMIT_NANO_USD = 1e12;

const { values } = parseArgs({
  options: { requests: { type: "string", default: "100000" }, seed: { type: "string", default: "26" } },
});
const [requests, seed] = [Number(values.requests), Number(values.seed)];

type Outcome = { kind: "refused" | "within" } | { kind: "above"; text: string };

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Draws one request, and compares its reservation with its bill. */
function outcomeOf(personality: Personality, family: Family, random: Random): Outcome {
  const scene = { personality, run: 1, next: () => 1, mood: "prose", random, malice: 0, foreign: 1 } as const;
  const bytes = encoder.encode(write(drawLine(scene, family)));
  const betas = foreignHeaders(random)["anthropic-beta"] ?? "";
  const read = readRequest(family, bytes);
  if (!read.ok) return { kind: "refused" };
  const facts = callFactsOf(withBetas(read.value, betas), { model: "m", priority: 2, timeoutMs: null });
  const bounds = {
    ...{ tokensPerByte: 1, mediaTokensMax: MEDIA_TOKENS, fileTokensMax: FILE_TOKENS },
    fixedTokens: personality.kind === "anthropic" ? PROMPT_TOKENS_FIXED_ANTHROPIC : PROMPT_TOKENS_FIXED_OPENAI,
    toolsTokens: PROMPT_TOKENS_FIXED_TOOLS,
  };
  const admitted = admit(facts, TOKEN_PRICE, new Ledger({ ...NO_LIMITS, usd: LIMIT_NANO_USD }), { bounds });
  if (admitted.kind !== "reserve") return { kind: "refused" };
  const sent = rewriteRequest(bytes, read.value, { model: "m", cap: admitted.capTokens, includeUsage: false });
  const text = decoder.decode(sent);
  const bill = billOf(personality, family, parseLenient(text), random, betas);
  if (bill.nanoUsd <= admitted.amounts.usd) return { kind: "within" };
  const why = `${family}: billed ${bill.nanoUsd}, reserved ${admitted.amounts.usd} nano-USD: ${bill.notes.join("; ")}`;
  return { kind: "above", text: `${why}\n   ${text.slice(0, 600)}` };
}

const families = OPENAI.map((family) => ({ family, name: "resolves" }));
const places = [...families, { family: "messages" as const, name: "claude-resolves" }];
const counts = new Map(places.map(({ family }) => [family, { refused: 0, within: 0, above: 0 }]));
const faults: string[] = [];
for (let at = 0; at < requests; at++) {
  const random = new Random(seed, at);
  const { family, name } = random.pick<{ family: Family; name: string }>(places);
  const personality = PERSONALITIES.find((one) => one.name === name);
  const count = counts.get(family);
  if (personality === undefined || count === undefined) throw new Error(`no ${name}`);
  const outcome = outcomeOf(personality, family, random);
  count[outcome.kind] += 1;
  if (outcome.kind === "above") faults.push(outcome.text);
}
console.log(`seed ${seed}: ${requests} requests, ${faults.length} bills above their reservation\n`);
console.log(
  tableOf(
    [...counts].map(([family, { refused, within, above }]) => ({
      family,
      refused: String(refused),
      "bill within": String(within),
      "bill above": String(above),
    })),
  ),
);
for (const fault of faults.slice(0, 10)) console.log(fault);
process.exitCode = faults.length === 0 ? 0 : 1;
