import { join } from "node:path";
import { ROOT, type Language } from "../language.ts";

const DRIVER = join(ROOT, "test/stubs/drivers/pyodide.mjs");

export const language: Language = {
  name: "pyodide",
  needs: [
    [
      "node",
      "-e",
      `require("module").createRequire(process.env.FANOUT_RUNTIMES + "/node_modules/")("pyodide/package.json")`,
    ],
  ],
  build: (folder) => [["node", DRIVER, folder]],
  run: (folder) => ["node", DRIVER, folder, join(ROOT, "stubs/pyodide/fanout_pyodide.py")],
  streams: true,
};
