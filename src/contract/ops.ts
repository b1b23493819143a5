/** Discovery: what this is, whether it runs, what bounds it. */
import * as z from "zod";
import {
  BODY_BYTES_MAX,
  BUDGET_COUNT_MAX,
  BUDGET_USD_MAX,
  CAPACITY_WAIT_MS_MAX,
  CLIENT_EVENTS_PER_POST_MAX,
  CLIENT_EVENT_BYTES_MAX,
  CLIENT_LOG_BYTES_MAX,
  FOLLOWED_EVENT_CHARS_MAX,
  FOLLOWERS_PER_TOKEN_MAX,
  LOG_READERS_PER_TOKEN_MAX,
  DEADLINE_MS_MAX,
  DEPTH_MAX,
  EXPIRES_S_MAX,
  GROUPS_OPEN_MAX,
  GROUP_HASHED_CHARS_MAX,
  GRAPH_EDGES_MAX,
  GRAPH_SLOTS_MAX,
  GRAPH_TASKS_MAX,
  GROUP_WAIT_MS_MAX,
  IDEMPOTENCY_KEY_CHARS_MAX,
  IMAGES_MEASURED_MAX,
  IMAGE_SEGMENTS_MAX,
  ITEMS_PER_BATCH_MAX,
  JSON_DEPTH_MAX,
  JSON_VALUES_MAX,
  MAX_TOKENS_MAX,
  METADATA_BYTES_MAX,
  NAME_CHARS_MAX,
  PARALLEL_DEFAULT,
  PARALLEL_MAX,
  PARAMS_ENTRIES_MAX,
  PROMPT_BYTES_MAX,
  RESPONSE_BYTES_MAX,
  RESULTS_PAGE_MAX,
  RETENTION_S_MAX,
  RUN_STORED_BYTES_MAX,
  CHILDREN_MAX,
  TIMEOUT_MS_DEFAULT,
  TIMEOUT_MS_MAX,
  TOOLS_PER_RUN_MAX,
  TOOL_CALL_BYTES_MAX,
  TOOL_CALLS_PER_TURN_MAX,
  TOOL_RESULT_BYTES_MAX,
  TOOL_TALK_BYTES_MAX,
  TOOL_TURNS_DEFAULT,
  TOOL_TURNS_MAX,
  TOOL_REPLY_BYTES_MAX,
  TOOL_TIMEOUT_MS_DEFAULT,
  TOOL_TIMEOUT_MS_MAX,
  WINDOW_MS_MAX,
  CHUNK_CHARS_MAX,
  CONTEXT_BYTES_MAX,
  CONTEXT_RANGE_BYTES_MAX,
  CONTEXTS_BYTES_MAX,
  CONTEXTS_MAX,
} from "../limits.ts";
import { atFirstUse } from "../at-first-use.ts";

const deployment = z.string().nullable().meta({
  description:
    "Cloudflare's id of the deployed version that answers, as `wrangler versions list` shows it; null elsewhere",
});

/** `GET /` */
export const aboutDocument = atFirstUse(() =>
  z
    .object({
      name: z.literal("fanout"),
      version: z.string(),
      deployment,
      description: z.string(),
      links: z.record(z.string(), z.string()),
    })
    .meta({ id: "About" }),
);
export type About = z.infer<ReturnType<typeof aboutDocument>>;

/** `GET /health`: shows that the Worker answers; it calls no upstream and no object. */
export const healthDocument = atFirstUse(() =>
  z
    .object({
      status: z.literal("ok"),
      version: z.string(),
      deployment,
      warnings: z.array(z.string()).meta({ description: "Configuration settings that are wrong or have no effect" }),
    })
    .meta({ id: "Health" }),
);
export type Health = z.infer<ReturnType<typeof healthDocument>>;

/** `GET /stubs` */
export const stubList = atFirstUse(() =>
  z
    .object({
      object: z.literal("list"),
      data: z.array(z.object({ lang: z.string(), path: z.string(), file: z.string() })),
    })
    .meta({ id: "StubList" }),
);
export type StubList = z.infer<ReturnType<typeof stubList>>;

/** The bounds of graphs, groups, runs and tools. */
const groupAndToolBounds = () => ({
  graph_tasks_max: z.int(),
  graph_edges_max: z.int(),
  graph_slots_max: z.int(),
  groups_open_max: z.int(),
  group_wait_ms_max: z.int(),
  capacity_wait_ms_max: z.int(),
  results_page_max: z.int(),
  run_stored_bytes_max: z.int(),
  run_children_max: z.int(),
  deadline_ms_max: z.int(),
  retention_s_max: z.int(),
  idempotency_key_chars_max: z.int(),
  client_event_bytes_max: z.int(),
  client_events_per_post_max: z.int(),
  client_log_bytes_max: z.int(),
  followers_per_token_max: z.int(),
  log_readers_per_token_max: z.int(),
  followed_event_chars_max: z.int(),
  tools_per_run_max: z.int(),
  tool_call_bytes_max: z.int(),
  tool_reply_bytes_max: z.int(),
  tool_timeout_ms_max: z.int(),
  tool_timeout_ms_default: z.int(),
  images_measured_max: z.int(),
  image_segments_max: z.int(),
  tool_turns_default: z.int(),
  tool_turns_max: z.int(),
  tool_calls_per_turn_max: z.int(),
  tool_talk_bytes_max: z.int(),
  tool_result_bytes_max: z.int(),
});

/** `GET /limits`: every bound that a client can meet, each with its unit in its name. */
export const limitsDocument = atFirstUse(() =>
  z
    .object({
      items_per_batch_max: z.int(),
      body_bytes_max: z.int(),
      body_bytes: z.record(z.string(), z.int()).meta({ description: "Largest request body per route, bytes" }),
      json_depth_max: z.int(),
      prompt_bytes_max: z.int(),
      context_bytes_max: z.int(),
      context_range_bytes_max: z.int(),
      contexts_per_run_max: z.int(),
      contexts_bytes_max: z.int(),
      chunk_chars_max: z.int(),
      response_bytes_max: z.int(),
      parallel_max: z.int(),
      parallel_default: z.int(),
      depth_max: z.int(),
      expires_s_max: z.int(),
      budget_usd_max: z.number(),
      budget_count_max: z.int(),
      max_tokens_max: z.int(),
      timeout_ms_max: z.int(),
      timeout_ms_default: z.int(),
      window_ms_max: z.int(),
      name_chars_max: z.int(),
      metadata_bytes_max: z.int(),
      params_entries_max: z.int(),
      hashed_chars_max: z.int().meta({
        description:
          "Characters that the calls of a batch share, times its calls, with `dedupe` or in a run that records",
      }),
      json_values_max: z.int().meta({ description: "Most values in a JSON body that is read whole" }),
      ...groupAndToolBounds(),
      prices_date: z.iso.date(),
      image_families_date: z.iso.date(),
    })
    .meta({ id: "Limits" }),
);

export type Limits = z.infer<ReturnType<typeof limitsDocument>>;

/** The bounds as shown, but for those of bodies, which the table of routes has, and the days of the catalogues. */
export const limits: Omit<Limits, "body_bytes" | "prices_date" | "image_families_date"> = {
  images_measured_max: IMAGES_MEASURED_MAX,
  image_segments_max: IMAGE_SEGMENTS_MAX,
  items_per_batch_max: ITEMS_PER_BATCH_MAX,
  body_bytes_max: BODY_BYTES_MAX,
  json_depth_max: JSON_DEPTH_MAX,
  prompt_bytes_max: PROMPT_BYTES_MAX,
  context_bytes_max: CONTEXT_BYTES_MAX,
  context_range_bytes_max: CONTEXT_RANGE_BYTES_MAX,
  contexts_per_run_max: CONTEXTS_MAX,
  contexts_bytes_max: CONTEXTS_BYTES_MAX,
  chunk_chars_max: CHUNK_CHARS_MAX,
  response_bytes_max: RESPONSE_BYTES_MAX,
  parallel_max: PARALLEL_MAX,
  parallel_default: PARALLEL_DEFAULT,
  depth_max: DEPTH_MAX,
  expires_s_max: EXPIRES_S_MAX,
  budget_usd_max: BUDGET_USD_MAX,
  budget_count_max: BUDGET_COUNT_MAX,
  max_tokens_max: MAX_TOKENS_MAX,
  timeout_ms_max: TIMEOUT_MS_MAX,
  timeout_ms_default: TIMEOUT_MS_DEFAULT,
  window_ms_max: WINDOW_MS_MAX,
  name_chars_max: NAME_CHARS_MAX,
  metadata_bytes_max: METADATA_BYTES_MAX,
  params_entries_max: PARAMS_ENTRIES_MAX,
  hashed_chars_max: GROUP_HASHED_CHARS_MAX,
  json_values_max: JSON_VALUES_MAX,
  graph_tasks_max: GRAPH_TASKS_MAX,
  graph_edges_max: GRAPH_EDGES_MAX,
  graph_slots_max: GRAPH_SLOTS_MAX,
  groups_open_max: GROUPS_OPEN_MAX,
  group_wait_ms_max: GROUP_WAIT_MS_MAX,
  capacity_wait_ms_max: CAPACITY_WAIT_MS_MAX,
  results_page_max: RESULTS_PAGE_MAX,
  run_stored_bytes_max: RUN_STORED_BYTES_MAX,
  run_children_max: CHILDREN_MAX,
  deadline_ms_max: DEADLINE_MS_MAX,
  retention_s_max: RETENTION_S_MAX,
  idempotency_key_chars_max: IDEMPOTENCY_KEY_CHARS_MAX,
  client_event_bytes_max: CLIENT_EVENT_BYTES_MAX,
  client_events_per_post_max: CLIENT_EVENTS_PER_POST_MAX,
  client_log_bytes_max: CLIENT_LOG_BYTES_MAX,
  followers_per_token_max: FOLLOWERS_PER_TOKEN_MAX,
  log_readers_per_token_max: LOG_READERS_PER_TOKEN_MAX,
  followed_event_chars_max: FOLLOWED_EVENT_CHARS_MAX,
  tools_per_run_max: TOOLS_PER_RUN_MAX,
  tool_call_bytes_max: TOOL_CALL_BYTES_MAX,
  tool_reply_bytes_max: TOOL_REPLY_BYTES_MAX,
  tool_timeout_ms_max: TOOL_TIMEOUT_MS_MAX,
  tool_timeout_ms_default: TOOL_TIMEOUT_MS_DEFAULT,
  tool_turns_default: TOOL_TURNS_DEFAULT,
  tool_turns_max: TOOL_TURNS_MAX,
  tool_calls_per_turn_max: TOOL_CALLS_PER_TURN_MAX,
  tool_talk_bytes_max: TOOL_TALK_BYTES_MAX,
  tool_result_bytes_max: TOOL_RESULT_BYTES_MAX,
};
