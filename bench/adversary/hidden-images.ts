/**
 * `node bench/adversary/hidden-images.ts [--requests=100000 --seed=29]`: does any bill of a request with hostile images exceed its
 * reservation, or the limit of its run? It draws requests for the upstreams that count images by their sizes, reads, admits and
 * rewrites them as the gateway does, has the upstream bill what would be sent, and teaches the bill to the runs that follow. There is
 * no network, and one call at a time. Two upstreams find more in an image than its header says: each of two trees of runs may see
 * that once, in one call that exceeds its reservation. Exit status 1 if another one does.
 */
import { parseArgs } from "node:util";
import { Ledger, NO_LIMITS } from "../../src/run/money/ledger.ts";
import { imageFamilyOf } from "../../src/run/money/image-tokens.ts";
import { Templates, type TemplateRow } from "../../src/run/learned/templates.ts";
import { learned } from "../../src/run/learned/reports.ts";
import { admissionOf, leaseFor } from "../../src/run/steps/dispatch.ts";
import { learnTemplate } from "../../src/run/steps/settle.ts";
import type { Target } from "../../src/run/leases/shard.ts";
import {
  PROMPT_TOKENS_FIXED_ANTHROPIC,
  PROMPT_TOKENS_FIXED_OPENAI,
  PROMPT_TOKENS_FIXED_TOOLS,
  TEMPLATES_FRESH_MS,
} from "../../src/limits.ts";
import type { CallFacts } from "../../src/call.ts";
import { callFactsOf } from "../../src/providers/formats/request/call-facts.ts";
import { readRequest, withBetas } from "../../src/providers/formats/request/read.ts";
import { rewriteRequest } from "../../src/providers/formats/request/rewrite.ts";
import { tableOf } from "../table.ts";
import { billOf, type Bill, type Family } from "./bill.ts";
import { foreignHeaders } from "./foreign.ts";
import { drawLine } from "./grammar.ts";
import { write } from "./json-text.ts";
import { parseLenient } from "./lenient-json.ts";
import { FILE_TOKENS, modelsOf, PERSONALITIES, TOKEN_PRICE, type Personality } from "./personalities.ts";
import { Random } from "./random.ts";
import type { Mood } from "./texts.ts";

/** Requests of one run, and the trees of runs at one upstream. */
const REQUESTS_PER_RUN = 25;
const TREES = 5;
/** Trees that must have seen an image lie before all others believe them. */
const WITNESSES = 2;

const { values } = parseArgs({
  options: { requests: { type: "string", default: "100000" }, seed: { type: "string", default: "29" } },
});
const [requests, seed] = [Number(values.requests), Number(values.seed)];

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** What all runs have taught of an upstream, and what was counted there. */
type Place = {
  personality: Personality;
  target: Target;
  stored: TemplateRow[];
  counts: {
    calls: number;
    images: number;
    refused: number;
    within: number;
    overruns: number;
    runs: number;
    over: number;
  };
  liesSeenBy: Set<string>;
};

function placeOf(personality: Personality): Place {
  const [model = "m"] = modelsOf(personality);
  const images = imageFamilyOf(model);
  if (images === null) throw new Error(`no family of ${model}`);
  const isAnthropic = personality.kind === "anthropic";
  const bounds = {
    ...{ tokensPerByte: 1, mediaTokensMax: null, fileTokensMax: FILE_TOKENS, images, learnsTemplate: true },
    fixedTokens: isAnthropic ? PROMPT_TOKENS_FIXED_ANTHROPIC : PROMPT_TOKENS_FIXED_OPENAI,
    toolsTokens: PROMPT_TOKENS_FIXED_TOOLS,
  };
  const { name } = personality;
  const limits = { allowParams: [], maxInFlight: 1, timeoutMs: 600, attemptsMax: 1 };
  const target: Target = { upstream: name, gate: name, model, price: TOKEN_PRICE, bounds, ...limits };
  const counts = { calls: 0, images: 0, refused: 0, within: 0, overruns: 0, runs: 0, over: 0 };
  return { personality, target, stored: [], counts, liesSeenBy: new Set() };
}

type Drawn = {
  bytes: Uint8Array;
  family: Family;
  betas: string;
  facts: CallFacts;
  read: Parameters<typeof rewriteRequest>[1];
};

/** A request with an image, or what looks like one, as its run reads it; null = it is refused unread. */
function drawn({ personality, target }: Place, random: Random, mood: Mood): Drawn | null {
  const family = personality.kind === "anthropic" ? "messages" : random.pick<Family>(["chat", "chat", "responses"]);
  const scene = { personality, run: 1, next: () => 1, mood, random, malice: 0.2, foreign: 0.1 };
  let text = write(drawLine(scene, family));
  while (!text.includes("image")) text = write(drawLine(scene, family));
  const bytes = encoder.encode(text);
  const betas = random.chance(0.1) ? (foreignHeaders(random)["anthropic-beta"] ?? "") : "";
  const read = readRequest(family, bytes);
  if (!read.ok) return null;
  const facts = callFactsOf(withBetas(read.value, betas), { model: target.model, priority: 2, timeoutMs: null });
  // Calls in the gateway's own form have no endpoint, whatever their upstream speaks.
  if (random.chance(0.4)) delete facts.endpoint;
  return { bytes, family, betas, facts, read: read.value };
}

type Run = { place: Place; tree: string; templates: Templates; ledger: Ledger; billed: Bill[] };
const faults: string[] = [];

/** One call of a run: read, admitted, billed, settled and learned. */
function call({ place, tree, templates, ledger, billed }: Run, random: Random, mood: Mood, nowMs: number): void {
  const { counts, personality, target } = place;
  counts.calls += 1;
  const request = drawn(place, random, mood);
  const admitted =
    request === null
      ? null
      : admissionOf({ facts: request.facts, target, rules: {}, isInFlight: () => false }, { ledger, templates }, nowMs);
  if (request === null || admitted?.kind !== "reserve") {
    counts.refused += 1;
    return;
  }
  const { bytes, family, betas, facts, read } = request;
  if (facts.mediaParts > 0) counts.images += 1;
  const sent = rewriteRequest(bytes, read, { model: target.model, cap: admitted.capTokens, includeUsage: false });
  const text = decoder.decode(sent);
  const bill = billOf(personality, family, parseLenient(text), random, betas);
  const { promptTokens, completionTokens, cachedTokens, nanoUsd } = bill;
  billed.push(bill);
  const attemptId = String(counts.calls);
  ledger.reserve(attemptId, admitted.amounts);
  ledger.settle(attemptId, {
    ...admitted.amounts,
    usd: nanoUsd,
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
  });
  const start = { attemptId, attempt: 1, slotId: null, target, onLost: "retry" as const, facts, queuedAtMs: nowMs };
  const usage = { promptTokens, completionTokens, cachedTokens, reasoningTokens: 0, costNanoUsd: null };
  const outcome = {
    kind: "success" as const,
    text: "",
    model: target.model,
    finishReason: "stop",
    usage,
    latencyMs: 1,
  };
  learnTemplate(templates, outcome, leaseFor(start, admitted, nowMs));
  if (nanoUsd <= admitted.amounts.usd && promptTokens <= admitted.amounts.prompt_tokens) {
    counts.within += 1;
    return;
  }
  counts.overruns += 1;
  const mayLie = personality.isLiedTo === true && facts.mediaParts > 0;
  if (mayLie && !place.liesSeenBy.has(tree) && place.liesSeenBy.size < WITNESSES) {
    place.liesSeenBy.add(tree);
    return;
  }
  const reserved = `${admitted.amounts.usd} nano-USD, ${admitted.amounts.prompt_tokens} tokens`;
  const why = `${personality.name}: billed ${nanoUsd} nano-USD, ${promptTokens} tokens, reserved ${reserved}`;
  faults.push(`${why}: ${bill.notes.join("; ")}\n   ${text.slice(0, 900)}`);
}

/** Runs one after the other, each of one tree; what they report is stored before the next one begins. */
function attack(place: Place, calls: number, number: number): void {
  const { personality, counts } = place;
  for (let run = 0; counts.calls < calls; run++) {
    const random = new Random(seed, number, run);
    const nowMs = run * 2 * TEMPLATES_FRESH_MS;
    const tree = `tree-${random.integer(1, TREES)}`;
    const templates = new Templates(() => place.stored, tree);
    const limit = Math.round(5e6 * 400 ** random.fraction());
    const ledger = new Ledger({ ...NO_LIMITS, usd: limit });
    const billed: Bill[] = [];
    const mood = random.pick(["prose", "prose", "mixed", "dense"] as const);
    const liesBefore = place.liesSeenBy.size;
    const target = Math.min(calls, counts.calls + REQUESTS_PER_RUN);
    while (counts.calls < target) call({ place, tree, templates, ledger, billed }, random, mood, nowMs);
    const known = new Map(place.stored.map((row) => [`${row.model}\n${row.shape}`, row]));
    for (const row of learned(place.stored, templates.takeNews().get(personality.name) ?? [], nowMs)) {
      known.set(`${row.model}\n${row.shape}`, row);
    }
    place.stored = [...known.values()];
    counts.runs += 1;
    const total = billed.reduce((sum, { nanoUsd }) => sum + nanoUsd, 0);
    if (total <= limit || place.liesSeenBy.size > liesBefore) continue;
    counts.over += 1;
    faults.push(`${personality.name}: a run of ${limit} nano-USD was billed ${total}`);
  }
}

const places = PERSONALITIES.filter(({ sees }) => sees !== undefined).map(placeOf);
for (const [at, place] of places.entries()) {
  const share = Math.floor((requests * (at + 1)) / places.length) - Math.floor((requests * at) / places.length);
  attack(place, share, at);
}
console.log(`seed ${seed}: ${requests} requests, ${faults.length} faults\n`);
console.log(
  tableOf(
    places.map(({ personality, counts, liesSeenBy }) => ({
      upstream: personality.name,
      runs: String(counts.runs),
      requests: String(counts.calls),
      refused: String(counts.refused),
      "sent with images": String(counts.images),
      "bill within": String(counts.within),
      "first lies": String(liesSeenBy.size),
      "bill above": String(counts.overruns - liesSeenBy.size),
      "runs above their limit": String(counts.over),
    })),
  ),
);
for (const fault of faults.slice(0, 10)) console.log(fault);
process.exitCode = faults.length === 0 ? 0 : 1;
