import { join } from "node:path";
import { ROOT, type Language } from "../language.ts";

const runtimes = process.env["FANOUT_RUNTIMES"];
const program = runtimes === undefined ? "bun" : join(runtimes, "node_modules/.bin/bun");
const driver = join(ROOT, "test/stubs/drivers/javascript.mjs");

export const language: Language = {
  name: "javascript-bun",
  needs: [[program, "--version"]],
  run: () => [program, driver],
  streams: true,
};
