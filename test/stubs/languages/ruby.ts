import { join } from "node:path";
import { ROOT, type Language } from "../language.ts";

export const language: Language = {
  name: "ruby",
  needs: [["ruby", "--version"]],
  run: () => ["ruby", join(ROOT, "test/stubs/drivers/ruby.rb")],
  streams: true,
};
