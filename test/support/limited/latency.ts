/** How long an admitted request takes until its answer begins, ms: by the draw of its number, and by what is in flight. */
export type Latency = (call: { number: number; inFlight: number }) => number;

/** The same for every call. */
export function steady(ms: number): Latency {
  return () => ms;
}

/** A share of the calls, spread evenly over their numbers, takes `times` as long. */
export function stragglers(ms: number, { share, times }: { share: number; times: number }): Latency {
  const isSlow = (number: number): boolean => Math.floor((number + 1) * share) > Math.floor(number * share);
  return ({ number }) => (isSlow(number) ? ms * times : ms);
}

/** A server that computes `capacity` calls at a time: with more in flight, each takes longer by their number. */
export function rising(ms: number, capacity: number): Latency {
  return ({ inFlight }) => ms * Math.max(1, inFlight / capacity);
}
