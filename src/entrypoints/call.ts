/** A call over a binding as the request over HTTP that it stands for: one way in, with the same bounds and the same checks. */
import type { AppEnv } from "../http/context.ts";
import { errorBody } from "../contract/errors.ts";
import { BODY_BYTES, type RouteName } from "../contract/routes/table.ts";
import { toWire, type Reason } from "../errors.ts";
import { IDEMPOTENCY_KEY_CHARS_MAX } from "../limits.ts";
import { app } from "./application.ts";
import { jsonTextOf } from "./plain-json.ts";

/** What an entrypoint has of its Worker. */
export type Host = { env: AppEnv["Bindings"]; ctx: ExecutionContext };

/** A request of a route. `credential` is the Worker's, and never an argument of the code that calls. */
export type Call = {
  route: RouteName;
  credential: string;
  /** Fills `:id` in the route's path. */
  id?: string;
  /** Absent = the route takes none. */
  body?: { value: unknown };
  /** What the code sends as a method's second argument. */
  options?: unknown;
  accept?: string;
};

/** The base of the requests' addresses. No host resolves it, and no answer shows it. */
const ORIGIN = "https://fanout.invalid";

/** Makes the call and returns its answer. Throws what the refusal says: see `thrown`. */
export async function answerTo(host: Host, call: Call): Promise<Response> {
  const answer = await app.fetch(requestOf(call), host.env, host.ctx);
  if (answer.status < 400) return answer;
  const { error } = errorBody().parse(await answer.json());
  throw thrown(answer.status, error);
}

/** The error of a call that is refused before it is a request. */
export function refused(reason: Reason): Error {
  const { status, error } = toWire(reason);
  return thrown(status, error);
}

/** An error with the fields of the wire's error and its status: they cross a binding as properties. */
function thrown(status: number, fields: { message: string }): Error {
  const error = new Error(fields.message);
  // The stack has names of files, which say nothing to who calls.
  error.stack = `Error: ${fields.message}`;
  return Object.assign(error, fields, { status });
}

function requestOf({ route, credential, id, body, options, accept }: Call): Request {
  const [method = "", path = ""] = route.split(" ");
  const url = ORIGIN + (id === undefined ? path : path.replace(":id", encodeURIComponent(id)));
  const headers = new Headers({ authorization: `Bearer ${credential}`, accept: accept ?? "application/json" });
  const key = idempotencyKeyIn(options);
  if (key !== null) headers.set("idempotency-key", key);
  if (body === undefined) return new Request(url, { method, headers });
  const text = jsonTextOf(body.value, BODY_BYTES[route] ?? 0);
  if (!text.ok) throw refused(text.reason);
  const bytes = new TextEncoder().encode(text.value);
  headers.set("content-type", "application/json");
  // A body of known length is read at once.
  headers.set("content-length", String(bytes.length));
  return new Request(url, { method, headers, body: bytes });
}

/** The key of `{ idempotency_key }`; null = there is none. A header takes no line breaks, so the key is checked here. */
function idempotencyKeyIn(options: unknown): string | null {
  if (options === undefined) return null;
  const isObject = typeof options === "object" && options !== null;
  const names = isObject ? Object.keys(options) : [];
  if (!isObject || names.some((name) => name !== "idempotency_key")) {
    throw refused(invalidOption("options", "expected { idempotency_key } or nothing"));
  }
  const key: unknown = Reflect.get(options, "idempotency_key");
  if (key === undefined) return null;
  if (typeof key === "string" && /^[\x21-\x7e]+$/.test(key) && key.length <= IDEMPOTENCY_KEY_CHARS_MAX) return key;
  throw refused(
    invalidOption("idempotency_key", `expected 1 to ${IDEMPOTENCY_KEY_CHARS_MAX} visible ASCII characters`),
  );
}

function invalidOption(param: string, problem: string): Reason {
  return { reason: "invalid_request", message: `${param}: ${problem}`, param };
}
