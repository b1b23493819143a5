/**
 * `node scripts/lean.mjs PROGRAM …` runs a program of this folder whose types another process has stripped: the compiler that strips them
 * would stay, with 30 MB, in a process that runs for days. Where the cache cannot be written, it is loaded here after all.
 */
import { spawnSync } from "node:child_process";
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

const [node = "", , program = "", ...args] = process.argv;
const file = fileURLToPath(new URL(program, import.meta.url));
const cache = fileURLToPath(new URL("../node_modules/.cache/fanout", import.meta.url));
// A program that prints its help has loaded all of its modules.
spawnSync(node, [file, "--help"], { stdio: "ignore", env: { ...process.env, NODE_COMPILE_CACHE: cache } });
enableCompileCache(cache);
process.argv = [node, file, ...args];
await import(new URL(program, import.meta.url).href);
