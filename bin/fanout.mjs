#!/usr/bin/env node
/**
 * `fanout COMMAND` in a clone: runs cli/main.ts, without a build, on any Node from 20 on. In the package, this file is a bundle of the
 * whole program.
 */
import { existsSync } from "node:fs";
import nodeModule from "node:module";
import { fileURLToPath } from "node:url";

/** What Node made of the sources, so that a later start takes a third of the time. A folder that can't be written is passed over. */
const COMPILED = fileURLToPath(new URL("../node_modules/.cache/fanout", import.meta.url));

/** Before it, a Node that takes types out by itself warns of doing so. */
const NODE_WITH_TYPES = 24;
const takesTypesOut =
  process.features.typescript === "strip" && Number.parseInt(process.versions.node, 10) >= NODE_WITH_TYPES;

if (existsSync(new URL("../node_modules/esbuild", import.meta.url))) {
  // Node 20 has none.
  nodeModule.enableCompileCache?.(COMPILED);
  if (!takesTypesOut) nodeModule.register("./strip-types.mjs", import.meta.url);
  await import("../cli/main.ts");
} else {
  process.stderr.write("Run `npm ci` first in the clone of fanout: it installs the packages of its commands.\n");
  process.exitCode = 1;
}
