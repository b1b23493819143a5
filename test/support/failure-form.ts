/** The form of every error that is the gateway's own. */
import { z } from "zod";

export const failureForm = z.strictObject({
  error: z.looseObject({
    message: z.string().min(1),
    type: z.string(),
    code: z.string(),
    param: z.string().nullable(),
    retryable: z.boolean(),
  }),
});
