import { join } from "node:path";
import { conformance } from "../conformance.ts";
import { ROOT, RUNTIMES } from "../language.ts";

const program = join(RUNTIMES, "node_modules/.bin/bun");
const driver = join(ROOT, "test/stubs/drivers/javascript.mjs");

conformance({
  name: "javascript-bun",
  needs: [[program, "--version"]],
  run: () => [program, driver],
});
