/** Drives stubs/javascript/fanout.mjs for the conformance test, on Node, Deno and Bun. */
import process from "node:process";
import * as fanout from "../../../stubs/javascript/fanout.mjs";
import { recordsOf } from "./javascript-commands.mjs";

for await (const record of recordsOf(fanout, process.argv.slice(2))) process.stdout.write(record);
