/**
 * Bundles the gateway once for all processes of a run of tests: each would take more than a second of processor time for it. Projects
 * whose tests start gateways name this file, and the first of them makes the bundle.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { bundleWorker } from "../../scripts/local/bundle.ts";
import { ROOT } from "../../scripts/root.ts";
import { BUNDLE_FILE, ENTRY_POINT } from "../support/shared-bundle.ts";

export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (process.env[BUNDLE_FILE] !== undefined) return undefined;
  const folder = await mkdtemp(join(tmpdir(), "fanout-bundle-"));
  const file = join(folder, "gateway.mjs");
  const bundle = async () => writeFile(file, (await bundleWorker(ENTRY_POINT, { root: ROOT })).code);
  await bundle();
  // Who watches has changed the source.
  project.onTestsRerun(bundle);
  process.env[BUNDLE_FILE] = file;
  return async () => {
    Reflect.deleteProperty(process.env, BUNDLE_FILE);
    await rm(folder, { recursive: true, force: true });
  };
}
