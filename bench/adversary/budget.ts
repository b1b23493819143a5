/** A run's budget as `GET /budget` returns it, in nano-USD and tokens. */
import { z } from "zod";
import type { Gateway } from "../../test/support/gateway.ts";
import type { Account } from "./mock.ts";

export const DIMENSIONS = ["usd", "calls", "prompt_tokens", "completion_tokens"] as const;
export type Dimension = (typeof DIMENSIONS)[number];
export type Limits = Partial<Record<Dimension, number>>;

const line = z.object({ limit: z.number().nullable(), spent: z.number(), reserved: z.number() });
export const budgetDocument = z.object({ usd: line, calls: line, prompt_tokens: line, completion_tokens: line });
export type Line = { limit: number | null; spent: number; reserved: number };
export type Look = Record<Dimension, Line>;

const nano = (usd: number): number => Math.round(usd * 1e9);

export async function look(gateway: Gateway, token: string): Promise<Look> {
  const answer = await gateway.fetch("/budget", { token, signal: AbortSignal.timeout(20_000) });
  return lookOf(budgetDocument.parse(await answer.json()));
}

/** A budget as the wire has it, with USD in nano-USD. */
export function lookOf({ usd, ...rest }: z.infer<typeof budgetDocument>): Look {
  const limit = usd.limit === null ? null : nano(usd.limit);
  return { ...rest, usd: { limit, spent: nano(usd.spent), reserved: nano(usd.reserved) } };
}

/** What the upstream billed in each dimension. */
export function billedIn(account: Account): Record<Dimension, number> {
  return {
    usd: account.nanoUsd,
    calls: account.answered,
    prompt_tokens: account.promptTokens,
    completion_tokens: account.completionTokens,
  };
}
