/** Bodies that many child runs store at once, each up to what its own account would let it. */
import * as z from "zod";
import type { Attack } from "../attack.ts";

const CHILDREN = 24;
/** Requests of each child, and characters of each of their two kinds of bodies. */
const ROUNDS = 2;
const BODY_CHARS = 400_000;

const opened = z.looseObject({ token: z.string() });

export const storedBodies: Attack = {
  what: `${CHILDREN} child runs without money that store batches and contexts of ${BODY_CHARS / 1_000} KB at once`,
  prepare: async (attacker, round) => {
    const { token } = await attacker.openRun({ max_depth: 2 });
    const settings = JSON.stringify({ budget: { usd: 0 } });
    const children: string[] = [];
    for (let at = 0; at < CHILDREN; at += 1) {
      const { text } = await attacker.send("/runs", { token, body: settings });
      children.push(opened.parse(JSON.parse(text)).token);
    }
    const strike = async (child: string, number: number): Promise<void> => {
      for (let sent = 0; sent < ROUNDS; sent += 1) {
        // Each text is another one: an equal context is stored once.
        const text = `${round} ${number} ${sent} ${"x".repeat(BODY_CHARS)}`;
        await attacker.send("/batch", { token: child, body: JSON.stringify({ prompts: [text, text] }) });
        await attacker.send("/contexts", { token: child, body: JSON.stringify({ text }) });
      }
    };
    return () => Promise.all(children.map(strike));
  },
};
