import { join } from "node:path";
import { ROOT, type Language } from "../language.ts";

export const language: Language = {
  name: "javascript-workers",
  needs: [[process.execPath, "--version"]],
  run: () => [process.execPath, join(ROOT, "test/stubs/drivers/javascript-workers.ts")],
  streams: true,
};
