/**
 * Opens runs for the operator's own Worker, over a service binding, and returns each as a binding that code without network and
 * without a token may have. Every Worker of the account can bind it, so the variable SERVICE_BINDINGS must allow it.
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import { openedRunDocument } from "../contract/runs.ts";
import { configOf, type Config } from "../env.ts";
import type { AppEnv } from "../http/context.ts";
import { answerTo, refused } from "./call.ts";
import type { FanoutRun } from "./run.ts";

/** A run with its token, which is for the operator's Worker, and its binding, which is for the code that it loads. */
export type BoundRun = { id: string; token: string; binding: Fetcher<FanoutRun> };

export class FanoutOperator extends WorkerEntrypoint<AppEnv["Bindings"]> {
  /** Opens a root run: `settings` is the body of `POST /runs`. */
  async openRun(settings: unknown = {}): Promise<BoundRun> {
    const { adminKey } = this.#config();
    if (adminKey === null) throw refused({ reason: "missing_secret", variable: "ADMIN_KEY" });
    const host = { env: this.env, ctx: this.ctx };
    const opened = await answerTo(host, { route: "POST /runs", credential: adminKey, body: { value: settings } });
    const { id, token } = openedRunDocument()
      .pick({ id: true, token: true })
      .parse(await opened.json());
    return { id, token, binding: this.#bound(token) };
  }

  /** The binding of a run that is open: a Worker keeps the token, because it cannot keep a binding. */
  bind(token: unknown): Fetcher<FanoutRun> {
    this.#config();
    return this.#bound(token);
  }

  #bound(token: unknown): Fetcher<FanoutRun> {
    return this.ctx.exports.FanoutRun({ props: { run: token } });
  }

  /** The configuration, if it allows what this class does. */
  #config(): Config {
    const parsed = configOf(this.env);
    if (!parsed.ok) throw refused(parsed.reason);
    if (parsed.config.serviceBindings) return parsed.config;
    const message =
      "FanoutOperator is off: any Worker of the account could open runs; set SERVICE_BINDINGS=1 to allow it";
    throw refused({ reason: "forbidden", message });
  }
}
