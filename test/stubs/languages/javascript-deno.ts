import { join } from "node:path";
import { ROOT, type Language } from "../language.ts";

const runtimes = process.env["FANOUT_RUNTIMES"];
const program = runtimes === undefined ? "deno" : join(runtimes, "node_modules/.bin/deno");
const driver = join(ROOT, "test/stubs/drivers/javascript.mjs");

export const language: Language = {
  name: "javascript-deno",
  needs: [[program, "--version"]],
  // What a sandbox would allow: the network and its variables, nothing of the machine.
  run: () => [program, "run", "--no-prompt", "--allow-net", "--allow-env", driver],
  streams: true,
};
