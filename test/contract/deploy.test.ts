/** `npm run deploy -- --dry-run`: all of a deployment but the upload, which `deploy-account.test.ts` tests. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "../../scripts/root.ts";

const SECRETS_FILE = join(ROOT, ".deploy.vars");

let home = "";
beforeAll(() => void (home = mkdtempSync(join(tmpdir(), "fanout-home-"))));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Without what a login would leave: no token in the environment, and a home with nothing in it. */
function deploy(...flags: string[]) {
  const env = { PATH: process.env["PATH"] ?? "", HOME: home, CI: "1", WRANGLER_LOG_PATH: home };
  return spawnSync(process.execPath, ["--", "scripts/deploy.ts", ...flags], { cwd: ROOT, env, encoding: "utf8" });
}

describe("npm run deploy", () => {
  it(
    "builds the Worker with all its objects, bucket and secrets within the size limit, without an account",
    { tags: ["slow"] },
    () => {
      const before = existsSync(SECRETS_FILE);
      const { status, stdout, stderr } = deploy("--dry-run");
      expect([status, stderr]).toEqual([0, expect.not.stringContaining("ERROR")]);
      for (const bound of [
        "RUN",
        "LANE",
        "DIRECTORY",
        "BATCH",
        "SHELF",
        "UPSTREAM",
        "GATES",
        "CASSETTE",
        "PROVIDER_BATCH",
        "FILES",
      ]) {
        expect(stdout).toContain(`env.${bound} (`);
      }
      expect(stdout).toContain("env.CF_VERSION_METADATA ");
      expect(stdout).toContain('env.ADMIN_KEY ("(hidden)")');
      expect(stdout).toContain("Nothing was uploaded.");
      expect(existsSync(SECRETS_FILE)).toBe(before);
      // Compressed, a Worker may have 3 MB on any plan.
      const gzipKib = Number(/gzip: ([\d.]+) KiB/.exec(stdout)?.[1]);
      expect(gzipKib).toBeGreaterThan(50);
      expect(gzipKib).toBeLessThan(3 * 1024);
    },
  );

  it(
    "builds for the free plan without a bucket, says its limits, and leaves no file behind",
    { tags: ["slow"] },
    () => {
      const { status, stdout } = deploy("--dry-run", "--free");
      expect(status).toBe(0);
      expect(stdout).toContain("env.RUN (");
      expect(stdout).not.toContain("env.FILES");
      expect(stdout).toContain("On Cloudflare's free plan:");
      expect(readdirSync(ROOT).filter((name) => name.startsWith("wrangler.deploy-"))).toEqual([]);
    },
  );

  it("refuses an unknown option", () => {
    const { status, stderr } = deploy("--force");
    expect([status, stderr]).toEqual([
      1,
      expect.stringMatching(/^Unknown option: --force\. npm run deploy accepts --dry-run, /),
    ]);
  });
});
