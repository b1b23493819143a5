import { join } from "node:path";
import { conformance } from "../conformance.ts";
import { ROOT } from "../language.ts";

conformance({
  name: "php",
  needs: [["php", "--version"]],
  run: () => ["php", join(ROOT, "test/stubs/drivers/php.php")],
});
