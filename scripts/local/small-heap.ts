/**
 * Keeps this process small. Imported before anything else: without it, loading Miniflare and bundling the Worker leave 110 MB
 * behind that Node does not return. A relay of bytes gains nothing from a larger heap.
 */
import { setFlagsFromString } from "node:v8";

setFlagsFromString("--optimize-for-size");
