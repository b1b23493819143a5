/** Formats the Python on standard input by ruff in its default style: `node ruff.mjs FOLDER_OF_RUNTIMES`. */
import { createRequire } from "node:module";
import { join } from "node:path";
import { text } from "node:stream/consumers";

const require = createRequire(join(process.argv[2], "node_modules/"));
const { PositionEncoding, Workspace } = require("@astral-sh/ruff-wasm-nodejs");
process.stdout.write(new Workspace({}, PositionEncoding.Utf16).format(await text(process.stdin)));
