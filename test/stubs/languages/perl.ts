import { join } from "node:path";
import { ROOT, type Language } from "../language.ts";

export const language: Language = {
  name: "perl",
  needs: [["perl", "-MHTTP::Tiny", "-MJSON::PP", "-e1"]],
  run: () => ["perl", "-w", `-I${join(ROOT, "stubs/perl")}`, join(ROOT, "test/stubs/drivers/perl.pl")],
  streams: true,
};
