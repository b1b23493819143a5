/**
 * Whether a connection to an upstream can be made, found out before the first request to it. Only then is it certain that
 * nothing was sent: workerd reports a refused connection and one that was lost after a request in the same words.
 */

/** Where a connection goes. */
export type Address = { hostname: string; port: number; tls: boolean };

/** Makes a connection, up to the end of the TLS handshake, and closes it; rejects if none can be made. */
export type Connect = (address: Address) => Promise<void>;

/** The hosts that this isolate has reached. As many as the operator has configured: each is the host of a `base_url`. */
export class ReachedHosts {
  readonly #connect: Connect;
  readonly #origins = new Set<string>();

  constructor(connect: Connect) {
    this.#connect = connect;
  }

  /** Null if the host of `url` was reached before; else whether it can be reached. */
  look(url: string): Promise<boolean> | null {
    const { origin, protocol, hostname, port } = new URL(url);
    if (this.#origins.has(origin)) return null;
    const tls = protocol === "https:";
    const address = { hostname, port: port === "" ? (tls ? 443 : 80) : Number(port), tls };
    return this.#connect(address).then(
      () => {
        this.#origins.add(origin);
        return true;
      },
      () => false,
    );
  }
}
