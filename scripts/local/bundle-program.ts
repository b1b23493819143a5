/** `node bundle-program.ts ENTRY ROOT` prints the bundle of the module at ENTRY, a path from ROOT; or its errors, with status 1. */
import { bundleWorker } from "./bundle.ts";

const [entryPoint = "", root = ""] = process.argv.slice(2);
try {
  const { code } = await bundleWorker(entryPoint, { root });
  process.stdout.write(code);
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
