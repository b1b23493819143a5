/**
 * The model of the demo: the simulated one, or a real one if FANOUT_MODEL=openai/<model> and OPENAI_API_KEY are set.
 * Both are required, so that a key that is set for other programs is not spent.
 */
import { catalogPrice, providerAt } from "../src/run/money/prices.ts";

/** Environment of the gateway (its env file) and of the example program. */
export type DemoSetting = { vars: Record<string, string>; model: string | null };

/** USD per million tokens: input and output. */
type Price = { input: number; output: number };

/** Reads the setting from the environment; returns a string with what is wrong with it. */
export function demoSetting(env: Record<string, string | undefined>): DemoSetting | string {
  const model = env["FANOUT_MODEL"] || null;
  if (model === null || model.startsWith("sim/")) return { vars: {}, model };
  const name = model.startsWith("openai/") ? model.slice("openai/".length) : "";
  if (name === "") return `FANOUT_MODEL must be openai/<model> or sim/<behaviour>, not ${JSON.stringify(model)}.`;
  const key = env["OPENAI_API_KEY"];
  if (!key) return `FANOUT_MODEL=${model} needs OPENAI_API_KEY.`;
  const baseUrl = env["OPENAI_BASE_URL"] || "https://api.openai.com/v1";
  const price = priceFrom(env["FANOUT_PRICE"]);
  if (price === undefined && catalogPrice(providerAt(baseUrl), name) === null) {
    return `The gateway has no price for ${name} at ${baseUrl}, so it could not enforce a budget. Set FANOUT_PRICE=<input>,<output>, in USD per million tokens.`;
  }
  const openai = {
    kind: "openai",
    base_url: baseUrl,
    api_key: "secret:OPENAI_API_KEY",
    models: [name],
    ...(price !== undefined && { prices: { [name]: price } }),
  };
  return { vars: { OPENAI_API_KEY: key, UPSTREAMS: JSON.stringify({ openai }), DEFAULT_MODEL: model }, model };
}

function priceFrom(text: string | undefined): Price | undefined {
  const [, input, output] = /^(\d+(?:\.\d+)?),(\d+(?:\.\d+)?)$/.exec(text ?? "") ?? [];
  return input === undefined || output === undefined ? undefined : { input: Number(input), output: Number(output) };
}
