import { expect, it } from "vitest";
import { ROUTES } from "../../../src/contract/routes/table.ts";
import { DISK_LOOK_MS, DISK_RESERVE_BYTES } from "../../../src/limits.ts";
import { DiskGauge, diskReason, mayOpen } from "../../../src/http/disk-reserve.ts";

it("keeps open what reads, ends, frees and delivers, and refuses the rest: of every route", () => {
  const changes = ROUTES.filter(({ method }) => method === "POST" || method === "PUT" || method === "PATCH");
  const goesOn = changes.filter((route) => !mayOpen(route)).map(({ name }) => name);
  expect(goesOn.toSorted()).toEqual([
    "PATCH /runs/:id",
    "POST /dag/validate",
    "POST /groups/cancel",
    "POST /mcp",
    "POST /runs/:id/claim",
    "POST /runs/:id/close",
    "POST /runs/:id/complete",
    "POST /runs/:id/flush",
    "POST /runs/:id/heartbeat",
    "POST /runs/:id/stats/reset",
    "POST /runs/:id/turn",
    "POST /runs/:id/worker-token",
    "POST /upstreams/:name/resume",
    "POST /v1/batches/:id/cancel",
    "POST /v1/messages/batches/:id/cancel",
    "POST /v1/messages/count_tokens",
    "POST /v1/responses/:id/cancel",
    "POST /v1/uploads/:id/cancel",
  ]);
  expect(ROUTES.filter((route) => !changes.includes(route) && mayOpen(route))).toEqual([]);
});

it("refuses what would leave less than the reserve, to the byte", () => {
  expect(diskReason(DISK_RESERVE_BYTES, 0)).toBeNull();
  expect(diskReason(DISK_RESERVE_BYTES - 1, 0)).toMatchObject({ reason: "storage_full" });
  expect(diskReason(DISK_RESERVE_BYTES + 10, 10)).toBeNull();
  expect(diskReason(DISK_RESERVE_BYTES + 10, 11)).toMatchObject({ reason: "storage_full" });
  // A header that is no number announces nothing.
  expect(diskReason(DISK_RESERVE_BYTES, Number.NaN)).toBeNull();
});

it("refuses nothing where nothing is known of the disk", () => {
  expect(diskReason(null, 1e12)).toBeNull();
});

it("asks for the free space at most once a second, however many requests arrive", async () => {
  const gauge = new DiskGauge();
  let asked = 0;
  const ask = async (): Promise<number> => (asked += 1);
  expect(await gauge.freeBytes(ask, 0)).toBe(1);
  const soon = Array.from({ length: 100 }, (_, at) => gauge.freeBytes(ask, (at * DISK_LOOK_MS) / 100));
  expect(new Set(await Promise.all(soon))).toEqual(new Set([1]));
  // The first of them asks, and the others use the last figure until the answer is there.
  const later = await Promise.all([1, 2, 3].map(() => gauge.freeBytes(ask, DISK_LOOK_MS)));
  expect([later, asked]).toEqual([[2, 1, 1], 2]);
});

it("goes on with the last figure while no other arrives", async () => {
  const gauge = new DiskGauge();
  expect(await gauge.freeBytes(() => Promise.reject(new Error("gone")), 0)).toBeNull();
  expect(await gauge.freeBytes(async () => 7, DISK_LOOK_MS)).toBe(7);
  expect(await gauge.freeBytes(() => Promise.reject(new Error("gone")), 2 * DISK_LOOK_MS)).toBe(7);
  expect(await gauge.freeBytes(async () => Number.NaN, 3 * DISK_LOOK_MS)).toBe(7);
});
