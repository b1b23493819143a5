/** examples/coordinator/edits.py alone: what conflicts is never applied, and what is applied is exactly the edit. */
import { describe, expect, it } from "vitest";
import { hasPython } from "../support/python.ts";
import { exampleAt, startProgram } from "./program.ts";

describe.runIf(hasPython)("edits.py", () => {
  it.each([1, 1_000_001])(
    "applies of 200 random proposals what touches no other edit, and writes that exactly (seed %i)",
    async (seed) => {
      const args = ["test/examples/programs/random_proposals.py", exampleAt("coordinator"), String(seed)];
      const { status, printed, complaint } = await startProgram("python3", args, {}).ended;
      expect([status, complaint]).toEqual([0, ""]);
      expect(printed).toMatch(/^200 proposals, \d{3} edits, \d{3} applied, none that conflicts\n$/);
    },
  );
});
