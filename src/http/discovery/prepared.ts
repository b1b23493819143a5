/** Documents that are the same for everybody: written once, sent as bytes, and not sent again to who has them. */
import type { Context } from "hono";
import { sha256Hex } from "../../objects/clients/dedupe-key.ts";

const encoder = new TextEncoder();

export class Prepared {
  readonly #write: () => string | Promise<string>;
  #document: Promise<{ bytes: Uint8Array<ArrayBuffer>; etag: string }> | null = null;

  constructor(write: () => string | Promise<string>) {
    this.#write = write;
  }

  /** Sends the document, or says that the client has it. */
  async send(c: Context, headers: Record<string, string>): Promise<Response> {
    const { bytes, etag } = await (this.#document ??= this.#make());
    const all = { ...headers, etag };
    const known = (c.req.header("if-none-match") ?? "").slice(0, KNOWN_CHARS_MAX).split(",");
    const hasIt = known.some((each) => each.trim().replace(/^W\//, "") === etag || each.trim() === "*");
    return hasIt ? c.body(null, 304, all) : c.body(bytes, 200, all);
  }

  async #make() {
    const bytes = new Uint8Array(encoder.encode(await this.#write()));
    return { bytes, etag: `"${(await sha256Hex(bytes)).slice(0, 32)}"` };
  }
}

/** Characters of `If-None-Match` that are read: two dozen documents. */
const KNOWN_CHARS_MAX = 1_000;
