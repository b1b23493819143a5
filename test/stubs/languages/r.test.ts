import { join } from "node:path";
import { conformance } from "../conformance.ts";
import { ROOT } from "../language.ts";

conformance({
  name: "r",
  needs: [
    ["Rscript", "--version"],
    ["curl", "--version"],
  ],
  run: () => ["Rscript", "--vanilla", join(ROOT, "test/stubs/drivers/r.R")],
  env: () => ({ FANOUT_STUB: join(ROOT, "stubs/r/fanout.R") }),
});
