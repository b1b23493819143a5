/** Result files: what was measured, raw, with the machine it was measured on. */
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { LITELLM_VERSION } from "./peers/environment.ts";

const FOLDER = join(import.meta.dirname, "results");

/** Writes `text` to a file in bench/results, `<time>-<name>`; returns its path. */
export function writeResult(name: string, text: string): string {
  mkdirSync(FOLDER, { recursive: true });
  const path = join(FOLDER, `${new Date().toISOString().replaceAll(/[:.]/g, "-")}-${name}`);
  writeFileSync(path, text);
  return path;
}

const packageJson = z.object({ version: z.string() });
const peersJson = z.object({ dependencies: z.object({ "@portkey-ai/gateway": z.string() }) });

/** What the figures depend on beside the code. */
export function machine(): Record<string, string | number> {
  const processors = cpus();
  const workerd = packageJson.parse(createRequire(import.meta.url)("workerd")).version;
  return { cpu: processors[0]?.model ?? "unknown", cores: processors.length, node: process.version, workerd };
}

/** Versions of what takes part. LiteLLM only does with peers. */
export function versions(hasPeers: boolean): Record<string, string> {
  const require = createRequire(import.meta.url);
  const versionIn = (path: string): string => packageJson.parse(require(path)).version;
  return {
    fanout: versionIn("../package.json"),
    workerd: packageJson.parse(require("workerd")).version,
    Node: process.version.slice(1),
    Portkey: peersJson.parse(require("./peers/package.json")).dependencies["@portkey-ai/gateway"],
    ...(hasPeers ? { LiteLLM: LITELLM_VERSION } : {}),
  };
}
