/**
 * The variables of the gateway under test in the Workers runtime. One upstream serves all tests: a model's name steers
 * it, so `up/barrier/64` is a barrier of 64 calls and `up/delay/20` waits 20 ms (grammar: steering.ts).
 */
export const ADMIN_KEY = "admin-key-of-the-tests-which-is-long";
/** The provider key, which must never show in an answer, an error, a log or an event. */
export const PROVIDER_KEY = "provider-key-of-the-tests";

export const objectVars = {
  ADMIN_KEY,
  // None: that of a clone's .dev.vars, which `npm start` writes, would take its place.
  SIGNING_KEY: "",
  SIGNING_KEY_PREVIOUS: "",
  UP_API_KEY: PROVIDER_KEY,
  DEFAULT_MODEL: "up/echo",
  UPSTREAMS: {
    up: {
      kind: "openai",
      base_url: "http://upstream.test/v1",
      api_key: "secret:UP_API_KEY",
      models: ["*"],
      // It adds nothing to a prompt: what a call reserves can be reckoned from its text.
      prompt_tokens_per_call: 0,
      prices: { "*": { input: 0.15, cached_input: 0.075, output: 0.6 } },
    },
    // Prices whose costs are no whole nano-USD, and none.
    dear: {
      kind: "openai",
      base_url: "http://dear.test/v1",
      models: [],
      prompt_tokens_per_call: 0,
      prices: { "*": { input: 3.3333, output: 12.3457 } },
    },
    free: {
      kind: "openai",
      base_url: "http://free.test/v1",
      models: [],
      prompt_tokens_per_call: 0,
      prices: { "*": { input: 0, output: 0 } },
    },
    // The same host as `up`, of which the gateway knows nothing: it adds as many tokens to prompts as a model's name says.
    hidden: {
      kind: "openai",
      base_url: "http://upstream.test/v1",
      models: [],
      prices: { "*": { input: 1, output: 2 } },
    },
    // The same host, asked for JSON: headers come with the whole answer.
    plain: {
      kind: "openai",
      base_url: "http://upstream.test/v1",
      models: [],
      aggregate: "json",
      prompt_tokens_per_call: 0,
      prices: { "*": { input: 0.15, cached_input: 0.075, output: 0.6 } },
    },
    // The same host, which bills what was seen of a stream that is aborted.
    seen: {
      kind: "openai",
      base_url: "http://upstream.test/v1",
      models: [],
      abort_cost: "seen",
      prompt_tokens_per_call: 0,
      prices: { "*": { input: 0.15, cached_input: 0.075, output: 0.6 } },
    },
    // A model without a price.
    unpriced: { kind: "openai", base_url: "http://unpriced.test/v1", models: ["*"], prompt_tokens_per_call: 0 },
    // The same host with a gate of its own: runs that other test files leave behind report nothing there.
    shared: {
      kind: "openai",
      base_url: "http://upstream.test/v1",
      models: [],
      prompt_tokens_per_call: 0,
      prices: { "*": { input: 0.15, cached_input: 0.075, output: 0.6 } },
    },
    // Its gates never limit a width.
    "adaptive-off": {
      kind: "openai",
      base_url: "http://upstream.test/v1",
      models: [],
      adaptive: { mode: "off" },
      prompt_tokens_per_call: 0,
    },
    // Two keys.
    keyed: {
      kind: "openai",
      base_url: "http://keyed.test/v1",
      keys: ["secret:FIRST_KEY", "secret:SECOND_KEY"],
      models: [],
      prompt_tokens_per_call: 0,
      prices: { "*": { input: 1, output: 2 } },
    },
    sim: { kind: "simulated" },
  },
  FIRST_KEY: "first-key-of-the-tests",
  SECOND_KEY: "second-key-of-the-tests",
  // Calls to these routes are answered by their last targets.
  ROUTES: {
    crossed: ["up/status/503/key/crossed", "dear/latch/crossed/key/crossed"],
    woven: ["up/status/503/key/woven", "keyed/latch/woven/key/woven"],
  },
};
