/**
 * A local gateway: the bundled Worker on Miniflare, with its objects and buckets in one folder, behind a TCP relay that detects
 * client disconnects. Miniflare restarts workerd after a crash. `wrangler dev --persist-to` can use the same folder; only one
 * process may use a folder at a time.
 */
import "./small-heap.ts";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare, Response } from "miniflare";
import { ROOT } from "../root.ts";
import { bundledApart } from "./bundle-apart.ts";
import { claimFolder } from "./claim-folder.ts";
import { DiskService, freeBytesOf } from "./disk.ts";
import type { LocalPlan } from "./plan.ts";
import { startSplice } from "./splice.ts";
import { endWorkerdWithThisProcess, ORPHAN_ENDS_MS } from "./workerd-program.ts";

export type LocalGateway = {
  url: string;
  /** Number of requests in progress. */
  busy(): number;
  /** Waits up to `drainMs` (default 0) for requests in progress, then closes all connections and stops workerd. */
  stop(drainMs?: number): Promise<void>;
};

export type LocalGatewayOptions = {
  host: string;
  /** 0: a free port. */
  port: number;
  /** Folder in which objects and buckets are stored. */
  dataDir: string;
  /** Receives the Worker's console output and messages about workerd. */
  log: (line: string) => void;
  /** Free bytes of the disk; default: of the one that has `dataDir`. */
  freeBytes?: () => Promise<number>;
};

/** Folder in which `wrangler dev --persist-to` stores its data; sharing it lets both programs use the same runs. */
const WRANGLER_LAYOUT = "v3";

/** Starts the gateway. Rejects if the source does not bundle, the folder cannot be used or is in use, or the port is taken. */
export async function startLocalGateway(plan: LocalPlan, options: LocalGatewayOptions): Promise<LocalGateway> {
  // workerd has no jurisdictions: it would refuse every object.
  if ((plan.vars["JURISDICTION"] ?? "") !== "") {
    throw new Error(
      "JURISDICTION holds on Cloudflare only: here all data is in one folder of this machine. Remove it.",
    );
  }
  const claim = claimFolder(options.dataDir);
  if ("usedBy" in claim) {
    throw new Error(`Process ${claim.usedBy} runs a gateway on ${options.dataDir}. Stop it, or use another folder.`);
  }
  endWorkerdWithThisProcess();
  try {
    if (claim.wasLeft) await sleep(ORPHAN_ENDS_MS);
    return await start(plan, { ...options, release: claim.release });
  } catch (error) {
    claim.release();
    throw error;
  }
}

type StartOptions = LocalGatewayOptions & {
  /** Releases the folder. */
  release: () => void;
};

async function start(plan: LocalPlan, options: StartOptions): Promise<LocalGateway> {
  const code = await bundledApart(plan.main, ROOT);
  const disk = new DiskService(options.freeBytes ?? (() => freeBytesOf(options.dataDir)), options.log);
  let stopping = false;
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      host: "127.0.0.1",
      resourcePersistencePath: join(options.dataDir, WRANGLER_LAYOUT),
      // Otherwise Miniflare fetches data about the location of this machine.
      cf: false,
      // Otherwise a Worker in front of the network rewrites the headers of each upstream call, and adds one of its own.
      stripCfConnectingIp: false,
      telemetry: { enabled: false },
      log: new Log(LogLevel.NONE),
      logRequests: false,
      handleStructuredLogs: ({ message }: { message: string }) => options.log(message),
      unsafeHandleRuntimeRestart: () => {
        if (!stopping) options.log("workerd ended and was started again; open groups go on from the disk.");
      },
      name: plan.name,
      rootPath: ROOT,
      modules: [{ type: "ESModule", path: "gateway.mjs", contents: code }],
      compatibilityDate: plan.compatibilityDate,
      compatibilityFlags: [...plan.compatibilityFlags],
      bindings: plan.vars,
      durableObjects: Object.fromEntries(
        Object.entries(plan.objects).map(([binding, className]) => [binding, { className, useSQLite: true }]),
      ),
      r2Buckets: plan.buckets,
      // Such a gateway keeps a reserve of the disk: the Worker asks this process, which may look.
      serviceBindings: { DISK: async () => new Response(await disk.answer()) },
      // The Worker gets its own socket, so that requests do not pass through Miniflare's entry Worker.
      unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
    }),
  );
  const dispose = async (): Promise<void> => {
    stopping = true;
    await miniflare.dispose();
  };
  try {
    await miniflare.ready;
    const direct = await miniflare.unsafeGetDirectURL();
    const target = { host: direct.hostname, port: Number(direct.port) };
    const splice = await startSplice({ host: options.host, port: options.port }, () => target);
    const host = options.host === "0.0.0.0" ? "127.0.0.1" : options.host;
    return {
      url: `http://${host}:${splice.port}`,
      busy: splice.busy,
      stop: async (drainMs = 0) => {
        if (drainMs > 0) await splice.drain(drainMs);
        stopping = true;
        await splice.close();
        await dispose();
        options.release();
      },
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}
