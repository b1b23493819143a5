/** The Chromium of the tests and the bench. */
import { existsSync } from "node:fs";
import { chromium, type Browser } from "playwright-core";

/** Debian's Chromium; `FANOUT_CHROMIUM` names another. */
const PROGRAM = process.env["FANOUT_CHROMIUM"] ?? "/usr/bin/chromium";
export const hasChromium = existsSync(PROGRAM);

/** Its own services would call hosts that a test machine may not reach. */
const QUIET = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: PROGRAM, args: QUIET });
}
