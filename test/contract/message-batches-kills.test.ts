/** A small round of `npm run bench:message-batches`: kills, failed and expired entries of a message batch at its provider. */
import { expect, it } from "vitest";
import { measureMessageKills } from "../../bench/message-batches/kills.ts";

it(
  "loses no entry of a message batch, and pays for none twice beyond what was in flight at kills",
  { tags: ["slow"], timeout: 600_000 },
  async () => {
    const { rows } = await measureMessageKills({ entries: 200, kills: 3 }, () => undefined);
    expect(rows.filter(({ exact, met }) => exact && met !== true)).toEqual([]);
    expect(rows.filter(({ exact }) => exact)).toHaveLength(6);
  },
);
