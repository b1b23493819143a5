import { describe, expect, it, vi } from "vitest";
import { RunWebhooks, type NotifyingRun, type WebhookHost } from "../../../../durable-objects/run/webhooks.ts";
import { WEBHOOK_LOST_MS, WEBHOOK_RETRY_MS, WEBHOOKS_AT_ONCE } from "../../../../src/limits.ts";
import { PendingWebhooks, type PendingWebhook } from "../../../../src/run/webhooks.ts";

/** A run's object whose instances can be lost, with a clock that the test moves; what is stored stays. */
function objectWith(ids: readonly string[]) {
  const object = {
    nowMs: 1_000,
    posted: [] as string[],
    stored: [] as readonly PendingWebhook[],
    overs: 0,
    isGone: false,
  };
  const first = new PendingWebhooks([]);
  for (const id of ids) first.add({ id, body: `{"id":"${id}"}` }, object.nowMs);
  object.stored = first.all;
  const instance = (post: (id: string) => Promise<boolean>) => {
    const webhooks = new PendingWebhooks(object.stored);
    const run: NotifyingRun = {
      webhooks,
      webhookTried: (id, isAccepted, nowMs) => {
        webhooks.tried(id, isAccepted, nowMs);
        object.stored = webhooks.all;
      },
    };
    const host: WebhookHost = {
      get run() {
        return object.isGone ? null : run;
      },
      change: (change) => Promise.resolve(change(run)),
    };
    const kept: Promise<void>[] = [];
    const deliveries = new RunWebhooks(host, {
      now: () => object.nowMs,
      post: ({ id }) => {
        object.posted.push(id);
        return post(id);
      },
      keep: (promise) => void kept.push(promise),
      over: () => void (object.overs += 1),
    });
    const ended = async (): Promise<void> => {
      for (let at = 0; at < kept.length; at++) await kept[at];
    };
    return { deliveries, ended };
  };
  return { object, instance };
}

const never = () => new Promise<boolean>(() => undefined);

describe("deliveries to the webhook", () => {
  it("that are as many as may be in flight set no alarm for those that wait: the end of one starts the next", async () => {
    const { object, instance } = objectWith(Array.from({ length: WEBHOOKS_AT_ONCE + 1 }, (_, each) => `evt_${each}`));
    const first = Promise.withResolvers<boolean>();
    const { deliveries } = instance((id) => (id === "evt_0" ? first.promise : never()));
    deliveries.start();
    expect(object.posted).toHaveLength(WEBHOOKS_AT_ONCE);
    expect(deliveries.delayMs(object.nowMs)).toBe(WEBHOOK_LOST_MS);
    first.resolve(true);
    await vi.waitFor(() => expect(object.posted).toHaveLength(WEBHOOKS_AT_ONCE + 1));
    expect(deliveries.delayMs(object.nowMs)).toBe(WEBHOOK_LOST_MS);
  });

  it("start at once, and set the alarm for the next try if they are refused", async () => {
    const { object, instance } = objectWith(["evt_1"]);
    const { deliveries, ended } = instance(() => Promise.resolve(object.posted.length > 2));
    expect(deliveries.delayMs(object.nowMs)).toBe(0);
    deliveries.start();
    deliveries.start();
    await ended();
    expect([object.posted, object.overs]).toEqual([["evt_1"], 1]);
    expect(deliveries.delayMs(object.nowMs)).toBe(WEBHOOK_RETRY_MS);
    object.nowMs += WEBHOOK_RETRY_MS - 1;
    deliveries.start();
    expect(object.posted).toHaveLength(1);
    object.nowMs += 1;
    deliveries.start();
    await ended();
    expect(deliveries.delayMs(object.nowMs)).toBe(2 * WEBHOOK_RETRY_MS);
    object.nowMs += 2 * WEBHOOK_RETRY_MS;
    deliveries.start();
    await ended();
    expect([object.posted.length, object.stored, deliveries.delayMs(object.nowMs)]).toEqual([3, [], null]);
  });

  it("are repeated by the next instance if theirs is lost, whose alarm was set for that", async () => {
    const { object, instance } = objectWith(["evt_1"]);
    const lost = instance(never);
    lost.deliveries.start();
    expect(lost.deliveries.delayMs(object.nowMs)).toBe(WEBHOOK_LOST_MS);
    object.nowMs += WEBHOOK_LOST_MS;
    const next = instance(() => Promise.resolve(true));
    next.deliveries.start();
    await next.ended();
    expect([object.posted, object.stored]).toEqual([["evt_1", "evt_1"], []]);
  });

  it("are a few at once, and one that hangs keeps none of the others waiting for good", async () => {
    const ids = Array.from({ length: 3 * WEBHOOKS_AT_ONCE }, (_, at) => `evt_${at}`);
    const { object, instance } = objectWith(ids);
    const { deliveries } = instance((id) => (id === "evt_0" ? never() : Promise.resolve(true)));
    deliveries.start();
    expect(object.posted).toHaveLength(WEBHOOKS_AT_ONCE);
    await vi.waitFor(() => expect(object.stored.map(({ id }) => id)).toEqual(["evt_0"]));
    expect(object.posted.toSorted()).toEqual(ids.toSorted());
  });

  it("write nothing for a run that was deleted meanwhile", async () => {
    const { object, instance } = objectWith(["evt_1"]);
    const before = object.stored;
    const { deliveries, ended } = instance(() => {
      object.isGone = true;
      return Promise.resolve(true);
    });
    deliveries.start();
    await ended();
    expect([object.posted, object.stored, deliveries.delayMs(object.nowMs)]).toEqual([["evt_1"], before, null]);
  });

  it("that cannot be sent count as refused", async () => {
    const reported = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const { object, instance } = objectWith(["evt_1"]);
    const { deliveries, ended } = instance(() => Promise.reject(new Error("no key")));
    deliveries.start();
    await ended();
    expect([object.posted, object.stored.map(({ tries }) => tries)]).toEqual([["evt_1"], [1]]);
    expect(reported).toHaveBeenCalledOnce();
    reported.mockRestore();
  });
});
