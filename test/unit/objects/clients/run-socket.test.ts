/** A socket to a run that is opened anew at some age, with sockets whose close arrives late. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { SOCKET_RENEW_MS } from "../../../../src/limits.ts";
import type { RunCaller } from "../../../../src/objects/clients/caller.ts";
import { RunSocket } from "../../../../src/objects/clients/run-socket.ts";

/** A socket of workerd: its `close` event comes when the other side has replied, here when the test says so. */
class LateSocket extends EventTarget {
  readonly codes: (number | undefined)[] = [];
  accept(): void {}
  send(): void {}
  close(code?: number): void {
    this.codes.push(code);
  }
  closeArrives(): void {
    this.dispatchEvent(new Event("close"));
  }
}

const opened: LateSocket[] = [];

/** A run that gives each request a socket. */
const run = {
  callOnce: () => {
    const webSocket = new LateSocket();
    opened.push(webSocket);
    return Promise.resolve({ webSocket });
  },
} as unknown as RunCaller;

beforeEach(() => {
  opened.length = 0;
  vi.useFakeTimers();
  vi.stubGlobal("scheduler", { wait: (ms: number) => new Promise((resolve) => setTimeout(resolve, ms)) });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const open = (): RunSocket =>
  new RunSocket(
    { kind: "executor", executor: 0 },
    { run, signalled: () => undefined, refused: () => Promise.resolve(), renewMs: SOCKET_RENEW_MS },
  );

it("is renewed again and again, though each old socket's close arrives when the next is open", async () => {
  const socket = open();
  for (let renewals = 1; renewals <= 5; renewals++) {
    await vi.advanceTimersByTimeAsync(SOCKET_RENEW_MS + 1_000);
    expect(opened).toHaveLength(renewals + 1);
    opened[renewals - 1]?.closeArrives();
  }
  socket.close();
  await vi.advanceTimersByTimeAsync(10 * SOCKET_RENEW_MS);
  expect(opened).toHaveLength(6);
});

it("is opened again when it is lost, and renewed at its own age from then", async () => {
  const socket = open();
  await vi.advanceTimersByTimeAsync(SOCKET_RENEW_MS - 1_000);
  opened[0]?.closeArrives();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(opened).toHaveLength(2);
  expect(opened[1]?.codes).toEqual([]);
  await vi.advanceTimersByTimeAsync(SOCKET_RENEW_MS);
  expect(opened).toHaveLength(3);
  socket.close();
});
