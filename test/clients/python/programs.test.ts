/** Whole programs of Python clients that know nothing of the gateway: three counts of each, and a budget that ends. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { reportLeftOut } from "../../support/left-out.ts";
import { startClients, type ClientRun, type Clients } from "../world.ts";
import { ENVIRONMENT_NAMES, PYTHON_CLIENTS, type PythonClient } from "./clients.ts";
import { missingEnvironment, versionOf } from "./environments.ts";
import { runProgram, TIME_MAX_MS, variablesOf, type Ended } from "./process.ts";

for (const name of ENVIRONMENT_NAMES) reportLeftOut(`the Python clients with ${name}`, missingEnvironment(name));

let clients: Clients;
let home: string;
beforeAll(async () => {
  clients = await startClients();
  home = await mkdtemp(join(tmpdir(), "fanout-python-"));
});
beforeEach(() => clients.provider.forget());
afterAll(async () => {
  await clients.stop();
  await rm(home, { recursive: true, force: true });
});

/** What a program prints of itself. A client that does not count a thing leaves it out. */
const report = z.strictObject({
  answer: z.coerce.string(),
  calls: z.int().optional(),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  cost_usd: z.number().optional(),
});

const start = ({ environment, program, model, mind }: PythonClient, run: ClientRun): Promise<Ended> => {
  if (mind !== undefined) clients.provider.think(mind);
  return runProgram({ environment, program, home }, { ...variablesOf(clients, run), MODEL: model });
};

/** What the run has spent, once nothing is reserved any more. */
async function ledgerOf(run: ClientRun) {
  const nanoUsd = await run.spentNanoUsd();
  const { calls, prompt_tokens, completion_tokens } = await run.budget();
  return { calls: calls.spent, prompt: prompt_tokens.spent, completion: completion_tokens.spent, nanoUsd };
}

/** Fewer calls than any of the programs makes. */
const CALLS_OF_A_SMALL_BUDGET = 3;

/** Two calls of a fan-out, or one and the model's next step: no client asks again for what a budget has refused. */
const REFUSALS_MAX = 2;

for (const client of PYTHON_CLIENTS) {
  const isMissing = missingEnvironment(client.environment) !== null;
  describe.skipIf(isMissing)(`${client.package} ${versionOf(client)}`, { timeout: TIME_MAX_MS }, () => {
    it("its own count, the run's ledger and the provider's count are the same", async () => {
      const run = await clients.openRun({ budget: { usd: 1 }, max_parallel: 8 });
      const { status, printed, complaint } = await start(client, run);
      expect(status, complaint).toBe(0);
      const {
        answer,
        calls = client.calls,
        prompt_tokens,
        completion_tokens,
        cost_usd,
      } = report.parse(JSON.parse(printed));
      expect(answer).toBe(client.answer);
      const bill = clients.provider.bill();
      const nanoUsd = cost_usd === undefined ? bill.nanoUsd : Math.round(cost_usd * 1e9);
      expect({ calls, prompt: prompt_tokens, completion: completion_tokens, nanoUsd }).toEqual(bill);
      expect(bill.calls).toBe(client.calls);
      expect(await ledgerOf(run)).toEqual(bill);
    });

    it("a budget that ends in the middle ends the program with the gateway's reason", async () => {
      const run = await clients.openRun({ budget: { usd: 1, calls: CALLS_OF_A_SMALL_BUDGET }, max_parallel: 8 });
      const { status, printed, complaint } = await start(client, run);
      expect(status).toBe(1);
      expect(printed).not.toContain("answer");
      // The error that ended it is the last of the traceback; some go on to say what they tried.
      const [, ...errors] = `\n${complaint}`.split(`\n${client.error}: `);
      expect(errors.at(-1), complaint).toContain(
        `budget exceeded: ${CALLS_OF_A_SMALL_BUDGET} spent, limit is ${CALLS_OF_A_SMALL_BUDGET}`,
      );
      expect(await ledgerOf(run)).toEqual(clients.provider.bill());
      expect(clients.provider.bill().calls).toBe(CALLS_OF_A_SMALL_BUDGET);
      const refusals = await run.refusals();
      expect(refusals).toBeGreaterThan(0);
      expect(refusals).toBeLessThanOrEqual(REFUSALS_MAX);
    });

    const { asksAt429 } = client;
    if (asksAt429 === undefined) return;
    it("asks the documented number of times at a rate limit", async () => {
      const run = await clients.openRun({ budget: { usd: 1 } });
      // Its provider answers 429, and the gateway makes one attempt for each time that it is asked.
      const { status, complaint } = await start({ ...client, model: "once/limited" }, run);
      expect(status, complaint).toBe(1);
      expect(clients.provider.exchanges).toHaveLength(asksAt429);
    });
  });
}
