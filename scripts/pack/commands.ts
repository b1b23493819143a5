/** Builds what `fanout watch` and `fanout cassette diff` start into one file each, for the package: there is no node_modules beside it. */
import { buildSync } from "esbuild";
import { join } from "node:path";
import { ROOT } from "../root.ts";

/** Builds them into a folder. */
export function packCommands(outdir: string): void {
  buildSync({
    entryPoints: { watch: join(ROOT, "scripts/watch.ts"), "cassette-diff": join(ROOT, "scripts/cassette/diff.ts") },
    outdir,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "warning",
  });
}
