/** Lets an older Node load the TypeScript of this clone: a hook of `node:module` that takes the types out. */
import { transform } from "esbuild";
import { readFile } from "node:fs/promises";

const CLONE = new URL("../", import.meta.url).href;

/** @type {import("node:module").LoadHook} */
export async function load(url, context, next) {
  if (!url.startsWith(CLONE) || !url.endsWith(".ts")) return next(url, context);
  const { code } = await transform(await readFile(new URL(url), "utf8"), { loader: "ts", format: "esm" });
  return { format: "module", source: code, shortCircuit: true };
}
