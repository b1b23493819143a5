/** A sandbox that dies in the middle of a batch: another comes with the same key and gets the same results. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { documentOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

/** What runs in the sandbox: posts the batch that it is given under a key, and prints the results. */
const PROGRAM = `
const { URL_, TOKEN, KEY, PROMPTS, ACCEPT } = process.env;
const headers = { authorization: "Bearer " + TOKEN, "content-type": "application/json", "idempotency-key": KEY, accept: ACCEPT };
const answer = await fetch(URL_ + "/batch", { method: "POST", headers, body: JSON.stringify({ prompts: JSON.parse(PROMPTS) }) });
process.stdout.write(await answer.text());
`;

function sandbox(run: RunAccess, prompts: readonly string[], accept: string): ChildProcess {
  const env = { URL_: world.gateway.url, TOKEN: run.token, PROMPTS: JSON.stringify(prompts) };
  return spawn(process.execPath, ["--input-type=module", "-e", PROGRAM], {
    env: { ...env, KEY: "the-batch", ACCEPT: accept },
    stdio: ["ignore", "pipe", "inherit"],
  });
}

const CALLS = 80;
/** The last calls wait at a latch, so that the batch runs still however late a sandbox is killed. */
const promptsOf = (latch: string) =>
  Array.from({ length: CALLS }, (_, index) => `{{${index < 60 ? "delay/80" : `latch/${latch}`}}} ${index}`);

it.each(["application/json", "application/x-ndjson"])(
  "a batch answered as %s is resumed without charging any call twice",
  { tags: ["slow"] },
  async (accept) => {
    const latch = accept.replaceAll(/\W/g, "-");
    const prompts = promptsOf(latch);
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 }, max_parallel: 8 });
    for (const requests of [10, 30]) {
      const first = sandbox(run, prompts, accept);
      await expect.poll(() => world.upstream.counters.requests, { interval: 5 }).toBeGreaterThan(requests);
      first.kill("SIGKILL");
      expect((await once(first, "exit"))[1]).toBe("SIGKILL");
      expect(world.upstream.counters.requests).toBeLessThan(CALLS);
    }
    world.upstream.open(latch);
    const second = sandbox(run, prompts, accept);
    if (second.stdout === null) throw new Error("the sandbox has no output");
    const printed = await text(second.stdout);
    for (const [index, prompt] of prompts.entries()) {
      if (accept !== "application/json") expect(printed).toContain(`"index":${index},`);
      expect(printed).toContain(JSON.stringify(prompt));
    }
    if (accept === "application/json") expect(JSON.parse(printed)).toMatchObject({ results: prompts });
    expect(world.upstream.counters).toMatchObject({ requests: CALLS, abandoned: 0 });
    expect([...world.upstream.counters.sends.values()].every((sends) => sends === 1)).toBe(true);
    expect((await documentOf(run)).budget.calls).toMatchObject({ spent: CALLS, reserved: 0 });
  },
);
