/** Opens a run as the operator. */
import { messageOf } from "./readiness.ts";

type Opening = { url: string; adminKey: string; run: object };

/** `POST /runs` with the body `run`. Throws an error with a message for the user if the gateway refuses or does not respond. */
export async function openRun({ url, adminKey, run }: Opening): Promise<{ id: string; token: string }> {
  const reply = await fetch(`${url}/runs`, {
    method: "POST",
    headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
    body: JSON.stringify(run),
  }).catch((error: unknown) => {
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    const problem = cause instanceof Error ? cause.message : String(cause);
    const advice = "Start the gateway with npm start, or name another one with --url or FANOUT_URL.";
    throw new Error(`No gateway responds at ${url}: ${problem}. ${advice}`);
  });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`POST /runs returned ${reply.status}: ${messageOf(text) ?? text.slice(0, 500)}`);
  const opened = parsed(text);
  if (typeof opened === "object" && opened !== null && "id" in opened && "token" in opened) {
    if (typeof opened.id === "string" && typeof opened.token === "string")
      return { id: opened.id, token: opened.token };
  }
  throw new Error(`The reply of ${url}/runs has no id or no token. It may not be a fanout gateway.`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
