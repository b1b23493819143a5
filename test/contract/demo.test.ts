/** `npm run demo` as a stranger meets it: it ends well with an answer and its cost, with a real provider too, or says why not. */
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { startUpstream, type TestUpstream } from "../support/upstream.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

async function demo(env: Record<string, string> = {}) {
  const { OPENAI_API_KEY: _, FANOUT_MODEL: __, ...clean } = process.env;
  const child = spawn("node", ["scripts/demo.ts"], {
    cwd: ROOT,
    env: { ...clean, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const status = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [printed, complaint] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { status: await status, printed, complaint };
}

describe("npm run demo", () => {
  let upstream: TestUpstream | null = null;
  afterEach(() => upstream?.stop());

  it("shows the fan-out, the answer and its cost, keyless", { tags: ["slow"] }, async () => {
    const { status, printed, complaint } = await demo();
    expect([status, complaint]).toEqual([0, ""]);
    expect(printed).toMatch(/Run run_[0-9a-f]{64}: budget \$0\.25, 32 calls at once/);
    expect(printed).toMatch(/⚡ Parallel Execution Started: 97 sub-calls in group pg-\d{13}-[0-9a-z]{1,6}/);
    expect(printed).toMatch(/speed-up \d+\.\dx · 32 at once at the peak · \$0\.\d{6}/);
    expect(printed).toMatch(/Colour words in the book\n {2}red +\d+\n/);
    expect(printed).toMatch(/Spent \$0\.\d{6} of \$0\.25 in all, for 98 calls\nThe demo took \d+\.\d s\n$/);
  });

  it("uses a real provider if a model and a key are given", { tags: ["slow"] }, async () => {
    upstream = await startUpstream(() => ({ text: "red: 2\nblue: 1" }));
    const { status, printed, complaint } = await demo({
      FANOUT_MODEL: "openai/some-model",
      OPENAI_API_KEY: "sk-test-key",
      OPENAI_BASE_URL: upstream.baseUrl,
      FANOUT_PRICE: "0.15,0.6",
    });
    expect([status, complaint]).toEqual([0, ""]);
    expect(upstream.counters.requests).toBe(98);
    expect(upstream.counters.apiKeys).toEqual(new Set(["sk-test-key"]));
    expect(printed).toMatch(/ {2}red +2\n {2}blue +1\n/);
    expect(printed).not.toContain("sk-test-key");
  });

  it(
    "names the reason for missing slots if the budget does not cover the book, and exits with 1",
    { tags: ["slow"] },
    async () => {
      const { status, printed, complaint } = await demo({ FANOUT_BUDGET_USD: "0.002" });
      expect(status).toBe(1);
      expect(complaint).toMatch(/^! slot \d+: Budget exceeded: \$0\.\d+ spent, limit is \$0\.002;/);
      expect(complaint).toMatch(/! \d+ of 97 chunks are missing from the sums\n/);
      // What the batch leaves may or may not pay for the call that adds up.
      const paid = /Spent \$0\.00\d{4} of \$0\.002 in all/;
      const unpaid = /\nBudget exceeded: \$0\.00\d+ spent, limit is \$0\.002; [^\n]* \(budget_exhausted\)\n$/;
      expect(paid.test(printed) || unpaid.test(complaint)).toBe(true);
    },
  );
});
