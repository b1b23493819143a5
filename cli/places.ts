/**
 * Where the program finds files beside it. This file lies one folder below the top, and so does the bundle that it becomes a part of
 * (`bin/fanout.mjs` of the package): no other file of cli/ may ask where it is.
 */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const TOP = dirname(dirname(fileURLToPath(import.meta.url)));

/** The env file of a clone, into which `npm start` writes the operator's key. The package has none. */
export const DEV_VARS = join(TOP, ".dev.vars");

/** The functions of workflow scripts: the stub that sandboxes get. */
export const SCRIPT_STUB = join(TOP, "stubs/script/fanout_script.mjs");
