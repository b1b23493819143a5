import { join } from "node:path";
import { ROOT, type Language } from "../language.ts";

export const language: Language = {
  name: "python",
  needs: [["python3", "--version"]],
  run: () => ["python3", join(ROOT, "test/stubs/drivers/python.py")],
  env: () => ({ PYTHONPATH: join(ROOT, "stubs/python"), PYTHONDONTWRITEBYTECODE: "1" }),
  streams: true,
};
