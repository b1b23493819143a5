/** `npm run pack:python`: the wheel of the Python stubs, in dist/packages. Needs python3 with pip. */
import { spawnSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { ROOT } from "../root.ts";

/** The stub that each package of the wheel is, by its name. */
const STUBS = { fanout: "stubs/python/fanout.py", fanout_async: "stubs/python-async/fanout_async.py" };

const manifest = z.object({ version: z.string() });

/**
 * Builds the wheel into a folder. A module without a folder cannot have types (PEP 561), so each stub is the `__init__.py` of a
 * package. `backend` is a folder that has setuptools; without it pip fetches the build system that pyproject.toml names. Throws
 * if pip fails, with what it says.
 */
export function packPython(to: string, backend?: string): void {
  const source = join(ROOT, "packages/python");
  const stage = mkdtempSync(join(tmpdir(), "fanout-python-package-"));
  try {
    for (const file of ["pyproject.toml", "README.md"]) copyFileSync(join(source, file), join(stage, file));
    copyFileSync(join(ROOT, "LICENSE"), join(stage, "LICENSE"));
    writeFileSync(
      join(stage, "VERSION"),
      manifest.parse(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"))).version,
    );
    for (const [name, stub] of Object.entries(STUBS)) {
      mkdirSync(join(stage, name));
      cpSync(join(ROOT, stub), join(stage, name, "__init__.py"));
      cpSync(join(source, `${name}.pyi`), join(stage, name, "__init__.pyi"));
      writeFileSync(join(stage, name, "py.typed"), "");
    }
    const offline = backend === undefined ? [] : ["--no-build-isolation", "--no-index"];
    const env = { ...process.env, ...(backend === undefined ? {} : { PYTHONPATH: backend }) };
    const args = ["-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", ...offline];
    const ended = spawnSync("python3", [...args, "--wheel-dir", to, stage], { env, encoding: "utf8" });
    if (ended.status !== 0)
      throw new Error(`pip wheel ended with ${ended.status}: ${ended.error?.message ?? ended.stderr}`);
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

if (import.meta.main) packPython(join(ROOT, "dist/packages"));
