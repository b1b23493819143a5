/** MD5 as hexadecimal text, computed by the runtime while the bytes pass. */

export class Md5 {
  readonly #stream = new crypto.DigestStream("MD5");
  readonly #writer = this.#stream.getWriter();

  async add(bytes: Uint8Array): Promise<void> {
    await this.#writer.write(bytes);
  }

  /** Of all that was added; nothing can be added after it. */
  async hex(): Promise<string> {
    await this.#writer.close();
    return [...new Uint8Array(await this.#stream.digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }
}
