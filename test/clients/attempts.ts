/** A gateway in front of an upstream that only fails, for tests of how often a call is really made. */
import { expect } from "vitest";
import { z } from "zod";
import { startFailingUpstream } from "../support/failing-upstream.ts";
import { startGateway } from "../support/gateway.ts";

/** What every upstream's configuration allows; the clients would make three of each by themselves. */
export const MAX_ATTEMPTS = 2;
/** Limit of an attempt, ms: far below the clients' own. Only an upstream that hangs is to reach it. */
const timeoutMsOf = (failure: string): number => (failure === "hang" ? 1_000 : 20_000);

/** How the upstream fails, how many requests it gets, and whether they stay charged. */
export const FAILURES = [
  { failure: "hang", attempts: MAX_ATTEMPTS, charged: true },
  { failure: "reset", attempts: MAX_ATTEMPTS, charged: true },
  { failure: "truncated", attempts: MAX_ATTEMPTS, charged: true },
  { failure: "cut", attempts: MAX_ATTEMPTS, charged: true },
  { failure: "408", attempts: MAX_ATTEMPTS, charged: true },
  { failure: "429", attempts: MAX_ATTEMPTS, charged: false },
  { failure: "500", attempts: MAX_ATTEMPTS, charged: false },
  { failure: "503", attempts: MAX_ATTEMPTS, charged: false },
  { failure: "504", attempts: MAX_ATTEMPTS, charged: true },
  { failure: "524", attempts: MAX_ATTEMPTS, charged: true },
  { failure: "529", attempts: MAX_ATTEMPTS, charged: false },
  { failure: "400", attempts: 1, charged: false },
  { failure: "filter", attempts: 1, charged: true },
] as const;

const amount = z.object({ spent: z.number(), reserved: z.number() });
const budget = z.object({ usd: amount, calls: amount });
const ended = z.object({ charged: z.object({ usd: z.number(), calls: z.number() }), estimated: z.boolean() });

/** Half of an answer of unknown length: its first byte has gone to the client, so nothing is tried again. */
export const CHUNKED = { failure: "chunked", attempts: 1, charged: true } as const;

type Failure = (typeof FAILURES)[number] | typeof CHUNKED;

/** What an error of a client's shows of the answer that it was made from. */
export type ShownError = { headers: Headers | undefined; error: unknown };

/** That an error says how often the gateway tried, what that was charged, and that its client is to leave it at that. */
function expectShown({ headers, error }: ShownError, attempts: number, chargedUsd: number): void {
  expect(headers?.get("x-should-retry")).toBe("false");
  expect(headers?.get("x-fanout-attempts")).toBe(String(attempts));
  expect(Number(headers?.get("x-fanout-charged-usd"))).toBeCloseTo(chargedUsd, 12);
  // An error of the gateway's own says so in its body as well; the upstream's is passed on as it came.
  if (typeof error !== "object" || error === null || !("retryable" in error)) return;
  expect(error).toMatchObject({ attempts, charged_usd: expect.closeTo(chargedUsd, 12) });
}

export async function startAttempts(kind: "openai" | "anthropic") {
  const upstream = await startFailingUpstream();
  const path = kind === "openai" ? "/v1" : "";
  const configured = (failure: string) => ({
    ...{ kind, base_url: `${upstream.origin}/${failure}${path}`, timeout_ms: timeoutMsOf(failure), models: [] },
    ...{ max_attempts: MAX_ATTEMPTS, prices: { "*": { input: 1, output: 2 } } },
  });
  const UPSTREAMS = Object.fromEntries([...FAILURES, CHUNKED].map(({ failure }) => [failure, configured(failure)]));
  const gateway = await startGateway({ vars: { UPSTREAMS } });
  return {
    gateway,
    /** A run of its own, and what it came to after one call that failed. */
    openRun: async () => {
      const { id, token } = await gateway.openRun({ budget: { usd: 1, calls: 100 } });
      const read = async (path: string) => await (await gateway.fetch(path, { token })).text();
      return {
        token,
        /** Expects that the call was made so often and charged so; `error` is null where there was no answer to show it. */
        expectAttempts: async (expected: Failure, error: ShownError | null): Promise<void> => {
          const { failure, attempts, charged } = expected;
          await expect.poll(async () => budget.parse(JSON.parse(await read("/budget"))).usd.reserved).toBe(0);
          const { usd, calls } = budget.parse(JSON.parse(await read("/budget")));
          expect([upstream.asked(failure), calls.spent]).toEqual([attempts, attempts]);
          expect(usd.spent > 0).toBe(charged);
          const log = (await read(`/runs/${id}/log`)).split("\n").filter((line) => line.includes('"attempt_ended"'));
          const lines = log.map((line) => ended.parse(JSON.parse(line)));
          expect(lines.map(({ estimated }) => estimated)).toEqual(Array(attempts).fill(charged));
          expect(lines.reduce((sum, line) => sum + line.charged.usd, 0)).toBeCloseTo(usd.spent, 12);
          if (error !== null) expectShown(error, attempts, usd.spent);
        },
      };
    },
    stop: async () => {
      await gateway.stop();
      await upstream.stop();
    },
  };
}
