/** The one application of this Worker: requests over HTTP and calls over bindings go through it. */
import { createApp, RUNTIME_DEPS } from "../http/app.ts";

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export const app = createApp({ ...RUNTIME_DEPS, wait });
