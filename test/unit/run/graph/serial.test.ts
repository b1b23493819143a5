import { describe, expect, it } from "vitest";
import { serialize, type SerialItem } from "../../../../src/run/graph/serial.ts";
import { GRAPH_TASKS_MAX } from "../../../../src/limits.ts";

const item = (name: string, more: Partial<SerialItem> = {}): SerialItem => ({
  name,
  files: [],
  writes: [],
  outputLocation: null,
  ...more,
});

/** Which item waits for which, by name. */
function edges(items: readonly SerialItem[], hasStrictTiers = false): string[] | null {
  const serialized = serialize(items, hasStrictTiers);
  if (!serialized.ok) throw new Error(serialized.message);
  const { graph } = serialized;
  if (graph === null) return null;
  return graph.tasks.flatMap(({ id, dependencies }) =>
    dependencies.map((other) => `${graph.tasks[other]?.id} → ${id}`),
  );
}

describe("calls that conflict", () => {
  it("wait each for the one before that names the same file, read or written, or the same output", () => {
    expect(
      edges([
        item("a", { files: ["x"] }),
        item("b", { files: ["y"] }),
        item("c", { writes: ["x"] }),
        item("d", { files: ["x", "y"] }),
        item("e", { outputLocation: "out" }),
        item("f", { outputLocation: "out" }),
      ]),
    ).toEqual(["a → c", "b → d", "c → d", "e → f"]);
  });

  it("are none if no name is shared; a file and an output of one name are different things", () => {
    expect(edges([item("a", { files: ["x", "x"], writes: ["x"] }), item("b", { outputLocation: "x" })])).toBeNull();
    expect(edges([])).toBeNull();
  });

  it("come in the order of strict tiers first, so that none waits for a later tier", () => {
    const items = [item("low", { files: ["x"] }), item("high", { files: ["x"], tier: 0 })];
    expect(edges(items)).toEqual(["low → high"]);
    expect(edges(items, true)).toEqual(["high → low"]);
  });

  it("start whatever the one before ended as", () => {
    const serialized = serialize([item("a", { files: ["x"] }), item("b", { files: ["x"] })], false);
    expect(serialized).toMatchObject({ graph: { ordersOnly: true, slots: 2, tasks: [{}, { runIf: "always" }] } });
  });

  it("can be as many as a graph has tasks, and no more", () => {
    const many = (count: number) => Array.from({ length: count }, (_, at) => item(`${at}`, { files: ["x"] }));
    expect(serialize(many(GRAPH_TASKS_MAX), false).ok).toBe(true);
    expect(serialize(many(GRAPH_TASKS_MAX + 1), false)).toMatchObject({
      ok: false,
      message: expect.stringContaining(`${GRAPH_TASKS_MAX}`),
    });
  });
});
