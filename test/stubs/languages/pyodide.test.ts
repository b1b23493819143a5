import { join } from "node:path";
import { conformance } from "../conformance.ts";
import { PYODIDE, ROOT } from "../language.ts";

const DRIVER = join(ROOT, "test/stubs/drivers/pyodide.mjs");

conformance({
  name: "pyodide",
  needs: [["node", "--version"], PYODIDE],
  build: (folder) => [["node", DRIVER, folder]],
  run: (folder) => ["node", DRIVER, folder, join(ROOT, "stubs/pyodide/fanout_pyodide.py")],
});
