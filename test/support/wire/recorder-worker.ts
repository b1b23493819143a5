/**
 * The gateway, recording what its Workers send to objects and what these reply: `GET /__wire` returns it. Only calls by RPC;
 * sockets are not recorded. `record.ts` bundles it with the source of a release.
 */
import worker from "../../../src/index.ts";
import type { RecordedCall } from "./recording.ts";

export * from "../../../src/index.ts";

const calls: RecordedCall[] = [];
const wrapped = new WeakMap<object, object>();

export default {
  async fetch(request: Request, env: object, ctx: ExecutionContext): Promise<Response> {
    if (new URL(request.url).pathname === "/__wire") return Response.json(calls);
    const recording = wrapped.get(env) ?? recordingEnv(env);
    wrapped.set(env, recording);
    const answer: unknown = await Reflect.apply(worker.fetch, worker, [request, recording, ctx]);
    if (!(answer instanceof Response)) throw new Error("the gateway returned no response");
    return answer;
  },
};

/** The environment, with namespaces whose stubs record. */
function recordingEnv(env: object): object {
  return Object.fromEntries(
    Object.entries(env).map(([binding, value]) => [
      binding,
      isNamespace(value) ? recordingNamespace(binding, value) : value,
    ]),
  );
}

function isNamespace(value: unknown): value is object {
  return typeof value === "object" && value !== null && typeof Reflect.get(value, "idFromName") === "function";
}

function recordingNamespace(binding: string, namespace: object): object {
  return new Proxy(namespace, {
    get(target, key) {
      const method: unknown = Reflect.get(target, key);
      if (typeof method !== "function") return method;
      return (...args: unknown[]): unknown => {
        const made: unknown = Reflect.apply(method, target, args);
        const isStub = key === "get" || key === "getByName";
        return isStub && typeof made === "object" && made !== null
          ? recordingStub({ binding, [key === "get" ? "id" : "name"]: String(args[0]) }, made)
          : made;
      };
    },
  });
}

function recordingStub(object: RecordedCall["object"], stub: object): object {
  return new Proxy(stub, {
    get(target, key) {
      const method: unknown = Reflect.get(target, key);
      if (typeof method !== "function" || typeof key !== "string" || key === "then") return method;
      // Of the stub itself: the runtime refuses a call of it on the proxy.
      if (key === "fetch") return (...args: unknown[]): unknown => Reflect.apply(method, target, args);
      return async (...args: unknown[]): Promise<unknown> => {
        const call: RecordedCall = { object, method: key, args: copyOf(args), reply: null };
        calls.push(call);
        const reply: unknown = await Reflect.apply(method, target, args);
        call.reply = copyOf(reply);
        return reply;
      };
    },
  });
}

/** As JSON: what a reader cannot tell from what was sent. */
function copyOf<T>(value: T): T {
  return value === undefined ? value : JSON.parse(JSON.stringify(value));
}
