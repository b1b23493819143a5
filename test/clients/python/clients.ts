/** The Python clients that the gateway is tested with, unmodified and as whole programs. */
import type { Mind } from "../../support/provider.ts";
import { DSPY_MIND, MINRLM_MIND, RLM_MIND, VERIFIERS_MIND } from "./minds.ts";

/** Folders of installed packages, each with the version of OpenAI's client that those in it need. */
export const ENVIRONMENTS = { "openai-3": "openai>=3", "openai-2": "openai<3" } as const;
export type EnvironmentName = keyof typeof ENVIRONMENTS;
export const ENVIRONMENT_NAMES: readonly EnvironmentName[] = ["openai-3", "openai-2"];

export type PythonClient = {
  /** What its users call it. */
  name: string;
  /** Its name on PyPI, with extras. Its version is in the lock of its environment. */
  package: string;
  environment: EnvironmentName;
  /** A file in `programs`. */
  program: string;
  /** What the program does, for people. */
  shows: string;
  /** Calls that the program makes if nothing ends it. */
  calls: number;
  /** What the program is called with, as its users call a model of the gateway. */
  model: string;
  /** What the provider's model says; undefined = it repeats the last message, and obeys tools and schemas. */
  mind?: Mind;
  /** What the program prints as its answer. */
  answer: string;
  /** The error that ends the program when the budget does. */
  error: string;
  /** How often it asks for a call that the gateway has given up as rate limited; undefined = not tested. */
  asksAt429?: number;
};

const openai = {
  name: "OpenAI",
  package: "openai",
  program: "openai_program.py",
  shows: "chats, streams, an async fan-out, structured output",
  calls: 6,
  model: "up/echo",
  answer: "one two three four five six 42",
  error: "openai.APIStatusError",
} as const;

export const PYTHON_CLIENTS: readonly PythonClient[] = [
  { ...openai, environment: "openai-3" },
  { ...openai, environment: "openai-2" },
  {
    name: "Anthropic",
    package: "anthropic",
    environment: "openai-3",
    program: "anthropic_program.py",
    shows: "messages, streams, an async fan-out, tools",
    calls: 6,
    model: "claude-x",
    answer: "one two three four five six Zürich",
    error: "anthropic.PaymentRequiredError",
  },
  {
    name: "LangChain",
    package: "langchain-openai",
    environment: "openai-3",
    program: "langchain_program.py",
    shows: "`invoke`, `stream`, `batch`, `with_structured_output`, `bind_tools`",
    calls: 7,
    model: "up/echo",
    answer: "one two three four five six 42 sunny in Zürich",
    error: "openai.APIStatusError",
    asksAt429: 1,
  },
  {
    name: "rlm",
    package: "rlms",
    environment: "openai-3",
    program: "rlms_program.py",
    shows: "its loop with the local REPL: the model's code calls `llm_query_batched`",
    calls: 5,
    model: "up/mind",
    answer: "6",
    error: "openai.APIStatusError",
    mind: RLM_MIND,
  },
  {
    name: "minRLM",
    package: "minrlm",
    environment: "openai-3",
    program: "minrlm_program.py",
    shows: "its loop with the local REPL: the model's code calls `sub_llm_batch`",
    calls: 5,
    model: "up/mind",
    answer: "6",
    error: "openai.APIStatusError",
    mind: MINRLM_MIND,
    asksAt429: 5,
  },
  {
    name: "LiteLLM",
    package: "litellm",
    environment: "openai-2",
    program: "litellm_program.py",
    shows: "a chat, a stream, an async fan-out, structured output",
    calls: 6,
    model: "up/echo",
    answer: "one two three four five six 42",
    error: "litellm.exceptions.APIError",
    asksAt429: 1,
  },
  {
    name: "instructor",
    package: "instructor",
    environment: "openai-2",
    program: "instructor_program.py",
    shows: "objects by tools and by schema, an async fan-out",
    calls: 4,
    model: "up/echo",
    answer: "Zürich 42 Zürich Zürich",
    error: "instructor.v2.core.errors.InstructorRetryException",
  },
  {
    name: "pydantic-ai",
    package: "pydantic-ai-slim[openai]",
    environment: "openai-3",
    program: "pydantic_ai_program.py",
    shows: "an agent with a tool, a stream, structured output, a conversation",
    calls: 5,
    model: "up/echo",
    answer: "sunny in Zürich one two Zürich three",
    error: "pydantic_ai.exceptions.ModelQuotaExceededError",
  },
  {
    name: "LlamaIndex",
    package: "llama-index-llms-openai",
    environment: "openai-2",
    program: "llama_index_program.py",
    shows: "completions, chats, a stream, an async fan-out",
    calls: 5,
    model: "gpt-4o-mini",
    answer: "one two three four five six",
    error: "openai.APIStatusError",
  },
  {
    name: "dspy.RLM",
    package: "dspy",
    environment: "openai-2",
    program: "dspy_program.py",
    shows: "`dspy.RLM` with its local interpreter: the model's code calls `llm_query_batched`",
    calls: 5,
    model: "up/mind",
    mind: DSPY_MIND,
    answer: "6",
    error: "dspy.utils.exceptions.LMBillingError",
    asksAt429: 4,
  },
  {
    name: "verifiers",
    package: "verifiers",
    environment: "openai-2",
    program: "verifiers_program.py",
    shows: "a task with a harness of its own in the subprocess runtime",
    calls: 4,
    model: "up/mind",
    mind: VERIFIERS_MIND,
    answer: "6",
    error: "ProviderError",
  },
];
