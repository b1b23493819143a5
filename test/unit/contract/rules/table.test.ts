/** What requests ask their groups for: the same fields mean the same for a batch and a graph. */
import { describe, expect, it } from "vitest";
import { parseBatch } from "../../../../src/contract/batch.ts";
import { parseDag } from "../../../../src/contract/graph/dag.ts";

/** What a batch and a graph with these fields ask for, or the field that is wrong. */
function asked(fields: object): unknown[] {
  const batch = parseBatch({ prompts: ["one", "two"], ...fields });
  const graph = parseDag({ tasks: [{ id: "a", prompt: "one" }], ...fields });
  return [batch, graph].map((read) => {
    if (read.ok) return read.value.rules;
    return "param" in read.reason ? read.reason.param : read.reason;
  });
}

describe("the rules of a request", () => {
  it("are none that it does not name", () => {
    expect(asked({})).toEqual([{}, {}]);
  });

  it("are named as the run knows them, one beside another", () => {
    const rules = { stopWhen: { kind: "n_success", n: 1, shadow: false }, atLeast: 0.5 };
    expect(asked({ stop_when: { n_success: 1 }, at_least: 0.5 })).toEqual([rules, rules]);
  });

  it("have a judge apart from the early stops that need none", () => {
    const judge = { kind: "judge", prompt: "?", model: null, maxTokens: null, every: 1, shadow: true };
    const [batch, graph] = asked({ stop_when: { judge: { prompt: "?" }, shadow: true } });
    expect(batch).toMatchObject({ judgeWhen: judge });
    expect(graph).toEqual(batch);
    expect(batch).not.toHaveProperty("stopWhen");
  });

  it("are refused by the path of what is wrong", () => {
    expect(asked({ stop_when: {} })).toEqual(["stop_when", "stop_when"]);
    expect(asked({ stop_when: { n_success: 1, flags: "i" } })).toEqual(["stop_when.flags", "stop_when.flags"]);
    expect(asked({ at_least: 0 })).toEqual(["at_least", "at_least"]);
  });
});
