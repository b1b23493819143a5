/** Builds the command `fanout` for the package, which has no node_modules beside it, into one file. */
import { buildSync } from "esbuild";
import { chmodSync } from "node:fs";
import { ROOT } from "../root.ts";

/** Builds it into a file, which must lie one folder below the top of the package: cli/places.ts says why. */
export function packCommand(outfile: string): void {
  buildSync({
    absWorkingDir: ROOT,
    entryPoints: ["cli/main.ts"],
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
