/** Where tool tasks go: a target of their own, also for attempts that an earlier instance started. */
import { expect, it } from "vitest";
import { RunTargets } from "../../../../durable-objects/run/targets.ts";
import { modelOfTool, TOOL_UPSTREAM } from "../../../../src/call.ts";
import type { RunSettings } from "../../../../src/objects/methods/runs.ts";

const tool = { name: "search", url: "https://tools.example/", description: null, idempotent: true, timeoutMs: 1_000 };
const settings = {
  models: [["only/*"]],
  defaultModel: null,
  unpriced: "refuse",
  tools: [tool],
} as unknown as RunSettings;
const targets = new RunTargets({ upstreams: [], routes: [], defaultModel: null }, settings);

it("are the run's tools, whatever models it may use, at no price", () => {
  expect(targets.resolve(modelOfTool("search"))).toMatchObject({
    upstream: TOOL_UPSTREAM,
    model: "search",
    tool: { idempotent: true },
    price: { inputPicoUsd: 0, outputPicoUsd: 0 },
  });
  expect(targets.resolve("search")).toMatchObject({ reason: expect.stringMatching(/^model_not_/) });
  expect(targets.resolve(modelOfTool("absent"))).toMatchObject({ reason: "not_found", hint: "this run has search" });
});

it("are known for an attempt that was in flight when the object restarted", () => {
  const lease = (model: string) =>
    ({ upstream: TOOL_UPSTREAM, model }) as unknown as Parameters<RunTargets["ofLease"]>[0];
  expect(targets.ofLease(lease("search"))).toMatchObject({ tool: { idempotent: true } });
  expect(targets.ofLease(lease("absent"))).toMatchObject({ attemptsMax: 0, upstream: TOOL_UPSTREAM });
});
