import { join } from "node:path";
import { conformance } from "../conformance.ts";
import { ROOT } from "../language.ts";

conformance({
  name: "ruby",
  needs: [["ruby", "--version"]],
  run: () => ["ruby", join(ROOT, "test/stubs/drivers/ruby.rb")],
});
