/**
 * What the commands read of the gateway's documents. A field that is missing, or is not what it should be, reads as "", 0 or no element:
 * a command shows what it can, also of a gateway that is older or newer than itself.
 */
import { z } from "zod";

const text = z.string().catch("");
const number = z.number().catch(0);

function list<T extends z.ZodType>(element: T) {
  return z.array(element).catch([]);
}

function part<T extends z.ZodRawShape>(shape: T) {
  const whole = z.object(shape);
  return whole.catch(() => whole.parse({}));
}

/** Something of which only the id is read. */
export const Named = part({ id: text });

/** A new run with its token. */
export const Opened = part({ id: text, token: text });

export const Run = part({
  id: text,
  name: text,
  status: text,
  created_at: text,
  budget: part({ usd: part({ spent: number, reserved: number, limit: number }) }),
  stats: part({ total_queries: number, pending_queries: number }),
  metrics: part({ failures: z.record(z.string(), number).catch({}) }),
  /** Where a searched text is. */
  match: part({ where: text, excerpt: text }),
});
export type Run = z.infer<typeof Run>;

/** A page of `GET /runs`. `unread`: runs that the list could not read; `search`: how far a search has come. */
export const RunPage = part({
  data: list(Run),
  unread: list(part({ id: text, code: text, message: text })),
  missing_parts: number,
  search: part({ runs: number, older: number, in_part: list(z.unknown()) }),
});
export type RunPage = z.infer<typeof RunPage>;

/** A list whose elements are passed on as they are. */
export const AnyPage = part({ data: list(z.unknown()) });

/** The keys of upstreams. */
export const UpstreamPage = part({
  data: list(
    part({ name: text, key: text, class: text, in_flight: number, waiting: number, runs: number, reason: text }),
  ),
});
export type UpstreamPage = z.infer<typeof UpstreamPage>;

/** The tapes that upstreams name. */
export const TapePage = part({
  data: list(
    part({
      tape: text,
      upstreams: list(part({ name: text, mode: text })),
      exchanges: number,
      bytes: number,
      unrecorded: number,
      recorded_at: text,
    }),
  ),
});

/** One tape. */
export const Tape = part({ exchanges: number, last_misses: list(z.unknown()) });

/** One line of a tape: a whole request, or the beginning of a long one, and its answer. */
export const TapeLine = part({
  request: part({ endpoint: text, model: text, body: z.unknown().optional() }),
  cut: z.object({ text, model: text }).optional().catch(undefined),
  answer: part({ status: number, chunks: list(z.unknown()) }),
});
export type TapeLine = z.infer<typeof TapeLine>;

/** One event of a run's log. */
export const LogEvent = part({ event_type: text });
