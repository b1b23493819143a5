/** Tools at addresses that only the gateway's own machine or network has: none can be registered, and nothing is sent there. */
import type { Random } from "../../../bench/adversary/random.ts";
import { PRIVATE_URLS } from "../names.ts";
import type { Site } from "../place.ts";
import { answerTo, refusedFault, shuffled } from "./course.ts";

/** Further spellings and names, without those of a host that the operator has listed. */
const INNER_URLS = [
  ...PRIVATE_URLS,
  "http://127.0.0.1.:9/",
  "http://0177.0.0.1/",
  "http://[::]/",
  "http://[fe80::1]/",
  "http://[fd00:ec2::254]/latest/",
  "http://[64:ff9b::7f00:1]/",
  "http://[2002:7f00:1::]/",
  "http://100.64.0.1/",
  "http://168.63.129.16/",
  "http://LOCALHOST/",
  "http://a.localhost/",
  "http://printer.local/",
  "http://router/",
  "http://x.internal./",
  "http://example.com\t@127.0.0.1/",
  "http:/127.0.0.1/",
  "ws://127.0.0.1/",
  "data:text/plain,a",
] as const;

const TRIED = 4;

export async function tools({ gateway }: Site, random: Random): Promise<string[]> {
  const faults: string[] = [];
  for (const url of shuffled(INNER_URLS, random).slice(0, TRIED)) {
    const json = { budget: { calls: 1 }, tools: [{ name: "inner", url }] };
    const answer = await answerTo(gateway.fetch("/runs", { token: gateway.adminKey, json }));
    faults.push(...refusedFault(`registering a tool at ${url}`, answer));
  }
  return faults;
}
