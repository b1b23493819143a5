/** The bound of the body of the route that answers a request, and the memory that all bodies of the isolate share. */
import type { Context } from "hono";
import { HeldBytes, type Hold } from "../text/bytes/held-bytes.ts";
import { ClientSignal } from "./client-signal.ts";
import type { AppEnv } from "./context.ts";
import { bodyTooLarge, readBytes, type BodyRoom } from "../contract/body.ts";
import { bodyBytesMax } from "../contract/routes/record.ts";
import { Refusal } from "../errors.ts";
import { BODIES_HELD_BYTES_MAX, BODY_HELD_MS_MAX, LARGE_BODY_BYTES_MIN } from "../limits.ts";

/** The bodies of all requests of this isolate, which share its 128 MB. */
const bodies = new HeldBytes({
  bytesMax: BODIES_HELD_BYTES_MAX,
  largeBytesMin: LARGE_BODY_BYTES_MIN,
  ageMsMax: BODY_HELD_MS_MAX,
});

/** How many bytes the body of this request may have, and what it takes of the memory of all. */
export function bodyRoom(c: Context<AppEnv>): BodyRoom {
  const bytesMax = bodyBytesMax(c.get("route"));
  if (bytesMax === null) throw new Error(`${c.get("route").name} has no bound for its body`);
  const hold = c.get("bodyHold");
  return { bytesMax, take: (totalBytes) => hold.take(totalBytes, Date.now()) };
}

/**
 * Answers a request by `answer`, but refuses a body that is announced to be too large before anything else is done for it, and on routes
 * that read none one that turns out to be. What is read counts until the request is answered, or its client has left.
 */
export async function withBoundBody(c: Context<AppEnv>, answer: () => Promise<Response>): Promise<Response> {
  const route = c.get("route");
  const bytesMax = bodyBytesMax(route);
  if (bytesMax === null) return await answer();
  if (Number(c.req.header("content-length")) > bytesMax) throw new Refusal(bodyTooLarge(bytesMax));
  const hold: Hold = bodies.hold();
  c.set("bodyHold", hold);
  // The runtime may end a request whose client has left, and then no promise of that request settles.
  const client = new ClientSignal(c.req.raw.signal);
  client.addEventListener("abort", hold.release);
  c.set("client", client);
  try {
    if (route.bound === undefined && c.req.raw.body !== null) {
      const read = await readBytes(c.req.raw, bodyRoom(c));
      if (!read.ok) throw new Refusal(read.reason);
    }
    return await answer();
  } finally {
    hold.release();
    client.removeEventListener("abort", hold.release);
  }
}
