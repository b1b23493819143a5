/** Waits until objects only wait. */
import { expect } from "vitest";
import { awake, operations, type Operations } from "../../support/objects-meter.ts";

/** Waits until nothing happens any more but waiting. The operations so far. */
export async function quiet(): Promise<Operations> {
  let before = "";
  let same = 0;
  await expect
    .poll(
      () => {
        const now = JSON.stringify([{ ...operations(), timerMs: 0 }, awake().objects.map(({ kind }) => kind)]);
        same = now === before ? same + 1 : 0;
        before = now;
        return same;
      },
      { interval: 20 },
    )
    .toBeGreaterThanOrEqual(QUIET_LOOKS);
  return operations();
}

/** Looks in a row, 20 ms apart, that see nothing happen: longer than a settlement may wait to be written. */
const QUIET_LOOKS = 8;
