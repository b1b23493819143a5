/**
 * Turns the data of @pydantic/genai-prices into the gateway's price snapshot: text prices as integers, match rules as
 * plain patterns, and the highest of several prices over time. It stops at anything that it cannot convert, so that a person
 * decides; it lists what it omits on purpose.
 */
import { z } from "zod";
import type { Snapshot, SnapshotModel, SnapshotRates } from "../../src/run/money/prices.ts";
import { PRICE_USD_PER_MILLION_MAX } from "../../src/limits.ts";
import { scaledUp } from "../../src/run/money/decimal.ts";
import { hostsOf } from "./hosts.ts";
import { patternsOf, type Match } from "./patterns.ts";

const matchSchema: z.ZodType<Match> = z.lazy(() =>
  z.union([
    z.strictObject({ equals: z.string() }),
    z.strictObject({ starts_with: z.string() }),
    z.strictObject({ ends_with: z.string() }),
    z.strictObject({ contains: z.string() }),
    z.strictObject({ regex: z.string() }),
    z.strictObject({ or: z.array(matchSchema) }),
    z.strictObject({ and: z.array(matchSchema) }),
  ]),
);

const usd = z.number().min(0).max(PRICE_USD_PER_MILLION_MAX);
const amountSchema = z.union([
  usd,
  z.object({ base: usd, tiers: z.array(z.object({ start: z.int().min(0), price: usd })) }),
]);
const pricesSchema = z.record(z.string(), amountSchema);
const constraintSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("start_date"), start_date: z.iso.date() }),
  z.strictObject({ type: z.literal("time_of_date"), start_time: z.string(), end_time: z.string() }),
]);
const datedSchema = z.object({ constraint: constraintSchema.optional(), prices: pricesSchema });

/** The parts of the package's data that are used. */
export const providersSchema = z.array(
  z.object({
    id: z.string(),
    api_pattern: z.string(),
    models: z.array(
      z.object({ id: z.string(), match: matchSchema, prices: z.union([z.array(datedSchema), pricesSchema]) }),
    ),
  }),
);

type SourceModel = z.infer<typeof providersSchema>[number]["models"][number];
type Prices = z.infer<typeof pricesSchema>;

/** Prices of text, the only ones in a snapshot. */
const TEXT_KEYS = ["input_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok", "output_mtok"];
/** Fees per call that always apply. */
const CALL_KEY = "requests_kcount";
/** Fees that apply only if the request has tools that the gateway refuses, or audio, images or video. */
const ON_REQUEST =
  /^(web_searches_kcount|storage_searches_kcount|(input|cache)_(audio|image|video)_(mtok|read_mtok|write_mtok))$/;
/** Models that bill more than text tokens: searches, audio, images. */
const NOT_TEXT = /(^|[-/.])(search-preview|deep-research|audio|realtime|transcribe|tts|image|lyria|moderation)/;
/** Models without completions; any other model without an output price is unpriced. */
const EMBEDDING = /embed|bge-|voyage/;

/** The snapshot, and a line for each omission. */
export function snapshotOf(
  providers: z.infer<typeof providersSchema>,
  about: { source: string; date: string },
): { snapshot: Snapshot; leftOut: string[] } {
  const leftOut: string[] = [];
  const kept: [string, Snapshot["providers"][string]][] = [];
  for (const { id, api_pattern, models } of providers) {
    const hosts = hostsOf(id, api_pattern);
    if (hosts.length === 0) leftOut.push(`${id}: its hosts are not a plain list`);
    else kept.push([id, { hosts, ...pricedModels(id, models, about.date, leftOut) }]);
  }
  return { snapshot: { ...about, providers: Object.fromEntries(kept) }, leftOut };
}

function pricedModels(provider: string, source: SourceModel[], date: string, leftOut: string[]) {
  const unpriced = new Set<string>();
  const models: SnapshotModel[] = [];
  for (const { id, match, prices } of source) {
    const found = patternsOf(match);
    for (const pattern of found.except) unpriced.add(pattern);
    const price = textPrice(id, Array.isArray(prices) ? inForce(prices, date) : [prices]);
    const [text, other] = price === null ? [[], found.patterns] : partition(found.patterns);
    for (const pattern of other) unpriced.add(pattern);
    if (other.length > 0) leftOut.push(`${provider}: ${other.join(" ")}`);
    if (price !== null && text.length > 0) add(models, text, price);
  }
  return { unpriced: [...unpriced], models };
}

function partition(patterns: string[]): [text: string[], other: string[]] {
  const isText = (pattern: string): boolean => !NOT_TEXT.test(pattern);
  return [patterns.filter(isText), patterns.filter((pattern) => !isText(pattern))];
}

/** Adds a price, or its patterns to the model before it if that has the same price: the order stays as it was. */
function add(models: SnapshotModel[], match: string[], price: Omit<SnapshotModel, "match">): void {
  const last = models.at(-1);
  const same = last !== undefined && JSON.stringify({ ...last, match: [] }) === JSON.stringify({ match: [], ...price });
  if (same) models[models.length - 1] = { ...last, match: [...last.match, ...match] };
  else models.push({ match, ...price });
}

/** The prices that can apply on or after `date`: the last entry on or before that day, and all later ones. */
function inForce(dated: z.infer<typeof datedSchema>[], date: string): Prices[] {
  const begun = dated.findLastIndex(
    ({ constraint }) => constraint === undefined || (constraint.type === "start_date" && constraint.start_date <= date),
  );
  return dated.slice(Math.max(0, begun)).map(({ prices }) => prices);
}

/** The highest price for each size of prompt; null if any of them includes more than text. */
function textPrice(id: string, dated: Prices[]): Omit<SnapshotModel, "match"> | null {
  if (dated.every((prices) => Object.keys(prices).length === 0)) {
    // An entry without figures means "free" for these ids, and "not known" for all others.
    return id.endsWith(":free") ? { input: 0, output: 0 } : null;
  }
  for (const prices of dated) {
    const bounded = Object.keys(prices).every(
      (key) => TEXT_KEYS.includes(key) || key === CALL_KEY || ON_REQUEST.test(key),
    );
    const complete = "input_mtok" in prices && ("output_mtok" in prices || EMBEDDING.test(id.toLowerCase()));
    if (!bounded || !complete) return null;
  }
  const call = Math.max(...dated.map((prices) => perThousandNanoUsd(prices[CALL_KEY])));
  const tiers = tierStarts(dated).map((from) => ({ from, ...ratesAt(dated, from) }));
  return {
    ...ratesAt(dated, 0),
    ...(writesWithoutMark(id, ratesAt(dated, 0)) && { unasked: true }),
    ...(call > 0 && { call }),
    ...(tiers.length > 0 && { tiers }),
  };
}

/**
 * Models that write only marked parts of a request to the cache: Anthropic's, at any host
 * (platform.claude.com/docs/en/build-with-claude/prompt-caching). OpenAI's from GPT-5.6 on write every prompt, at 1.25
 * times the input price (developers.openai.com/api/docs/guides/prompt-caching); for the others it is unknown, so they
 * are assumed to do so, too.
 */
const WRITES_IF_MARKED = /claude|anthropic/;

function writesWithoutMark(id: string, { write }: SnapshotRates): boolean {
  return write !== undefined && !WRITES_IF_MARKED.test(id.toLowerCase());
}

function tierStarts(dated: Prices[]): number[] {
  const starts = new Set<number>();
  for (const prices of dated) {
    for (const key of TEXT_KEYS) {
      const amount = prices[key];
      // The package counts a tier from the first token beyond `start`.
      if (typeof amount === "object") for (const { start } of amount.tiers) starts.add(start + 1);
    }
  }
  return [...starts].toSorted((a, b) => a - b);
}

function ratesAt(dated: Prices[], promptTokens: number): SnapshotRates {
  const dearest = (key: string, otherwise?: string): number =>
    Math.max(...dated.map((prices) => picoUsdAt(prices[key] ?? prices[otherwise ?? key], promptTokens)));
  const input = dearest("input_mtok");
  const cached = dearest("cache_read_mtok", "input_mtok");
  const write = dearest("cache_write_mtok");
  const write1h = dearest("cache_write_1h_mtok");
  return {
    input,
    ...(cached !== input && { cached }),
    // A price below the input price is a storage price per hour, not a write price; these tokens are charged as input.
    ...(write > input && { write }),
    ...(write1h > Math.max(input, write) && { write1h }),
    output: dearest("output_mtok"),
  };
}

function picoUsdAt(amount: z.infer<typeof amountSchema> | undefined, promptTokens: number): number {
  if (amount === undefined) return 0;
  if (typeof amount === "number") return scaledUp(amount, 1e6);
  const reached = amount.tiers.toSorted((a, b) => a.start - b.start).findLast(({ start }) => promptTokens > start);
  return scaledUp(reached?.price ?? amount.base, 1e6);
}

function perThousandNanoUsd(amount: z.infer<typeof amountSchema> | undefined): number {
  if (amount === undefined) return 0;
  if (typeof amount !== "number") throw new Error(`${CALL_KEY} in tiers is not understood`);
  return scaledUp(amount, 1e6);
}
