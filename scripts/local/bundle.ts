/** Bundles a Worker into one module, as wrangler does for deployment: stubs and the run page are imported as text. */
import { build, stop } from "esbuild";
import { buildPage } from "../page/bundle.ts";
import { textFiles } from "./text-files.ts";

/** A Worker as one module, and its source map; the map is empty unless it was requested. */
export type Bundle = { code: string; map: string };

/** Number of bundles being made. */
let building = 0;

/**
 * Bundles the module at `entryPoint`, a path from `root`. Rejects with esbuild's list of errors.
 * @param options.sourceMap Whether to generate a source map, for a profiler.
 */
export async function bundleWorker(
  entryPoint: string,
  { root, sourceMap = false }: { root: string; sourceMap?: boolean },
): Promise<Bundle> {
  building += 1;
  try {
    return await bundled(entryPoint, root, sourceMap);
  } finally {
    building -= 1;
    // esbuild's service would stay, with 90 MB, as long as the gateway runs.
    if (building === 0) await stop();
  }
}

async function bundled(entryPoint: string, root: string, sourceMap: boolean): Promise<Bundle> {
  buildPage(root);
  const built = await build({
    absWorkingDir: root,
    entryPoints: [entryPoint],
    bundle: true,
    write: false,
    outdir: "out",
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*", "node:*"],
    plugins: [textFiles],
    ...(sourceMap ? { sourcemap: "external", sourceRoot: root } : {}),
    logLevel: "silent",
  });
  const textOf = (end: string) => built.outputFiles.find((file) => file.path.endsWith(end))?.text ?? "";
  return { code: inLatin1(textOf(".js")), map: textOf(".js.map") };
}

/**
 * The same code without a character above U+00FF. V8 holds a module that has one in two bytes per character, which is three
 * megabytes more of each isolate. esbuild escapes these characters in texts and leaves them in comments and regular
 * expressions, where an escape means the same.
 */
function inLatin1(code: string): string {
  return code.replace(/[\u0100-\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
