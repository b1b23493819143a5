/**
 * What the demo asks: the simulated model, or a real one when FANOUT_MODEL=openai/<model> and OPENAI_API_KEY are set.
 * Both are needed, so that a key that happens to stand in the environment spends nothing.
 */

/** Environment of the gateway (its env file) and of the example program. */
export type DemoSetting = { vars: Record<string, string>; model: string | null };

/** USD per million tokens: input and output. */
type Price = { input: number; output: number };

/** Prices that OpenAI announced these small models at; FANOUT_PRICE names newer ones, and those of any other model. */
const PRICES: Record<string, Price> = {
  "gpt-4.1-mini": { input: 0.4, output: 1.6 },
  "gpt-4.1-nano": { input: 0.1, output: 0.4 },
  "gpt-4o-mini": { input: 0.15, output: 0.6 },
};

/** Reads the setting from the environment; a string says what is wrong with it. */
export function demoSetting(env: Record<string, string | undefined>): DemoSetting | string {
  const model = env["FANOUT_MODEL"] || null;
  if (model === null || model.startsWith("sim/")) return { vars: {}, model };
  const name = model.startsWith("openai/") ? model.slice("openai/".length) : "";
  if (name === "") return `FANOUT_MODEL must be openai/<model> or sim/<behaviour>, not ${JSON.stringify(model)}.`;
  const key = env["OPENAI_API_KEY"];
  if (!key) return `FANOUT_MODEL=${model} needs OPENAI_API_KEY.`;
  const price = priceFrom(env["FANOUT_PRICE"]) ?? PRICES[name];
  if (price === undefined) {
    return `The demo knows no price of ${name}, so it could not hold a budget. Set FANOUT_PRICE=<input>,<output>, in USD per million tokens.`;
  }
  const openai = {
    kind: "openai",
    base_url: env["OPENAI_BASE_URL"] || "https://api.openai.com/v1",
    api_key: "secret:OPENAI_API_KEY",
    models: [name],
    prices: { [name]: price },
  };
  return { vars: { OPENAI_API_KEY: key, UPSTREAMS: JSON.stringify({ openai }), DEFAULT_MODEL: model }, model };
}

function priceFrom(text: string | undefined): Price | undefined {
  const [, input, output] = /^(\d+(?:\.\d+)?),(\d+(?:\.\d+)?)$/.exec(text ?? "") ?? [];
  return input === undefined || output === undefined ? undefined : { input: Number(input), output: Number(output) };
}

/** The text of an env file. Wrangler's reader expands `$`, so each one is escaped. */
export function envFileText(vars: Record<string, string>): string {
  return Object.entries(vars)
    .map(([name, value]) => `${name}='${value.replaceAll("$", "\\$")}'\n`)
    .join("");
}
