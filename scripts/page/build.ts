/** Builds the page at `/ui`: `wrangler` runs this before it bundles the Worker. */
import { buildPage } from "./bundle.ts";
import { ROOT } from "../root.ts";

buildPage(ROOT);
