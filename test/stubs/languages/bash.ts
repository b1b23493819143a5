import { join } from "node:path";
import { ROOT, type Language } from "../language.ts";

export const language: Language = {
  name: "bash",
  needs: [
    ["bash", "-c", "(( BASH_VERSINFO >= 4 ))"],
    ["curl", "--version"],
    ["jq", "-n", "--rawfile", "text", "/dev/null", "$text"],
  ],
  run: () => ["bash", join(ROOT, "test/stubs/drivers/bash.sh")],
  streams: true,
};
