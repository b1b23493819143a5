/** `npm run token` as a person meets it: the line that it prints opens a small run to a shell, or it says why not. */
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startGateway, type Gateway } from "../support/gateway.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

let gateway: Gateway;
beforeAll(async () => void (gateway = await startGateway()));
afterAll(() => gateway.stop());

/** Types a script into a shell in the checkout. `$TOKEN_COMMAND` is what `npm run -s token --` runs. */
async function type(script: string, env: Record<string, string> = {}) {
  const shell = spawn("sh", ["-c", script], {
    cwd: ROOT,
    env: {
      PATH: process.env["PATH"] ?? "",
      TOKEN_COMMAND: `${process.execPath} -- scripts/token.ts`,
      ADMIN_KEY: gateway.adminKey,
      FANOUT_URL: gateway.url,
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const status = new Promise<number | null>((resolve) => shell.once("close", resolve));
  const [printed, complaint] = await Promise.all([text(shell.stdout), text(shell.stderr)]);
  return { status: await status, printed, complaint };
}

describe("npm run token", () => {
  it("sets a shell's FANOUT_URL and FANOUT_TOKEN to a fresh run of ten cents", async () => {
    const curl = `curl -s "$FANOUT_URL/run" -H "authorization: Bearer $FANOUT_TOKEN"`;
    const { printed, complaint } = await type(`eval "$($TOKEN_COMMAND)"; ${curl}`);
    expect(complaint).toBe("");
    expect(JSON.parse(printed)).toMatchObject({ object: "run", budget: { usd: { limit: 0.1, spent: 0 } } });
  });

  it("opens the run that its flags describe", async () => {
    const curl = `curl -s "$FANOUT_URL/run" -H "authorization: Bearer $FANOUT_TOKEN"`;
    const flags = "--usd 0.002 --calls 7 --parallel 3 --name trial";
    const { printed } = await type(`eval "$($TOKEN_COMMAND ${flags})"; ${curl}`);
    const budget = { usd: { limit: 0.002 }, calls: { limit: 7 } };
    expect(JSON.parse(printed)).toMatchObject({ name: "trial", max_parallel: 3, budget });
  });

  it.each([
    ["a wrong key", { ADMIN_KEY: "wrong" }, /^POST \/runs returned 401: /],
    [
      "no gateway",
      { FANOUT_URL: "http://127.0.0.1:9" },
      /^No gateway responds at http:\/\/127\.0\.0\.1:9: .* Start the gateway with npm start/,
    ],
  ])("prints nothing for eval to run and says why, with %s", async (_, env, message) => {
    const { status, printed, complaint } = await type("$TOKEN_COMMAND", env);
    expect([status, printed]).toEqual([1, ""]);
    expect(complaint).toMatch(message);
  });

  it("prints the gateway's error for a run that it refuses", async () => {
    const { status, complaint } = await type("$TOKEN_COMMAND --parallel 4097");
    expect(status).toBe(1);
    expect(complaint).toMatch(/^POST \/runs returned 400: .*max_parallel/);
  });
});
