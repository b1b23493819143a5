/** The bound of the body of the route that answers a request. */
import type { Context, MiddlewareHandler } from "hono";
import { routePath } from "hono/route";
import type { AppEnv } from "../context.ts";
import { bodyTooLarge, readBytes } from "../contract/body.ts";
import { bodyBound, readsNoBody } from "../contract/body-bounds.ts";
import { Refusal } from "../errors.ts";

/** Most bytes that the body of this request may have. */
export function bodyBytesMax(c: Context<AppEnv>): number {
  const bytesMax = bodyBound(c.req.method, routePath(c));
  if (bytesMax === null) throw new Error(`${c.req.method} ${routePath(c)} has no bound for its body`);
  return bytesMax;
}

/**
 * Refuses a body that is announced to be too large before anything else is done for its request, and on routes that read
 * none one that turns out to be.
 */
export function boundBody(): MiddlewareHandler<AppEnv> {
  return async function boundBody(c, next) {
    const bytesMax = bodyBound(c.req.method, routePath(c));
    if (bytesMax !== null) {
      if (Number(c.req.header("content-length")) > bytesMax) throw new Refusal(bodyTooLarge(bytesMax));
      if (readsNoBody(c.req.method, routePath(c)) && c.req.raw.body !== null) {
        const read = await readBytes(c.req.raw, bytesMax);
        if (!read.ok) throw new Refusal(read.reason);
      }
    }
    await next();
  };
}
