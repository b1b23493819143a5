/** The one application of this Worker: requests over HTTP and calls over bindings go through it. */
import { createApp } from "../http/app.ts";

export const app = createApp();
