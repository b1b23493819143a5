/** A gateway with R2 whose inspector listens: Miniflare in this process, so that nothing is between it and the bench. */
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from "miniflare";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { cpuMsOf, miniflarePid, rssBytesOf, type Server } from "../servers/process.ts";
import { gatewayBundle } from "../servers/servers.ts";
import type { Workerd } from "../servers/workerd.ts";
import { openBatchRun, varsFor, type BatchRun } from "./world.ts";

const WRANGLER_TOML = fileURLToPath(new URL("../../wrangler.toml", import.meta.url));
/** What Miniflare calls the isolate of the Worker named `gateway`, in which its objects live too. */
const ISOLATE = "core:user:gateway";

export type InspectedGateway = Workerd & { openRun: (maxParallel: number) => Promise<BatchRun> };

/** Starts it with `provider` as its one upstream. Disposing ends it and deletes its state. */
export async function startInspected(provider: Pick<Server, "url">): Promise<InspectedGateway> {
  const scratchDir = await mkdtemp(join(tmpdir(), "fanout-bench-inspected-"));
  await writeFile(join(scratchDir, "gateway.mjs"), (await gatewayBundle()).code);
  const vars = varsFor(provider);
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      host: "127.0.0.1",
      inspectorPort: 0,
      resourcePersistencePath: join(scratchDir, "data"),
      telemetry: { enabled: false },
      log: new Log(LogLevel.ERROR),
      logRequests: false,
      name: "gateway",
      modules: [{ type: "ESModule", path: join(scratchDir, "gateway.mjs") }],
      modulesRoot: scratchDir,
      bindings: vars,
      ...(await workerOptions()),
    }),
  );
  const stop = async () => {
    await miniflare.dispose();
    await rm(scratchDir, { recursive: true, force: true });
  };
  try {
    const { origin: url } = await miniflare.ready;
    const inspectorUrl = (await miniflare.getInspectorURL()).origin.replace("ws:", "http:");
    await requireFirst(inspectorUrl);
    const pid = miniflarePid();
    return {
      url,
      inspectorUrl,
      rssBytes: () => rssBytesOf(pid),
      cpuMs: () => cpuMsOf(pid),
      output: () => "",
      openRun: (maxParallel) => openBatchRun(url, vars.ADMIN_KEY, maxParallel),
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Compatibility, objects and the bucket, read from wrangler.toml, their only home. */
async function workerOptions() {
  const toml = await readFile(WRANGLER_TOML, "utf8");
  const found = (pattern: RegExp): string => pattern.exec(toml)?.[1] ?? "";
  const objects = [...toml.matchAll(/\{ name = "(\w+)", class_name = "(\w+)" \}/g)];
  const flags = found(/^compatibility_flags = \[(.*)\]$/m).matchAll(/"([^"]+)"/g);
  return {
    compatibilityDate: found(/^compatibility_date = "([^"]+)"/m),
    compatibilityFlags: [...flags].map(([, flag = ""]) => flag),
    durableObjects: Object.fromEntries(
      objects.map(([, binding = "", className = ""]) => [binding, { className, useSQLite: true }]),
    ),
    r2Buckets: { [found(/^\[\[r2_buckets\]\]\nbinding = "(\w+)"/m)]: found(/^bucket_name = "([^"]+)"/m) },
  };
}

const targets = z.array(z.object({ id: z.string() }));

/** The bench's inspector looks at the first isolate on the list: Miniflare's simulators have isolates of their own. */
async function requireFirst(inspectorUrl: string): Promise<void> {
  const listed = targets.parse(await (await fetch(`${inspectorUrl}/json`)).json());
  if (listed[0]?.id !== ISOLATE) throw new Error(`the inspector lists ${listed.map(({ id }) => id).join(", ")}`);
}
