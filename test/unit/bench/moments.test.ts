import { expect, it } from "vitest";
import { momentsOf } from "../../../bench/cpu-profile.ts";

const frameOf = (functionName: string) => ({ functionName, url: "", lineNumber: 0, columnNumber: 0 });
const nodeOf = (id: number, name: string, children: number[] = []) => ({
  ...{ id, callFrame: frameOf(name), children, positionTicks: [] },
});
const bundle = { code: "", map: JSON.stringify({ version: 3, sources: [], names: [], mappings: "" }) };

it("tells what the isolate was in from one sample to the next, the caller before the callee", () => {
  const profile = {
    nodes: [nodeOf(1, "(root)", [2, 3]), nodeOf(2, "outer", [4]), nodeOf(3, "(idle)"), nodeOf(4, "inner")],
    samples: [4, 3, 2],
    timeDeltas: [10, 20, 5],
    ...{ startTime: 1_000, endTime: 1_040 },
  };
  expect(momentsOf(profile, bundle)).toEqual([
    { fromUs: 1_000, toUs: 1_010, stack: ["outer [native]", "inner [native]"] },
    { fromUs: 1_010, toUs: 1_030, stack: ["(idle)"] },
    { fromUs: 1_030, toUs: 1_035, stack: ["outer [native]"] },
  ]);
});
