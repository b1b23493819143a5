/**
 * The Worker's bundle, local and deployed: V8 needs twice the memory for a module with a character outside Latin-1, and every
 * isolate parses all of it before its first request.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import * as z from "zod";
import { describe, expect, it } from "vitest";
import { bundleWorker } from "../../../scripts/local/bundle.ts";
import { textFiles } from "../../../scripts/local/text-files.ts";
import { ROOT } from "../../../scripts/root.ts";

const ENTRY_POINT = "src/index.ts";

/**
 * Most schemas that an isolate builds before its first request: small parts that several schemas share, 329, and room for some more. Each
 * costs 15 µs and more than a kilobyte. The configuration, the bodies and the replies have 3,600 besides, and the SDK behind `/mcp` 2,900.
 */
const SCHEMAS_AT_START_MAX = 450;

const counts = z.object({ schemas: z.int(), documents: z.int() });
const evaluation = z.object({ atStart: counts, atDocument: counts.extend({ status: z.int() }) });

/** What evaluating a bundle has built, and its first answer of the OpenAPI document, in a process of its own. */
async function evaluated(code: string): Promise<z.infer<typeof evaluation>> {
  const folder = await mkdtemp(join(tmpdir(), "fanout-evaluated-"));
  try {
    const file = join(folder, "worker.mjs");
    await writeFile(file, code);
    const program = join(ROOT, "test/support/evaluated-worker.ts");
    const { stdout } = await promisify(execFile)(process.execPath, [program, file]);
    return evaluation.parse(JSON.parse(stdout));
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** What surrounds each character above U+00FF. */
function wideIn(code: string): string[] {
  return [...code.matchAll(/.{0,40}[\u0100-\uffff].{0,20}/g)].map(([found]) => found);
}

describe("the bundle of the Worker", () => {
  it("has no character above U+00FF where it runs locally", { tags: ["slow"] }, async () => {
    const { code } = await bundleWorker(ENTRY_POINT, { root: ROOT });
    expect(code).toContain("RunObject");
    expect(wideIn(code)).toEqual([]);
  });

  it(
    "has none as it is deployed: no regular expression of the source is written with one",
    { tags: ["slow"] },
    async () => {
      // Minified, as wrangler.toml says: the comments are gone, and esbuild has escaped the texts.
      const { outputFiles } = await build({
        absWorkingDir: ROOT,
        entryPoints: [ENTRY_POINT],
        bundle: true,
        write: false,
        minify: true,
        format: "esm",
        target: "es2024",
        conditions: ["workerd", "worker", "browser"],
        external: ["cloudflare:*", "node:*"],
        plugins: [textFiles],
        logLevel: "silent",
      });
      const code = outputFiles[0]?.text ?? "";
      expect(code).toContain("RunObject");
      expect(wideIn(code)).toEqual([]);
    },
  );

  it("has only the part of zod that schemas use: no translations of its messages", { tags: ["slow"] }, async () => {
    const { map } = await bundleWorker(ENTRY_POINT, { root: ROOT, sourceMap: true });
    const { sources } = z.object({ sources: z.array(z.string()) }).parse(JSON.parse(map));
    const ofZod = sources.filter((source) => source.includes("node_modules/zod/"));
    expect(ofZod).not.toEqual([]);
    // zod's own messages are English.
    expect(ofZod.filter((source) => /\/(locales\/(?!en\.|index\.)|from-json-schema)/.test(source))).toEqual([]);
  });

  it(
    "builds few schemas at its start, and those of bodies and replies with the OpenAPI document",
    { tags: ["slow"] },
    async () => {
      const { code } = await bundleWorker(ENTRY_POINT, { root: ROOT });
      const { atStart, atDocument } = await evaluated(code);
      expect(atStart.schemas).toBeGreaterThan(0);
      expect(atStart.schemas).toBeLessThanOrEqual(SCHEMAS_AT_START_MAX);
      expect(atDocument.schemas).toBeGreaterThan(atStart.schemas);
      expect([atStart.documents, atDocument.documents, atDocument.status]).toEqual([0, 1, 200]);
    },
  );

  it("fails with the place of the fault in the source", async () => {
    const folder = await mkdtemp(join(tmpdir(), "fanout-bundle-"));
    try {
      const file = join(folder, "broken.ts");
      await writeFile(file, "export default {;\n");
      await expect(bundleWorker(file, { root: ROOT })).rejects.toThrow(/broken\.ts:1:16/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
