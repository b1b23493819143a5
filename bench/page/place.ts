/** A gateway as `npm start` starts it, and a Chromium beside it. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { startLocalGateway } from "../../scripts/local/gateway.ts";
import { openRun } from "../../scripts/open-run.ts";
import { startBrowser } from "../../test/page/chromium.ts";

export type Run = { id: string; token: string; send: (path: string, init?: RequestInit) => Promise<Response> };

export type Place = AsyncDisposable & {
  url: string;
  adminKey: string;
  browser: Browser;
  open: (asked: object) => Promise<Run>;
};

export async function startPlace(): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), "fanout-bench-page-"));
  const adminKey = randomBytes(24).toString("base64url");
  const gateway = await startLocalGateway(
    { vars: { ADMIN_KEY: adminKey } },
    { host: "127.0.0.1", port: 0, dataDir: join(folder, "state"), log: () => undefined },
  );
  const { url } = gateway;
  const browser = await startBrowser();
  return {
    url,
    adminKey,
    browser,
    open: async (asked) => {
      const { id, token } = await openRun({ url, adminKey, run: asked });
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const send = async (path: string, init: RequestInit = {}): Promise<Response> => {
        const reply = await fetch(`${url}${path}`, { ...init, headers: { ...headers, ...init.headers } });
        if (!reply.ok) throw new Error(`${path} answered ${reply.status}: ${(await reply.text()).slice(0, 500)}`);
        return reply;
      };
      return { id, token, send };
    },
    [Symbol.asyncDispose]: async () => {
      await browser.close();
      await gateway.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A page of its own at a run, and what it did that it must not: errors, messages, requests to other hosts. */
export async function openRunPage(
  { url, browser }: Place,
  { id, token }: Run,
): Promise<{ page: Page; faults: string[] }> {
  const context = await browser.newContext({ viewport: { width: 1_200, height: 900 } });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("console", (message) => faults.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && request.url() !== "data:,") faults.push(`request: ${request.url()}`);
  });
  await page.addInitScript(WATCH);
  await page.goto(`${url}/ui/runs/${id}#token=${token}`);
  return { page, faults };
}

/**
 * In the page: when its timeline was first there, and when which number of ended calls was shown, in ms of the clock. The
 * first of the run's facts has the number.
 */
const WATCH = `(() => {
  const seen = { timelineMs: null, ended: [] };
  globalThis.benchSeen = seen;
  const look = () => {
    if (seen.timelineMs === null && document.querySelector(".rows canvas") !== null) seen.timelineMs = performance.now();
    const fact = document.querySelector(".facts dd")?.textContent ?? "";
    const count = Number(fact.split(" of ")[0].replaceAll(",", ""));
    if (count > (seen.ended.at(-1)?.[1] ?? 0)) seen.ended.push([Date.now(), count]);
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
})()`;
