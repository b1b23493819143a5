/** VIEW_KEY: it reads figures on the listed routes, and no text that a client, a model or a provider wrote. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { endOf, openGroup } from "./following.ts";
import { errorOf, groupOf, startWorld, type Answer, type RunAccess, type World } from "./world.ts";

const VIEW_KEY = "the key of the viewers of these tests";
/** In every text of the run: prompts, answers, errors, events. */
const TEXT = "4711-is-the-text";
const ID = z.looseObject({ id: z.string() });

let world: World;
let run: RunAccess;
let batch = "";
let graph = "";

beforeAll(async () => {
  world = await startWorld(undefined, { VIEW_KEY, DEFAULT_MODEL: "sim/echo" });
  run = await world.openRun({ name: "seen", metadata: { team: "seen" } });
  await run.send("/runs", { json: { name: "child" } });
  const failing = `{{status/400}} ${TEXT}`;
  const items = [
    { id: `${TEXT} too`, prompt: TEXT, tier: "P2", step: 3, steps: 20 },
    { prompt: failing, model: "up/up-1", tier: "P0" },
  ];
  batch = groupOf(await run.send("/batch", { json: { items } })).id ?? "";
  graph = ID.parse((await run.send("/dag", { json: { tasks: [{ id: "one", prompt: TEXT }] } })).json).id;
  const event = { event_type: "seen_event", step: 3, output: TEXT, reasoning: TEXT, code: TEXT, data: { x: TEXT } };
  expect((await run.send("/log", { json: event })).status).toBe(201);
});
afterAll(() => world.stop());

const view = (path: string): Promise<Answer> =>
  world.send(path, { token: VIEW_KEY, headers: { "x-fanout-run": run.id } });

describe("the viewers' key", () => {
  it.each<[string, () => string, string]>([
    ["the metrics", () => "/metrics", "fanout_calls"],
    ["the overview", () => "/overview", '"spent_usd"'],
    ["the upstreams", () => "/upstreams", '"sim"'],
    ["the list of runs", () => "/runs", '"seen"'],
    ["a run", () => `/runs/${run.id}?subtree=1`, '"total_queries":3'],
    ["its child runs", () => `/runs/${run.id}/children`, '"child"'],
    ["its usage", () => `/runs/${run.id}/usage`, '"calls"'],
    ["its log", () => `/runs/${run.id}/log`, '"slot_completed"'],
    ["its trace", () => `/runs/${run.id}/trace.json`, "traceEvents"],
    ["its page", () => `/runs/${run.id}/page.html`, "saved-run"],
    ["a batch that has ended", () => `/groups/${batch}`, '"counts"'],
    ["a graph that has ended", () => `/groups/${graph}`, '"counts"'],
    ["the outline of a graph", () => `/dag/${graph}/outline`, '"one"'],
  ])("shows %s without a text of anybody", async (_, path, figure) => {
    const answer = await view(path());
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining(figure)]);
    expect(answer.text).not.toContain(TEXT);
  });

  it("leaves of the log its events, and of a client's own their names and places", async () => {
    const [own, seen] = [await run.send(`/runs/${run.id}/log`), await view(`/runs/${run.id}/log`)];
    const lines = (text: string) =>
      text
        .trim()
        .split("\n")
        .map((line) => z.looseObject({}).parse(JSON.parse(line)));
    const names = (text: string) => lines(text).map(({ seq, event_type }) => [seq, event_type]);
    expect(names(seen.text)).toEqual(names(own.text));
    expect(own.text).toContain(TEXT);
    const event = lines(seen.text).find(({ event_type }) => event_type === "seen_event");
    expect(Object.keys(event ?? {}).toSorted()).toEqual([
      "depth",
      "event_type",
      "parallel_group_id",
      "parent_run_id",
      "run_id",
      "seq",
      "step",
      "ts",
    ]);
  });

  it("leaves the step of a call in its events: it is a number", async () => {
    expect((await view(`/runs/${run.id}/log`)).text).toMatch(/"step":3,"event_type":"slot_completed",.*"steps":20,/);
  });

  it("follows the events of a run in the same form", async () => {
    const own = await world.openRun();
    await own.send("/log", { json: { event_type: "seen_event", output: TEXT } });
    await own.send(`/runs/${own.id}/close`, { method: "POST" });
    const answer = await view(`/runs/${own.id}/events`);
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining("event: seen_event")]);
    expect(answer.text).not.toContain(TEXT);
  });

  it("shows a batch that is still running", async () => {
    const { at } = await openGroup(run, { prompts: [`{{fault/hang}} ${TEXT}`], model: "up/up-1" });
    const answer = await view(at);
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('"status":"running"')]);
    expect(answer.text).not.toContain(TEXT);
    await run.send(at, { method: "DELETE" });
    await endOf(run, at);
  });

  it.each<[string, () => string]>([
    ["the results of a batch", () => `/groups/${batch}/results`],
    ["its report", () => `/groups/${batch}/report`],
    ["one of its calls", () => `/groups/${batch}/slots/0`],
    ["a graph's results", () => `/dag/${graph}`],
    ["the counters of a run, set back", () => `/runs/${run.id}/usage?reset=1`],
  ])("is refused %s, with what it may do", async (_, path) => {
    const answer = await view(path());
    expect([answer.status, errorOf(answer).code]).toEqual([403, "forbidden"]);
    expect(errorOf(answer).message).toContain("VIEW_KEY");
  });

  it("changes nothing", async () => {
    for (const [method, path] of [
      ["POST", "/runs"],
      ["DELETE", `/runs/${run.id}`],
      ["PATCH", `/runs/${run.id}`],
      ["POST", "/query"],
      ["POST", `/runs/${run.id}/log`],
    ] as const) {
      const answer = await world.send(path, { method, token: VIEW_KEY, json: {}, headers: { "x-fanout-run": run.id } });
      expect([method, path, answer.status]).toEqual([method, path, 403]);
    }
  });
});
