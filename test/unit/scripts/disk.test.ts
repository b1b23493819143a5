/** What answers the Worker's question for the free space of the disk, over HTTP on a port of the machine. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { DiskService, startDiskServer } from "../../../scripts/local/disk.ts";

it("answers one request after another on a connection, also one that comes in pieces", async () => {
  const figures = [7_000, 12, 300];
  const socket = await connected(async () => figures.shift() ?? 0);
  const head = "GET / HTTP/1.1\r\nhost: disk\r\n\r\n";
  for (const figure of ["7000", "12"]) {
    socket.write(head.slice(0, 9));
    await new Promise(setImmediate);
    socket.write(head.slice(9));
    expect(await saidBy(socket)).toBe(`HTTP/1.1 200 OK\r\ncontent-length: ${figure.length}\r\n\r\n${figure}`);
  }
  const reply = await fetch(`http://127.0.0.1:${socket.remotePort}/`);
  expect(await reply.json()).toBe(300);
});

it("answers 500 if the disk cannot be asked", async () => {
  const socket = await connected(() => Promise.reject(new Error("no such folder")));
  const reply = await fetch(`http://127.0.0.1:${socket.remotePort}/`);
  expect(reply.status).toBe(500);
});

it("closes a connection whose request has no end", async () => {
  const socket = await connected(async () => 1);
  const { remotePort } = socket;
  const closed = once(socket, "close");
  socket.on("error", () => undefined).write("x".repeat(40_000));
  await closed;
  const another = await fetch(`http://127.0.0.1:${remotePort}/`);
  expect(await another.text()).toBe("1");
});

/** A connection to a server that says so many bytes are free. Both end with the test. */
async function connected(freeBytes: () => Promise<number>): Promise<Socket> {
  const { port, stop } = await startDiskServer(new DiskService(freeBytes, () => undefined));
  onTestFinished(stop);
  const socket = connect(port, "127.0.0.1").setEncoding("latin1");
  await once(socket, "connect");
  return socket;
}

async function saidBy(socket: Socket): Promise<string> {
  const [said] = await once(socket, "data");
  return String(said);
}
