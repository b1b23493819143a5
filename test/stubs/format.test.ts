/** Stubs and drivers are formatted by the formatter of their language. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { FORMATTERS } from "./formatters.ts";
import { missingOf, ROOT } from "./language.ts";

describe.each(FORMATTERS)("$name", (formatter) => {
  const missing = missingOf(formatter);

  it.for(formatter.files)("leaves %s as it is", (file, context) => {
    if (missing !== null) context.skip(`this machine has no ${missing}`);
    const source = readFileSync(join(ROOT, file), "utf8");
    const [command, ...args] = formatter.run;
    const { status, stdout, stderr } = spawnSync(command, args, { input: source, encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toBe(source);
  });
});
