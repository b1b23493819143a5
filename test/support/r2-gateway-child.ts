/**
 * A process that serves the gateway with R2 and Workflows: Miniflare is a library, and a test that kills it needs it in a process of
 * its own. It prints its address on stdout, and ends when its stdin closes.
 */
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from "miniflare";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";

const plan = z.strictObject({
  /** The folder of `gateway.mjs`. */
  scratchDir: z.string(),
  dataDir: z.string(),
  vars: z.record(z.string(), z.json()),
  port: z.int(),
  compatibilityDate: z.string(),
  compatibilityFlags: z.array(z.string()),
  objects: z.array(z.strictObject({ binding: z.string(), className: z.string() })),
  bucketBinding: z.string(),
  bucketName: z.string(),
  /** Null = no Workflow is bound. */
  workflow: z.strictObject({ name: z.string(), binding: z.string(), className: z.string() }).nullable(),
});
export type GatewayPlan = z.infer<typeof plan>;

const [planFile = ""] = process.argv.slice(2);
const read = plan.parse(JSON.parse(await readFile(planFile, "utf8")));
const { workflow } = read;
const miniflare = new Miniflare(
  convertV4MiniflareOptions({
    host: "127.0.0.1",
    port: read.port,
    resourcePersistencePath: read.dataDir,
    telemetry: { enabled: false },
    log: new Log(LogLevel.ERROR),
    logRequests: false,
    name: "gateway",
    modules: [{ type: "ESModule", path: join(read.scratchDir, "gateway.mjs") }],
    modulesRoot: read.scratchDir,
    compatibilityDate: read.compatibilityDate,
    compatibilityFlags: read.compatibilityFlags,
    bindings: read.vars,
    durableObjects: Object.fromEntries(
      read.objects.map(({ binding, className }) => [binding, { className, useSQLite: true }]),
    ),
    r2Buckets: { [read.bucketBinding]: read.bucketName },
    ...(workflow === null
      ? {}
      : { workflows: { [workflow.binding]: { name: workflow.name, className: workflow.className } } }),
  }),
);
const url = await miniflare.ready;
process.stdout.write(`${url.origin}\n`);
process.stdin.resume();
process.stdin.once("end", () => {
  miniflare.dispose().then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
