/**
 * The upstream of the tests in the Workers runtime: an auxiliary Worker that receives every fetch the gateway makes.
 *
 * `POST http://<host>/<words>/v1/chat/completions` answers an OpenAI chat completion; the words (here, in the model's
 * name, or in the prompt) say how. Their grammar is in steering.ts. Examples of a `base_url`:
 *
 * - `http://upstream.test/v1`                    echo at once, with usage
 * - `http://upstream.test/barrier/64/v1`         answer when 64 calls wait at once, else 504
 * - `http://upstream.test/delay/200/status/503/first/1/v1`   fail each prompt once, after 200 ms
 *
 * | route | does |
 * |---|---|
 * | `GET  <any host>/…/v1/models` | lists `test-small` and `test-large` |
 * | `GET  <any host>/hold/<ms>`, `/barrier/<K>` | the same waits without a completion, for the emulator's self-test |
 * | `GET  <any host>/trickle/<K>` | headers at once, and a body that ends when K bodies are open at once |
 * | `GET  <any host>/stats` | `Stats`; with `?key=NAME` those of that key |
 * | `POST <any host>/open?latch=NAME` | opens a latch: the calls that wait at it are answered, and later ones at once; with `&calls=N` only the N that have waited longest are answered |
 * | `POST <any host>/reset` | forgets counters, barriers and latches of all keys of that host |
 *
 * Counters and barriers belong to a host and key: a test that counts uses a host or key of its own.
 */
import { DurableObject } from "cloudflare:workers";
import { completion, completionEvents, errorBody, faultBody, readChat, type Chat } from "./completion.ts";
import { Latch, Meeting } from "./meeting.ts";
import { drawOf, fails, steer, type Steering } from "./steering.ts";

/**
 * What one key saw. `sends` counts sends by prompt; `apiKeys` holds the API keys that came, in order of first sight;
 * `closed` counts connections that their callers closed before the answer. Such a call stays in flight until it ends: a
 * provider may work on.
 */
export type Stats = {
  requests: number;
  closed: number;
  inFlight: number;
  peakInFlight: number;
  sends: Record<string, number>;
  apiKeys: string[];
  lastBody: string | null;
};

type UpstreamEnv = { UPSTREAM: DurableObjectNamespace<UpstreamObject> };

export default {
  fetch(request: Request, env: UpstreamEnv, ctx: ExecutionContext): Promise<Response> {
    const upstream = env.UPSTREAM.getByName(new URL(request.url).host);
    // An object does not notice a closed connection, its Worker does.
    const callId = crypto.randomUUID();
    const forwarded = new Request(request, { headers: { ...Object.fromEntries(request.headers), [CALL_ID]: callId } });
    request.signal.addEventListener("abort", () => ctx.waitUntil(upstream.closed(callId)));
    return upstream.fetch(forwarded);
  },
};

/** Header that names a call between the Worker and its object. */
const CALL_ID = "x-call-id";

/** One per host, because only requests to one object may wait for each other. */
export class UpstreamObject extends DurableObject<UpstreamEnv> {
  readonly #stats = new Map<string, Stats>();
  readonly #meetings = new Map<string, Meeting>();
  readonly #latches = new Map<string, Latch>();
  /** Completions under way, by call id. */
  readonly #open = new Map<string, Stats>();

  /** The caller of a completion has closed its connection. */
  closed(callId: string): void {
    const stats = this.#open.get(callId);
    if (stats !== undefined) stats.closed += 1;
    this.#open.delete(callId);
  }

  override async fetch(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/stats") return Response.json(this.#statsOf(searchParams.get("key") ?? ""));
    if (pathname === "/reset") return this.#reset();
    if (pathname === "/open") {
      const latch = this.#latchOf(searchParams.get("latch") ?? "");
      const calls = searchParams.get("calls");
      if (calls === null) latch.open();
      else latch.letThrough(Number(calls));
      return new Response(null, { status: 204 });
    }
    if (pathname.endsWith("/models")) return Response.json(MODELS);
    if (pathname.endsWith("/v1/chat/completions")) return this.#chat(request, pathname);
    // A body that is left unread would be reported as an uncaught exception: its Worker pumps it to here.
    await request.text();
    return this.#probe(pathname);
  }

  async #chat(request: Request, path: string): Promise<Response> {
    const body = await request.text();
    const chat = readChat(body);
    if (!chat) return Response.json(errorBody(400, "not a chat completion request"), { status: 400 });
    const steering = steer({ path, model: chat.model, prompt: chat.prompt });
    const stats = this.#statsOf(steering.key ?? "");
    const send = (stats.sends[chat.prompt] = (stats.sends[chat.prompt] ?? 0) + 1);
    const apiKey = request.headers.get("authorization")?.replace(/^Bearer /, "");
    if (apiKey && !stats.apiKeys.includes(apiKey)) stats.apiKeys.push(apiKey);
    stats.lastBody = body;
    const callId = request.headers.get(CALL_ID) ?? "";
    this.#open.set(callId, stats);
    if (steering.hasEarlyHeaders && /"stream":\s*true/.test(body)) return this.#stream(chat, steering, stats);
    return this.#counted(stats, async () => {
      const refusal = await this.#wait(steering, chat.prompt);
      const answered = refusal ?? (await answer(chat, steering, fails(steering, chat.prompt, send, this.#isOpen)));
      this.#open.delete(callId);
      return answered;
    });
  }

  /** Answers with the headers of a stream at once, and with all of its events when the call has waited. */
  #stream(chat: Chat, steering: Steering, stats: Stats): Response {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const finish = async () => {
      await this.#counted(stats, async () => (await this.#wait(steering, chat.prompt)) ?? new Response(null));
      const writer = writable.getWriter();
      await writer.write(new TextEncoder().encode(completionEvents(chat)));
      await writer.close();
    };
    this.ctx.waitUntil(finish());
    return new Response(readable, { headers: { "content-type": "text/event-stream" } });
  }

  async #probe(path: string): Promise<Response> {
    const [, word, argument] = path.split("/");
    if (word === "trickle") return this.#trickle(Number(argument));
    if (word !== "hold" && word !== "barrier") return new Response(`no such route: ${path}`, { status: 404 });
    const steering = steer({ path: path.replace("/hold/", "/delay/"), model: "", prompt: "" });
    return this.#counted(this.#statsOf(""), async () => (await this.#wait(steering, "")) ?? new Response("held"));
  }

  #trickle(size: number): Response {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const finish = async () => {
      const met = await this.#meetingOf(`trickle/${size}`, size).arrive(STREAM_WITHIN_MS);
      const writer = writable.getWriter();
      await writer.write(new TextEncoder().encode(met ? "met" : "alone"));
      await writer.close();
    };
    this.ctx.waitUntil(finish());
    return new Response(readable);
  }

  /** Resolves to a 504 if a barrier was not met. */
  async #wait(steering: Steering, prompt: string): Promise<Response | null> {
    const waitMs = steering.delayMs + steering.jitterMs * drawOf(prompt);
    if (waitMs > 0) await sleep(waitMs);
    if (steering.latch !== null) await this.#latchOf(steering.latch).arrive();
    if (steering.barrier === null) return null;
    const meeting = this.#meetingOf(`${steering.key ?? ""}/${steering.barrier}`, steering.barrier);
    const isMet = await meeting.arrive(steering.withinMs);
    const message = `fewer than ${steering.barrier} calls waited at once within ${steering.withinMs} ms`;
    return isMet ? null : Response.json(errorBody(504, message), { status: 504 });
  }

  async #counted(stats: Stats, work: () => Promise<Response>): Promise<Response> {
    stats.requests += 1;
    stats.inFlight += 1;
    stats.peakInFlight = Math.max(stats.peakInFlight, stats.inFlight);
    try {
      return await work();
    } finally {
      stats.inFlight -= 1;
    }
  }

  #statsOf(key: string): Stats {
    return getOrMake(this.#stats, key, () => ({
      requests: 0,
      closed: 0,
      inFlight: 0,
      peakInFlight: 0,
      sends: {},
      apiKeys: [],
      lastBody: null,
    }));
  }

  #meetingOf(name: string, size: number): Meeting {
    return getOrMake(this.#meetings, name, () => new Meeting(size));
  }

  readonly #isOpen = (latch: string): boolean => this.#latches.get(latch)?.isOpen === true;

  #latchOf(name: string): Latch {
    return getOrMake(this.#latches, name, () => new Latch());
  }

  #reset(): Response {
    this.#stats.clear();
    this.#meetings.clear();
    this.#latches.clear();
    return new Response(null, { status: 204 });
  }
}

const MODELS = { object: "list", data: [model("test-small"), model("test-large")] };
/** How long a trickling body waits for the others. */
const STREAM_WITHIN_MS = 30_000;
/** Longer than any test waits. */
const HANG_MS = 600_000;

async function answer(chat: Chat, steering: Steering, isFailing: boolean): Promise<Response> {
  if (!isFailing) return Response.json(completion(chat));
  if (steering.fault === "hang") await sleep(HANG_MS);
  if (steering.fault === "reset") return brokenBody();
  const status = steering.status ?? 200;
  const headers: HeadersInit = steering.retryAfterS === null ? {} : { "retry-after": String(steering.retryAfterS) };
  if (steering.fault === null || steering.fault === "hang") {
    return Response.json(errorBody(status), { status, headers });
  }
  const { type, text } = faultBody(steering.fault, chat);
  return new Response(text, { status, headers: { ...headers, "content-type": type } });
}

/** Headers that promise JSON, the first bytes of it, then a connection that breaks. */
function brokenBody(): Response {
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      controller.enqueue(new TextEncoder().encode('{"id":"chatcmpl-test",'));
      await sleep(1);
      controller.error(new Error("the upstream was told to break the connection"));
    },
  });
  return new Response(body, { headers: { "content-type": "application/json" } });
}

function model(id: string) {
  return { id, object: "model", created: 1_795_000_000, owned_by: "test" };
}

function getOrMake<V>(map: Map<string, V>, key: string, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
