/** `eval "$(npm run -s token)"`: opens a small run and sets FANOUT_URL and FANOUT_TOKEN. */
import { resolve } from "node:path";
import { readText } from "../cli/credential.ts";
import { openRun } from "./open-run.ts";
import { exportLine, tokenSetting } from "./token-setting.ts";
import { ROOT } from "./root.ts";

process.exitCode = await main();

async function main(): Promise<number> {
  // Paths are relative to the checkout, as for `npm start`.
  const read = (file: string): string | null => readText(resolve(ROOT, file));
  const setting = tokenSetting(process.argv.slice(2), { env: process.env, read });
  if (typeof setting === "string") return fail(setting);
  try {
    const { token } = await openRun(setting);
    console.log(exportLine({ FANOUT_URL: setting.url, FANOUT_TOKEN: token }));
    return 0;
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error));
  }
}

/** Prints to standard error, so that `eval` executes nothing. */
function fail(message: string): number {
  console.error(message);
  return 1;
}
