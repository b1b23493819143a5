/** Result files: what was measured, raw, with the machine it was measured on. */
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus } from "node:os";
import { join } from "node:path";
import { z } from "zod";

const FOLDER = join(import.meta.dirname, "results");

/** Writes `text` to a file in bench/results, `<time>-<name>`; returns its path. */
export function writeResult(name: string, text: string): string {
  mkdirSync(FOLDER, { recursive: true });
  const path = join(FOLDER, `${new Date().toISOString().replaceAll(/[:.]/g, "-")}-${name}`);
  writeFileSync(path, text);
  return path;
}

const workerdPackage = z.object({ version: z.string() });

/** What the figures depend on beside the code. */
export function machine(): Record<string, string | number> {
  const processors = cpus();
  const workerd = workerdPackage.parse(createRequire(import.meta.url)("workerd")).version;
  return { cpu: processors[0]?.model ?? "unknown", cores: processors.length, node: process.version, workerd };
}
