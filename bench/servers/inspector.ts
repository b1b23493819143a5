/** A client of workerd's inspector: the Chrome DevTools protocol over a WebSocket, cut down to calls and their answers. */
import { z } from "zod";

const targets = z.array(z.object({ id: z.string(), webSocketDebuggerUrl: z.string() }));
const event = z.object({ method: z.string(), params: z.unknown() });
const reply = z.object({
  id: z.number(),
  result: z.unknown().optional(),
  error: z.object({ message: z.string() }).optional(),
});

/** Longest wait for one answer, ms: the isolate answers between two turns, and under load a turn may last long. */
const REPLY_MS_MAX = 60_000;

export type Inspector = Disposable & {
  /** Calls a method, such as `Runtime.getHeapUsage`; rejects if the inspector names an error or keeps silent. */
  call: (method: string, params?: Record<string, unknown>) => Promise<unknown>;
  /** Receives the events of a name, such as the pieces of a snapshot; returns what ends it. */
  listen: (method: string, listener: (params: unknown) => void) => () => void;
};

/** Connects to the one isolate of a workerd that was started with its inspector at `url`. */
export async function connectInspector(url: string): Promise<Inspector> {
  const [target] = await isolatesOf(url);
  if (target === undefined) throw new Error("the inspector lists no isolate");
  return await connectTo(target.webSocketDebuggerUrl);
}

/** Connects to each isolate of a workerd, in no promised order; `id` names the service that it serves. */
export async function connectInspectors(url: string): Promise<{ id: string; inspector: Inspector }[]> {
  const isolates = await isolatesOf(url);
  return await Promise.all(
    isolates.map(async ({ id, webSocketDebuggerUrl }) => ({ id, inspector: await connectTo(webSocketDebuggerUrl) })),
  );
}

async function isolatesOf(url: string): Promise<z.infer<typeof targets>> {
  return targets.parse(await (await fetch(`${url}/json`)).json());
}

async function connectTo(socketUrl: string): Promise<Inspector> {
  const socket = new WebSocket(socketUrl);
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve, { once: true });
    socket.addEventListener("error", () => reject(new Error("the inspector refused the connection")), { once: true });
  });
  const waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  const listeners = new Map<string, (params: unknown) => void>();
  socket.addEventListener("message", ({ data }) => {
    const value: unknown = JSON.parse(String(data));
    const message = reply.safeParse(value);
    if (!message.success) {
      const { data: notice } = event.safeParse(value);
      if (notice !== undefined) listeners.get(notice.method)?.(notice.params);
      return;
    }
    const { id, result, error } = message.data;
    if (error === undefined) waiting.get(id)?.resolve(result);
    else waiting.get(id)?.reject(new Error(error.message));
    waiting.delete(id);
  });
  let lastId = 0;
  return {
    call: (method, params = {}) =>
      new Promise((resolve, reject) => {
        const id = ++lastId;
        const timer = setTimeout(() => reject(new Error(`${method}: no answer for ${REPLY_MS_MAX} ms`)), REPLY_MS_MAX);
        const settled = () => clearTimeout(timer);
        waiting.set(id, {
          resolve: (result) => (settled(), resolve(result)),
          reject: (error) => (settled(), reject(error)),
        });
        socket.send(JSON.stringify({ id, method, params }));
      }),
    listen: (method, listener) => {
      listeners.set(method, listener);
      return () => listeners.delete(method);
    },
    [Symbol.dispose]: () => socket.close(),
  };
}
