/** A follower of a run's log that leaves, with a run object whose sockets open when the test says so. */
import { expect, it } from "vitest";
import { LogReader } from "../../../../src/objects/clients/log-reader.ts";
import type { Objects } from "../../../../src/objects/address.ts";

class RunSide extends EventTarget {
  isClosed = false;
  accept(): void {}
  send(): void {}
  close(): void {
    this.isClosed = true;
  }
}

/** A run whose log is empty and not final, and which gives its one follower a socket at `opens`. */
function runWith(socket: RunSide, opens: Promise<void>): Objects {
  const stub = {
    logPage: () => Promise.resolve({ rows: [], final: false, run: {} }),
    fetch: () => opens.then(() => ({ webSocket: socket })),
  };
  const namespace = { idFromName: () => ({}), get: () => stub };
  return { RUN: namespace } as unknown as Objects;
}

async function readToItsEnd(reader: LogReader, signal: AbortSignal): Promise<void> {
  for await (const _ of reader.live(0, signal));
}

it("closes the socket of a reader that left while it was opening", async () => {
  const socket = new RunSide();
  const opening = Promise.withResolvers<void>();
  const leaving = new AbortController();
  const reading = readToItsEnd(new LogReader(runWith(socket, opening.promise), "run_1", null), leaving.signal);
  leaving.abort();
  opening.resolve();
  await reading;
  expect(socket.isClosed).toBe(true);
});

it("closes the socket of a reader that leaves while it waits for an event", async () => {
  const socket = new RunSide();
  const leaving = new AbortController();
  const reading = readToItsEnd(new LogReader(runWith(socket, Promise.resolve()), "run_1", null), leaving.signal);
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect(socket.isClosed).toBe(false);
  leaving.abort();
  await reading;
  expect(socket.isClosed).toBe(true);
});
