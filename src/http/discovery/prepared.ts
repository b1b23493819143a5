/** Documents that are the same for everybody: written once, in slices, sent as bytes, and not sent again to who has them. */
import type { Context } from "hono";
import { sha256Hex } from "../../objects/clients/dedupe-key.ts";
import { SlicedOnce } from "../../text/bytes/sliced-once.ts";
import { inSlices, pause, type Sliced } from "../../text/bytes/slices.ts";

const encoder = new TextEncoder();

type Document = { bytes: Uint8Array<ArrayBuffer>; etag: string };

export class Prepared {
  readonly #bytes: SlicedOnce<Uint8Array<ArrayBuffer>>;
  #document: Document | null = null;

  constructor(write: () => Sliced<string> | string) {
    this.#bytes = new SlicedOnce(function* () {
      const text = write();
      return new Uint8Array(encoder.encode(typeof text === "string" ? text : yield* text));
    });
  }

  /** Sends the document, or says that the client has it. */
  async send(c: Context, headers: Record<string, string>): Promise<Response> {
    const { bytes, etag } = this.#document ?? (await this.#make());
    const all = { ...headers, etag };
    const known = (c.req.header("if-none-match") ?? "").slice(0, KNOWN_CHARS_MAX).split(",");
    const hasIt = known.some((each) => each.trim().replace(/^W\//, "") === etag || each.trim() === "*");
    return hasIt ? c.body(null, 304, all) : c.body(bytes, 200, all);
  }

  /** Who comes before the document is there writes it with the others: a promise of another request may never settle. */
  async #make(): Promise<Document> {
    // Many may come at once: their first slices take turns, too.
    await pause();
    const bytes = await inSlices(this.#bytes.result(), pause);
    return (this.#document ??= { bytes, etag: `"${(await sha256Hex(bytes)).slice(0, 32)}"` });
  }
}

/** Characters of `If-None-Match` that are read: two dozen documents. */
const KNOWN_CHARS_MAX = 1_000;
