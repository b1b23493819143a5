/**
 * What `fanout batch` reads of a server's documents. The server may be anyone's that has the Batch API: what it does not say, or says
 * otherwise, reads as nothing said.
 */
import { z } from "zod";

const text = z.string().nullable().catch(null);
const count = z
  .number()
  .nonnegative()
  .transform((found) => Math.floor(found))
  .catch(0);

/** What the API creates. */
export const Created = z.object({ id: z.string().min(1) });

/** A batch. Only its status must be there. */
export const Batch = z.object({
  status: z.string(),
  request_counts: z
    .object({ total: count, completed: count, failed: count })
    .catch({ total: 0, completed: 0, failed: 0 }),
});

/** Why an input was refused: one error a line. */
export const Refusals = z
  .object({
    errors: z.object({
      data: z.array(
        z
          .object({ line: z.number().nullable().catch(null), message: text, code: text })
          .catch({ line: null, message: null, code: null }),
      ),
    }),
  })
  .transform(({ errors }) => errors.data)
  .catch([]);

/** `GET /budget` of the gateway: what the run has spent, USD. */
export const Budget = z.object({ usd: z.object({ spent: z.number() }) });

/** `GET /run` of the gateway. The id becomes a part of an address. */
export const OwnRun = z.object({ id: z.string().regex(/^[\w-]{1,200}$/) });
