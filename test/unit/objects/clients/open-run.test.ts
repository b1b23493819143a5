/** Opening a root run under the budget of a day, for a client that leaves while the day is asked. */
import { expect, it } from "vitest";
import { openRootRun } from "../../../../src/objects/clients/open-run.ts";

const RESERVATION = { day: "2026-01-01", nanoUsd: 10, limitNanoUsd: 100 };

/** A run of a client, in a world that notes what is asked of its objects. */
function openingFor(signal: { aborted: boolean }) {
  const asked: string[] = [];
  const covered = Promise.withResolvers<{ ok: true }>();
  const directory = {
    addOfDay: () => (asked.push("addOfDay"), covered.promise),
    childEnded: (_: string, spentNanoUsd: number) => (asked.push(`childEnded ${spentNanoUsd}`), Promise.resolve()),
    forget: () => (asked.push("forget"), Promise.resolve()),
  };
  const run = { open: () => (asked.push("open"), Promise.resolve({})) };
  const named = (object: unknown) => ({
    ...{ idFromString: (name: string) => name, idFromName: (name: string) => name },
    ...{ get: () => object, getByName: () => object },
  });
  const kept: Promise<unknown>[] = [];
  const settings = {
    id: "run_00000000000000000000000000000001",
    holder: "part",
    createdAtMs: 0,
    expiresAtMs: 1,
    region: null,
    limits: { usd: 10 },
  };
  const opening = openRootRun(settings as never, RESERVATION, {
    objects: { RUN: named(run), DIRECTORY: named(directory) } as never,
    openedAt: 1,
    waitUntil: (promise) => void kept.push(promise),
    signal,
  });
  return { opening, asked, covered, kept };
}

it("gives back what the day has reserved, opens nothing, and keeps the Worker until then, if the client has left", async () => {
  const signal = { aborted: false };
  const { opening, asked, covered, kept } = openingFor(signal);
  expect(kept).toHaveLength(1);
  signal.aborted = true;
  covered.resolve({ ok: true });
  await expect(opening).rejects.toMatchObject({ reason: { reason: "cancelled" } });
  expect(asked).toEqual(["addOfDay", "childEnded 0", "forget"]);
  await Promise.all(kept);
});

it("opens the run if the client is still there", async () => {
  const { opening, asked, covered } = openingFor({ aborted: false });
  covered.resolve({ ok: true });
  expect(await opening).toEqual({});
  expect(asked).toEqual(["addOfDay", "open"]);
});
