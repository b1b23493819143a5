/** The free space of the disk that has a local gateway's state, for the Worker, and a line for its operator when it becomes scarce. */
import { statfs } from "node:fs/promises";
import { createServer } from "node:http";
import { DISK_RESERVE_BYTES } from "../../src/limits.ts";

/** The service of workerd's configuration that answers the Worker's binding `DISK`. */
export const DISK_SERVICE = "disk";

/** Bytes that this process may still write to the disk that has the folder. */
export async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

const MIB = 1024 * 1024;

/** What the Worker's binding `DISK` answers: the free bytes as a number. */
export class DiskService {
  readonly #freeBytes: () => Promise<number>;
  readonly #log: (line: string) => void;
  #isScarce = false;

  constructor(freeBytes: () => Promise<number>, log: (line: string) => void) {
    this.#freeBytes = freeBytes;
    this.#log = log;
  }

  /** The figure. Tells the operator when it has fallen below the reserve, and when it is above it again. */
  async answer(): Promise<string> {
    const freeBytes = await this.#freeBytes();
    const isScarce = freeBytes < DISK_RESERVE_BYTES;
    if (isScarce !== this.#isScarce) {
      const free = `The disk of the state has ${Math.floor(freeBytes / MIB)} MiB left`;
      this.#log(
        isScarce
          ? `${free}, less than the reserve of ${DISK_RESERVE_BYTES / MIB} MiB: nothing opens until some is freed.`
          : `${free}: requests are accepted again.`,
      );
    }
    this.#isScarce = isScarce;
    return String(freeBytes);
  }
}

/** Answers the binding on a port of this machine. */
export async function startDiskServer(disk: DiskService): Promise<{ port: number; stop: () => Promise<void> }> {
  const server = createServer((request, reply) => {
    request.resume();
    void disk.answer().then(
      (figure) => reply.end(figure),
      () => reply.writeHead(500).end(),
    );
  });
  // workerd would use a connection again in the moment in which it is closed.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    stop: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
