/**
 * A run as a binding, for code that has neither network nor token: a Dynamic Worker, another Worker, a Workflow. Who binds it puts the
 * run's token into its props, which the code that calls it cannot read. Each method is a route: what it takes and
 * returns are the JSON bodies of that route, and it is authenticated, bounded, charged and logged as its request is.
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import { openedRunDocument } from "../contract/runs.ts";
import { TOKEN_PREFIX } from "../http/auth/token-prefix.ts";
import type { AppEnv } from "../http/context.ts";
import { answerTo, refused, type Call } from "./call.ts";

/** What the Worker that makes the binding puts into it. */
export type RunProps = {
  /** A run token. */
  run?: unknown;
};

export class FanoutRun extends WorkerEntrypoint<AppEnv["Bindings"], RunProps> {
  /** Makes one call: `POST /query`. `options`: `{ idempotency_key }`, here and below. */
  async query(call: unknown, options?: unknown): Promise<unknown> {
    return await this.#json({ route: "POST /query", body: { value: call }, options });
  }

  /** Makes many calls, in the order of the request: `POST /batch`. */
  async batch(request: unknown, options?: unknown): Promise<unknown> {
    return await this.#json({ route: "POST /batch", body: { value: request }, options });
  }

  /** Makes many calls and returns each as it ends: the bytes of `POST /batch` as lines of JSON. */
  async stream(request: unknown, options?: unknown): Promise<ReadableStream<Uint8Array>> {
    const accept = "application/x-ndjson";
    const { body } = await this.#answer({ route: "POST /batch", body: { value: request }, options, accept });
    if (body === null) throw new Error("POST /batch has answered without a body");
    return body;
  }

  /** Makes calls that depend on each other: `POST /dag`. */
  async dag(request: unknown, options?: unknown): Promise<unknown> {
    return await this.#json({ route: "POST /dag", body: { value: request }, options });
  }

  /** What is left of the run's budget: `GET /budget`. */
  async budget(): Promise<unknown> {
    return await this.#json({ route: "GET /budget" });
  }

  /** Opens a child run and returns it as a binding: `POST /runs`. Its token stays here. */
  async child(settings: unknown, options?: unknown): Promise<Fetcher<FanoutRun>> {
    const opened = await this.#json({ route: "POST /runs", body: { value: settings }, options });
    const { token } = openedRunDocument().parse(opened);
    return this.ctx.exports.FanoutRun({ props: { run: token } });
  }

  /** Adds events of the code to the run's log: `POST /log`. */
  async log(event: unknown): Promise<unknown> {
    return await this.#json({ route: "POST /log", body: { value: event } });
  }

  /** Ends the run, which gives what it has not spent back to its parent: `POST /runs/:id/close`. */
  async close(): Promise<unknown> {
    const { id } = openedRunDocument()
      .pick({ id: true })
      .parse(await this.#json({ route: "GET /run" }));
    return await this.#json({ route: "POST /runs/:id/close", id });
  }

  async #json(call: Omit<Call, "credential">): Promise<unknown> {
    return await (await this.#answer(call)).json();
  }

  /**
   * Makes the call of a route. No answer comes in the same turn of the event loop: workerd serves calls between Workers before timers and
   * sockets, so that code which repeats a refused call for ever would leave its process no moment for anything else.
   */
  async #answer(call: Omit<Call, "credential">): Promise<Response> {
    const turn = scheduler.wait(0);
    try {
      return await answerTo({ env: this.env, ctx: this.ctx }, { ...call, credential: this.#token() });
    } finally {
      await turn;
    }
  }

  /** The token of the run. Throws if the binding has none: the operator's key is none, because it opens all runs. */
  #token(): string {
    const token = this.ctx.props?.run;
    if (typeof token === "string" && token.startsWith(TOKEN_PREFIX)) return token;
    const message =
      "the binding FanoutRun has no run; expected the props { run: <run token> } from the Worker that makes it";
    throw refused({ reason: "invalid_api_key", message });
  }
}
