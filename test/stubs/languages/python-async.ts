import { join } from "node:path";
import { ROOT, type Language } from "../language.ts";

export const language: Language = {
  name: "python-async",
  needs: [["python3", "--version"]],
  run: () => ["python3", join(ROOT, "test/stubs/drivers/python-async.py")],
  env: () => ({ PYTHONPATH: join(ROOT, "stubs/python-async"), PYTHONDONTWRITEBYTECODE: "1" }),
  streams: true,
};
