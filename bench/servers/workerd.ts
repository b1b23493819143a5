/** Plain workerd around one bundled Worker: no development proxy in between, one process, state in a temporary folder. */
import { rmSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleWorker, type Bundle } from "../../scripts/local/bundle.ts";
import { capnpConfig } from "../../test/support/capnp-config.ts";
import { serveWorkerd } from "../../test/support/workerd.ts";
import { cpuMsOf, exitAtSignals, rssBytesOf, threadsOf } from "./process.ts";
import type { Server } from "./process.ts";

/** A running workerd. `inspectorUrl` is null unless the inspector was requested. */
export type Workerd = Server & { inspectorUrl: string | null };

export type WorkerdOptions = {
  bundle: Bundle;
  vars: Record<string, unknown>;
  /** The object classes of the Worker: the gateway's, or these by their bindings. */
  objects: "gateway" | Readonly<Record<string, string>>;
  inspector?: boolean;
};

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Bundles the module at `entryPoint`, a path from the root of a checkout: this one, unless another is named. */
export function bundleOf(entryPoint: string, root: string = ROOT): Promise<Bundle> {
  return bundleWorker(entryPoint, { root, sourceMap: true });
}

/** Starts workerd on free loopback ports and waits until it listens. Disposing ends it and deletes its state. */
export async function startWorkerd(options: WorkerdOptions): Promise<Workerd> {
  exitAtSignals();
  const scratchDir = await mkdtemp(join(tmpdir(), "fanout-bench-"));
  const removeScratch = () => rm(scratchDir, { recursive: true, force: true });
  const configFile = join(scratchDir, "config.capnp");
  const dataDir = join(scratchDir, "data");
  await mkdir(dataDir);
  await writeFile(join(scratchDir, "gateway.mjs"), options.bundle.code);
  const wranglerToml = await wranglerTomlWith(options.objects);
  await writeFile(configFile, capnpConfig({ wranglerToml, vars: options.vars, dataDir, port: 0 }));
  const args = options.inspector === true ? ["--inspector-addr=127.0.0.1:0"] : [];
  try {
    const workerd = await serveWorkerd(configFile, args);
    // For a bench that ends in the middle. Its handler comes after the one that ends workerd.
    const removeAtExit = () => rmSync(scratchDir, { recursive: true, force: true });
    process.once("exit", removeAtExit);
    return {
      url: workerd.url,
      inspectorUrl: workerd.inspectorUrl,
      rssBytes: () => rssBytesOf(workerd.pid),
      cpuMs: () => cpuMsOf(workerd.pid),
      threads: () => threadsOf(workerd.pid),
      output: workerd.output,
      [Symbol.asyncDispose]: async () => {
        await workerd.kill();
        process.off("exit", removeAtExit);
        await removeScratch();
      },
    };
  } catch (error) {
    await removeScratch();
    throw error;
  }
}

/** The gateway's own configuration, so that all run under the same compatibility, with the objects of a Worker in place of its own. */
async function wranglerTomlWith(objects: WorkerdOptions["objects"]): Promise<string> {
  const text = await readFile(join(ROOT, "wrangler.toml"), "utf8");
  if (objects === "gateway") return text;
  const own = Object.entries(objects).map(([binding, name]) => `{ name = "${binding}", class_name = "${name}" }`);
  return [text.replaceAll(/^.*class_name.*$/gm, ""), ...own].join("\n");
}
