/** "calls" and "failed" mean the same wherever they are shown: the API, the pages, `fanout run`, `runs` and `top`. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { z } from "zod";
import { parseLine } from "../../ui/model/line.ts";
import { readPage } from "../../ui/model/runs/listed.ts";
import { RunState } from "../../ui/model/run-state.ts";
import { Folder } from "../unit/cli/command.ts";
import { startWorld, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

let folder: Folder;
beforeEach(async () => void (folder = await Folder.create()));
afterEach(() => folder.remove());

type Counts = { calls: number; failed: number };

const document = z.object({
  stats: z.object({ total_queries: z.int() }),
  metrics: z.object({ failures: z.record(z.string(), z.int()).optional() }),
});
const list = z.record(z.string(), z.unknown());

const fanout = async (...args: string[]): Promise<string> => {
  const env = { FANOUT_URL: world.gateway.url, ADMIN_KEY: world.gateway.adminKey };
  const { status, stdout, stderr } = await folder.fanout(args, { env });
  expect([status, args, status === 0 ? "" : stderr]).toEqual([0, args, ""]);
  return stdout;
};

/** The figures of a run in a table of the command, by the heads of its columns. */
function inTable(text: string, name: string): Counts {
  const [head = "", ...rows] = text.split("\n");
  const row = rows.find((line) => line.includes(name)) ?? "";
  const at = (column: string): string => {
    const end = head.indexOf(` ${column}`) + 1 + column.length;
    const number = /[\d,]+$/.exec(row.slice(0, end))?.[0] ?? `no number under ${column} in ${row}`;
    return number.replaceAll(",", "");
  };
  return { calls: Number(at("calls")), failed: Number(at("failed")) };
}

async function everywhere(id: string, name: string): Promise<Record<string, Counts>> {
  const { stats, metrics } = document.parse((await world.sendAsOperator(`/runs/${id}`)).json);
  const sum = Object.values(metrics.failures ?? {}).reduce((all, calls) => all + calls, 0);
  const [listed] = readPage(list.parse((await world.sendAsOperator(`/runs?name=${name}`)).json), 0);
  const log = await world.sendAsOperator(`/runs/${id}/log`);
  const state = new RunState();
  for (const text of log.text.split("\n")) {
    const line = parseLine(text);
    if (line !== null) state.apply(line);
  }
  return {
    api: { calls: stats.total_queries, failed: sum },
    startPage: { calls: listed?.calls ?? -1, failed: listed?.failed ?? -1 },
    runPage: { calls: state.total, failed: state.counts.failed },
    runs: inTable(await fanout("runs", "--name", name), name),
    top: inTable(await fanout("top", "--once"), name),
  };
}

it("of a run with calls of all kinds that end in all ways", { tags: ["slow"] }, async () => {
  const run = await world.openRun({ name: "counted", default_model: "sim/echo", budget: { usd: 1, calls: 9 } });
  const failing = { prompt: "x", model: "sim/fail?status=400" };
  const items = [{ prompt: "a" }, failing, { prompt: "b" }, failing, { prompt: "c" }];
  await run.send("/batch", { method: "POST", json: { items } });
  await run.send("/query", { method: "POST", json: { prompt: "d" } });
  await run.send("/query", { method: "POST", json: failing });
  await run.send("/v1/chat/completions", {
    method: "POST",
    json: { model: "sim/echo", messages: [{ role: "user", content: "e" }] },
  });
  // One attempt is left: the second call is refused, and fails.
  await run.send("/batch", { method: "POST", json: { prompts: ["f", "g"] } });
  const expected = { calls: 10, failed: 4 };
  await expect
    .poll(() => everywhere(run.id, "counted"), { timeout: 20_000 })
    .toEqual({ api: expected, startPage: expected, runPage: expected, runs: expected, top: expected });
});

it("of a script, as `fanout run` says it at its end", { tags: ["slow"] }, async () => {
  await folder.write(
    "script.mjs",
    `export default ({ agent, parallel }) => parallel([1, 2, 3, 4].map((n) => () =>
      agent("x" + n, n % 2 === 0 ? { model: "sim/fail?status=400" } : {})));`,
  );
  const args = ["run", "script.mjs", "--budget", "1", "--model", "sim/echo", "--json"];
  const env = { FANOUT_URL: world.gateway.url, ADMIN_KEY: world.gateway.adminKey };
  const { stdout } = await folder.fanout(args, { env });
  const said = z.object({ run: z.string(), agents: z.int(), failed: z.int() }).parse(JSON.parse(stdout));
  const expected = { calls: 4, failed: 2 };
  expect({ calls: said.agents, failed: said.failed }).toEqual(expected);
  const { api, startPage, runPage, runs } = await everywhere(said.run, "script.mjs");
  expect({ api, startPage, runPage, runs }).toEqual({
    api: expected,
    startPage: expected,
    runPage: expected,
    runs: expected,
  });
});
