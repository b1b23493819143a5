/**
 * How each provider of docs/providers.md answers on its wire, as its documentation says: where its endpoint is, how it takes the key and
 * the cap, what its usage, its limits and its errors look like. The server beside this file speaks it.
 */

/** An answer that is an error: its status, headers and body, and what a client of the gateway must see of it. */
export type Failing = {
  status: number;
  headers?: Record<string, string>;
  body: unknown;
  /** A part of the provider's words. */
  words: string;
};

export type Personality = {
  /** The title of its row and block in docs/providers.md. */
  title: string;
  protocol: "openai" | "anthropic";
  /** The path and query of a chat, with `MODEL` for the model. */
  path: string;
  /** How the key comes: in this header, after this word; or as a signature, or a token that was fetched; null = there is none. */
  key: { header: string; scheme: string } | "aws" | "google" | null;
  /** The headers beside the key that it demands. */
  demands?: Record<string, string>;
  cap: "max_tokens" | "max_completion_tokens";
  /** Whether it refuses the other spelling of the cap. */
  refusesOtherCap?: true;
  /** Names what a call cost, instead of leaving it to the price list: a little below the list. */
  namesCost?: true;
  /** Fields of `usage` beside the totals. */
  usage?: Record<string, unknown>;
  /** Its answer to a request beyond its rate; null = it has no such limit. */
  limited: Failing | null;
  /** Its answer to a wrong key; null = it looks at none. */
  wrongKey: Failing | null;
  /** Its answer to a prompt that is too long; null = it cuts the prompt. */
  tooLong: Failing | null;
  /** The status of the gateway's error for a wrong key, where the token endpoint refuses it. */
  refusedByTokenEndpoint?: true;
};

const BEARER = { header: "authorization", scheme: "Bearer" };
const soon = { "retry-after": "0.05" };

const openAiError = (message: string, type: string, code: string | null) => ({
  error: { message, type, param: null, code },
});

/** OpenAI's own answers, which many providers imitate. */
const openAi = {
  protocol: "openai",
  key: BEARER,
  cap: "max_tokens",
  limited: {
    status: 429,
    headers: {
      ...soon,
      "x-ratelimit-limit-requests": "500",
      "x-ratelimit-remaining-requests": "499",
      "x-ratelimit-reset-requests": "120ms",
      "x-ratelimit-limit-tokens": "30000",
      "x-ratelimit-remaining-tokens": "29900",
      "x-ratelimit-reset-tokens": "200ms",
    },
    body: openAiError("Rate limit reached for gpt-x on requests per min (RPM)", "requests", "rate_limit_exceeded"),
    words: "Rate limit reached",
  },
  wrongKey: {
    status: 401,
    body: openAiError("Incorrect API key provided: sk-wrong**", "invalid_request_error", "invalid_api_key"),
    words: "Incorrect API key provided",
  },
  tooLong: {
    status: 400,
    body: openAiError(
      "This model's maximum context length is 128 tokens. However, your messages resulted in 400 tokens.",
      "invalid_request_error",
      "context_length_exceeded",
    ),
    words: "maximum context length is 128 tokens",
  },
} as const satisfies Partial<Personality>;

const AZURE = {
  ...openAi,
  key: { header: "api-key", scheme: "" },
  cap: "max_completion_tokens",
  limited: {
    status: 429,
    headers: {
      "retry-after-ms": "50",
      "retry-after": "1",
      "x-ratelimit-remaining-requests": "9",
      "x-ratelimit-remaining-tokens": "90000",
    },
    body: {
      error: {
        code: "429",
        message: "Requests to the ChatCompletions_Create Operation have exceeded call rate limit of your pricing tier.",
      },
    },
    words: "exceeded call rate limit",
  },
  wrongKey: {
    status: 401,
    body: { error: { code: "401", message: "Access denied due to invalid subscription key or wrong API endpoint." } },
    words: "Access denied due to invalid subscription key",
  },
} as const satisfies Partial<Personality>;

const GOOGLE_LIMITED = {
  status: 429,
  body: [
    { error: { code: 429, message: "Resource has been exhausted (e.g. check quota).", status: "RESOURCE_EXHAUSTED" } },
  ],
  words: "Resource has been exhausted",
};

const GOOGLE_TOO_LONG = {
  status: 400,
  body: [
    {
      error: {
        code: 400,
        message: "The input token count (400) exceeds the maximum number of tokens allowed (128).",
        status: "INVALID_ARGUMENT",
      },
    },
  ],
  words: "input token count (400) exceeds the maximum",
};

const AWS_LIMITED = {
  status: 429,
  headers: { "x-amzn-errortype": "ThrottlingException" },
  body: { message: "Too many requests, please wait before trying again." },
  words: "Too many requests",
};

const AWS_TOO_LONG = {
  status: 400,
  headers: { "x-amzn-errortype": "ValidationException" },
  body: {
    error: {
      message: "Input is too long for requested model.",
      type: "invalid_request_error",
      code: "validation_error",
    },
  },
  words: "Input is too long for requested model",
};

const vllmError = (message: string, type: string, code: number) => ({ error: { message, type, param: null, code } });

const HOSTED: readonly Personality[] = [
  { ...openAi, title: "OpenAI", path: "/v1/chat/completions", cap: "max_completion_tokens", refusesOtherCap: true },
  { ...AZURE, title: "Azure OpenAI", path: "/openai/v1/chat/completions" },
  {
    ...AZURE,
    title: "Azure OpenAI, by deployment",
    path: "/openai/deployments/MODEL/chat/completions?api-version=2024-10-21",
  },
  {
    title: "Anthropic",
    protocol: "anthropic",
    path: "/v1/messages",
    key: { header: "x-api-key", scheme: "" },
    demands: { "anthropic-version": "2023-06-01" },
    cap: "max_tokens",
    limited: {
      status: 429,
      headers: { ...soon, "anthropic-ratelimit-requests-limit": "50", "anthropic-ratelimit-requests-remaining": "49" },
      body: {
        type: "error",
        error: { type: "rate_limit_error", message: "This request would exceed your rate limit." },
      },
      words: "exceed your rate limit",
    },
    wrongKey: {
      status: 401,
      body: { type: "error", error: { type: "authentication_error", message: "invalid x-api-key" } },
      words: "invalid x-api-key",
    },
    tooLong: {
      status: 400,
      body: {
        type: "error",
        error: { type: "invalid_request_error", message: "prompt is too long: 400 tokens > 128 maximum" },
      },
      words: "prompt is too long: 400 tokens > 128 maximum",
    },
  },
  {
    ...openAi,
    title: "Amazon Bedrock",
    path: "/v1/chat/completions",
    cap: "max_completion_tokens",
    limited: AWS_LIMITED,
    tooLong: AWS_TOO_LONG,
    wrongKey: {
      status: 403,
      headers: { "x-amzn-errortype": "AccessDeniedException" },
      body: { message: "Authentication failed: Please make sure your API Key is valid." },
      words: "Please make sure your API Key is valid",
    },
  },
  {
    ...openAi,
    title: "Amazon Bedrock, signed",
    path: "/v1/chat/completions",
    key: "aws",
    cap: "max_completion_tokens",
    limited: AWS_LIMITED,
    tooLong: AWS_TOO_LONG,
    wrongKey: {
      status: 403,
      headers: { "x-amzn-errortype": "InvalidSignatureException" },
      body: {
        message:
          "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key.",
      },
      words: "The request signature we calculated does not match",
    },
  },
  {
    ...openAi,
    title: "Vertex AI",
    path: "/v1/projects/PROJECT/locations/us-central1/endpoints/openapi/chat/completions",
    key: "google",
    limited: GOOGLE_LIMITED,
    tooLong: GOOGLE_TOO_LONG,
    refusedByTokenEndpoint: true,
    wrongKey: {
      status: 400,
      body: { error: "invalid_grant", error_description: "Invalid JWT Signature." },
      words: "status 400: invalid_grant",
    },
  },
  {
    ...openAi,
    title: "Gemini",
    path: "/v1beta/openai/chat/completions",
    limited: GOOGLE_LIMITED,
    tooLong: GOOGLE_TOO_LONG,
    wrongKey: {
      status: 400,
      body: [
        {
          error: { code: 400, message: "API key not valid. Please pass a valid API key.", status: "INVALID_ARGUMENT" },
        },
      ],
      words: "API key not valid",
    },
  },
  {
    ...openAi,
    title: "Groq",
    path: "/openai/v1/chat/completions",
    cap: "max_completion_tokens",
    usage: { queue_time: 0.01, prompt_time: 0.001, completion_time: 0.02, total_time: 0.021 },
    limited: {
      ...openAi.limited,
      headers: {
        ...soon,
        "x-ratelimit-limit-requests": "14400",
        "x-ratelimit-remaining-requests": "14370",
        "x-ratelimit-reset-requests": "2m59.56s",
      },
      body: openAiError("Rate limit reached for model `m` on tokens per minute (TPM)", "tokens", "rate_limit_exceeded"),
    },
    wrongKey: {
      status: 401,
      body: openAiError("Invalid API Key", "invalid_request_error", "invalid_api_key"),
      words: "Invalid API Key",
    },
  },
  {
    ...openAi,
    title: "Together",
    path: "/v1/chat/completions",
    limited: {
      status: 429,
      headers: { "x-ratelimit-limit": "10", "x-ratelimit-remaining": "9", "x-ratelimit-reset": "1" },
      body: openAiError(
        "You have reached the rate limit specific to this model",
        "rate_limit_error",
        "dynamic_request_limited",
      ),
      words: "rate limit specific to this model",
    },
    wrongKey: {
      status: 401,
      body: openAiError("Invalid API key provided.", "invalid_request_error", "invalid_api_key"),
      words: "Invalid API key provided",
    },
  },
  {
    ...openAi,
    title: "Fireworks",
    path: "/inference/v1/chat/completions",
    limited: {
      status: 429,
      headers: {
        ...soon,
        "x-ratelimit-limit-tokens-prompt": "60000",
        "x-ratelimit-remaining-tokens-prompt": "59000",
        "x-ratelimit-limit-tokens-generated": "6000",
        "x-ratelimit-remaining-tokens-generated": "5900",
      },
      body: {
        error: { object: "error", type: "rate_limit_exceeded", message: "Request didn't fit in the rate limit" },
      },
      words: "Request didn't fit in the rate limit",
    },
    wrongKey: {
      status: 401,
      body: {
        error: { object: "error", type: "invalid_request_error", code: "unauthorized", message: "unauthorized" },
      },
      words: "unauthorized",
    },
  },
  {
    ...openAi,
    title: "Mistral",
    path: "/v1/chat/completions",
    limited: {
      status: 429,
      headers: { "x-ratelimit-limit-req-minute": "60", "x-ratelimit-remaining-req-minute": "59" },
      body: {
        object: "error",
        message: "Rate limit exceeded",
        type: "rate_limited",
        param: null,
        code: "1300",
        raw_status_code: 429,
      },
      words: "Rate limit exceeded",
    },
    wrongKey: { status: 401, body: { detail: "Unauthorized" }, words: "Unauthorized" },
    tooLong: {
      status: 400,
      body: {
        object: "error",
        message: "Prompt contains 400 tokens and 0 draft tokens, too large for model with 128 maximum context length",
        type: "invalid_request_prompt",
        code: "3051",
      },
      words: "too large for model with 128 maximum context length",
    },
  },
  {
    ...openAi,
    title: "DeepSeek",
    path: "/chat/completions",
    usage: { prompt_cache_hit_tokens: 0 },
    limited: {
      status: 429,
      body: openAiError("Rate limit reached", "rate_limit_error", null),
      words: "Rate limit reached",
    },
    wrongKey: {
      status: 401,
      body: openAiError(
        "Authentication Fails, Your api key: ****rong is invalid",
        "authentication_error",
        "invalid_request_error",
      ),
      words: "Authentication Fails",
    },
  },
  {
    ...openAi,
    title: "xAI",
    path: "/v1/chat/completions",
    cap: "max_completion_tokens",
    limited: {
      ...openAi.limited,
      body: { code: "Some resource has been exhausted", error: "Too many requests for team. Rate limit reached." },
      words: "Rate limit reached",
    },
    wrongKey: {
      status: 400,
      body: { code: "Client specified an invalid argument", error: "Incorrect API key provided: wr***ng." },
      words: "Incorrect API key provided",
    },
    tooLong: {
      status: 400,
      body: {
        code: "Client specified an invalid argument",
        error: "This model's maximum prompt length is 128 but the request contains 400 tokens.",
      },
      words: "maximum prompt length is 128",
    },
  },
  {
    ...openAi,
    title: "OpenRouter",
    path: "/api/v1/chat/completions",
    namesCost: true,
    limited: {
      status: 429,
      headers: { "x-ratelimit-limit": "20", "x-ratelimit-remaining": "1" },
      body: { error: { code: 429, message: "Rate limit exceeded: limit_rpm" } },
      words: "Rate limit exceeded",
    },
    wrongKey: { status: 401, body: { error: { code: 401, message: "User not found." } }, words: "User not found" },
    tooLong: {
      status: 400,
      body: {
        error: {
          code: 400,
          message: "This endpoint's maximum context length is 128 tokens. However, you requested about 400 tokens.",
        },
      },
      words: "maximum context length is 128 tokens",
    },
  },
  {
    ...openAi,
    title: "Cerebras",
    path: "/v1/chat/completions",
    cap: "max_completion_tokens",
    limited: {
      status: 429,
      headers: {
        ...soon,
        "x-ratelimit-limit-requests-day": "14400",
        "x-ratelimit-remaining-requests-day": "14000",
        "x-ratelimit-reset-requests-day": "3600.5",
      },
      body: {
        message: "Requests per minute limit exceeded",
        type: "too_many_requests_error",
        param: "quota",
        code: "request_quota_exceeded",
      },
      words: "Requests per minute limit exceeded",
    },
    wrongKey: {
      status: 401,
      body: { message: "Wrong API Key", type: "invalid_request_error", param: "api_key", code: "wrong_api_key" },
      words: "Wrong API Key",
    },
    tooLong: {
      status: 400,
      body: {
        message: "Please reduce the length of the messages or completion. Current length is 400 while limit is 128",
        type: "invalid_request_error",
        param: "messages",
        code: "context_length_exceeded",
      },
      words: "Current length is 400 while limit is 128",
    },
  },
  {
    ...openAi,
    title: "Workers AI",
    path: "/client/v4/accounts/ACCOUNT/ai/v1/chat/completions",
    limited: {
      status: 429,
      body: {
        success: false,
        result: {},
        messages: [],
        errors: [{ code: 3040, message: "Capacity temporarily exceeded, please try again." }],
      },
      words: "Capacity temporarily exceeded",
    },
    wrongKey: {
      status: 401,
      body: { success: false, result: null, messages: [], errors: [{ code: 10000, message: "Authentication error" }] },
      words: "Authentication error",
    },
    tooLong: {
      status: 413,
      body: {
        success: false,
        result: {},
        messages: [],
        errors: [
          {
            code: 5021,
            message:
              "The estimated number of input and maximum output tokens (400) exceeded this model context window limit (128).",
          },
        ],
      },
      words: "exceeded this model context window limit",
    },
  },
  {
    ...openAi,
    title: "Cloudflare AI Gateway",
    path: "/v1/ACCOUNT/GATEWAY/compat/chat/completions",
    demands: { "cf-aig-authorization": "Bearer aig-token-0123456789" },
    limited: {
      status: 429,
      body: {
        success: false,
        result: [],
        messages: [],
        error: [{ code: 2003, message: "Rate limited" }],
        errors: [{ code: 2003, message: "Rate limited" }],
      },
      words: "Rate limited",
    },
  },
];

const SERVERS: readonly Personality[] = [
  {
    ...openAi,
    title: "vLLM",
    path: "/v1/chat/completions",
    limited: null,
    wrongKey: { status: 401, body: { error: "Unauthorized" }, words: "Unauthorized" },
    tooLong: {
      status: 400,
      body: vllmError(
        "This model's maximum context length is 128 tokens. However, your request has 400 input tokens.",
        "BadRequestError",
        400,
      ),
      words: "maximum context length is 128 tokens",
    },
  },
  {
    ...openAi,
    title: "SGLang",
    path: "/v1/chat/completions",
    limited: {
      status: 503,
      body: { object: "error", message: "The request queue is full.", type: "503", param: null, code: 503 },
      words: "queue is full",
    },
    wrongKey: { status: 401, body: { error: "Unauthorized" }, words: "Unauthorized" },
    tooLong: {
      status: 400,
      body: {
        object: "error",
        message: "The input (400 tokens) is longer than the model's context length (128 tokens).",
        type: "BadRequestError",
        param: null,
        code: 400,
      },
      words: "longer than the model's context length",
    },
  },
  {
    ...openAi,
    title: "Ollama",
    path: "/v1/chat/completions",
    key: null,
    limited: {
      status: 503,
      body: openAiError("server busy, please try again.  maximum pending requests exceeded", "api_error", null),
      words: "server busy",
    },
    wrongKey: null,
    tooLong: null,
  },
  {
    ...openAi,
    title: "llama.cpp",
    path: "/v1/chat/completions",
    limited: {
      status: 503,
      body: { error: { code: 503, message: "Loading model", type: "unavailable_error" } },
      words: "Loading model",
    },
    wrongKey: {
      status: 401,
      body: { error: { code: 401, message: "Invalid API Key", type: "authentication_error" } },
      words: "Invalid API Key",
    },
    tooLong: {
      status: 400,
      body: {
        error: {
          code: 400,
          message: "the request exceeds the available context size, try increasing it",
          type: "exceed_context_size_error",
          n_prompt_tokens: 400,
          n_ctx: 128,
        },
      },
      words: "exceeds the available context size",
    },
  },
  {
    ...openAi,
    title: "LM Studio",
    path: "/v1/chat/completions",
    key: null,
    limited: null,
    wrongKey: null,
    tooLong: {
      status: 400,
      body: {
        error:
          "Trying to keep the first 400 tokens when context the overflows. However, the model is loaded with context length of only 128 tokens",
      },
      words: "context length of only 128 tokens",
    },
  },
];

export const PERSONALITIES: readonly Personality[] = [...HOSTED, ...SERVERS];
