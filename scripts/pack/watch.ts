/** Builds the display of `fanout watch` into one file, for the package: there is no node_modules beside it. `npm pack` runs it. */
import { buildSync } from "esbuild";
import { join } from "node:path";
import { ROOT } from "../root.ts";

buildSync({
  entryPoints: [join(ROOT, "scripts/watch.ts")],
  outfile: join(ROOT, "dist/watch.mjs"),
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  logLevel: "warning",
});
