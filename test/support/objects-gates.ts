/** The gates of the gateway under test, in the Workers runtime. */
import { evictDurableObject, listDurableObjectIds, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";

/** Has every gate forget what it has learned. */
export async function resetGates(): Promise<void> {
  const ids = await listDurableObjectIds(env.GATES);
  await Promise.all(
    ids.map(async (id) => {
      await runInDurableObject(env.GATES.get(id), (_, { storage }) => storage.sql.exec("DELETE FROM memory").toArray());
      await evictDurableObject(env.GATES.get(id));
    }),
  );
}
