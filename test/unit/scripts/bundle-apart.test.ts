import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { bundledApart } from "../../../scripts/local/bundle-apart.ts";
import { bundleWorker } from "../../../scripts/local/bundle.ts";
import { ROOT } from "../../../scripts/root.ts";

describe("a bundle that another process makes", () => {
  it("is the bundle that this process would make", { tags: ["slow"] }, async () => {
    const [apart, own] = await Promise.all([
      bundledApart("src/index.ts", ROOT),
      bundleWorker("src/index.ts", { root: ROOT }),
    ]);
    expect(apart === own.code).toBe(true);
  });

  it("fails with the place of the fault in the source", async () => {
    const folder = mkdtempSync(join(tmpdir(), "fanout-bundle-"));
    try {
      const file = join(folder, "broken.ts");
      writeFileSync(file, "export default {;\n");
      await expect(bundledApart(file, ROOT)).rejects.toThrow(/broken\.ts:1:16/);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
