/** Portkey's gateway, from the bench's own package.json. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

const ENTRY = join(import.meta.dirname, "node_modules/@portkey-ai/gateway/build/start-server.js");

/** The path of Portkey's own start program; the package is installed first if it is not here. */
export function portkeyEntry(): string {
  if (existsSync(ENTRY)) return ENTRY;
  console.error("npm install in bench/peers");
  const { status } = spawnSync("npm", ["install"], {
    cwd: import.meta.dirname,
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (status !== 0) throw new Error(`npm install in bench/peers ended with ${status}: it needs npm's registry`);
  return ENTRY;
}
