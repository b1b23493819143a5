/** Runs before the commands that people try first. Plain JavaScript, because a Node that is too old for the others must read it. */
import { existsSync } from "node:fs";

if (!existsSync(new URL("../node_modules/.bin/node", import.meta.url))) {
  console.error("Run `npm ci` first: it installs the packages of this project, and the Node that its commands need.");
  process.exitCode = 1;
}
