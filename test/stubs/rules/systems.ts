/** Answers that fit a schema, graphs and votes. */
import { expect, it } from "vitest";
import { keysOf, text, texts, type Script } from "../script.ts";

export function systems(script: Script): void {
  it("returns the value of an answer that fits a schema", async () => {
    const proxy = await script.proxyTo([]);
    expect(await script.drive(["json", '```json\n{"n": 41}\n```'], { FANOUT_URL: proxy.url })).toEqual([text("41")]);
    const [sent] = proxy.requests.map(({ body }) => JSON.parse(body) as unknown);
    const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
    expect(sent).toEqual({ prompt: '```json\n{"n": 41}\n```', schema });
  });

  it("reports an answer that does not fit its schema: alone by its code, in a batch in its slot", async () => {
    const failed = expect.objectContaining({
      kind: "failure",
      code: "schema_violation",
      status: 502,
      retryable: false,
    });
    expect(await script.drive(["json", '{"n": "x"}'])).toMatchObject([failed]);
    const [first, second, third] = texts(await script.drive(["batch-json", '{"n": 1}', '{"n": "x"}', '{"n": 3}']));
    expect([first, third]).toEqual(["1", "3"]);
    expect(second).toMatch(/^\[error\] ./);
  });

  it("runs a graph, and returns the outputs of its last tasks", async () => {
    const proxy = await script.proxyTo(["deafen"]);
    expect(await script.drive(["dag", "one 漢字"], { FANOUT_URL: proxy.url })).toEqual([text("one 漢字 and two")]);
    expect(new Set(keysOf(proxy)).size).toBe(1);
    expect(keysOf(proxy)).toHaveLength(2);
    expect(script.world.upstream.counters.requests).toBe(2);
  });

  it("takes a vote", async () => {
    expect(await script.drive(["vote", "3", "yes"])).toEqual([text("yes\u001f3")]);
    expect(script.world.upstream.counters.sends).toEqual(new Map([["yes", 3]]));
  });
}
