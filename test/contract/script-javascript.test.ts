/** stubs/script/fanout_script.mjs: what it says of the budget. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { startWorld, type World } from "./world.ts";

const STUB = new URL("../../stubs/script/fanout_script.mjs", import.meta.url).href;

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

async function runScript(program: string, token: string): Promise<unknown> {
  const source = `import { agent, budget, parallel } from ${JSON.stringify(STUB)};\n${program}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", source], {
    env: { PATH: process.env["PATH"] ?? "", FANOUT_URL: world.gateway.url, FANOUT_TOKEN: token },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [printed, complaint] = await Promise.all([text(child.stdout), text(child.stderr)]);
  if (complaint !== "") throw new Error(complaint);
  return JSON.parse(printed);
}

it("says what is left of the budget as GET /budget does, while none of its calls is in flight", async () => {
  const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
  const program = `
const figures = [];
const look = async () => {
  const answer = await fetch(process.env.FANOUT_URL + "/budget", { headers: { authorization: "Bearer " + process.env.FANOUT_TOKEN } });
  figures.push([budget.remaining(), (await answer.json()).usd.remaining]);
};
await agent("alone");
await look();
for (let round = 0; round < 5; round++) {
  await parallel(Array.from({ length: 8 }, (_, at) => () => agent("{{jitter/20}} " + round + " " + at, { max_tokens: 500 })));
  await look();
}
await parallel([() => agent("{{status/400}} x"), () => agent("y")]);
await look();
console.log(JSON.stringify(figures));`;
  const figures = (await runScript(program, run.token)) as [number, number][];
  expect(figures).toHaveLength(7);
  for (const [said, left] of figures) expect(said).toBe(left);
});
