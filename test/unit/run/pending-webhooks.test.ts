import { describe, expect, it } from "vitest";
import { WEBHOOK_RETRY_MS, WEBHOOK_TRIES_MAX, WEBHOOKS_PENDING_MAX } from "../../../src/limits.ts";
import { PendingWebhooks } from "../../../src/run/webhooks.ts";

const NOW = 1_000_000;
const EVENT = { id: "evt_1", body: "{}" };

describe("events that wait for the webhook", () => {
  it("are due at once, and once refused after a delay that doubles, also for the next instance", () => {
    let pending = new PendingWebhooks([]);
    expect(pending.add(EVENT, NOW)).toBe(true);
    expect(pending.due(NOW - 1)).toEqual([]);
    let atMs = NOW;
    for (let tries = 1; tries < WEBHOOK_TRIES_MAX; tries++) {
      expect(pending.due(atMs).map(({ id, body }) => ({ id, body }))).toEqual([EVENT]);
      pending.tried("evt_1", false, atMs);
      pending = new PendingWebhooks(pending.all);
      atMs += WEBHOOK_RETRY_MS * 2 ** (tries - 1);
      expect(pending.due(atMs - 1)).toEqual([]);
    }
    pending.tried("evt_1", false, atMs);
    expect(pending.all).toEqual([]);
  });

  it("are done once they are accepted, without the others", () => {
    const pending = new PendingWebhooks([]);
    pending.add(EVENT, NOW);
    pending.add({ id: "evt_2", body: "{}" }, NOW);
    pending.tried("evt_1", true, NOW);
    expect(pending.all.map(({ id }) => id)).toEqual(["evt_2"]);
    pending.tried("evt_unknown", true, NOW);
    expect(pending.all).toHaveLength(1);
  });

  it("are there once, and no more than fit their row", () => {
    const pending = new PendingWebhooks([]);
    for (let at = 0; at < WEBHOOKS_PENDING_MAX; at++)
      expect(pending.add({ id: `evt_${at}`, body: "{}" }, NOW)).toBe(true);
    expect(pending.add({ id: "evt_0", body: "{}" }, NOW)).toBe(false);
    expect(pending.add({ id: "evt_more", body: "{}" }, NOW)).toBe(false);
    pending.tried("evt_0", true, NOW);
    expect(pending.add({ id: "evt_more", body: "{}" }, NOW)).toBe(true);
  });
});
