import { join } from "node:path";
import { ROOT, type Language } from "../language.ts";

export const language: Language = {
  name: "php",
  needs: [["php", "--version"]],
  run: () => ["php", join(ROOT, "test/stubs/drivers/php.php")],
  streams: true,
};
