/**
 * What Cloudflare bills for its own models. It bills neurons, and lists their prices per token rounded to $0.001 per million: this table has
 * the neurons themselves, so that a ledger is the bill to the last digit.
 */
import data from "./neuron-prices.json" with { type: "json" };

/** $0.011 per 1,000 neurons. So a neuron per million tokens is 11 pico-USD per token. Source and date: neuron-prices.json. */
const PICO_USD_PER_TOKEN = 11;

/** A price in pico-USD per token, and the models that have it. */
export type NeuronPrice = { match: readonly string[]; input: number; cached?: number; output: number };

/** The prices of all models that are billed by tokens. */
export const NEURON_PRICES: readonly NeuronPrice[] = data.models.map(({ match, input, cached, output }) => ({
  match,
  input: input * PICO_USD_PER_TOKEN,
  ...(cached === undefined ? {} : { cached: cached * PICO_USD_PER_TOKEN }),
  output: output * PICO_USD_PER_TOKEN,
}));
