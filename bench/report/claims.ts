/**
 * What README claims with a figure or as a guarantee, and the command that shows it. A test finds each quote in README, and
 * requires a claim for every figure there.
 */
import { medianIn, type ResultFile } from "./data.ts";

export type Claim = {
  /** Words of README. */
  quote: string;
  /** A command that a reader can run in a clone. */
  command: string;
  /** What the command shows. */
  shows: string;
  /** Its figure in the stored rounds; absent = they have none: it passes or fails, or prints its own. */
  figure?: (data: ResultFile) => string;
};

/** 1,000 calls of 200 ms, 64 at a time. */
const IDEAL_MS_AT_64 = Math.ceil(1_000 / 64) * 200;

/** What the page says where the stored rounds have no figure. */
export function figureOf({ command, figure }: Claim, data: ResultFile): string {
  if (figure !== undefined) return figure(data);
  return command.startsWith("npx vitest") ? "passes in CI" : "printed by the command";
}

export const CLAIMS: readonly Claim[] = [
  {
    quote: "spent + reserved <= limit",
    command: "npm run bench:budget",
    shows: "no reply in which `spent + reserved` is above the limit, and no bill above it; exit status 1 otherwise",
    figure: (data) =>
      `$${medianIn(data, "overshoot", "chat", "bill_usd@1000").toFixed(4)} of $0.05 under 1,000 calls at once (\`overshoot\`)`,
  },
  {
    quote: "at every instant, under any concurrency, crash or retry",
    command:
      "npm run simulate -- --hours=24 --runs=10000 --slots=12 --large=0.04 --huge=0.015 --upstreams=64 --shards=2",
    shows:
      "a virtual day in which objects, Workers and machines die all the time: every reply, result and bill is checked; exit status 1 and the seed if a promise does not hold",
  },
  {
    quote: "hostile calls",
    command: "npm run bench:adversary",
    shows: "100,000 hostile requests against upstreams with their own bills; exit status 1 if a bill is above a limit",
  },
  {
    quote: "**Results are in input order.**",
    command: "npx vitest run --project contract test/contract/batch.test.ts",
    shows: "results in the order of the prompts, whatever the order of the answers",
  },
  {
    quote: "**Failures are isolated.**",
    command: "npx vitest run --project contract test/contract/batch.test.ts",
    shows: "a batch of 1,000, of which a tenth fails: each failure in its own slot, every other result in its place",
  },
  {
    quote: "**No chunks, no barriers.**",
    command: "npm run bench -- fan-out",
    shows: "the wall time of 1,000 calls ÷ the ideal",
    figure: (data) => `${(medianIn(data, "fan-out", "batch", "wall_ms@64") / IDEAL_MS_AT_64).toFixed(2)} at width 64`,
  },
  {
    quote: "**Work is durable.**",
    command: "npm run bench:kill",
    shows: "no lost slot, and no call paid twice beyond those in flight, over 100 kills",
  },
  {
    quote: "**The provider key stays in the gateway.**",
    command: "npx vitest run --project contract test/contract/retries.test.ts",
    shows: "a provider that quotes the key, which is in no reply",
  },
  {
    quote: "under ten seconds",
    command: "npm run demo",
    shows: "its own duration, at the end",
  },
  {
    quote: "On two cores with a nearby registry",
    command: "npm run first-minute",
    shows: "the seconds of each step",
  },
];
