#!/usr/bin/env node
/**
 * `fanout COMMAND` in a clone: runs cli/main.ts, without a build, on any Node from 20 on. In the package, this file is a bundle of the
 * whole program.
 */
import { existsSync } from "node:fs";
import { register } from "node:module";

/** Before it, a Node that takes types out by itself warns of doing so. */
const NODE_WITH_TYPES = 24;
const takesTypesOut =
  process.features.typescript === "strip" && Number.parseInt(process.versions.node, 10) >= NODE_WITH_TYPES;

if (existsSync(new URL("../node_modules/esbuild", import.meta.url))) {
  if (!takesTypesOut) register("./strip-types.mjs", import.meta.url);
  await import("../cli/main.ts");
} else {
  process.stderr.write("Run `npm ci` first in the clone of fanout: it installs the packages of its commands.\n");
  process.exitCode = 1;
}
