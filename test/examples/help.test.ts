/** `--help` of the programs in folders: what they do and how they are called, without a gateway. */
import { describe, expect, it } from "vitest";
import { hasPython } from "../support/python.ts";
import { exampleAt, startProgram } from "./program.ts";

describe.runIf(hasPython)("python examples/X --help", () => {
  it.each([
    ["compiler", "question"],
    ["coordinator", "--conflicts"],
    ["orchestrator", "--webhook PORT"],
    ["team", "--teams TEAMS"],
  ])("says what %s takes, and needs no token", async (name, argument) => {
    const { status, printed, complaint } = await startProgram("python3", [exampleAt(name), "--help"], {}).ended;
    expect([status, complaint]).toEqual([0, ""]);
    expect(printed).toMatch(new RegExp(`^usage: ${name} `));
    expect(printed).toContain(argument);
  });
});
