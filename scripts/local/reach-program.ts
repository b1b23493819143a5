/** Reads a `LocalSetting` as JSON and prints, as a JSON list, a sentence for each upstream to whose host no connection can be made. */
import { text } from "node:stream/consumers";
import { unreachableUpstreams } from "../reach-upstreams.ts";
import { localPlan, type LocalSetting } from "./plan.ts";

const setting: LocalSetting = JSON.parse(await text(process.stdin));
process.stdout.write(JSON.stringify(await unreachableUpstreams(localPlan(setting).vars)));
