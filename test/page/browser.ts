/** A real Chromium with the run page, and what the page did that it must not do. */
import type { Browser, Page } from "playwright-core";
import { onTestFinished } from "vitest";

/** `faults`: errors and messages on the console, dialogs, and requests to other hosts. */
export type Opened = { page: Page; faults: string[] };

/** A page of its own, without anything of the others'. It ends with the test. */
export async function openPage(browser: Browser, url: string, width = 1_200): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width, height: 900 } });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("console", (message) => faults.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  const { origin } = new URL(url);
  page.on("request", (request) => {
    if (!request.url().startsWith(origin) && request.url() !== "data:,") faults.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  return { page, faults };
}
