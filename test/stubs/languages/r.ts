import { join } from "node:path";
import { ROOT, type Language } from "../language.ts";

export const language: Language = {
  name: "r",
  needs: [
    ["Rscript", "--version"],
    ["curl", "--version"],
  ],
  run: () => ["Rscript", "--vanilla", join(ROOT, "test/stubs/drivers/r.R")],
  env: () => ({ FANOUT_STUB: join(ROOT, "stubs/r/fanout.R") }),
  streams: true,
};
