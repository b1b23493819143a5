import { join } from "node:path";
import { conformance } from "../conformance.ts";
import { ROOT, RUNTIMES } from "../language.ts";

const program = join(RUNTIMES, "node_modules/.bin/deno");
const driver = join(ROOT, "test/stubs/drivers/javascript.mjs");

conformance({
  name: "javascript-deno",
  needs: [[program, "--version"]],
  // What a sandbox would allow: the network and its variables, nothing else on the machine.
  run: () => [program, "run", "--no-prompt", "--allow-net", "--allow-env", driver],
});
