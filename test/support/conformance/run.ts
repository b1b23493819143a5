/** `npm run conformance -- --seed N --examples N`: examines the gateway against its OpenAPI document. */
import { parseArgs } from "node:util";
import { missingPackage } from "../python-packages.ts";
import { examine } from "./examine.ts";

const INSTALL =
  "pip3 install --target test/support/python-packages --requirement test/support/conformance/requirements.txt";

const { values } = parseArgs({
  options: { seed: { type: "string", default: "1" }, examples: { type: "string", default: "100" } },
});
const missing = missingPackage("schemathesis");
if (missing !== null) throw new Error(`${missing} is not installed: run ${INSTALL}`);
const { ok, report } = await examine({ seed: Number(values.seed), examples: Number(values.examples) });
process.stdout.write(report);
process.exitCode = ok ? 0 : 1;
