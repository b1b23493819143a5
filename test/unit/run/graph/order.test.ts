import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { linksOf, neighboursOf, orderOf } from "../../../../src/run/graph/order.ts";

const edgesOf = (...dependencies: number[][]) => dependencies.map((list) => ({ dependencies: list }));

describe("the order of tasks", () => {
  it("has dependencies first, and else the order of the list", () => {
    const result = orderOf(linksOf(edgesOf([2], [], [1], [])));
    expect(result.ok && [...result.order]).toEqual([1, 3, 2, 0]);
  });

  it("counts an alternative after the task that it replaces, and before those that wait for that task", () => {
    const links = linksOf([
      { dependencies: [], alternatives: [1, 2] },
      { dependencies: [], alternativeOf: 0 },
      { dependencies: [], alternativeOf: 0 },
      { dependencies: [0] },
    ]);
    expect([...neighboursOf(links.predecessors, 2)]).toEqual([0, 1]);
    expect([...neighboursOf(links.predecessors, 3)]).toEqual([0, 1, 2]);
    const result = orderOf(links);
    expect(result.ok && [...result.order]).toEqual([0, 1, 2, 3]);
  });

  it("finds a cycle that others wait for, without those others", () => {
    expect(orderOf(linksOf(edgesOf([1], [2], [3], [2])))).toEqual({ ok: false, cycle: [2, 3, 2] });
  });

  it("needs no stack: a chain and a ring of 100,000", () => {
    const chain = Array.from({ length: 100_000 }, (_, at) => ({ dependencies: at === 0 ? [] : [at - 1] }));
    expect(orderOf(linksOf(chain)).ok).toBe(true);
    const ring = chain.map((task, at) => (at === 0 ? { dependencies: [99_999] } : task));
    const result = orderOf(linksOf(ring));
    expect(!result.ok && result.cycle.length).toBe(100_001);
  });

  it("equals a naive reference on random graphs: ordered if and only if there is no cycle, which is a true one", () => {
    const graphs = fc
      .integer({ min: 1, max: 12 })
      .chain((count) =>
        fc.array(fc.uniqueArray(fc.nat(count - 1), { maxLength: 3 }), { minLength: count, maxLength: count }),
      );
    fc.assert(
      fc.property(graphs, (dependencies) => {
        const result = orderOf(linksOf(edgesOf(...dependencies)));
        expect(result.ok).toBe(isAcyclic(dependencies));
        if (result.ok) {
          const placeOf = new Map([...result.order].map((task, place) => [task, place]));
          expect(placeOf.size).toBe(dependencies.length);
          dependencies.forEach((list, task) => {
            for (const other of list) expect(placeOf.get(other)).toBeLessThan(placeOf.get(task) ?? -1);
          });
        } else {
          const { cycle } = result;
          expect(cycle[0]).toBe(cycle.at(-1));
          expect(new Set(cycle).size).toBe(cycle.length - 1);
          cycle.slice(1).forEach((task, at) => expect(dependencies[cycle[at] ?? -1]).toContain(task));
        }
      }),
      { numRuns: 500 },
    );
  });
});

/** Removes tasks whose dependencies have all been removed, until none is left or none can be removed. */
function isAcyclic(dependencies: readonly (readonly number[])[]): boolean {
  const left = new Set(dependencies.keys());
  for (let removed = true; removed;) {
    removed = false;
    for (const task of left) {
      if (dependencies[task]?.some((other) => left.has(other))) continue;
      left.delete(task);
      removed = true;
    }
  }
  return left.size === 0;
}
