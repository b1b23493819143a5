/**
 * `npm run screenshot`: takes the picture of the run page in the documentation, from a run with failures, retries and a child
 * run, in Chromium. `FANOUT_CHROMIUM` names the browser; default: Debian's.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { startLocalGateway } from "../local/gateway.ts";
import { localPlan } from "../local/plan.ts";
import { openRun } from "../open-run.ts";
import { ROOT } from "../root.ts";

const PICTURE = join(ROOT, "docs", "images", "run-page.png");
/** Calls until the picture is taken: enough that the page shows progress, a rate and time left. */
const SHOWN_AFTER_MS = 5_000;
const ITEMS = 600;

const folder = mkdtempSync(join(tmpdir(), "fanout-screenshot-"));
const adminKey = randomBytes(24).toString("base64url");
const plan = localPlan([]);
const gateway = await startLocalGateway(
  { ...plan, vars: { ...plan.vars, ADMIN_KEY: adminKey } },
  { host: "127.0.0.1", port: 0, dataDir: join(folder, "state"), log: () => undefined },
);
try {
  const { url } = gateway;
  const asked = { name: "summarize the archive", budget: { usd: 0.5 }, max_parallel: 32 };
  const { id, token } = await openRun({ url, adminKey, run: asked });
  await post("/batch", token, { items: Array.from({ length: ITEMS }, (_, index) => item(index)) });
  await photograph(`${url}/ui/runs/${id}#token=${token}`);
} finally {
  await gateway.stop();
  rmSync(folder, { recursive: true, force: true });
}

function item(index: number): { prompt: string; model: string } {
  const latencyMs = 150 + ((index * 397) % 700);
  const fails = index % 97 === 7 ? "sim/fail?status=503" : index % 53 === 11 ? "sim/fail?status=400" : null;
  return { prompt: `Summarize page ${index}.`, model: fails ?? `sim/slow?ms=${latencyMs}` };
}

async function post(path: string, token: string, body: unknown): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", prefer: "respond-async" };
  const reply = await fetch(`${gateway.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  if (!reply.ok) throw new Error(`${path} answered ${reply.status}: ${await reply.text()}`);
}

async function photograph(address: string): Promise<void> {
  const executablePath = process.env["FANOUT_CHROMIUM"] ?? "/usr/bin/chromium";
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-background-networking"] });
  try {
    const page = await browser.newPage({ viewport: { width: 1_280, height: 900 } });
    await page.goto(address);
    await page.waitForTimeout(SHOWN_AFTER_MS);
    await page.screenshot({ path: PICTURE });
  } finally {
    await browser.close();
  }
}
