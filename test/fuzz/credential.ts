/** Who a hostile request says it is from. */
import type { Random } from "../../bench/adversary/random.ts";
import type { Names } from "./names.ts";

export type Sender = "run" | "worker" | "operator" | "forged" | "nobody";

export type DrawnCredential = { sender: Sender; headers: readonly (readonly [name: string, value: string])[] };

const SENDERS: readonly (readonly [Sender, number])[] = [
  ["run", 80],
  ["worker", 3],
  ["operator", 5],
  ["forged", 8],
  ["nobody", 4],
];

/** `isOperators`: the route may be the operator's, who then sends half of the requests. */
export function drawCredential(
  { own, workerToken, adminKey }: Names,
  { random, isOperators }: { random: Random; isOperators: boolean },
): DrawnCredential {
  const sender = isOperators && random.chance(0.5) ? "operator" : random.weighted(SENDERS);
  if (sender === "nobody") return { sender, headers: [] };
  if (sender === "forged") {
    const credential = forged(own.token, random);
    // Who sends an empty one is nobody, as without a header: a token in the path then counts.
    return { sender: credential === "" ? "nobody" : sender, headers: carried(credential, random) };
  }
  const credential = { run: own.token, worker: workerToken, operator: adminKey }[sender];
  // An operator names the run that its request is about.
  const about = sender === "operator" ? ([["x-fanout-run", own.id]] as const) : [];
  return { sender, headers: [...carried(credential, random), ...about] };
}

function carried(credential: string, random: Random): (readonly [string, string])[] {
  const way = random.weighted([
    ["bearer", 85],
    ["key", 5],
    ["basic", 5],
    ["case", 5],
  ]);
  if (way === "key") return [["x-api-key", credential]];
  if (way === "basic") return [["authorization", `Basic ${Buffer.from(`x:${credential}`).toString("base64")}`]];
  return [[way === "case" ? "AUTHORIZATION" : "authorization", `Bearer ${credential}`]];
}

/** A credential that this gateway has not given out; it is made from one that it has. */
function forged(token: string, random: Random): string {
  const [head = "", claims = "", signature = ""] = token.replace("fo-run-", "").split(".");
  const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const read: unknown = JSON.parse(Buffer.from(claims, "base64url").toString());
  const wider = typeof read === "object" && read !== null ? { ...read, depth: 0, exp: 9_999_999_999 } : {};
  const at = random.integer(0, signature.length - 2);
  const other = signature[at] === "A" ? "B" : "A";
  return random.pick([
    "",
    "fo-run-",
    "fo-run-..",
    token.slice(0, -1),
    token.slice(0, random.integer(8, token.length - 1)),
    `fo-run-${head}.${claims}.${signature.slice(0, at)}${other}${signature.slice(at + 1)}`,
    `fo-run-${encoded({ alg: "none", typ: "JWT" })}.${claims}.`,
    `fo-run-${encoded({ alg: "HS512", typ: "JWT" })}.${claims}.${signature}`,
    `fo-run-${head}.${encoded(wider)}.${signature}`,
    `fo-pull-${head}.${claims}.${signature}`,
    `fo-run-${"a".repeat(8_000)}`,
    "undefined",
    "null",
    "sk-000000000000000000000000",
    "a b c",
  ]);
}
