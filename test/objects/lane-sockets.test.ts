/** Lanes that have a socket to their run wait there after a reply; without one they claim once more. */
import { expect, it } from "vitest";
import { openUnwatched } from "../support/objects-direct.ts";
import { openRun, prompts } from "../support/objects-run.ts";
import { hold } from "../support/objects-sockets.ts";

const LANE = 0;

it("a lane that gets attempts waits at its socket for the rest of the slots, and claims once more without one", async () => {
  const run = await openRun({ max_parallel: 6 });
  await openUnwatched(run, prompts(6), "up/key/lane-sockets");
  const without = await run.object.settleAndClaim(LANE, [], 2, false);
  expect(without.jobs).toHaveLength(2);
  expect([without.claimMore, without.atSocket]).toEqual([true, undefined]);

  const socket = await hold(run, { kind: "executor", executor: LANE });
  const withOne = await run.object.settleAndClaim(LANE, [], 4, false);
  expect(withOne.jobs).toHaveLength(2);
  expect([withOne.claimMore, withOne.atSocket]).toEqual([true, true]);

  const none = await run.object.settleAndClaim(LANE, [], 4, false);
  expect(none.jobs).toHaveLength(0);
  expect([none.claimMore, none.atSocket]).toEqual([true, true]);
  socket.close();
  await run.object.cancelGroup(1);
});
