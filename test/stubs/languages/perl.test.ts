import { join } from "node:path";
import { conformance } from "../conformance.ts";
import { ROOT } from "../language.ts";

conformance({
  name: "perl",
  needs: [["perl", "-MHTTP::Tiny", "-MJSON::PP", "-e1"]],
  run: () => ["perl", "-w", `-I${join(ROOT, "stubs/perl")}`, join(ROOT, "test/stubs/drivers/perl.pl")],
});
