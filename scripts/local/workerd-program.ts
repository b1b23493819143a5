/** Which program runs the Worker, and what ends it if the gateway that started it is killed. */
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

/** A workerd that outlives a killed gateway ends this soon, ms: its wrapper checks once a second. */
export const ORPHAN_ENDS_MS = 1_500;

const WRAPPER = fileURLToPath(new URL("workerd.sh", import.meta.url));

/** The path of workerd, as its package names it. */
export function workerdProgram(): string {
  const launcher: unknown = createRequire(import.meta.url)("workerd");
  if (typeof launcher === "object" && launcher !== null && "default" in launcher) {
    if (typeof launcher.default === "string") return launcher.default;
  }
  throw new Error("the package workerd does not name its program");
}

/**
 * What starts workerd, with the environment that it needs: a wrapper that ends workerd with this process. Otherwise a SIGKILL of this
 * process would leave workerd running: its objects' alarms would go on, beside those of the next gateway on the same folder. Windows has
 * no shell for it, so there an orphan must be ended by hand.
 */
export function workerdCommand(): { program: string; env: Readonly<Record<string, string>> } {
  const program = process.env["MINIFLARE_WORKERD_PATH"] ?? workerdProgram();
  return process.platform === "win32" ? { program, env: {} } : { program: WRAPPER, env: { FANOUT_WORKERD: program } };
}
