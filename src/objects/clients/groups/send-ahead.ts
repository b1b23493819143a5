/** Pieces of one upload, several of which are on their way at once: their bytes are bounded, and the first failure ends it. */
export class SendAhead {
  readonly #sizeMax: number;
  readonly #inFlight = new Set<Promise<void>>();
  #size = 0;
  #failure: { error: unknown } | null = null;

  /** @param sizeMax Total size of the pieces on their way, in the unit of `add`; a larger piece goes alone. */
  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
  }

  /** Starts to send a piece, as soon as there is room for it. Rejects with the failure of an earlier one, and sends nothing then. */
  async add(size: number, send: () => Promise<void>): Promise<void> {
    while (this.#failure === null && this.#inFlight.size > 0 && this.#size + size > this.#sizeMax) {
      await Promise.race(this.#inFlight);
    }
    if (this.#failure !== null) throw this.#failure.error;
    this.#size += size;
    const sent: Promise<void> = send()
      .catch((error: unknown) => {
        this.#failure ??= { error };
      })
      .finally(() => {
        this.#size -= size;
        this.#inFlight.delete(sent);
      });
    this.#inFlight.add(sent);
  }

  /** Resolves when nothing is on its way any more, also after a failure. */
  async settled(): Promise<void> {
    while (this.#inFlight.size > 0) await Promise.all(this.#inFlight);
  }

  /** Resolves when every piece has arrived. Rejects with the first failure, when nothing is on its way any more. */
  async arrived(): Promise<void> {
    await this.settled();
    if (this.#failure !== null) throw this.#failure.error;
  }
}
