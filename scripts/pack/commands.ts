/** Builds the command `fanout` for the package, which has no node_modules beside it: the program as one file, and its display. */
import { buildSync } from "esbuild";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../root.ts";

/** Builds them into the folder of the package, at the places that cli/places.ts names. */
export function packCommands(folder: string): void {
  bundle("cli/main.ts", join(folder, "bin/fanout.mjs"));
  bundle("scripts/watch.ts", join(folder, "dist/watch.mjs"));
}

function bundle(entry: string, outfile: string): void {
  buildSync({
    absWorkingDir: ROOT,
    entryPoints: [entry],
    outfile,
    banner: { js: "#!/usr/bin/env node" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "warning",
  });
  chmodSync(outfile, 0o755);
}
