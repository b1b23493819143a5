/** The gateway, whose functions say that they run: see ways/coverage.ts. `GET /bench/functions` answers which ran since it was last asked. */
import type { Objects } from "../../src/objects/address.ts";
import gateway from "../../src/index.ts";

export * from "../../src/index.ts";

declare global {
  var takeFunctionsRun: () => string;
}

type Env = Parameters<typeof gateway.fetch>[1] & Objects;

export default {
  async fetch(request: Request, env: Env, context: ExecutionContext): Promise<Response> {
    if (new URL(request.url).pathname === "/bench/functions") return new Response(globalThis.takeFunctionsRun());
    return await gateway.fetch(request, env, context);
  },
};
