import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "../../../scripts/root.ts";

const PROGRAM = "../test/support/stripped-elsewhere.ts";

it("runs a program with its arguments in a process without the compiler of its types", () => {
  const args = [join(ROOT, "scripts/lean.mjs"), PROGRAM, "--port=1", "two"];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect([stdout, stderr]).toEqual([`${JSON.stringify({ args: ["--port=1", "two"], hasCompiler: false })}\n`, ""]);
});
