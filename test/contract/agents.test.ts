/** One prompt for several agents, or several times. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { AGENTS_MAX } from "../../src/limits.ts";
import { errorOf, groupOf, startWorld, type RunAccess, type World } from "./world.ts";

const asked: { model: unknown; messages: unknown }[] = [];
let world: World;
let run: RunAccess;
beforeAll(async () => {
  world = await startWorld(({ body }) => {
    asked.push({ model: body["model"], messages: body.messages });
    return { text: String(body["model"]) };
  });
  run = await world.openRun({ default_model: "up-1", budget: { usd: 5 }, max_parallel: 1 });
});
beforeEach(() => void asked.splice(0));
afterAll(() => world.stop());

const batch = (json: object) => run.send("/batch", { json });
const named = z.looseObject({ items: z.array(z.looseObject({ id: z.string().nullable() })) });

describe("a batch of one prompt", () => {
  it("sends it to each agent, a model or an object with settings over those of the batch", async () => {
    const agents = ["up-a", { id: "reviewer", model: "up-b", system: "Review." }, { id: "default" }];
    const answer = await batch({ prompt: "same", agents });
    expect(groupOf(answer).results).toEqual(["up-a", "up-b", "up-1"]);
    expect(named.parse(answer.json).items.map(({ id }) => id)).toEqual(["up-a", "reviewer", "default"]);
    const [first, second] = asked;
    expect(first?.messages).toEqual([{ role: "user", content: "same" }]);
    expect(second?.messages).toEqual([
      { role: "system", content: "Review." },
      { role: "user", content: "same" },
    ]);
  });

  it("sends it n times", async () => {
    const answer = await batch({ messages: [{ role: "user", content: "same" }], n: 4 });
    expect(groupOf(answer).results).toEqual(["up-1", "up-1", "up-1", "up-1"]);
    expect(asked).toHaveLength(4);
  });

  it("weighs the votes of agents by their ids", async () => {
    const aggregate = { strategy: "vote", rule: "weighted", weights: { "up-a": 3 } };
    const answer = await batch({ prompt: "same", agents: ["up-a", "up-b", "up-c"], aggregate });
    const { aggregation } = z.looseObject({ aggregation: z.looseObject({}) }).parse(answer.json);
    expect(aggregation).toMatchObject({ decided: true, winner: "up-a" });
  });

  it.each([
    ["without agents or n", { prompt: "a" }, 400, "prompt"],
    ["with agents and n", { prompt: "a", n: 2, agents: ["up-a"] }, 400, "prompt"],
    ["beside prompts", { prompt: "a", n: 2, prompts: ["b"] }, 400, "prompts"],
    ["with n alone", { prompts: ["a"], n: 2 }, 400, "n"],
    ["n = 0 times", { prompt: "a", n: 0 }, 400, "n"],
    [
      "for more agents than a list may have",
      { prompt: "a", agents: Array(AGENTS_MAX + 1).fill("up-a") },
      400,
      "agents",
    ],
    ["for an agent with an unknown field", { prompt: "a", agents: [{ nmae: "x" }] }, 400, "agents[0].nmae"],
    ["that is too large so often", { prompt: "a".repeat(1_400_000), n: 50 }, 413, "prompt"],
  ])("is refused %s, and nothing is sent", async (_, json, status, param) => {
    const refused = await batch(json);
    expect([refused.status, errorOf(refused)?.["param"], asked]).toEqual([status, param, []]);
  });
});
