import { join } from "node:path";
import { conformance } from "../conformance.ts";
import { ROOT } from "../language.ts";

conformance({
  name: "javascript",
  needs: [[process.execPath, "--version"]],
  run: () => [process.execPath, join(ROOT, "test/stubs/drivers/javascript.mjs")],
});
