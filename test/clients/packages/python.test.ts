/** The Python package: built, installed from its file into an empty environment, and used as its user would. */
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packPython } from "../../../scripts/pack/python.ts";
import { ROOT } from "../../../scripts/root.ts";
import { VERSION } from "../../../src/version.ts";
import { startGateway, type Gateway } from "../../support/gateway.ts";
import { reportLeftOut } from "../../support/left-out.ts";
import { missingPackage, PACKAGES } from "../../support/python-packages.ts";
import { run } from "./run.ts";

const PIP = ["-m", "pip", "--quiet", "--disable-pip-version-check"];

const missing = missingPackage("pip") ?? missingPackage("mypy") ?? missingSetuptools();
reportLeftOut("the Python package", missing);

/** The machine's own setuptools may be too old to build the wheel, and `import` would find it. */
function missingSetuptools(): string | null {
  return existsSync(join(PACKAGES, "setuptools")) ? null : "Python package setuptools";
}

describe.skipIf(missing !== null)("the Python package", () => {
  const place = join(tmpdir(), `fanout-wheel-${randomUUID()}`);
  const wheel = `fanout_gateway-${VERSION}-py3-none-any.whl`;
  const python = join(place, "env/bin/python");
  let gateway: Gateway;

  beforeAll(async () => {
    mkdirSync(place);
    packPython(place, PACKAGES);
    gateway = await startGateway();
    await run(place, "python3", ["-m", "venv", "--without-pip", "env"]);
    await run(place, "python3", [...PIP, "--python", python, "install", "--no-index", wheel]);
  });
  afterAll(async () => {
    await gateway.stop();
    rmSync(place, { recursive: true, force: true });
  });

  it("holds both stubs, their types and its own facts, and nothing else", () => {
    expect(readdirSync(place).filter((name) => name.endsWith(".whl"))).toEqual([wheel]);
    const info = `fanout_gateway-${VERSION}.dist-info`;
    expect(namesIn(join(place, wheel))).toEqual(
      [
        ...["fanout", "fanout_async"].flatMap((name) => [
          `${name}/__init__.py`,
          `${name}/__init__.pyi`,
          `${name}/py.typed`,
        ]),
        ...["METADATA", "RECORD", "WHEEL", "licenses/LICENSE", "top_level.txt"].map((name) => `${info}/${name}`),
      ].toSorted(),
    );
  });

  it("makes a first batch three commands after an empty environment", async () => {
    await run(place, "python3", ["-m", "venv", "--without-pip", "empty"]);
    const opened = await gateway.openRun();
    const commands = [
      `pip install --no-index ${wheel}`,
      `export FANOUT_URL=${gateway.url} FANOUT_TOKEN=${opened.token}`,
      `python -c 'from fanout import llm_query_batch; print(llm_query_batch(["one", "two"]))'`,
    ];
    // Debian's environments have no pip of their own: the machine's installs into one.
    const pip = `pip() { PATH=$OUTSIDE python3 ${PIP.join(" ")} --python empty/bin/python "$@"; }`;
    const outside = process.env["PATH"] ?? "";
    const path = `${join(place, "empty/bin")}:${outside}`;
    const printed = await run(place, "bash", ["-ec", [pip, ...commands].join("\n")], { PATH: path, OUTSIDE: outside });
    expect(printed).toBe("['one', 'two']\n");
  });

  it("is byte for byte what the gateway serves", async () => {
    for (const [name, lang] of Object.entries({ fanout: "python", fanout_async: "python-async" })) {
      const path = (await run(place, python, ["-c", `import ${name}; print(${name}.__file__)`])).trim();
      expect(path).toContain(place);
      expect(readFileSync(path, "utf8")).toBe(await (await fetch(`${gateway.url}/stubs/${lang}`)).text());
    }
  });

  it("runs a typed program, and knows its version", async () => {
    const { token } = await gateway.openRun({ budget: { calls: 20 } });
    const program = join(import.meta.dirname, "program.py");
    const printed = await run(place, python, [program], { FANOUT_URL: gateway.url, FANOUT_TOKEN: token });
    expect(JSON.parse(printed)).toEqual([["one", "two", "five"], ["three", "four"], 1, 16, VERSION]);
  });

  it("runs the program of its README", async () => {
    const { token } = await gateway.openRun();
    const readme = readFileSync(join(ROOT, "packages/python/README.md"), "utf8");
    const [, program = ""] = /^```python\n(.*?)^```$/ms.exec(readme) ?? [];
    const printed = await run(place, python, ["-c", program], { FANOUT_URL: gateway.url, FANOUT_TOKEN: token });
    expect(printed).toBe("['Again: one', 'Again: two']\n");
  });

  it("has types that fit its functions, accept right uses and reject wrong ones", async () => {
    const vars = { PYTHONPATH: PACKAGES };
    await run(place, python, ["-m", "mypy.stubtest", "fanout", "fanout_async"], vars);
    const program = join(import.meta.dirname, "program.py");
    // A wrong use that is accepted is an ignore that nothing needs.
    const strict = ["--strict", "--warn-unused-ignores", "--cache-dir", join(place, "cache")];
    await run(place, python, ["-m", "mypy", ...strict, program], vars);
  });
});

/** The names of the files in a zip, sorted. */
function namesIn(path: string): string[] {
  const program = "import sys, zipfile; print('\\n'.join(zipfile.ZipFile(sys.argv[1]).namelist()))";
  const { stdout } = spawnSync("python3", ["-c", program, path], { encoding: "utf8" });
  return stdout.trim().split("\n").toSorted();
}
