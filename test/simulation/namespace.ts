/** A namespace of objects, and the stubs through which activities call them. */
import { current, type Activity } from "./activity.ts";
import { connectionLost, objectReset } from "./errors.ts";
import { copied } from "./copied.ts";
import type { Network } from "./network.ts";
import { callMethod, type SimulatedObject } from "./object.ts";
import { ClientEnd } from "./sockets.ts";

export class ObjectId {
  readonly #digits: string;
  readonly name: string | undefined;
  readonly jurisdiction: string | undefined;

  constructor(digits: string, name: string | undefined, jurisdiction?: string) {
    this.#digits = digits;
    this.name = name;
    this.jurisdiction = jurisdiction;
  }

  toString(): string {
    return this.#digits;
  }
}

export type NamespaceDeps = {
  network: Network;
  /** The object of an id, which is made at its first use. */
  objectOf: (id: ObjectId) => SimulatedObject;
  uniqueDigits: () => string;
  /** The jurisdictions of unique ids that have one. */
  places: Map<string, string>;
};

/**
 * What the gateway sees as a binding of wrangler.toml, or its part in a jurisdiction. As on Cloudflare, a name is another id in each
 * jurisdiction, an id encodes its own, and such a part refuses ids of others.
 */
export function namespaceOf(deps: NamespaceDeps, jurisdiction?: string): object {
  const get = (id: ObjectId): object => {
    if (jurisdiction !== undefined && id.jurisdiction !== jurisdiction) throw new TypeError("an id of elsewhere");
    return stubOf(deps, id);
  };
  const begin = jurisdiction === undefined ? "name:" : `name:${jurisdiction}:`;
  const idFromName = (name: string): ObjectId => new ObjectId(`${begin}${name}`, name, jurisdiction);
  return {
    get,
    getByName: (name: string) => get(idFromName(name)),
    idFromName,
    idFromString: (digits: string) => new ObjectId(digits, undefined, deps.places.get(digits)),
    newUniqueId: () => {
      const digits = deps.uniqueDigits();
      if (jurisdiction !== undefined) deps.places.set(digits, jurisdiction);
      return new ObjectId(digits, undefined, jurisdiction);
    },
    jurisdiction: (name: string) => namespaceOf(deps, name),
  };
}

/** A stub: every property is a method of the object. */
function stubOf(deps: NamespaceDeps, id: ObjectId): object {
  const connection = { isBroken: false };
  return new Proxy(
    { id },
    {
      get: (stub, method) => {
        if (method === "id") return stub.id;
        if (typeof method !== "string" || method === "then") return undefined;
        return (...args: unknown[]) => called(deps, { id, connection, from: current() }, method, args);
      },
    },
  );
}

type Caller = { id: ObjectId; connection: { isBroken: boolean }; from: Activity };

/** Calls a method: the arguments travel, the method runs, the result travels back. Never ends if the caller does before. */
function called(deps: NamespaceDeps, caller: Caller, method: string, args: readonly unknown[]): Promise<unknown> {
  const { network } = deps;
  const { id, connection, from } = caller;
  const isFetch = method === "fetch";
  const sent: readonly unknown[] = isFetch ? [new Request(String(args[0]))] : args.map(copied);
  from.calls += 1;
  return new Promise((resolve, reject) => {
    const object = deps.objectOf(id);
    const replies = (reply: () => void, unheard: () => void): void => {
      network.clock.after(network.latencyMs(), () => {
        from.calls -= 1;
        if (from.isAlive) reply();
        else unheard();
      });
    };
    const fails = (error: Error): void => {
      // workerd: after a reset, a stub fails for good.
      connection.isBroken = true;
      replies(() => reject(error), ignored);
    };
    if (connection.isBroken) return fails(objectReset());
    const fate = network.fate();
    network.send(from, [from, object], () => {
      if (fate === "lost") return fails(connectionLost());
      const delivered = object.deliver((target) => callMethod(target, method, sent));
      delivered.then((value) => {
        const drop = (): void => dropSocket(value);
        if (fate === "reply lost") {
          drop();
          return fails(connectionLost());
        }
        const travels = isFetch ? value : copied(value);
        replies(() => resolve(travels), drop);
      }, fails);
    });
  });
}

function ignored(): void {}

/** A socket that its requester never gets breaks. */
function dropSocket(value: unknown): void {
  if (typeof value !== "object" || value === null || !("webSocket" in value)) return;
  if (value.webSocket instanceof ClientEnd) value.webSocket.breaks();
}
