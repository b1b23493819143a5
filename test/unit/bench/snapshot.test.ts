import { expect, it } from "vitest";
import { growthLines, summed } from "../../../bench/soak/snapshot.ts";

const meta = {
  node_fields: ["type", "name", "self_size", "edge_count"],
  node_types: [["synthetic", "object", "string"], null] as [string[], unknown],
  edge_fields: ["type", "name_or_index", "to_node"],
  edge_types: [["property", "element", "weak"], null] as [string[], unknown],
};
const strings = ["", "Run", "texts", "a text"];

/** A run that holds so many texts in a list, and one that is held weakly. */
function heapOf(texts: number) {
  const rows = [[0, 0, 0, 2], [1, 1, 100, texts], ...Array.from({ length: texts }, () => [2, 3, 10, 0]), [2, 3, 7, 0]];
  const at = (row: number) => row * meta.node_fields.length;
  const edges = [
    [0, 2, at(1)],
    [2, 2, at(rows.length - 1)],
    ...Array.from({ length: texts }, (_, index) => [1, index, at(2 + index)]),
  ];
  return summed({ snapshot: { meta }, nodes: rows.flat(), edges: edges.flat(), strings });
}

it("sums up a heap by class, and by the shortest way to an object", () => {
  const { byClass, byHolder } = heapOf(3);
  expect([...byClass]).toEqual([
    ["(synthetic)", { bytes: 0, count: 1 }],
    ["object Run", { bytes: 100, count: 1 }],
    ["(string)", { bytes: 37, count: 4 }],
  ]);
  expect(byHolder.get("(synthetic).texts > object Run.[] > (string)")).toEqual({ bytes: 30, count: 3 });
  // Nobody else holds it: it is gone with the next collection.
  expect(byHolder.get("(string)")).toEqual({ bytes: 7, count: 1 });
});

it("lists what has grown, the most first, and nothing that has not", () => {
  expect(growthLines(heapOf(2), heapOf(5), 1).map((line) => line.trim())).toEqual([
    "grown by class:",
    "0.0 KB       3 × (string)",
    "grown by holder:",
    "0.0 KB       3 × (synthetic).texts > object Run.[] > (string)",
  ]);
  expect(growthLines(heapOf(2), heapOf(2), 5)).toEqual(["grown by class:", "grown by holder:"]);
});
