/** Every test in test/objects runs the gateway under the limits that production has. */
import * as worker from "../../src/index.ts";
import { emulateProductionLimits } from "../support/slots.ts";

emulateProductionLimits(worker);
