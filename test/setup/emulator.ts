/** The emulator's self-test runs on a worker of its own, so that it says nothing about the gateway. */
import * as worker from "../support/fixtures/fan-out-worker.ts";
import { emulateProductionLimits } from "../support/slots.ts";

emulateProductionLimits(worker);
