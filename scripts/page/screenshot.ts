/**
 * `npm run screenshot`: takes the pictures of the pages in the documentation, in Chromium: the start page and the page of a run with
 * failures, retries and child runs. `FANOUT_CHROMIUM` names the browser; default: Debian's.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { chromium, type Browser } from "playwright-core";
import { startLocalGateway } from "../local/gateway.ts";
import { openRun } from "../open-run.ts";
import { ROOT } from "../root.ts";

const PICTURES = join(ROOT, "docs", "images");
/** Until the pictures are taken: enough that the pages show progress, a rate, a forecast and time left. */
const WORK_MS = 6_000;
const ITEMS = 600;
const SIZE = { width: 1_200, height: 820 };

const folder = mkdtempSync(join(tmpdir(), "fanout-screenshot-"));
const adminKey = randomBytes(24).toString("base64url");
/** A provider that refuses its key: the start page says so. */
const refusing = createServer((_, reply) => {
  reply.writeHead(401, { "content-type": "application/json" });
  reply.end(JSON.stringify({ error: { message: "Incorrect API key provided", code: "invalid_api_key" } }));
});
await new Promise<void>((resolve) => refusing.listen(0, "127.0.0.1", resolve));
const address = refusing.address();
const port = typeof address === "object" && address !== null ? address.port : 0;
const UPSTREAMS = {
  small: { kind: "simulated", prices: { "*": { input: 2, output: 8 } } },
  large: { kind: "simulated", prices: { "*": { input: 10, output: 40 } } },
  other: {
    ...{ kind: "openai", base_url: `http://127.0.0.1:${port}/v1`, api_key: "secret:OTHER_KEY", models: ["other-*"] },
    prices: { "*": { input: 1, output: 2 } },
  },
};
const vars = { ADMIN_KEY: adminKey, UPSTREAMS, OTHER_KEY: adminKey, DEFAULT_MODEL: "small/echo" };
const gateway = await startLocalGateway(
  { vars: { ...vars, UPSTREAMS: JSON.stringify(UPSTREAMS) } },
  { host: "127.0.0.1", port: 0, dataDir: join(folder, "state"), log: () => undefined },
);
try {
  const shown = await work();
  await sleep(WORK_MS);
  const executablePath = process.env["FANOUT_CHROMIUM"] ?? "/usr/bin/chromium";
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-background-networking"] });
  try {
    await photograph(browser, `${gateway.url}/ui/runs/${shown.id}#token=${shown.token}`, "run-page.png");
    await photograph(browser, `${gateway.url}/ui#token=${adminKey}`, "start-page.png");
  } finally {
    await browser.close();
  }
} finally {
  await gateway.stop();
  refusing.close();
  rmSync(folder, { recursive: true, force: true });
}

/** Runs of several kinds; returns the one whose page is shown. */
async function work(): Promise<{ id: string; token: string }> {
  const { url } = gateway;
  const open = (name: string, usd: number) =>
    openRun({ url, adminKey, run: { name, budget: { usd }, max_parallel: 32 } });
  for (const [name, prompts] of [
    ["label tickets", 40],
    ["extract invoices", 25],
    ["nightly eval", 60],
    ["label tickets", 30],
  ] as const) {
    const run = await open(name, 0.2);
    await post("/batch", run.token, {
      prompts: Array.from({ length: prompts }, (_, at) => `Which kind is ticket ${at}?`),
    });
  }
  const book = await open("read a long book", 0.4);
  for (const name of ["chapter 1", "chapter 2", "chapter 3"]) {
    const chapter = await openChild(book.token, name);
    await post("/batch", chapter, {
      prompts: ["Who speaks?", "Where is it?", "What happens?"],
      model: "large/slow?ms=900",
    });
  }
  const refused = await open("with another key", 0.1);
  await post("/batch", refused.token, { prompts: ["a", "b"], model: "other/other-1" });
  const shown = await open("summarize the archive", 0.5);
  await post("/batch", shown.token, {
    items: Array.from({ length: ITEMS }, (_, index) => item(index)),
    max_tokens: 60,
  });
  return shown;
}

function item(index: number): { id: string; prompt: string; model: string } {
  const fails = index % 97 === 7 ? "small/fail?status=503" : index % 53 === 11 ? "small/fail?status=400" : null;
  const slow = index % 3 === 0 ? "large/slow?ms=900" : `small/slow?ms=${250 + ((index * 7) % 3) * 200}`;
  return { id: `page ${index + 1}`, prompt: `Summarize page ${index + 1} of the archive.`, model: fails ?? slow };
}

async function openChild(token: string, name: string): Promise<string> {
  const opened: unknown = await (await send("/runs", token, { name, budget: { usd: 0.05 } })).json();
  if (typeof opened === "object" && opened !== null && "token" in opened && typeof opened.token === "string") {
    return opened.token;
  }
  throw new Error("POST /runs returned no token");
}

async function post(path: string, token: string, body: unknown): Promise<void> {
  await (await send(path, token, body)).arrayBuffer();
}

async function send(path: string, token: string, body: unknown): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", prefer: "respond-async" };
  const reply = await fetch(`${gateway.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  if (!reply.ok) throw new Error(`${path} answered ${reply.status}: ${await reply.text()}`);
  return reply;
}

async function photograph(browser: Browser, address: string, file: string): Promise<void> {
  const page = await browser.newPage({ viewport: SIZE });
  await page.goto(address);
  // The figures of the start page, and the rows of a run, come with requests of their own.
  await page.locator(".tiles dd, .rows").first().waitFor();
  await sleep(2_500);
  await page.screenshot({ path: join(PICTURES, file) });
  await page.close();
}
