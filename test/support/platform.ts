/** Stands for `cloudflare:workers` in Node, where no request has an end to outlive. */
export function waitUntil(promise: Promise<unknown>): void {
  promise.catch(() => undefined);
}

/** An object or an entrypoint as the platform constructs it. */
class Constructed<Env = unknown> {
  readonly ctx: unknown;
  readonly env: Env;

  constructor(ctx: unknown, env: Env) {
    this.ctx = ctx;
    this.env = env;
  }
}

export { Constructed as DurableObject, Constructed as WorkerEntrypoint, Constructed as WorkflowEntrypoint };
