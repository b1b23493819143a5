/** `npm run deploy -- --dry-run`: all of a deployment but the upload. Its steps are tested in `test/unit/scripts/deploy`. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "../../scripts/wrangler.ts";

const SECRETS_FILE = join(ROOT, ".deploy.vars");

/** Without what a login would leave: neither a token nor a home. */
function deploy(...flags: string[]) {
  const env = { PATH: process.env["PATH"] ?? "", HOME: "/nonexistent", CI: "1", WRANGLER_LOG_PATH: "/dev/null" };
  return spawnSync(process.execPath, ["--", "scripts/deploy.ts", ...flags], { cwd: ROOT, env, encoding: "utf8" });
}

describe("npm run deploy", () => {
  it("builds the Worker with all its objects, its bucket and its secrets, without an account", () => {
    const before = existsSync(SECRETS_FILE);
    const { status, stdout, stderr } = deploy("--dry-run");
    expect([status, stderr]).toEqual([0, expect.not.stringContaining("ERROR")]);
    for (const bound of ["RUN", "LANE", "DIRECTORY", "BATCH", "SHELF", "FILES", "UPSTREAMS"]) {
      expect(stdout).toContain(`env.${bound} (`);
    }
    expect(stdout).toContain('env.ADMIN_KEY ("(hidden)")');
    expect(stdout).toContain("Nothing was uploaded.");
    expect(existsSync(SECRETS_FILE)).toBe(before);
  });

  it("stays below the 3 MB, compressed, that a Worker may have on any plan", () => {
    const gzipKib = Number(/gzip: ([\d.]+) KiB/.exec(deploy("--dry-run").stdout)?.[1]);
    expect(gzipKib).toBeGreaterThan(50);
    expect(gzipKib).toBeLessThan(3 * 1024);
  });

  it("refuses a flag that it does not know", () => {
    const { status, stderr } = deploy("--force");
    expect([status, stderr]).toEqual([1, "npm run deploy knows --dry-run only, not --force.\n"]);
  });
});
