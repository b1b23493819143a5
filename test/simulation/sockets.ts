/** WebSockets between a request or a lane and an object, which may sleep or restart meanwhile. */
import { current, type Activity } from "./activity.ts";
import { copied } from "./copied.ts";
import type { Network } from "./network.ts";

/** What a socket that breaks closes with. */
const LOST_CODE = 1_006;

/** The object to which one end belongs, whichever instance of it there is. */
export type SocketHolder = {
  message: (end: ObjectEnd, text: string) => void;
  closed: (end: ObjectEnd, code: number) => void;
};

type SocketEvent = { data?: string; code?: number };

/** The end of who has requested the socket. */
export class ClientEnd {
  readonly #network: Network;
  readonly #other: ObjectEnd;
  readonly #listeners: { type: string; listener: (event: SocketEvent) => void; activity: Activity }[] = [];
  #isOpen = true;
  /** What has arrived before `accept`; null = it was accepted. */
  #early: (() => void)[] | null = [];

  constructor(network: Network) {
    this.#network = network;
    this.#other = new ObjectEnd(network, this);
  }

  get other(): ObjectEnd {
    return this.#other;
  }

  accept(): void {
    current().whenEnded(() => this.breaks());
    const early = this.#early ?? [];
    this.#early = null;
    for (const event of early) event();
  }

  addEventListener(type: string, listener: (event: SocketEvent) => void): void {
    this.#listeners.push({ type, listener, activity: current() });
  }

  send(text: string): void {
    if (!this.#isOpen) throw new TypeError("Can't call WebSocket send() after close().");
    this.#network.send(current(), [this, this.#other], () => this.#other.arrived(text));
  }

  close(code = 1_005): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#network.send(current(), [this, this.#other], () => {
      this.#other.gone(code);
      this.#network.carry([this.#other, this], () => this.emit("close", { code }));
    });
  }

  /** The other end has closed, or is gone. */
  gone(code: number): void {
    this.#isOpen = false;
    this.emit("close", { code });
  }

  /** Whoever had this end is gone, or nobody ever got it: the other end notices sooner or later. */
  breaks(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#network.clock.after(this.#network.silenceMs(), () => this.#other.gone(LOST_CODE));
  }

  emit(type: string, event: SocketEvent): void {
    if (this.#early !== null) {
      this.#early.push(() => this.emit(type, event));
      return;
    }
    for (const { type: wanted, listener, activity } of this.#listeners) {
      if (wanted === type && activity.isAlive) activity.run(() => listener(event));
    }
  }
}

/** The object's end, which lasts while the object sleeps. */
export class ObjectEnd {
  readonly #network: Network;
  readonly #other: ClientEnd;
  #holder: SocketHolder | null = null;
  #isOpen = true;
  #attachment: unknown = null;
  tags: readonly string[] = [];

  constructor(network: Network, other: ClientEnd) {
    this.#network = network;
    this.#other = other;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  acceptedBy(holder: SocketHolder, tags: readonly string[]): void {
    this.#holder = holder;
    this.tags = tags;
  }

  serializeAttachment(value: unknown): void {
    this.#attachment = copied(value);
  }

  deserializeAttachment(): unknown {
    return copied(this.#attachment);
  }

  send(text: string): void {
    if (!this.#isOpen) throw new TypeError("Can't call WebSocket send() after close().");
    this.#network.send(current(), [this, this.#other], () => this.#other.emit("message", { data: text }));
  }

  close(code = 1_005): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#network.send(current(), [this, this.#other], () => this.#other.gone(code));
  }

  arrived(text: string): void {
    if (this.#isOpen) this.#holder?.message(this, text);
  }

  /** The client's end has closed, or is gone. */
  gone(code: number): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#holder?.closed(this, code);
  }

  /** The instance was reset: its sockets break, and the next instance does not know them. */
  breaks(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#network.clock.after(this.#network.silenceMs(), () => this.#other.gone(LOST_CODE));
  }
}
