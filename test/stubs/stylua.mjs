/** Formats the Lua on standard input by StyLua in its default style: `node stylua.mjs FOLDER_OF_RUNTIMES`. */
import { createRequire } from "node:module";
import { join } from "node:path";
import { text } from "node:stream/consumers";

const require = createRequire(join(process.argv[2], "node_modules/"));
const { Config, OutputVerification, formatCode } = require("@johnnymorganz/stylua");
process.stdout.write(formatCode(await text(process.stdin), Config.new(), undefined, OutputVerification.Full));
