/**
 * `npm run conformance -- --seed N --examples N`: examines the gateway against its OpenAPI document. First, once:
 * pip3 install --target test/support/python-packages --requirement test/support/conformance/requirements.txt
 */
import { parseArgs } from "node:util";
import { examine } from "./examine.ts";

const { values } = parseArgs({
  options: { seed: { type: "string", default: "1" }, examples: { type: "string", default: "100" } },
});
const { ok, report } = await examine({ seed: Number(values.seed), examples: Number(values.examples) });
process.stdout.write(report);
process.exitCode = ok ? 0 : 1;
