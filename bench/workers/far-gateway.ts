/**
 * The gateway, whose run objects are as far from its Worker as `RUN_OBJECT_RTT_MS` says: half of it passes before each method of a
 * run object and half after it, as if the object lived in another region. What a socket carries later is not delayed. `GET /bench/rpcs`
 * counts the methods that were called so far.
 */
import { z } from "zod";
import type { Objects } from "../../src/objects/address.ts";
import gateway from "../../src/index.ts";

export * from "../../src/index.ts";

type Env = Parameters<typeof gateway.fetch>[1] & Objects;

const called = { rpcs: 0 };
/** The gateway keeps state by its env, so each env has one distant twin. */
const distant = new WeakMap<Env, Env>();

export default {
  async fetch(request: Request, env: Env, context: ExecutionContext): Promise<Response> {
    if (new URL(request.url).pathname === "/bench/rpcs") return Response.json(called);
    const far = distant.get(env) ?? withDistance(env);
    distant.set(env, far);
    return await gateway.fetch(request, far, context);
  },
};

function withDistance(env: Env): Env {
  const halfMs = z.coerce.number().parse(Reflect.get(env, "RUN_OBJECT_RTT_MS")) / 2;
  return { ...env, RUN: farNamespace(env.RUN, halfMs) };
}

function farNamespace(runs: Objects["RUN"], halfMs: number): Objects["RUN"] {
  return new Proxy(runs, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      if (name !== "get") return value.bind(target);
      return (...args: Parameters<typeof target.get>) => farStub(target.get(...args), halfMs);
    },
  });
}

function farStub<T extends object>(stub: T, halfMs: number): T {
  return new Proxy(stub, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return async (...args: unknown[]): Promise<unknown> => {
        called.rpcs += 1;
        await passing(halfMs);
        const result: unknown = await Reflect.apply(value, target, args);
        await passing(halfMs);
        return result;
      };
    },
  });
}

async function passing(ms: number): Promise<void> {
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
}
