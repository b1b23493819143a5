/** The key of a batch of 1,000 stops working; the gateway is killed meanwhile; the key recovers by itself. */
import { z } from "zod";
import { steady } from "../../test/support/limited/latency.ts";
import { stoppingLimiter } from "../../test/support/limited/other-limiters.ts";
import { atMost, exact, type Part } from "../parts/row.ts";
import { look, openBatch, prompts, startGateWorld, until } from "./world.ts";

const SLOTS = 1_000;
const WIDTH = 64;
const BEFORE = 200;
const STOPPED_MS_MAX = 30_000;
/** A probe comes every minute at most, and the rest of the batch takes some seconds. */
const ENDS_S_MAX = 90;

const gates = z.looseObject({ data: z.array(z.looseObject({ class: z.string(), reason: z.string().nullable() })) });
const results = z.looseObject({ results: z.array(z.unknown()).default([]) });

export async function measureStop(): Promise<Part> {
  const rows: Part["rows"] = [];
  for (const why of ["insufficient_quota", "invalid_api_key"] as const) {
    const limiter = stoppingLimiter(why, BEFORE);
    await using world = await startGateWorld({ limiter, latency: steady(50) });
    const { provider } = world;
    const { token } = await world.openRun({ max_parallel: WIDTH });
    const id = await openBatch(world, token, { prompts: prompts("p", SLOTS) });
    const isStopped = await until(async () => {
      const answer = await world.gateway.fetch("/upstreams", { token: world.gateway.adminKey });
      return gates.parse(await answer.json()).data.some((gate) => gate.class === "stopped");
    }, STOPPED_MS_MAX);
    // What was in flight ends, and nothing follows.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const rejected = provider.rejected().length;
    const before = await look(world, token, id);
    await world.restart();
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    const probes = provider.rejected().length - rejected;
    limiter.recover();
    const recoveredMs = performance.now();
    const hasEnded = await until(
      async () => (await look(world, token, id, 5_000)).status !== "running",
      ENDS_S_MAX * 1_000,
    );
    const endS = (performance.now() - recoveredMs) / 1_000;
    const after = await look(world, token, id);
    const answer = await world.gateway.fetch(`/groups/${id}`, { token });
    const texts = results.parse(await answer.json()).results;
    const wrong = texts.filter((text) => typeof text !== "string" || !/^p \d+$/.test(text)).length;
    rows.push(
      exact(`${why}: the gate is stopped`, String(isStopped), "= true", isStopped),
      exact(`${why}: refused calls until then`, `${rejected}`, `<= ${WIDTH}, the width`, rejected <= WIDTH),
      exact(
        `${why}: slots that failed while stopped`,
        `${before.counts["failed"] ?? 0}`,
        "= 0",
        !before.counts["failed"],
      ),
      exact(`${why}: refused calls after a SIGKILL, while stopped`, `${probes}`, "<= 3, probes", probes <= 3),
      exact(
        `${why}: ends by itself after recovery`,
        after.status,
        "= completed",
        hasEnded && after.status === "completed",
      ),
      exact(`${why}: slots without their answer`, `${wrong}`, "= 0", wrong === 0 && texts.length > 0),
      atMost(`${why}: until the end after recovery`, endS, ENDS_S_MAX, " s"),
    );
  }
  return { rows, faults: [] };
}
