/**
 * The configuration of the workerd that serves a local gateway: the bundled Worker with its objects, Miniflare's simulation of R2 for
 * its buckets, and the network. Folders and keys of objects are those of `wrangler dev --persist-to`, so that each of the two programs
 * continues what the other has stored.
 */
import { readFileSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { rootCertificates } from "node:tls";
import { objectEntryWorker, serializeConfig, type Config, type Service, type Worker } from "miniflare";
import { ROOT } from "../root.ts";
import { bundleWorker } from "./bundle.ts";
import { DISK_SERVICE } from "./disk.ts";
import type { LocalPlan } from "./plan.ts";
import { SOCKET } from "./workerd.ts";

/** Folder in which `wrangler dev --persist-to` stores its data; sharing it lets both programs use the same runs. */
const WRANGLER_LAYOUT = "v3";

const GATEWAY = "gateway";
const OBJECTS = "objects";
const NETWORK = "internet";
const BUCKETS = "buckets";
const BUCKET_OBJECTS = "bucket-objects";
const BUCKET_STORAGE = "bucket-storage";
/** The class of Miniflare's simulation. */
const BUCKET_CLASS = "R2BucketObject";

/** The configuration as workerd reads it with `--binary`. Rejects with esbuild's list of errors if the source does not bundle. */
export async function workerdConfiguration(plan: LocalPlan, dataDir: string): Promise<Buffer> {
  const { code } = await bundleWorker(plan.main, { root: ROOT });
  const state = join(dataDir, WRANGLER_LAYOUT);
  const config: Config = {
    services: [
      { name: GATEWAY, worker: gatewayWorker(plan, code) },
      await folderService(OBJECTS, join(state, "do")),
      ...(await bucketServices(join(state, "r2"))),
      // Such a gateway keeps a reserve of the disk: the Worker asks the process that may look. Its address is an argument of workerd.
      { name: DISK_SERVICE, external: { http: {} } },
      {
        name: NETWORK,
        network: {
          allow: ["public", "private", "240.0.0.0/4"],
          tlsOptions: { trustBrowserCas: true, trustedCertificates: trustedCertificates() },
        },
      },
    ],
    sockets: [{ name: SOCKET, address: "127.0.0.1:0", service: { name: GATEWAY }, http: {} }],
    // What Miniflare's Workers import.
    extensions: [
      {
        modules: [
          { name: "miniflare:shared", esModule: await miniflareFile("shared/index.worker.js") },
          { name: "miniflare:zod", esModule: await miniflareFile("shared/zod.worker.js") },
        ],
      },
    ],
    structuredLogging: true,
  };
  return serializeConfig(config);
}

function gatewayWorker(plan: LocalPlan, code: string): Worker {
  const classNames = Object.entries(plan.objects);
  return {
    modules: [{ name: "gateway.mjs", esModule: code }],
    compatibilityDate: plan.compatibilityDate,
    compatibilityFlags: [...plan.compatibilityFlags],
    bindings: [
      ...Object.entries(plan.vars).map(([name, value]) =>
        typeof value === "string" ? { name, text: value } : { name, json: JSON.stringify(value) },
      ),
      ...classNames.map(([name, className]) => ({ name, durableObjectNamespace: { className } })),
      ...Object.entries(plan.buckets).map(([name, bucket]) => ({
        name,
        r2Bucket: { name: BUCKETS, props: { json: JSON.stringify({ MINIFLARE_NAMESPACE: bucket }) } },
      })),
      { name: "DISK", service: { name: DISK_SERVICE } },
    ],
    durableObjectNamespaces: classNames.map(([, className]) => ({
      className,
      enableSql: true,
      // Names the folder of the class.
      uniqueKey: `${plan.name}-${className}`,
    })),
    durableObjectStorage: { localDisk: OBJECTS },
    globalOutbound: { name: NETWORK },
  };
}

/** Miniflare's simulation of R2: one object for each bucket, which stores its list in SQLite and its objects as files. */
async function bucketServices(folder: string): Promise<Service[]> {
  return [
    { name: BUCKETS, worker: objectEntryWorker({ serviceName: BUCKET_OBJECTS, className: BUCKET_CLASS }) },
    {
      name: BUCKET_OBJECTS,
      worker: {
        modules: [{ name: "bucket.worker.js", esModule: await miniflareFile("r2/bucket.worker.js") }],
        compatibilityDate: "2023-07-24",
        compatibilityFlags: ["nodejs_compat", "experimental"],
        durableObjectNamespaces: [{ className: BUCKET_CLASS, uniqueKey: `miniflare-${BUCKET_CLASS}` }],
        durableObjectStorage: { localDisk: BUCKET_STORAGE },
        bindings: [{ name: "MINIFLARE_BLOBS", service: { name: BUCKET_STORAGE } }],
      },
    },
    await folderService(BUCKET_STORAGE, folder),
  ];
}

/** A folder for workerd, which is created if it is missing. */
async function folderService(name: string, folder: string): Promise<Service> {
  await mkdir(folder, { recursive: true });
  return { name, disk: { path: folder.replaceAll("\\", "/"), writable: true } };
}

/** A Worker of Miniflare. Its package exports no text of them, only the class that assembles and runs them all. */
function miniflareFile(path: string): Promise<string> {
  const main = createRequire(import.meta.url).resolve("miniflare");
  return readFile(join(dirname(main), "workers", path), "utf8");
}

/** What is trusted beside the system's certificates: those of NODE_EXTRA_CA_CERTS, and Node's on Windows, where workerd finds none. */
function trustedCertificates(): string[] {
  const own = process.platform === "win32" ? rootCertificates : [];
  const { NODE_EXTRA_CA_CERTS: file } = process.env;
  if (file === undefined) return [...own];
  try {
    const extra = readFileSync(file, "utf8").match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g);
    return [...own, ...(extra ?? [])];
  } catch {
    // Node itself has warned of a file that it cannot read.
    return [...own];
  }
}
