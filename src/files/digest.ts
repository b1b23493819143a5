/** A digest as hexadecimal text, computed by the runtime as bytes are added. */
export class Digest {
  readonly #stream: DigestStream;
  readonly #writer: WritableStreamDefaultWriter<ArrayBuffer | ArrayBufferView>;

  constructor(algorithm: "MD5" | "SHA-256") {
    this.#stream = new crypto.DigestStream(algorithm);
    this.#writer = this.#stream.getWriter();
  }

  async add(bytes: Uint8Array): Promise<void> {
    await this.#writer.write(bytes);
  }

  /** The digest of all bytes that were added. Call it once, after the last. */
  async hex(): Promise<string> {
    await this.#writer.close();
    return [...new Uint8Array(await this.#stream.digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }
}
