/**
 * `npm run bench:message-batches` = `node bench/message-batches.ts [--entries=n] [--kills=n]`: a message batch on a gateway that is
 * killed, through the provider's Message Batches: is anything lost or paid twice? Exit status 1 if a result is not exact.
 */
import { parseArgs } from "node:util";
import { measureMessageKills } from "./message-batches/kills.ts";
import { shownRow } from "./parts/row.ts";
import { machine, writeResult } from "./results.ts";
import { tableOf } from "./table.ts";

const { values } = parseArgs({
  options: { entries: { type: "string", default: "10000" }, kills: { type: "string", default: "20" } },
});
const plan = { entries: Number(values.entries), kills: Number(values.kills) };
const { rows } = await measureMessageKills(plan, (text) => console.error(text));
console.log(`\n${tableOf(rows.map(shownRow))}\n`);
const result = { at: new Date().toISOString(), machine: machine(), ...plan, rows };
console.log(`figures: ${writeResult("message-batches.json", JSON.stringify(result, null, 2))}`);
process.exit(rows.some(({ exact, met }) => exact && met === false) ? 1 : 0);
