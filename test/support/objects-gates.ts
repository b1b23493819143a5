/** The gates of the gateway under test, in the Workers runtime. */
import { listDurableObjectIds, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { isolateNewcomers } from "../../durable-objects/run/memory/newcomers.ts";
import { evict } from "./objects-direct.ts";

/** Has every gate forget what it has learned, and the isolate what gates have told its runs. */
export async function resetGates(): Promise<void> {
  isolateNewcomers.forget();
  const ids = await listDurableObjectIds(env.GATES);
  await Promise.all(
    ids.map(async (id) => {
      await runInDurableObject(env.GATES.get(id), (_, { storage }) => storage.sql.exec("DELETE FROM memory").toArray());
      await evict(env.GATES.get(id));
    }),
  );
}
