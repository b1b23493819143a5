/** Drives stubs/javascript/fanout.mjs for the conformance test, on Node, Deno and Bun. */
import process from "node:process";
import * as fanout from "../../../stubs/javascript/fanout.mjs";
import { drive } from "./javascript-commands.mjs";

await drive(fanout, process.argv.slice(2), (record) => process.stdout.write(record));
