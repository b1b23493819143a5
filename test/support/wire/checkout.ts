/** The gateway of another commit, bundled from git with the packages that are installed. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleWorker } from "../../../scripts/local/bundle.ts";
import type { Version } from "../gateway.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const ARCHIVE_BYTES_MAX = 256 * 1024 * 1024;
const WIRE = "test/support/wire";

/** The id of a commit that `name` names, abbreviated. Throws if this clone does not have it. */
export function commitOf(name: string): string {
  return execFileSync("git", ["rev-parse", "--short=12", "--verify", `${name}^{commit}`], {
    cwd: ROOT,
    encoding: "utf8",
  }).trim();
}

/** Bundles the source of `commit`; `isRecorded`: with the recorder of this checkout around it. */
export async function versionOf(commit: string, { isRecorded }: { isRecorded: boolean }): Promise<Version> {
  const folder = mkdtempSync(join(tmpdir(), "fanout-version-"));
  try {
    const args = ["archive", commit, "src", "durable-objects", "stubs", "ui", "wrangler.toml"];
    const archive = execFileSync("git", args, { cwd: ROOT, maxBuffer: ARCHIVE_BYTES_MAX });
    execFileSync("tar", ["-x", "-C", folder], { input: archive });
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    cpSync(join(ROOT, WIRE), join(folder, WIRE), { recursive: true });
    const entryPoint = isRecorded ? `${WIRE}/recorder-worker.ts` : "src/index.ts";
    const { code } = await bundleWorker(entryPoint, { root: folder });
    return { script: code, wranglerToml: readFileSync(join(folder, "wrangler.toml"), "utf8") };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
