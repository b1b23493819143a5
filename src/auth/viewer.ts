/** What `VIEW_KEY` opens: figures of all runs, and no text that a client or a model wrote. Every other route refuses it. */

/** The routes of viewers, as they are mounted. All of them read; docs/security.md says what each leaves out. */
export const VIEWER_ROUTES = [
  "GET /metrics",
  "GET /upstreams",
  "GET /runs",
  "GET /runs/:id",
  "GET /runs/:id/children",
  "GET /runs/:id/usage",
  "GET /runs/:id/log",
  "GET /runs/:id/events",
  "GET /runs/:id/trace.json",
  "GET /runs/:id/page.html",
  "GET /groups/:id",
  "GET /dag/:id/outline",
] as const;

const PATTERNS = VIEWER_ROUTES.map((route) => new RegExp(`^${route.replaceAll(":id", "[^/]+")}$`));

/** Whether a viewer may send a request. The path is compared as it is sent: one that is encoded is another. */
export function mayView({ method, path }: { method: string; path: string }): boolean {
  return PATTERNS.some((pattern) => pattern.test(`${method} ${path}`));
}
