/**
 * A local gateway: the bundled Worker on workerd, with its objects and buckets in one folder, behind a TCP relay that detects client
 * disconnects. workerd is started again after a crash. `wrangler dev --persist-to` can use the same folder; only one process may use a
 * folder at a time.
 */
import "./small-heap.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { apart } from "./apart.ts";
import { claimFolder } from "./claim-folder.ts";
import { DISK_SERVICE, DiskService, freeBytesOf, startDiskServer } from "./disk.ts";
import type { LocalSetting } from "./plan.ts";
import { startSplice } from "./splice.ts";
import { ORPHAN_ENDS_MS } from "./workerd-program.ts";
import { startWorkerd } from "./workerd.ts";

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

/** Starts the gateway. Rejects if the source does not bundle, the folder cannot be used or is in use, or the port is taken. */
export async function startLocalGateway(setting: LocalSetting, options: LocalGatewayOptions): Promise<LocalGateway> {
  const claim = claimFolder(options.dataDir);
  if ("usedBy" in claim) {
    throw new Error(`Process ${claim.usedBy} runs a gateway on ${options.dataDir}. Stop it, or use another folder.`);
  }
  try {
    if (claim.wasLeft) await sleep(ORPHAN_ENDS_MS);
    return await start(setting, { ...options, release: claim.release });
  } catch (error) {
    claim.release();
    throw error;
  }
}

type StartOptions = LocalGatewayOptions & {
  /** Releases the folder. */
  release: () => void;
};

async function start(setting: LocalSetting, options: StartOptions): Promise<LocalGateway> {
  const { dataDir, log } = options;
  const configuration = await apart("configuration-program.ts", { ...setting, dataDir });
  await using started = new AsyncDisposableStack();
  const disk = await startDiskServer(new DiskService(options.freeBytes ?? (() => freeBytesOf(dataDir)), log));
  started.defer(disk.stop);
  const args = [`--external-addr=${DISK_SERVICE}=127.0.0.1:${disk.port}`];
  const workerd = await startWorkerd({ configuration, args, log });
  started.defer(workerd.stop);
  const splice = await startSplice({ host: options.host, port: options.port }, workerd.address);
  const running = started.move();
  const host = options.host === "0.0.0.0" ? "127.0.0.1" : options.host;
  return {
    url: `http://${host}:${splice.port}`,
    busy: splice.busy,
    stop: async (drainMs = 0) => {
      if (drainMs > 0) await splice.drain(drainMs);
      await splice.close();
      await running.disposeAsync();
      options.release();
    },
  };
}
