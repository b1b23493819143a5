/** The free space of the disk that has a local gateway's state, for the Worker, and a line for its operator when it becomes scarce. */
import { statfs } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
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

/** Ends the head of a request. workerd's have no body. */
const HEAD_END = "\r\n\r\n";
/** Most characters of a head: workerd's have some hundred, and another program of this machine must not fill this process. */
const HEAD_CHARS_MAX = 16 * 1024;

/**
 * Answers the binding on a port of this machine: HTTP as far as workerd needs it for one request after another. Node's own server would
 * keep 14 MB in this process.
 */
export async function startDiskServer(disk: DiskService): Promise<{ port: number; stop: () => Promise<void> }> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    // A workerd that ends resets its connection.
    socket.on("error", () => undefined);
    let unread = "";
    socket.setEncoding("latin1").on("data", (piece: string) => {
      const heads = (unread + piece).split(HEAD_END);
      unread = heads.pop() ?? "";
      if (unread.length > HEAD_CHARS_MAX) socket.destroy();
      for (const _ of heads) void reply(socket, disk);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    stop: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

async function reply(socket: Socket, disk: DiskService): Promise<void> {
  try {
    const figure = await disk.answer();
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${figure.length}${HEAD_END}${figure}`);
  } catch {
    socket.write(`HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0${HEAD_END}`);
  }
}
