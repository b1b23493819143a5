import { join } from "node:path";
import { conformance } from "../conformance.ts";
import { ROOT } from "../language.ts";

conformance({
  name: "python-async",
  needs: [["python3", "--version"]],
  run: () => ["python3", join(ROOT, "test/stubs/drivers/python-async.py")],
  env: () => ({ PYTHONPATH: join(ROOT, "stubs/python-async"), PYTHONDONTWRITEBYTECODE: "1" }),
});
