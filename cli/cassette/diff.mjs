/** `fanout cassette diff A B`: what only one of two tapes has. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Failure } from "../failure.mjs";
import { GATEWAY_OPTIONS, gatewayOf } from "../gateway/requests.mjs";
import { parsed, wrong } from "../options.mjs";
import { saveTape } from "./tapes.mjs";

/** The comparison as one file, which the package has; and its source, which a clone has. The gateway uses the same. */
const BUILT = fileURLToPath(new URL("../../dist/cassette-diff.mjs", import.meta.url));
const SOURCE = fileURLToPath(new URL("../../scripts/cassette/diff.ts", import.meta.url));
const CLONE_NODE = fileURLToPath(new URL("../../node_modules/.bin/node", import.meta.url));

/** @type {import("../commands.mjs").Command} */
export async function diff(args, { env, read, signal }) {
  const { values, positionals } = parsed("cassette", args, {
    json: { type: "boolean", default: false },
    ...GATEWAY_OPTIONS,
  });
  if (positionals.length !== 2) throw wrong("cassette", "Expected two tapes, each a file or a name.");
  const program = existsSync(BUILT) ? BUILT : SOURCE;
  if (!existsSync(program))
    throw new Failure("This copy of fanout lacks the program that compares tapes. Install fanout again.");
  const folder = await mkdtemp(join(tmpdir(), "fanout-diff-"));
  try {
    const files = [];
    for (const [index, name] of positionals.entries()) {
      if (existsSync(name)) {
        files.push(name);
        continue;
      }
      const file = join(folder, `${index}.jsonl`);
      await saveTape(gatewayOf(values, { env, read }, { operator: true }), name, file, signal);
      files.push(file);
    }
    const node = program === SOURCE && existsSync(CLONE_NODE) ? CLONE_NODE : process.execPath;
    const words = [program, ...files, ...positionals, ...(values.json ? ["--json"] : [])];
    const child = spawn(node, words, { stdio: "inherit" });
    return await new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code) => resolve(code ?? 130));
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
