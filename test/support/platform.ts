/** Stands for `cloudflare:workers` in Node, where no request has an end to outlive. */
export function waitUntil(promise: Promise<unknown>): void {
  promise.catch(() => undefined);
}
