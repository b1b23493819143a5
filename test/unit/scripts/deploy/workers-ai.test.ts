/** What of Workers AI a deployment has: its binding, and the upstream that answers over it. */
import { describe, expect, it } from "vitest";
import type { RemoteBinding, RemoteWorker } from "../../../../scripts/deploy/account.ts";
import { workersAiOf, WORKERS_AI_MODEL } from "../../../../scripts/deploy/workers-ai.ts";
import { CONFIG_PARTS_MAX } from "../../../../src/limits.ts";
import { parseConfig } from "../../../../src/env.ts";

const AI: RemoteBinding = { name: "AI", type: "ai" };
const OVER_AI = '{"cf":{"kind":"workers-ai"}}';
const SIMULATED = '{"sim":{"kind":"simulated"}}';

type Over = {
  asks?: boolean;
  drop?: string[];
  vars?: Record<string, unknown>;
  local?: Record<string, string>;
  worker?: Partial<RemoteWorker>;
};

function decided({ asks = false, drop = [], vars = {}, local = {}, worker }: Over) {
  return workersAiOf({
    options: { usesWorkersAi: asks, drop },
    config: { vars },
    local,
    secretsFile: ".deploy.vars",
    worker: worker === undefined ? null : { secrets: [], bindings: [], ...worker },
  });
}

describe("a deployment binds Workers AI", () => {
  it("if it is asked for, if an upstream answers over it, or if the Worker has it already", () => {
    expect(decided({})).toMatchObject({ binds: false, variables: {} });
    expect(decided({ asks: true })).toMatchObject({ binds: true });
    expect(decided({ local: { UPSTREAMS: OVER_AI } })).toMatchObject({ binds: true, variables: {} });
    expect(decided({ local: { UPSTREAMS_3: OVER_AI } })).toMatchObject({ binds: true });
    expect(decided({ vars: { UPSTREAMS: JSON.parse(OVER_AI) } })).toMatchObject({ binds: true });
    expect(decided({ worker: { bindings: [AI] } })).toMatchObject({ binds: true, variables: {}, notes: [] });
  });

  it("no more once it is given up, or if AI is another binding of the Worker", () => {
    expect(decided({ worker: { bindings: [AI] }, drop: ["AI"] })).toMatchObject({ binds: false });
    expect(decided({ worker: { bindings: [{ name: "AI", type: "service" }] } })).toMatchObject({ binds: false });
    expect(decided({ local: { UPSTREAMS: "{" } })).toMatchObject({ binds: false });
  });
});

describe("the upstream that --workers-ai adds", () => {
  it("is the only one where there is none, and then the default", () => {
    const { variables = {} } = { variables: undefined, ...decided({ asks: true }) };
    expect(Object.keys(variables)).toEqual(["UPSTREAMS", "DEFAULT_MODEL"]);
    expect(parseConfig(variables)).toMatchObject({
      ok: true,
      config: { defaultModel: WORKERS_AI_MODEL, upstreams: [{ name: "workers-ai", kind: "workers-ai" }] },
    });
  });

  it("replaces no default model", () => {
    for (const over of [{ local: { DEFAULT_MODEL: "a/b" } }, { worker: { secrets: ["DEFAULT_MODEL"] } }]) {
      expect(decided({ asks: true, ...over })).toMatchObject({ variables: { UPSTREAMS: expect.any(String) } });
      expect(decided({ asks: true, ...over })).not.toHaveProperty("variables.DEFAULT_MODEL");
    }
  });

  it("is a part of its own beside others", () => {
    const local = { UPSTREAMS: SIMULATED, UPSTREAMS_1: '{"b":{"kind":"simulated"}}' };
    const found = decided({ asks: true, local });
    expect(found).toMatchObject({ binds: true, variables: { UPSTREAMS_2: '{"workers-ai":{"kind":"workers-ai"}}' } });
    expect(parseConfig({ ...local, ...("variables" in found ? found.variables : {}) })).toMatchObject({ ok: true });
  });

  it("is not added where one answers over the binding, or where only the Worker knows its upstreams", () => {
    expect(decided({ asks: true, local: { UPSTREAMS: OVER_AI } })).toMatchObject({ binds: true, variables: {} });
    const unknown = decided({ asks: true, worker: { secrets: ["UPSTREAMS"] } });
    expect(unknown).toMatchObject({ binds: true, variables: {}, notes: [expect.stringContaining("stay as they are")] });
  });

  it("is refused where its name is taken, or no part is free", () => {
    const taken = '{"workers-ai":{"kind":"openai","base_url":"https://api.cloudflare.com/client/v4/accounts/a/ai/v1"}}';
    expect(decided({ asks: true, local: { UPSTREAMS: taken } })).toMatchObject({
      ok: false,
      message: expect.stringContaining("has another of that name"),
    });
    const parts = Array.from({ length: CONFIG_PARTS_MAX }, (_, at) => [`UPSTREAMS_${at + 1}`, `{"u${at}":{}}`]);
    expect(decided({ asks: true, local: Object.fromEntries(parts) })).toMatchObject({ ok: false });
  });
});
