/** Reads the address of a gateway and its operator's key as JSON, and prints a `Usability` as JSON. */
import { text } from "node:stream/consumers";
import { refusal, warnings } from "../readiness.ts";

export type UsabilityRequest = { url: string; adminKey: string };

/** `problem`: why the operator's requests fail, such as a wrong configuration; null if they do not. */
export type Usability = { problem: string | null; warnings: string[] };

const { url, adminKey }: UsabilityRequest = JSON.parse(await text(process.stdin));
const problem = await refusal(url, adminKey);
const usability: Usability = { problem, warnings: problem === null ? await warnings(url, adminKey) : [] };
process.stdout.write(JSON.stringify(usability));
