/** The measurements of the probes, without the platform: how long effects take, alone and beside others. */

/** `now` in ms, of any origin. */
export type Clock = { now: () => number };

/** Latencies in ms: half of them are at most `p50`, all but one in a hundred at most `p99`. */
export type Latencies = { count: number; p50_ms: number; p99_ms: number };

async function timeOf({ now }: Clock, work: () => Promise<unknown>): Promise<number> {
  const startedMs = now();
  await work();
  return now() - startedMs;
}

/** Does something `count` times, one after the other. */
export async function latencies(clock: Clock, count: number, work: () => Promise<unknown>): Promise<Latencies> {
  const timesMs: number[] = [];
  for (let at = 0; at < count; at++) timesMs.push(await timeOf(clock, work));
  timesMs.sort((a, b) => a - b);
  const quantile = (share: number): number => timesMs[Math.max(0, Math.ceil(share * count) - 1)] ?? 0;
  return { count, p50_ms: quantile(0.5), p99_ms: quantile(0.99) };
}

/** How long a call to an object takes alone, and while `held` fetches wait for their headers for `holdMs` each. */
export async function besideHeld(
  clock: Clock,
  { held, holdMs, hold, call }: Held & { call: () => Promise<unknown> },
): Promise<{ alone_ms: number; beside_ms: number; waited_for_a_fetch: boolean; answered: number[] }> {
  // The first call also finds the object.
  await call();
  const aloneMs = await timeOf(clock, call);
  const fetches = Array.from({ length: held }, () => hold(holdMs));
  const besideMs = await timeOf(clock, call);
  const answered = await Promise.all(fetches);
  return { alone_ms: aloneMs, beside_ms: besideMs, waited_for_a_fetch: besideMs > holdMs / 2, answered };
}

type Held = { held: number; holdMs: number; hold: (holdMs: number) => Promise<number> };

/** How many of `held` fetches wait for their headers at once: those beyond that begin when others have theirs. */
export async function widthOf(
  clock: Clock,
  { held, holdMs, hold }: Held,
): Promise<{ wall_ms: number; waves: number; at_once: number; answered: number[] }> {
  let answered: number[] = [];
  const wallMs = await timeOf(clock, async () => {
    answered = await Promise.all(Array.from({ length: held }, () => hold(holdMs)));
  });
  const waves = Math.max(1, Math.round(wallMs / holdMs));
  return { wall_ms: wallMs, waves, at_once: Math.ceil(held / waves), answered };
}

/** How a request ends that is held for `holdMs`. */
export async function longHold(
  clock: Clock,
  { holdMs, hold }: Omit<Held, "held">,
): Promise<{ hold_ms: number; status: number | null; error: string | null; took_ms: number }> {
  let status: number | null = null;
  let error: string | null = null;
  const tookMs = await timeOf(clock, async () => {
    try {
      status = await hold(holdMs);
    } catch (caught) {
      error = caught instanceof Error ? caught.name : "unknown";
    }
  });
  return { hold_ms: holdMs, status, error, took_ms: tookMs };
}
