/** Decodes bytes that several readers look at one after the other once. */

const utf8 = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

export class LastText {
  #bytes: Uint8Array | null = null;
  #text = "";

  /** The text of bytes in UTF-8, with a byte order mark and with a replacement for what is none. The bytes of a view must not change. */
  of(bytes: Uint8Array): string {
    if (bytes !== this.#bytes) {
      this.#text = utf8.decode(bytes);
      this.#bytes = bytes;
    }
    return this.#text;
  }
}
