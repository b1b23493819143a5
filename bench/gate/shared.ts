/** Two runs and a client of single calls share a key whose limits are in the headers. */
import { AnthropicLimiter } from "../../test/support/limited/anthropic-limiter.ts";
import { OpenAiLimiter } from "../../test/support/limited/openai-limiter.ts";
import { atLeast, atMost, exact, plain, type Part } from "../parts/row.ts";
import { batch, CAP_TOKENS, prompts, query, startGateWorld, type GateWorld, type WorldOptions } from "./world.ts";
import type { LimitedCall } from "../../test/support/limited/server.ts";

/** What the key admits per minute, and the share of it that is left at the beginning. */
const PER_MINUTE = 2_400;
const FILL = 0.02;
const MANY = 1e9;
/** Tokens per minute, by the requests per minute of the other cases. */
const TOKENS_PER_CALL = 18;
const WASTED_MAX = 0.01;
const WALL_MAX = 1.15;
const GOODPUT_MIN = 0.95;

const limits = { fill: FILL } as const;
const CASES: readonly (WorldOptions & { name: string })[] = [
  {
    name: "requests, OpenAI",
    limiter: new OpenAiLimiter({ ...limits, requestsPerMinute: PER_MINUTE, tokensPerMinute: MANY }),
  },
  {
    name: "tokens, OpenAI",
    limiter: new OpenAiLimiter({
      ...limits,
      requestsPerMinute: MANY,
      tokensPerMinute: PER_MINUTE * TOKENS_PER_CALL,
    }),
  },
  {
    name: "requests, Anthropic",
    kind: "anthropic",
    limiter: new AnthropicLimiter({
      ...limits,
      requestsPerMinute: PER_MINUTE,
      inputTokensPerMinute: MANY,
      outputTokensPerMinute: MANY,
    }),
  },
];

export async function measureShared(slots: number): Promise<Part> {
  const parts: Part[] = [];
  for (const { name, ...options } of CASES) {
    await using world = await startGateWorld(options);
    parts.push(await share(world, name, slots));
  }
  return { rows: parts.flatMap(({ rows }) => rows), faults: parts.flatMap(({ faults }) => faults) };
}

async function share(world: GateWorld, name: string, slots: number): Promise<Part> {
  const { provider } = world;
  const runs = await Promise.all(Array.from({ length: 3 }, () => world.openRun()));
  const [first, second, single] = runs.map(({ token }) => token);
  if (first === undefined || second === undefined || single === undefined) throw new Error("no runs");
  const queries: { ms: number; status: number }[] = [];
  const startedMs = performance.now();
  const over = new AbortController();
  const asking = (async () => {
    while (!over.signal.aborted) queries.push(await query(world, single, `query ${queries.length}`));
  })();
  const answers = await Promise.all(
    [first, second].map((token, at) => batch(world, token, { prompts: prompts(`${at}`, slots) })),
  );
  const wallS = (performance.now() - startedMs) / 1_000;
  over.abort();
  await asking;
  const admitted = provider.admitted();
  const perMinute = name.startsWith("tokens") ? PER_MINUTE * TOKENS_PER_CALL : PER_MINUTE;
  const used = name.startsWith("tokens") ? tokensOf(admitted) : admitted.length;
  const idealS = (used - FILL * perMinute) / (perMinute / 60);
  const firstMs = provider.calls[0]?.atMs ?? 0;
  const wasted = provider.rejected().filter(({ atMs }) => atMs > firstMs + 1_000).length;
  const results = answers.flatMap((answer) => answer.results);
  const whole = results.filter((text) => /^\d \d+$/.test(text)).length;
  return {
    rows: [
      exact(`${name}: slots answered`, `${whole}`, `= ${2 * slots}`, whole === 2 * slots),
      exact(
        `${name}: queries answered`,
        `${queries.filter(({ status }) => status === 200).length} of ${queries.length}`,
        "all",
        queries.every(({ status }) => status === 200),
      ),
      atMost(`${name}: 429s after the first second, per admitted call`, wasted / admitted.length, WASTED_MAX),
      plain(`${name}: 429s in all`, `${provider.rejected().length}`),
      atLeast(`${name}: goodput, share of the limit`, idealS / wallS, GOODPUT_MIN),
      atMost(`${name}: wall, times the ideal ${idealS.toFixed(1)} s`, wallS / idealS, WALL_MAX),
    ],
    faults: [],
  };
}

/** What the calls counted as OpenAI counts: their prompts, four bytes a token, and their caps. */
function tokensOf(calls: readonly LimitedCall[]): number {
  return calls.reduce((sum, { prompt }) => sum + Math.ceil(Buffer.byteLength(prompt) / 4) + CAP_TOKENS, 0);
}
