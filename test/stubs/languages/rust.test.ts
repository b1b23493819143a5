import { join } from "node:path";
import { conformance } from "../conformance.ts";
import { ROOT } from "../language.ts";

conformance({
  name: "rust",
  needs: [
    ["rustc", "--version"],
    ["curl", "--version"],
  ],
  build: (folder) => [
    ["cp", join(ROOT, "stubs/rust/fanout.rs"), folder],
    ["cp", join(ROOT, "test/stubs/drivers/rust.rs"), join(folder, "main.rs")],
    ["rustc", "--edition", "2021", "-D", "warnings", "-o", join(folder, "driver"), join(folder, "main.rs")],
  ],
  run: (folder) => [join(folder, "driver")],
});
