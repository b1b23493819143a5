/** Groups that wait for a higher limit or a confirmation cost nothing: no alarm wakes their run before something can change. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { expect, it, vi } from "vitest";
import { crash } from "../support/objects-direct.ts";
import { alarmOf, lookAt, openAsync } from "../support/objects-group.ts";
import { openRun, prompts, type TestRun } from "../support/objects-run.ts";

const HOUR_MS = 3_600_000;
const DEADLINE_MS = 2 * HOUR_MS;

/** Lets the alarms of the group's beginning ring until the next is one that nothing before it can need. */
async function nextAlarmIn(run: TestRun): Promise<number> {
  for (let rings = 0; rings < 10; rings++) {
    // While an alarm rings, none is set.
    const inMs = (await vi.waitUntil(() => alarmOf(run))) - Date.now();
    if (inMs > HOUR_MS) return inMs;
    await runDurableObjectAlarm(run.object);
  }
  throw new Error("alarms go on ringing");
}

it.each([
  ["a paused group", { on_exhausted: "pause", budget: { calls: 1 } }, "paused"],
  ["a group that awaits its confirmation", { confirm_over: { calls: 1 } }, "quote"],
])("%s is left alone until its deadline, after a restart as well", async (_, rules, shows) => {
  const run = await openRun({ ...rules, expires_in_s: 86_400 });
  const id = await openAsync(run, { prompts: prompts(3), model: "up/key/waiting-groups", deadline_ms: DEADLINE_MS });
  await expect.poll(() => lookAt(run, id)).toHaveProperty(shows);
  for (const restart of [false, true]) {
    if (restart) await crash(run.object);
    expect(await lookAt(run, id)).toHaveProperty(shows);
    const inMs = await nextAlarmIn(run);
    expect(inMs).toBeLessThanOrEqual(DEADLINE_MS);
    expect(inMs).toBeGreaterThan(DEADLINE_MS - HOUR_MS / 2);
  }
});
