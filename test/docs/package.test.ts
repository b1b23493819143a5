/** What `npm pack` would publish: the command, and nothing of the workplace. */
import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { z } from "zod";
import { ROOT } from "./page.ts";

const packed = z
  .array(z.looseObject({ name: z.string(), files: z.array(z.looseObject({ path: z.string() })) }))
  .length(1);

it("packs the command, its stub, README and license, and nothing else", () => {
  const args = ["pack", "--dry-run", "--ignore-scripts", "--json"];
  const { stdout } = spawnSync("npm", args, { cwd: ROOT, encoding: "utf8" });
  const [content] = packed.parse(JSON.parse(stdout));
  expect(content?.name).toBe("fanout-gateway");
  const paths = content?.files.map(({ path }) => path) ?? [];
  for (const path of ["package.json", "README.md", "LICENSE", "bin/fanout.mjs", "stubs/script/fanout_script.mjs"]) {
    expect(paths).toContain(path);
  }
  const allowed =
    /^(?:package\.json|README\.md|LICENSE|bin\/.+\.mjs|bin\/tsconfig\.json|dist\/(?:watch|cassette-diff)\.mjs|stubs\/script\/.+)$/;
  expect(paths.filter((path) => !allowed.test(path))).toEqual([]);
});
