import { describe, expect, it } from "vitest";
import { CallPageBuilder, readFacts } from "../../../../../src/run/queue/call-page.ts";
import { callFactsOf } from "../../../../../src/providers/formats/request/call-facts.ts";

const chosen = { model: "up/m", priority: 2, timeoutMs: 9 } as const;
const required = { promptBytes: 10, messageCount: 1, mediaParts: 3, maxTokens: 5 };
const optional = {
  textTokensMax: 7,
  completions: 2,
  promptTokenIds: 4,
  unbounded: [{ field: "f", why: "w", spends: ["usd" as const] }],
  images: [{ width: 640, height: 480, detail: "low" as const, count: 2 }],
  fileParts: 1,
  tools: true,
  isBare: true,
  endpoint: "responses" as const,
  cacheTtl: "1h" as const,
  serviceTier: "flex",
};

describe("the facts of a request that was read", () => {
  it("are all kept, and read back from a page", () => {
    const facts = callFactsOf({ ...required, ...optional }, chosen);
    expect(facts).toEqual({ ...required, ...optional, ...chosen });
    const builder = new CallPageBuilder({});
    builder.add({ body: { raw: { endpoint: "chat", json: "{}" } }, facts });
    const page = builder.flush();
    expect(readFacts(page?.facts ?? "", builder.models)).toEqual([{ ...facts, modelIndex: 0 }]);
  });

  it("leave out defaults", () => {
    const nothing = {
      textTokensMax: null,
      completions: 1,
      promptTokenIds: 0,
      unbounded: [],
      images: [],
      fileParts: 0,
      tools: false,
      isBare: false,
      endpoint: "chat" as const,
      cacheTtl: null,
      serviceTier: null,
    };
    expect(callFactsOf({ ...required, ...nothing }, chosen)).toEqual({ ...required, ...chosen });
    expect(callFactsOf({ ...required, ...nothing, completions: 0 }, chosen)).toMatchObject({
      completions: 0,
    });
  });
});
