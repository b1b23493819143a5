import { join } from "node:path";
import { conformance } from "../conformance.ts";
import { ROOT } from "../language.ts";

conformance({
  name: "bash",
  needs: [
    ["bash", "-c", "(( BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 401 ))"],
    ["curl", "--version"],
    ["jq", "-n", "--rawfile", "text", "/dev/null", "$text"],
  ],
  run: () => ["bash", join(ROOT, "test/stubs/drivers/bash.sh")],
});
