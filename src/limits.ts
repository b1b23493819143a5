/** Every bound of the gateway: what it protects and why this number. Shown at `GET /limits` where a client can meet it. */

// ---- what a client may send ----

/** Most slots of one `/batch`: a group's queue and counters are memory of one object; ten thousand cost it under 1 MB. */
export const ITEMS_PER_BATCH_MAX = 10_000;
/** Largest request body, read whole by the Worker: an isolate has 128 MB for all that it does at once. */
export const BODY_BYTES_MAX = 32 * 1024 * 1024;
/** Smallest body of a batch that is read piece by piece: a smaller one costs less read whole, and little memory. */
export const LARGE_BODY_BYTES_MIN = 1024 * 1024;
/** Bytes of calls that are parsed at once of a large body: dozens of short prompts, and still short-lived garbage. */
export const LARGE_BODY_PIECE_BYTES = 32 * 1024;
/** Bytes of a refused body that are read and forgotten, so that its sender reads the answer: thrice what is accepted. */
export const REFUSED_BODY_BYTES_MAX = 3 * BODY_BYTES_MAX;
/** Largest single call (prompt or messages with its parameters, as JSON): it must fit one 2 MB row with its page. */
export const PROMPT_BYTES_MAX = 1_500_000;
/** Largest completion cap a call may ask for: above any model's, small enough that tokens × price stays exact. */
export const MAX_TOKENS_MAX = 10_000_000;
/** Longest time one attempt may take, ms: the longest generations providers allow, and a bound on a lease's life. */
export const TIMEOUT_MS_MAX = 3_600_000;
/** Longest deadline of a queued call, ms (a day): longer than any run is likely to be waited for. */
export const DEADLINE_MS_MAX = 86_400_000;
/** Longest model name, name of a run, id of an item: they stand in rows, logs and headers. */
export const NAME_CHARS_MAX = 256;
/** Largest `metadata` of a run, as JSON: it is stored once and repeated in each run document. */
export const METADATA_BYTES_MAX = 16_384;
/** Longest Idempotency-Key, characters: a UUID has 36; the key is a row of its own. */
export const IDEMPOTENCY_KEY_CHARS_MAX = 255;
/** Longest that `GET /groups/:id` waits, ms: below the idle cut-off of common proxies. */
export const GROUP_WAIT_MS_MAX = 60_000;
/** Slots in one page of results, at most and where none is named; a page is also bounded by its bytes. */
export const RESULTS_PAGE_MAX = 1_000;
export const RESULTS_PAGE_DEFAULT = 100;
/** Largest event that a client may add to its run's log, bytes of JSON: code and its output, not files. */
export const CLIENT_EVENT_BYTES_MAX = 131_072;
/** Events in one `POST /runs/:id/log`. */
export const CLIENT_EVENTS_PER_POST_MAX = 1_000;
/** All that a client may add to one run's log, bytes: a thirtieth of what an object may store. */
export const CLIENT_LOG_BYTES_MAX = 256 * 1024 * 1024;
/** Largest request field `params`, entries: each is copied into the upstream request. */
export const PARAMS_ENTRIES_MAX = 64;
/** Deepest nesting inside `messages`, `params`, `metadata`: far above tools' JSON schemas, far below the stack's end. */
export const JSON_DEPTH_MAX = 64;

// ---- runs ----

/** Widest a run may be: 86 lanes of six; wider than that the run object's settles become the bottleneck. */
export const PARALLEL_MAX = 512;
/** Width of a run that asks for none: above the 4 to 6 that sequential-minded agents use, below providers' first limits. */
export const PARALLEL_DEFAULT = 8;
/** Deepest tree of runs: each level carves a budget from the one above; agents in the field stop at 3. */
export const DEPTH_MAX = 16;
/** Depth of a run's tree where the request names none. */
export const DEPTH_DEFAULT = 3;
/** Child runs of one run that may be open at once: each holds a budget and must be told when its parent ends. */
export const CHILDREN_OPEN_MAX = 1_000;
/** Runs that one look at a subtree visits: each is a call to its object. */
export const SUBTREE_RUNS_MAX = 1_000;
/** Longest life of a run, seconds (30 days): a token leaked from a sandbox must end. */
export const EXPIRES_S_MAX = 30 * 86_400;
/** Life of a run that asks for none, seconds. */
export const EXPIRES_S_DEFAULT = 86_400;
/** Model patterns a run may list: each is tried for each call. */
export const MODEL_PATTERNS_MAX = 64;
/** Widest grouping window of `/query`, ms: later calls are not parallel to the first in any useful sense. */
export const WINDOW_MS_MAX = 10_000;
/** Grouping window where the run names none, ms: what parallel sub-agent runners use in the field. */
export const WINDOW_MS_DEFAULT = 50;
/** Models that one executor's totals tell apart: they are part of a row that is rewritten with every settlement. */
export const MODELS_COUNTED_MAX = 32;
/** Groups of single calls whose end is waited for, so that it can be told: each is a few numbers. */
export const WINDOW_GROUPS_KEPT = 256;
/** Time that results and log of a run are kept after it has ended, seconds, where the request names none. */
export const RETENTION_S_DEFAULT = 86_400;
/** Longest retention, seconds (30 days): what nobody deletes must end. */
export const RETENTION_S_MAX = 30 * 86_400;
/** Largest USD budget: a million dollars is 10¹⁵ nano-USD, well inside exact integers. */
export const BUDGET_USD_MAX = 1_000_000;
/** Largest limit of calls or tokens: exact integers with room to add. */
export const BUDGET_COUNT_MAX = 1_000_000_000_000;

// ---- money ----

/** Tokens of prompt reserved per UTF-8 byte sent: no tokenizer in use makes more than one token of one byte. */
export const PROMPT_TOKENS_PER_BYTE = 1;
/** Tokens added per message for role and separators: OpenAI's chat formats spend 3 or 4, others up to 8. */
export const PROMPT_TOKENS_PER_MESSAGE = 8;
/**
 * Tokens added per call to an Anthropic upstream: it puts a text of its own before tools and output formats, documented
 * with 159 to about 900 tokens by model, which no byte that is sent accounts for.
 */
export const PROMPT_TOKENS_FIXED_ANTHROPIC = 1_024;
/** Most tokens that a configuration may add to every call: far above any provider's own text; more is a typo. */
export const PROMPT_TOKENS_FIXED_MAX = 100_000;
/** Completion cap reserved, and sent, where the client names none and a limit needs one. */
export const COMPLETION_TOKENS_DEFAULT = 4_096;
/** Smallest completion cap a call is clamped to, in tokens: less is no answer, and some providers refuse less. */
export const COMPLETION_TOKENS_MIN = 16;

/** Bytes of prompt per token in a quote's likely cost: English text in today's tokenizers comes to 4. Never in a bound. */
export const LIKELY_BYTES_PER_TOKEN = 4;
/** Completion tokens in a quote's likely cost: the median of 226 recorded sub-calls of a recursive agent. */
export const LIKELY_COMPLETION_TOKENS = 312;
/** Tokens that a configuration may let one image, sound or file count as: the largest contexts hold a few million. */
export const MEDIA_TOKENS_MAX = 10_000_000;

// ---- executors ----

/** Attempts one lane has in flight: an object's seventh fetch waiting for headers queues silently on Cloudflare. */
export const LANE_SLOTS = 6;
/** Attempts in flight per ms that lanes linger before they settle: so a settle carries four slots or so at any width. */
export const ATTEMPTS_PER_LINGER_MS = 16;
/** Longest linger, ms: it makes a settle cost half at width 192 and above, and is lost beside any LLM call. */
export const LINGER_MS_MAX = 12;
/** Life of a lease without a heartbeat, ms: twice the heartbeat and some, so one lost beat loses nothing; recovery < 60 s. */
export const LEASE_TTL_MS = 30_000;
/**
 * Life of a lease that a restarted run object finds, ms: it outlives two heartbeats, and with the life of a lease, by which
 * its alarm is set, and the delay of a retry it stays below the minute within which everything runs again.
 */
export const FOUND_LEASE_TTL_MS = 25_000;
/** Time between two heartbeats of an executor, ms. */
export const HEARTBEAT_MS = 10_000;
/** Longest a lane's or a reader's call waits in the run object, ms: below every idle cut-off on the way. */
export const LONG_POLL_MS = 20_000;
/** A waiting call that was told to ask again and has not done so for this long, ms, has lost its Worker. */
export const ABANDONED_MS = 10_000;
/** How often an object looks for callers that have waited long enough, ms, while there are any. */
export const SWEEP_MS = 1_000;
/** How often the Worker of a single call asks whether it is still wanted, ms: a cancelled call must end within 2 s. */
export const CALL_BEAT_MS = 1_500;
/** Longest that a pass-through call is queued, ms: OpenAI's Node client gives up after 300 s without headers, and asks again. */
export const PASS_QUEUE_MS_MAX = 120_000;
/** Longest that the settlement of an answered call waits for another call to travel with, ms: a busy run has one by then. */
export const PASS_SETTLE_LAG_MS = 20;
/** Wait advised to a pass-through call that was queued for too long, ms. */
export const PASS_RETRY_AFTER_MS = 1_000;
/** How long the list of an upstream's models is kept by an isolate, ms. */
export const MODELS_KEPT_MS = 300_000;
/** Largest list of models read from an upstream, bytes: the largest router lists some hundred models in 500 KB. */
export const MODELS_BYTES_MAX = 8 * 1024 * 1024;
/** Longest that an upstream is waited for when it is asked for its models, ms: one that hangs must not hide the others'. */
export const MODELS_TIMEOUT_MS = 5_000;
/** Delay before a run object tries again to tell its parent of its end or its limits, or its children of its end, ms. */
export const TELL_AGAIN_MS = 5_000;
/** White space is sent on a waiting JSON answer this often, ms: proxies cut silent connections after 30 s and up. */
export const KEEP_ALIVE_MS = 10_000;

/** Longest that a single call's settlement stays unwritten, ms: it saves a commit per call while calls keep coming. */
export const SETTLE_LAG_MS = 50;

// ---- upstreams ----

/** Attempts in flight at one upstream by one run, where the configuration names none. */
export const UPSTREAM_IN_FLIGHT_DEFAULT = 512;
/** Most attempts in flight that a configuration may allow one upstream: above any provider's, small enough to count. */
export const UPSTREAM_IN_FLIGHT_MAX = 10_000;
/** Dearest price a configuration may name, USD per million tokens: models in use stay below 1,000; more is a typo. */
export const PRICE_USD_PER_MILLION_MAX = 10_000;
/** Time limit of one attempt where neither client nor configuration names one, ms: both OpenAI SDKs wait this long. */
export const TIMEOUT_MS_DEFAULT = 600_000;
/** Attempts of one call where the configuration names none: first try and two retries, as both OpenAI SDKs do. */
export const ATTEMPTS_DEFAULT = 3;
/** Most attempts a configuration may ask for: each one may cost money. */
export const ATTEMPTS_MAX = 10;
/** Largest upstream answer read, bytes: an answer becomes one row, and a row holds 2 MB. */
export const RESPONSE_BYTES_MAX = 1_900_000;
/** Longest piece of an upstream's error text that is shown, characters. */
export const UPSTREAM_MESSAGE_CHARS_MAX = 500;
/** Longest error body of an upstream that is kept for a raw request, characters: errors are sentences, pages are cut. */
export const UPSTREAM_ERROR_CHARS_MAX = 16_384;
/** First retry delay's upper bound, ms; it doubles per attempt. Full jitter draws below it. */
export const RETRY_BASE_MS = 800;
/** Upper bound of any retry delay drawn, ms. */
export const RETRY_MAX_MS = 10_000;
/** Longest Retry-After that is obeyed, ms; a longer one ends the call as rate limited. */
export const RETRY_AFTER_MAX_MS = 90_000;

// ---- storage ----

/** Calls in one stored page: 32 to a row divide the price of writing them by 32. */
export const PAGE_SLOTS_MAX = 32;
/** Bytes of one stored page, below the 2 MB row limit. A page holds at least one call. */
export const PAGE_BYTES_MAX = 262_144;
/** Pages kept in a run object's memory, bytes: enough for the pages being dispatched, small beside 128 MB. */
export const PAGE_CACHE_BYTES_MAX = 4 * 1024 * 1024;
/** Bytes of results in one reply of the run object: what is made of it stays below what V8 treats as large (128 KB). */
export const RESULTS_REPLY_BYTES_MAX = 128 * 1024;
/** Characters of one row of the log, at most 1.5 MB of the 2 MB that a row holds: a larger write is several rows. */
export const LOG_ROW_CHARS_MAX = 512 * 1024;
/** Characters of log rows in one reply of the run object. */
export const LOG_REPLY_CHARS_MAX = 256 * 1024;
/** Characters that one event socket is sent before it is closed to be resumed: the runtime tells nobody what is unsent. */
export const EVENT_SOCKET_CHARS_MAX = 8 * 1024 * 1024;
/** Followers of one run's events at once: each is a socket of the run object. */
export const FOLLOWERS_MAX = 256;
/** Characters of an answer in one row, at most 1.5 MB; what is longer goes on in rows of its own. */
export const TEXT_CHUNK_CHARS = 512 * 1024;
/** Time after which pages of a group that was never opened are dropped, ms: an upload lasts minutes at most. */
export const STAGED_KEPT_MS = 600_000;
/** Opened groups that an object can recognise when they are opened again, because the first reply was lost. */
export const OPENINGS_KEPT = 256;
/** Groups of a run that may be open at once: each holds counters and a queue in memory. */
export const GROUPS_OPEN_MAX = 256;
/** Ended groups that a run object keeps in memory, so that readers who follow them see the order in which slots ended. */
export const GROUPS_ENDED_KEPT = 8;
/** Characters of call bodies in one group: what 10,000 slots of a full-size request come to, with room for escapes. */
export const GROUP_CHARS_MAX = 64 * 1024 * 1024;
/** Characters of pages in one RPC to the run object: they are in memory several times over while they are on their way. */
export const PAGES_CALL_CHARS_MAX = 1024 * 1024;
/** `/query` calls that may wait or run in one run at once: each holds a waiting Worker. */
export const DIRECT_CALLS_MAX = 10_000;
/** Verified run tokens that an isolate remembers: signature checks cost more than the rest of a small request. */
export const TOKEN_CACHE_MAX = 1_000;
/** Runs in one page of `GET /runs`: each is a call to its object. */
export const LIST_PAGE_MAX = 100;
/** Runs in a page where the request names no number. */
export const LIST_PAGE_DEFAULT = 20;
/** Characters of a JSON answer's results that a Worker keeps to write them a second time; larger ones are read again. */
export const ANSWER_KEPT_CHARS_MAX = 1024 * 1024;

// ---- tools ----

/** Tools of one run: they stand in its settings and its document; agents in the field are given a dozen. */
export const TOOLS_PER_RUN_MAX = 32;
/** Longest address of a tool, characters: what common servers take in a request line. */
export const TOOL_URL_CHARS_MAX = 2_048;
/** Longest description of a tool, characters: it is repeated in each run document. */
export const TOOL_DESCRIPTION_CHARS_MAX = 1_024;
/** Time limit of one tool call where its registration names none, ms: what stubs in the field wait for a tool. */
export const TOOL_TIMEOUT_MS_DEFAULT = 60_000;
/** Longest time limit of a tool call, ms: below the silence that the stubs bear. */
export const TOOL_TIMEOUT_MS_MAX = 600_000;
/** Largest tool call, bytes of JSON, as it comes in and as it goes out: arguments of a function, not files. */
export const TOOL_CALL_BYTES_MAX = 1024 * 1024;
/** Largest answer read from a tool, bytes: a long document; it is in memory several times while it is passed on. */
export const TOOL_REPLY_BYTES_MAX = 2 * 1024 * 1024;
/** Longest that a tool call waits for a permit, ms: it is a function that somebody waits for, within a client's 60 s. */
export const TOOL_QUEUE_MS_MAX = 5_000;
/** Tool calls of one run that may wait for a permit at once: each holds a waiting Worker. */
export const TOOL_CALLS_WAITING_MAX = 1_000;
/** Tool calls given up that a run object remembers: their Workers hear of it with their next beat. */
export const TOOL_CALLS_OVER_KEPT = 1_024;

// ---- batches ----

/** Requests in one batch file: OpenAI's limit, which its clients split their work by. */
export const BATCH_LINES_MAX = 50_000;
/** Largest input file of a batch, bytes: OpenAI's 200 MB, read so that both meanings of MB fit. */
export const BATCH_FILE_BYTES_MAX = 200 * 1024 * 1024;
/** Longest line of a batch file, bytes: its body becomes one stored call. */
export const BATCH_LINE_BYTES_MAX = PROMPT_BYTES_MAX;
/** Errors listed of a batch whose file is refused: enough to see the pattern; the object is polled every few seconds. */
export const BATCH_ERRORS_MAX = 100;
/** Embedding inputs of one batch in total: OpenAI's limit. */
export const BATCH_EMBEDDING_INPUTS_MAX = 50_000;
/** Models of one batch that are named: the list only tells what was asked for. */
export const BATCH_MODELS_MAX = 32;
/** Longest custom_id, characters: it stands in each answer's line, and 50,000 of them are compared. */
export const CUSTOM_ID_CHARS_MAX = 512;
/** Time from a batch's creation to its expiry, seconds: the only window that OpenAI offers. */
export const BATCH_WINDOW_S = 86_400;
/** `metadata` of a batch: pairs, and characters of a key and of a value; OpenAI's limits. */
export const BATCH_METADATA_PAIRS_MAX = 16;
export const BATCH_METADATA_KEY_CHARS_MAX = 64;
export const BATCH_METADATA_VALUE_CHARS_MAX = 512;
/** Batches in one page of their list, at most and where the request names no number; OpenAI's limits. */
export const BATCHES_PAGE_MAX = 100;
export const BATCHES_PAGE_DEFAULT = 20;
/** Largest file, bytes: OpenAI's 512 MB. */
export const FILE_BYTES_MAX = 512 * 1024 * 1024;
/** Files in one page of their list, at most and by default; OpenAI's limit. */
export const FILES_PAGE_MAX = 10_000;
/** Shortest and longest life that a request may give a file, seconds (an hour, 30 days); OpenAI's limits. */
export const FILE_EXPIRES_S_MIN = 3_600;
export const FILE_EXPIRES_S_MAX = 2_592_000;
/** Largest part of an upload, bytes: OpenAI's 64 MB, below what Cloudflare lets one request carry. */
export const UPLOAD_PART_BYTES_MAX = 64 * 1024 * 1024;
/** Parts of one upload: as many as one object in R2 may be made of. */
export const UPLOAD_PARTS_MAX = 10_000;
/** Largest upload, bytes: OpenAI's 8 GB. */
export const UPLOAD_BYTES_MAX = 8 * 1024 * 1024 * 1024;
/** Time in which an upload must be completed, seconds: OpenAI's hour. */
export const UPLOAD_EXPIRES_S = 3_600;

/** Largest body of `POST /v1/batches`: sixteen pairs of metadata and two ids, several times over. */
export const BATCH_BODY_BYTES_MAX = 65_536;
/** Expired files that are dropped at once: R2 deletes a thousand keys in one call. */
export const FILES_DROPPED_AT_ONCE = 1_000;
/** Lines of a batch that are one group of its run: a failed read repeats few, and a run's width is covered by four. */
export const BATCH_CHUNK_LINES = 256;
/** Bytes after which such a group is full, whatever its lines: it is in memory while it is sent. */
export const BATCH_CHUNK_BYTES = 4 * 1024 * 1024;
/** Groups of a batch that are open at once: together they keep the widest run (512) at work while one is collected. */
export const BATCH_CHUNKS_OPEN = 4;
/** Bytes of a file in one row of a batch, below the 2 MB of a row. */
export const BATCH_TAIL_BYTES = 1024 * 1024;
/** Longest that a batch's object works in one alarm before it sets the next, ms: an alarm may take 15 minutes. */
export const BATCH_ALARM_MS = 60_000;
/** How long a batch waits for a group to end before it looks at the others, ms. */
export const BATCH_WAIT_MS = 1_000;
/** Delay before a batch goes on after something failed that may pass, ms. */
export const BATCH_AGAIN_MS = 5_000;
/** Attempts of a line that its upstream turns away as too many: a batch has a day, and 20 misses in a row are an outage. */
export const BATCH_ATTEMPTS_MAX = 20;
/** Attempts of a line that fails otherwise, at least: a few more than a caller who waits is given. */
export const BATCH_FAILED_ATTEMPTS_MAX = 6;
/** Deliveries of a webhook that are tried, and the delay before the second, ms; it doubles. */
export const WEBHOOK_TRIES_MAX = 6;
export const WEBHOOK_AGAIN_MS = 5_000;
/** Longest that a webhook's receiver may take, ms. */
export const WEBHOOK_TIMEOUT_MS = 10_000;

// ---- files ----

/** One part of an object in R2, bytes: the least that R2 takes, for two of them are memory of every upload. */
export const FILE_PART_BYTES = 5 * 1024 * 1024;
/** Most parts of one object: R2's limit, and so 52 GB in one file. */
export const FILE_PARTS_MAX = 10_000;
/** Bytes asked of a request's body at a time: few reads of a large upload, and little memory for a small one. */
export const SOURCE_READ_BYTES = 64 * 1024;
/** Parts of one form: a file and its settings are five, and clients may add some of their own. */
export const FORM_PARTS_MAX = 32;
/** Longest value of a form field that is not a file, bytes: purposes and numbers are below a hundred. */
export const FORM_FIELD_BYTES_MAX = 16 * 1024;
/** Longest header of a form's part, bytes: Node allows as much for a whole request's. */
export const FORM_HEADER_BYTES_MAX = 16 * 1024;
/** Bytes before a form's first boundary, and behind its last one, that are read and ignored: clients send none. */
export const FORM_REST_BYTES_MAX = 64 * 1024;
/** Bytes of a file that are read at once while it is worked through: a read holds no connection longer than it takes. */
export const FILE_PAGE_BYTES = 1024 * 1024;
