/** `npm run pack:javascript`: the npm package in dist/packages, which has the JavaScript stub, its types, those of the binding for Workers, and the command `fanout`. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { ROOT } from "../root.ts";
import { packCommand } from "./command.ts";

/** What the package takes over of the clone's package.json. The gateway's dependencies are not the client's. */
const manifest = z.object({
  name: z.string(),
  version: z.string(),
  description: z.string(),
  keywords: z.array(z.string()),
  license: z.string(),
  type: z.string(),
  bin: z.record(z.string(), z.string()),
  engines: z.record(z.string(), z.string()),
});

/** Where files of the package are in the clone, by their path in the package. */
const FILES = {
  "fanout.mjs": "stubs/javascript/fanout.mjs",
  "fanout.d.mts": "stubs/typescript/fanout.d.mts",
  "binding.d.mts": "packages/javascript/binding.d.mts",
  "stubs/script": "stubs/script",
  "README.md": "packages/javascript/README.md",
  LICENSE: "LICENSE",
};

/** Builds the tarball into a folder. Throws if npm fails, with what it says. */
export function packJavaScript(to: string): void {
  const stage = mkdtempSync(join(tmpdir(), "fanout-npm-package-"));
  try {
    for (const [path, source] of Object.entries(FILES)) {
      cpSync(join(ROOT, source), join(stage, path), {
        recursive: true,
      });
    }
    besideStub(join(stage, "binding.d.mts"));
    packCommand(join(stage, "bin/fanout.mjs"));
    const facts = manifest.parse(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")));
    const entry = { types: "./fanout.d.mts", default: "./fanout.mjs" };
    const exports = { ".": entry, "./binding": { types: "./binding.d.mts" }, "./package.json": "./package.json" };
    const own = { exports, sideEffects: false };
    writeFileSync(join(stage, "package.json"), `${JSON.stringify({ ...facts, ...own }, null, 2)}\n`);
    mkdirSync(to, { recursive: true });
    const ended = spawnSync("npm", ["pack", "--silent", "--pack-destination", to], { cwd: stage, encoding: "utf8" });
    if (ended.status !== 0)
      throw new Error(`npm pack ended with ${ended.status}: ${ended.error?.message ?? ended.stderr}`);
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

/** In the package, the types of the binding lie beside those of the stub that they use. Throws if they use none. */
function besideStub(file: string): void {
  const inClone = `"../../stubs/typescript/fanout.mjs"`;
  const text = readFileSync(file, "utf8");
  if (!text.includes(inClone)) throw new Error(`${file} does not import ${inClone}`);
  writeFileSync(file, text.replace(inClone, `"./fanout.mjs"`));
}

if (import.meta.main) packJavaScript(join(ROOT, "dist/packages"));
