/**
 * Every bound of the gateway: what it protects, and why this number. `GET /limits` shows those that a client can meet.
 */

// ---- what a client may send ----

/**
 * Most slots of one `/batch`: as many as the lines of a batch file, so that clients split their work by one number. A
 * group's queue and counters are memory of one object, 2 MB for so many, and its index must fit a slot's id (65,536).
 */
export const ITEMS_PER_BATCH_MAX = 50_000;
/**
 * Most calls of one batch that the budget can never pay for, unless it pays for a hundredth of all: each is opened, refused, logged and
 * answered, for nothing, which takes about 0.1 ms. So many cost no more than what reading a body of 16 KB is allowed to.
 */
export const UNPAID_CALLS_MAX = 250;
/** Largest request body, read whole by the Worker: an isolate has 128 MB for all that it does at once. */
export const BODY_BYTES_MAX = 32 * 1024 * 1024;
/**
 * Bytes of bodies that the requests of one isolate may hold when a large one arrives: one and a half of the largest. A relayed
 * body is copied once, and the rest of the isolate's 128 MB is for other clients. Small bodies count, and are never refused.
 */
export const BODIES_HELD_BYTES_MAX = 48 * 1024 * 1024;
/** Time after which a held body counts as returned, ms: the runtime may drop a request, which then returns nothing. */
export const BODY_HELD_MS_MAX = 600_000;
/** Wait advised to a client whose large body has no room, ms: a body is read, and let go, within seconds. */
export const BODIES_FULL_RETRY_AFTER_MS = 2_000;
/** Largest body that is one call: `PROMPT_BYTES_MAX` of text with each character as an escape, six bytes for one. */
export const CALL_BODY_BYTES_MAX = 10 * 1024 * 1024;
/** Largest body of `POST /runs`: the largest metadata and all model patterns, with room for a dozen tools. */
export const RUN_BODY_BYTES_MAX = 64 * 1024;
/** Largest body of `PATCH /runs/:id`: four limits, a width and a switch, several times over. */
export const PATCH_BODY_BYTES_MAX = 4 * 1024;
/** Largest body that adds to a log: sixty of the largest events; as UTF-16 it still fits one call to an object. */
export const LOG_BODY_BYTES_MAX = 8 * 1024 * 1024;
/** Largest body of a request that needs none: clients send `{}`, or nothing. */
export const EMPTY_BODY_BYTES_MAX = 4 * 1024;
/**
 * Longest credential that is checked, characters: run tokens have fewer than 2,048; most servers accept 8 KB a header.
 */
export const CREDENTIAL_CHARS_MAX = 8_192;
/**
 * Shortest secret that the gateway uses for itself, characters. A run token lets its holder test guesses of the key that signed it
 * without sending a request; 32 random letters and digits have 160 bits or more, which nobody guesses.
 */
export const SECRET_CHARS_MIN = 32;
/**
 * Longest error message, characters: text that a client sent, such as the name of a field, is quoted in part at most.
 */
export const ERROR_MESSAGE_CHARS_MAX = 2_000;
/**
 * Smallest body of a batch that is read piece by piece: a smaller one costs less when read whole, and little memory.
 */
export const LARGE_BODY_BYTES_MIN = 1024 * 1024;
/** Bytes of a large body's calls that are parsed at once: dozens of short prompts, and still short-lived garbage. */
export const LARGE_BODY_PIECE_BYTES = 32 * 1024;
/**
 * Bytes of a refused body that are drained, so that its sender reads the answer: three times the largest body accepted.
 */
export const REFUSED_BODY_BYTES_MAX = 3 * BODY_BYTES_MAX;
/** Largest single call (prompt or messages with its parameters, as JSON): it must fit one 2 MB row with its page. */
export const PROMPT_BYTES_MAX = 1_500_000;
/**
 * Most values (elements, members) in a JSON body that is read whole: parsing takes up to 1 µs for each, so a body of a few megabytes of
 * brackets or names would hold its Worker for seconds. The messages of the longest call have three quarters of it.
 */
export const JSON_VALUES_MAX = 200_000;
/**
 * Most values in a body of `/v1`, which is read in place: 0.1 µs for each, in one piece that holds its Worker. It is three times the
 * token numbers of the largest request for embeddings, and more messages than any model has room for.
 */
export const SCANNED_VALUES_MAX = 1_000_000;
/**
 * Characters of values that are parsed, checked, compared or merged between two pauses of a Worker: the slowest of that takes about
 * 0.1 µs for each, so a slice is far below the 250 ms that nothing may hold others for.
 */
export const SLICE_CHARS_MAX = 256 * 1024;
/** Characters of one text whose tokens are counted between two pauses, 25 ns each: 3 ms. */
export const TEXT_SLICE_CHARS = 128 * 1024;
/** What each value counts for beside its characters: a value of a few characters takes microseconds too. */
export const SLICE_PIECE_CHARS = 64;
/** Bodies from this size on wait for their turn before they are read, bytes: a smaller one is parsed and measured within a millisecond. */
export const SLICED_BODY_BYTES_MIN = 64 * 1024;
/**
 * Routes or schemas of the OpenAPI document that are described, parsed or rendered between two pauses: four take 20 ms at most, in code that
 * is not compiled yet.
 */
export const ROUTES_PER_SLICE = 4;
/**
 * Longest rest between two slices, ms. It is as long as the slice before it, while small requests are on their way; a slice that took longer
 * than this was held up by others, who need no rest of it.
 */
export const SLICE_REST_MS_MAX = 100;
/**
 * Time for which a small request counts as on its way, ms: most of what it makes an isolate do is done by then, it waits for its upstream, and
 * large requests are not to rest for one that takes minutes.
 */
export const SMALL_REQUEST_MS_MAX = 1_000;
/** Longest wait for the next slice in turns, ms: then a request takes the first turn that it finds. Others have had dozens by then. */
export const SLICE_WAIT_MS_MAX = 250;
/** Longest time between two looks whether it is one's turn, ms. */
export const SLICE_LOOK_MS_MAX = 50;
/** The first in the queue is gone if it has not looked for so long, ms: its request was cancelled. */
export const SLICE_GONE_MS = 100;
/**
 * Slots of a group that are read in the turn that opens it, or that restores what it retries: so many take a few milliseconds. More are read
 * in slices before that turn.
 */
export const OPENED_AT_ONCE_MAX = 2_000;
/**
 * Longest prompt of a batch whose characters are looked at one by one, characters: if all are plain ASCII, prompts of one length share
 * their facts. The runtime measures a longer prompt for less than such a look costs.
 */
export const PLAIN_PROMPT_CHARS_MAX = 128;
/**
 * Most kinds of calls of a large batch that are priced before its pages are made, each in a few microseconds. Short prompts are of one kind
 * for each length: those of a body of 500 KB cannot have more.
 */
export const PRICED_KINDS_MAX = 1_000;
/** Bytes of a large body that are read between two pauses of its Worker: a few milliseconds. */
export const SCAN_SLICE_BYTES = 1024 * 1024;
/** Largest completion cap that a call may request: above any model's, small enough that tokens × price stays exact. */
export const MAX_TOKENS_MAX = 10_000_000;
/** Longest time one attempt may take, ms: the longest generations providers allow, and a bound on a lease's life. */
export const TIMEOUT_MS_MAX = 3_600_000;
/** Highest number of a step of a program, and of its steps: more than any loop of model calls has, and short on a terminal. */
export const CALL_STEPS_MAX = 10_000;
/** Longest deadline of a queued call, ms (a day): longer than a client is likely to wait for any run. */
export const DEADLINE_MS_MAX = 86_400_000;
/** Models that the refusal of another one names, and characters of each: enough to see a typing error, and a slot stores it. */
export const USABLE_MODELS_MAX = 8;
export const USABLE_MODEL_CHARS_MAX = 64;
/** Longest model name, run name and item id, characters: they are stored in rows and logs, and sent in headers. */
export const NAME_CHARS_MAX = 256;
/** Largest `metadata` of a run, as JSON: it is stored once and repeated in each run document. */
export const METADATA_BYTES_MAX = 16_384;
/** Most names of groups in one `POST /groups/cancel`: more calls than a program has under way at once; one turn of the run looks each up. */
export const CANCEL_NAMES_MAX = 10_000;
/** First wait before such a request looks again whether calls in flight have ended, ms: short calls end in it. It doubles. */
export const CANCEL_LOOK_FIRST_MS = 100;
/** Longest such wait, ms: a look is one request to the run's object, and somebody waits for the prompt to return. */
export const CANCEL_LOOK_MS_MAX = 2_000;
/** Largest body of such a request: so many names of the length that stubs give them, and some longer ones. */
export const CANCEL_BODY_BYTES_MAX = 1024 * 1024;
/** Longest Idempotency-Key, characters: a UUID has 36; the key is a row of its own. */
export const IDEMPOTENCY_KEY_CHARS_MAX = 255;
/** Longest that `GET /groups/:id` waits, ms: below the idle cut-off of common proxies. */
export const GROUP_WAIT_MS_MAX = 60_000;
/** Slots in one page of results: at most, and if the request names no number. A page is also bounded by its bytes. */
export const RESULTS_PAGE_MAX = 1_000;
export const RESULTS_PAGE_DEFAULT = 100;
/** Characters of a prompt and of an answer that a look at one call shows: some lines on a screen. */
export const TEXT_HEAD_CHARS = 600;
/** Largest event that a client may add to its run's log, bytes of JSON: code and its output, not files. */
export const CLIENT_EVENT_BYTES_MAX = 131_072;
/** Events in one `POST /runs/:id/log`. */
export const CLIENT_EVENTS_PER_POST_MAX = 1_000;
/** Total that clients may add to one run's log, bytes: a thirtieth of what an object may store. */
export const CLIENT_LOG_BYTES_MAX = 256 * 1024 * 1024;
/** Largest request field `params`, entries: each is copied into the upstream request. */
export const PARAMS_ENTRIES_MAX = 64;
/**
 * Unreservable fields that are listed of one request: far more than an honest request has. No `allow_params` allows
 * a request with more. They are stored with the call.
 */
export const UNRESERVABLE_LISTED_MAX = 16;
/**
 * Occurrences of such fields that are checked in one request: each costs a few microseconds, and a body can have
 * millions.
 */
export const UNRESERVABLE_NOTED_MAX = 10_000;
/** Longest name in `allow_params`, characters: it is the path of a field in a request. */
export const UNRESERVABLE_NAME_CHARS_MAX = 128;
/**
 * Time between attempts with a key that its upstream has stopped (no credit, not valid), ms: a minute finds a key that was paid
 * for soon enough, and makes 1,440 calls a day in vain at most.
 */
export const KEY_PROBE_MS = 60_000;
/** Targets of one route: more than anyone has models that may stand in for each other, and a bit each in a position. */
export const ROUTE_TARGETS_MAX = 8;
/** Routes of a configuration: each is resolved once per run, and `GET /v1/models` lists them all. */
export const ROUTES_MAX = 256;
/**
 * Most attempts of a call with several keys or targets, wherever they go: each target has its own `max_attempts`, and each key
 * may stop once. It is the end of what else could go round for as long as keys stop and come back.
 */
export const CHOICE_ATTEMPTS_MAX = 64;
/** Query parameters of one upstream: providers name one or two, and all are in the address of each request. */
export const QUERY_PARAMETERS_MAX = 16;
/**
 * Time before its end at which a fetched access token is renewed, ms: an attempt that starts with a token may be held up before it is
 * sent, and clocks differ by seconds.
 */
export const TOKEN_RENEWED_BEFORE_MS = 300_000;
/** Longest wait for an access token, ms: an endpoint for tokens answers within a second, and the attempt waits meanwhile. */
export const TOKEN_FETCH_MS_MAX = 10_000;
/** Access tokens that an isolate keeps: one for each key of a deployment, which has a few dozen. */
export const TOKENS_KEPT_MAX = 256;
/** Keys of one upstream: a provider gives an organisation dozens at most, and each is compared at each dispatch. */
export const UPSTREAM_KEYS_MAX = 32;
/**
 * Parts of UPSTREAMS, ROUTES and PANEL, each: of the 128 variables that Cloudflare's paid plan has, half stay for secrets if
 * two of them are split as far as possible, and 160 KB is more than thousands of prices take.
 */
export const CONFIG_PARTS_MAX = 32;
/** Names in `allow_params` of one upstream: each is compared with each field that no reservation covers. */
export const ALLOW_PARAMS_MAX = 64;
/** Levels of nested content that are read (a document in a tool's result is two): a deeper request is refused. */
export const CONTENT_LEVELS_MAX = 4;
/** Choices or candidates of one prompt, at most: far above what upstreams allow, small enough to multiply. */
export const CHOICES_MAX = 1_000;
/**
 * Deepest nesting inside `messages`, `params`, `metadata`: far above tools' JSON schemas, far below the stack's end.
 */
export const JSON_DEPTH_MAX = 64;
/**
 * Deepest nesting of a whole body, checked before it is parsed: that of its fields, inside items of a list in an
 * object.
 */
export const JSON_BODY_DEPTH_MAX = JSON_DEPTH_MAX + 8;

// ---- hedges ----

/** Durations after which a sketch of them halves what it knows: a percentile of 95 follows a change within some hundred calls. */
export const SKETCH_FADES_AT = 512;
/** Longest duration that a sketch distinguishes from longer ones, ms: an hour, beyond every time limit of an attempt. */
export const SKETCH_DURATION_MS_MAX = 3_600_000;
/** Answers of a model from which on it is known which of its calls are slow: one in twenty is a percentile of 95. */
export const HEDGE_SAMPLES_MIN = 20;
/** A call is hedged by percentile if it takes this many times the median: where times merely vary, little would be gained. */
export const HEDGE_MEDIANS_MIN = 2;
/** Part of a model's calls that may be slow while others are hedged: beyond, it is the provider that is slow. */
export const HEDGE_SLOW_SHARE_MAX = 0.25;
/** Fraction of its time so far after which a slow call that was not hedged is checked again: about thirty times in ten minutes. */
export const HEDGE_LOOK_SHARE = 0.25;
/** Latest ends of a model's calls that are kept, to compare a slow call with: they tell what is usual, however wide the run is. */
export const HEDGE_ENDS_KEPT = 512;
/** Models of a run whose times are kept: beyond, the one that was used least recently is learned anew. */
export const HEDGE_MODELS_KEPT = 16;
/** The part of what a group costs that its hedges may cost if the request does not say, and at most. */
export const HEDGE_EXTRA_DEFAULT = 0.05;
export const HEDGE_EXTRA_MAX = 1;
/**
 * Longest wait of an answer for the report of the attempt that it overtakes, ms: a connection closes in a few; whatever takes longer must
 * not hold an answer.
 */
export const HEDGE_REPORT_MS_MAX = 250;

// ---- graphs ----

/** Most tasks of one graph: its compiled form, about 100 bytes a task, is memory of the run object and rows of its storage. */
export const GRAPH_TASKS_MAX = 10_000;
/** Graphs of a run whose shapes a saved page has, the last ones: each may be a megabyte, and a file is to be sent around. */
export const SAVED_GRAPHS_MAX = 20;
/** Most edges of one graph: each is stored, and visited once when a task ends. */
export const GRAPH_EDGES_MAX = 30_000;
/** Most slots of one graph, with the most elements of each `foreach`: as many as a group has ids for (2^16). */
export const GRAPH_SLOTS_MAX = 65_536;
/** Largest body of a graph: 1.6 KB a task. It is parsed whole, which takes several times its size in an isolate of 128 MB. */
export const GRAPH_BODY_BYTES_MAX = 16 * 1024 * 1024;
/** Elements of a `foreach` whose request names no `max_items`: more work than that should be asked for by a number. */
export const FOREACH_ITEMS_DEFAULT = 100;
/** Longest id of a task, characters: edges name it, and each error names several. */
export const TASK_ID_CHARS_MAX = 64;
/** References in the prompt of one task: each is read when its slot starts, inside a turn of the run object. */
export const TASK_REFERENCES_MAX = 1_000;
/** Retries of one task: with its first attempt as many as an upstream's largest `max_attempts`. */
export const TASK_RETRIES_MAX = 9;
/** Comparisons in the condition of one task: they are read in one turn of the run object, with those of all tasks that wait for it. */
export const CONDITION_TERMS_MAX = 16;
/** Characters of a text that a condition compares an output with: it is a label or a phrase, not a document. */
export const CONDITION_TEXT_CHARS_MAX = 1_000;
/**
 * Characters of the conditions of a graph together: they are stored with the graph, and all may be decided in one turn. A
 * comparison is at most some hundred of them.
 */
export const CONDITIONS_CHARS_MAX = 262_144;
/** Characters of an output that a condition reads, which is within a tenth of a millisecond; JSON is read whole or not at all. */
export const CONDITION_OUTPUT_CHARS_MAX = 262_144;
/** Alternatives of one task: they run one after another, and each pays for a call. */
export const TASK_ALTERNATIVES_MAX = 8;
/** Characters of the fallback texts of a graph together: they are stored with the graph, not with the calls. */
export const FALLBACK_CHARS_MAX = 262_144;
/** Largest `context_limit_chars`: no prompt is longer. */
export const CONTEXT_LIMIT_CHARS_MAX = PROMPT_BYTES_MAX;
/** Assumed duration of a call without an estimate, ms: the median of public traces is 8.7 s. Only its ratio to estimates matters. */
export const TASK_DURATION_MS_DEFAULT = 10_000;
/** Duration above which a task gets a warning, ms: it delays every task that depends on it, and if it fails, all of its work is lost. */
export const TASK_DURATION_MS_LONG = 300_000;
/** Prompt below which a task gets a warning, characters: no instruction is that short. */
export const TASK_PROMPT_CHARS_SHORT = 10;
/** Faults and warnings that are listed of one graph: who repairs these learns of the next. */
export const GRAPH_FAULTS_MAX = 20;
/** Longest line of a plan that is read while it is written, characters: the largest task, with its escapes. */
export const PLAN_LINE_CHARS_MAX = 2 * PROMPT_BYTES_MAX;
/** Operations of one change of a graph: it is applied inside one turn of the run object, all or nothing. */
export const GRAPH_OPERATIONS_MAX = 1_000;
/** Largest body of a change of a graph: as much as its run object parses and stores within one turn. */
export const GRAPH_CHANGE_BYTES_MAX = 4 * 1024 * 1024;
/** Most changes of one graph: each writes the compiled graph anew and computes once more which of its slots may start. */
export const GRAPH_CHANGES_MAX = 2_000;
/**
 * Changes of a plan that runs while it is written by which its tasks are added one by one; later ones are added in blocks,
 * because each change writes the compiled graph anew.
 */
export const PLAN_EAGER_CHANGES = 1_000;
/** Tasks of such a block: a plan of the most tasks then has fewer than 1,100 changes. */
export const PLAN_BLOCK_TASKS = 100;
/** How often a Worker that waits for the next line of a plan says so, ms: three times within the term after which it counts as gone. */
export const PLAN_HEARTBEAT_MS = 10_000;
/** Tasks of a plan whose request names no number: the planner is one call, and few goals need more steps. */
export const PLAN_TASKS_DEFAULT = 10;
/** Most tasks of a plan that one call writes: its results are read by one call, too, and held in memory for that. */
export const PLAN_TASKS_MAX = 100;
/** Most further plans of one request: its client waits for all of them. */
export const PLAN_ROUNDS_MAX = 5;
/** Characters of each output that a joiner reads: all of the largest plan then fit one prompt. */
export const JOINER_OUTPUT_CHARS_MAX = 4_000;
/** Files that one item of a batch names, in each of its lists: more are a folder, which is one name. */
export const ITEM_FILES_MAX = 64;
/** Conflicts of a batch, and names in each, that an answer lists: who resolves these learns of the next. */
export const CONFLICTS_LISTED_MAX = 20;
/** Ids of a cycle that an error lists: a longer one is shown without its middle. */
export const CYCLE_IDS_MAX = 100;

// ---- runs ----

/**
 * Most calls in flight of one run: 683 executors of six, or 64 of as many as an executor holds. The settlements in the run object
 * become the bottleneck above that, and before it where calls are short: it settles some thousand calls a second.
 */
export const PARALLEL_MAX = 4_096;
/**
 * Calls in flight of a root run that wants no limit of its own (`max_parallel: 0`): 86 executors of six. Who wants more of them names a
 * number, because each executor beyond is an object that is awake, and the connections of a laptop's one process are few.
 */
export const PARALLEL_UNLIMITED = 512;
/**
 * Calls in flight of a run whose request names no number: what a Worker and one lane hold without waiting. Where a provider
 * takes less, the gate of its key narrows it.
 */
export const PARALLEL_DEFAULT = 64;

/**
 * Equal parts into which the budget of a parent without a cap of its own is divided for children that name no limit; others divide it
 * by `max_parallel`. As many as a small budget of calls has at least, so that a share is not nothing.
 */
export const CHILD_SHARES_DEFAULT = 8;

/**
 * Calls in flight of a dialect's batch that names no `concurrency`: what the dialect's own server allowed, for which its
 * users have chosen their providers' limits.
 */
export const DIALECT_CONCURRENCY = { rlmSandbox: 8, rlm: 16, verifiers: 5 } as const;
/** The same with the profile `stable`, for models and keys with tight limits: what cautious agents use. */
export const PARALLEL_STABLE = 4;
/** Smallest and largest weight of a run at a gate: a run can have a hundred times the share of another, which still moves. */
export const WEIGHT_MIN = 0.1;
export const WEIGHT_MAX = 10;
/** Deepest tree of runs: each level reserves a budget in the level above; agents in the field stop at 3. */
export const DEPTH_MAX = 16;
/** Depth of a run's tree if the request names none. */
export const DEPTH_DEFAULT = 3;
/** Open child runs of one run: each has a reservation in its parent and must be notified when the parent ends. */
export const CHILDREN_OPEN_MAX = 1_000;
/**
 * Longest that a request for a child run waits for its parent's capacity, ms: as long as a request may wait for a group. Proxies
 * give up requests without an answer after about this time.
 */
export const CAPACITY_WAIT_MS_MAX = 60_000;
/** Requests for child runs that wait in one run: each is a pending request, which the object visits in every turn. */
export const CAPACITY_WAITERS_MAX = 512;
/** Time for which a waiting request keeps its place without its Worker, ms: a Worker repeats its call at once, or is gone. */
export const CAPACITY_GRACE_MS = 2_000;
/**
 * Completions of pull workers that settle nothing, and wait in one isolate for the turn in which they are answered. A turn takes a
 * millisecond, and each looks for its own every few: so many are answered within a quarter of a second.
 */
export const NEEDLESS_COMPLETIONS_WAITING_MAX = 128;
/** Wait advised to a worker whose completion settled nothing while so many wait, ms. */
export const NEEDLESS_COMPLETION_RETRY_AFTER_MS = 1_000;
/** Ended leases of pull workers that a run object remembers, so that a repeated delivery is recognised: those of a few minutes. */
export const PULL_ENDED_KEPT = 1_000;
/**
 * Attempts of single calls that a run object remembers after it has ended them without a word of their Workers, which may still
 * live and settle them: about 500 bytes each. The Worker of one that is forgotten computes its charge itself.
 */
export const UNREPORTED_ENDS_KEPT = 1_000;
/**
 * Single calls that a run object remembers after it has ended them without an attempt of their own, for their Workers that were away
 * meanwhile and ask again: one that is forgotten is queued anew. Such a Worker comes back within ABANDONED_MS, mostly within
 * milliseconds.
 */
export const ENDED_CALLS_KEPT = 1_000;
/** Characters of the answers among them, which equal calls share: a small part of the object's memory. */
export const ENDED_CALLS_CHARS_MAX = 8_000_000;
/** Items of one claim, and leases of one heartbeat: a worker that takes more than it can begin keeps them from others. */
export const PULL_ITEMS_MAX = 64;
/** Shortest lease of an item, ms: a heartbeat each third of it must be cheap. */
export const PULL_LEASE_MS_MIN = 2_000;
/** Longest lease of an item, ms: so long an item may wait for another worker when one is lost. */
export const PULL_LEASE_MS_MAX = 600_000;
export const PULL_LEASE_MS_DEFAULT = 60_000;
/** Lines of one kind that an isolate writes to the console in a term, ms: enough to see a fault, too few to bury others. */
export const CONSOLE_LINES_MAX = 10;
export const CONSOLE_LINES_MS = 60_000;
/** Runs that one request for a subtree visits: each is a call to its object. */
export const SUBTREE_RUNS_MAX = 1_000;
/** Time for which readers of one subtree share one sum, ms: it asks up to a thousand objects, and 40 readers took 7.5 s of CPU. */
export const SUBTREE_LOOK_MS = 1_000;
/**
 * Longest wait for a look that another request makes, ms; then the waiting request makes its own. A look takes milliseconds, one
 * at 300 runs a second or two, and the request that makes it may have been cancelled.
 */
export const SHARED_LOOK_WAIT_MS = 5_000;
/**
 * Runs of a subtree that are asked at the same time. Objects of one isolate answer one after another: what comes between them waits for
 * those that have been asked.
 */
export const SUBTREE_LOOKS_AT_ONCE = 16;
/** Runs of a subtree whose sum is made for each reader: it costs no more than a few other requests. */
export const SUBTREE_FRESH_RUNS_MAX = 16;
/** Subtrees whose sums an isolate keeps for that time. */
export const SUBTREE_LOOKS_MAX = 100;
/** Longest life of a run, seconds (30 days): a token that leaked from a sandbox must expire. */
export const EXPIRES_S_MAX = 30 * 86_400;
/** Life of a run whose request names none, seconds. */
export const EXPIRES_S_DEFAULT = 86_400;
/** Model patterns a run may list: each is tried for each call. */
export const MODEL_PATTERNS_MAX = 64;
/** Longest coalescing window of `/query`, ms: later calls are not parallel to the first in any useful sense. */
export const WINDOW_MS_MAX = 10_000;
/** Coalescing window of a run whose request names none, ms: parallel sub-agent runners in the field use the same. */
export const WINDOW_MS_DEFAULT = 50;
/**
 * A window slides while calls arrive: it closes this many times its length after its first call at the latest. Clients open the
 * connections of calls at once one after another, which takes a few windows at most; a steady stream of calls is no group.
 */
export const WINDOW_SLIDES_MAX = 4;
/**
 * Delay of a timer from which its process counts as having stood still, ms: an idle machine's are one or two ms late, a busy one's
 * dozens, again and again. Calls that were sent at once arrive a second apart where a disk holds up the first of them.
 */
export const STOOD_STILL_MS_MIN = 5;
/** Longest time for which a coalescing window waits for a process that stands still, ms: a log that says nothing for longer is of no use. */
export const STOOD_STILL_MS_MAX = 5_000;
/** Time between two looks at the clock while calls arrive, ms: a fifth of a window, so that a process that stands still is noticed in it. */
export const ARRIVAL_LOOK_MS = 10;
/** Time for which one request looks at the clock for all, ms: the platform ends what a request does 30 s after its reply. */
export const ARRIVAL_WATCH_MS_MAX = 10_000;
/**
 * Longest time that a single call counts as having been on its way from its Worker to its run, ms: no window stays open for longer,
 * and a call whose body took longer to arrive came together with none.
 */
export const CALL_AGE_MS_MAX = WINDOW_SLIDES_MAX * WINDOW_MS_MAX;
/** Models that one executor's totals count apart: they are part of a row that is rewritten with every settlement. */
export const MODELS_COUNTED_MAX = 32;
/**
 * Groups of single calls that are remembered until they end, so that their beginning and end can be emitted: each is a few numbers.
 */
export const WINDOW_GROUPS_KEPT = 256;
/**
 * Those of them that are stored for the next instance of the run, the newest: about 5 KB in one row per commit. A run whose object
 * sleeps while calls are in flight has few of them.
 */
export const WINDOW_GROUPS_STORED = 32;
/** Retention of a run's results and log after its end if the request names none, seconds. */
export const RETENTION_S_DEFAULT = 86_400;
/** Longest retention, seconds (30 days): a run that no client deletes must not be stored for ever. */
export const RETENTION_S_MAX = 30 * 86_400;
/** Largest USD budget: a million dollars is 10¹⁵ nano-USD, well inside exact integers. */
export const BUDGET_USD_MAX = 1_000_000;
/** Largest limit of calls or tokens: sums of such limits are still exact integers. */
export const BUDGET_COUNT_MAX = 1_000_000_000_000;

// ---- money ----

/**
 * Prompt tokens reserved per UTF-8 byte of text after a tokenizer's normalisation: no tokenizer in use makes more than
 * one token of one byte.
 */
export const PROMPT_TOKENS_PER_BYTE = 1;
/**
 * Smallest prompt, in UTF-8 bytes, whose text gets a look for a tighter bound. Below it, the look saves a fraction of a
 * cent beside the completion's reservation, and its 20 ns a byte would be a tenth of the CPU time of a short call in a
 * batch.
 */
export const TEXT_LOOK_BYTES_MIN = 4_096;
/**
 * Largest prompt whose text gets that look, in UTF-8 bytes: the look takes up to 33 ns a byte, in one piece that holds its Worker. Six
 * megabytes are two million tokens, which is the widest window that models have; a longer text counts a token per byte.
 */
export const TEXT_LOOK_BYTES_MAX = 6_000_000;
/**
 * Fewest tokens by the look at a text for its answer to judge the tokenizer: the 20 to 350 tokens of a chat template
 * count as text there, and would be most of a shorter prompt.
 */
export const TEXT_SAMPLE_TOKENS_MIN = 1_000;
/**
 * Fewest tokens billed per token of that look for an answer to count: English has 0.65 to 0.8. A lower ratio comes from
 * an upstream that does not count tokens, or a text such as a thousand equal signs, which shows nothing about words.
 */
export const TEXT_RATIO_MIN = 0.4;
/**
 * Models of one upstream whose tokenizers a run judges by its own answers: other prompts are reserved by their bytes.
 */
export const TEXT_MODELS_MAX = 256;
/**
 * Most tokens by the look per byte of a prompt that can judge it: English has 0.36; a prompt above has hardly any
 * words.
 */
export const TEXT_SAMPLE_DENSITY_MAX = 0.5;
/** Factor by which bills must stay below the look for it to be believed: other texts may have more tokens per byte. */
export const TEXT_SCALE_MARGIN = 1.1;
/** Tokens added per message for role and separators: OpenAI's chat formats spend 3 or 4, others up to 8. */
export const PROMPT_TOKENS_PER_MESSAGE = 8;
/**
 * Tokens added per call to an Anthropic upstream: it puts its own text, documented as 159 to about 900 tokens by model,
 * before tools and output formats. The bytes of the request do not bound that text.
 */
export const PROMPT_TOKENS_FIXED_ANTHROPIC = 1_024;
/**
 * Tokens added per call to an upstream of kind `openai` until its bills show more: chat templates of open models add 20
 * to 70 (Qwen 2.5: 21, Llama 3: about 35, gpt-oss: 60 to 70), so this leaves room for a default system prompt.
 */
export const PROMPT_TOKENS_FIXED_OPENAI = 128;
/** The same for a request with tools: documented templates put 159 to about 900 tokens of their own before tools. */
export const PROMPT_TOKENS_FIXED_TOOLS = 1_024;
/**
 * Most tokens reserved for a template that is unseen, or was seen with long prompts only, while the budget pays for it:
 * four times the longest that a provider documents.
 */
export const PROMPT_TOKENS_UNSEEN = 4_096;
/** Templates remembered per upstream: clients choose model names, and all rows of an upstream are read at once. */
export const TEMPLATES_PER_UPSTREAM_MAX = 256;
/**
 * Templates of one upstream that a tree of runs may be the only one to have seen: its further ones count as those of any
 * other model. So one run that makes up models leaves room for those of others.
 */
export const TEMPLATES_PER_TREE_MAX = 32;
/**
 * Trees of runs whose reports of one template are kept: six decide what all believe, two for each fact, and two more are
 * room for newer ones.
 */
export const TEMPLATE_WITNESSES_MAX = 8;
/**
 * Time for which what a run has seen of a template counts for others, ms: a program that runs once a week still finds it, and
 * what is no longer true, or never was, fades.
 */
export const TEMPLATE_LIFE_MS = 7 * 24 * 3_600_000;
/**
 * Age up to which an upstream's templates that were read count as new, ms: a run per second must not be a read per run.
 */
export const TEMPLATES_FRESH_MS = 10_000;
/** Most tokens that a configuration may add to every call: far above the text of any provider; more is a typo. */
export const PROMPT_TOKENS_FIXED_MAX = 100_000;
/** Completion cap that is reserved, and sent, if the client names none and a limit needs one. */
export const COMPLETION_TOKENS_DEFAULT = 4_096;
/**
 * Answers to calls without a cap that a model must have given before a cap is learned from them: with fewer, the
 * longest so far does not predict the next.
 */
export const LEARNED_ANSWERS_MIN = 20;
/**
 * Answers that suffice for a first, generous cap: where the budget pays for one call at a time at the default cap, each of the
 * answers up to LEARNED_ANSWERS_MIN would take the time of a whole call.
 */
export const LEARNED_ANSWERS_FIRST = 5;
/** Factor of that first cap over the longest of these answers: five answers say little of the next. */
export const LEARNED_CAP_MARGIN_FIRST = 4;
/** Smallest such cap, tokens: short answers are no reason to expect only short ones. */
export const LEARNED_CAP_TOKENS_FIRST_MIN = 256;
/**
 * Answers per attempt in flight that must have arrived before learned caps are used: short answers arrive first, so
 * while a third of the requests are unanswered, the answers so far are not typical.
 */
export const LEARNED_ANSWERS_PER_FLIGHT = 2;
/** Smallest learned completion cap, tokens: of calls whose answers are a word or a number, under a budget of some tenths of a cent. */
export const LEARNED_CAP_TOKENS_MIN = 32;
/**
 * Tokens up to which a learned cap has a margin of LEARNED_CAP_MARGIN_SHORT, because short answers vary most; and up to which a call
 * with a long prompt has a higher one, because it pays its prompt twice if its answer is cut.
 */
export const LEARNED_CAP_TOKENS_SHORT = 1_024;
export const LEARNED_CAP_MARGIN_SHORT = 2;
/**
 * Tokens of prompt for each token of the lowest cap of a call. Completion tokens cost some four times as much: below it the prompt is
 * two thirds of what a call reserves, so that a lower cap makes few runs wider.
 */
export const LEARNED_PROMPT_TOKENS_PER_CAP = 8;
/** Factor of a learned cap over the lowest cap that past answers allow: the next answers may be longer. */
export const LEARNED_CAP_MARGIN = 1.25;
/**
 * Largest share of all completion tokens that a cap may waste on answers that it cuts and that are requested again:
 * half of the 2 % of its spending that a run may lose that way.
 */
export const LEARNED_WASTE_SHARE = 0.01;
/**
 * Share of the rest of a budget that calls may reserve at the default cap before learned caps are used: other calls
 * still fit beside them, and a run with a loose budget wastes nothing on answers that are cut.
 */
export const LEARNED_ROOM_SHARE = 0.25;
/**
 * Width in tokens of a class of completion lengths: 256 counts a model, of 1 KB, and caps as low as the smallest.
 */
export const LEARNED_CLASS_TOKENS = 16;
/** Models of one run whose completions are counted: calls to others reserve the default cap. A run has a handful. */
export const LEARNED_MODELS_MAX = 256;
/**
 * Share of its time for which a group must have had fewer calls in flight than it may have, because its budget covers no more, for its
 * metrics to say so: every budget makes its last calls wait.
 */
export const NARROWED_SHARE_MIN = 0.2;
/** Smallest completion cap that a budget imposes, tokens: fewer are no answer, and some providers refuse fewer. */
export const COMPLETION_TOKENS_MIN = 16;

/**
 * Bytes of prompt per token in a quote's likely cost: English text has 4 in today's tokenizers. Not used in a bound.
 */
export const LIKELY_BYTES_PER_TOKEN = 4;
/** Completion tokens in a quote's likely cost: the median of 226 recorded sub-calls of a recursive agent. */
export const LIKELY_COMPLETION_TOKENS = 312;
/**
 * Images of one call whose sizes are kept apart, at most: those of one size are one. It bounds a stored call; more count as the
 * largest that the model takes.
 */
export const IMAGES_MEASURED_MAX = 64;
/**
 * Segments of an image's file that are skipped to find its size, at most: it bounds the work of a hostile file. Photos with large
 * profiles and previews have some dozens.
 */
export const IMAGE_SEGMENTS_MAX = 256;
/** Characters of an image that are copied if its JSON escapes slashes, at most: the headers of nearly all images are shorter. */
export const IMAGE_ESCAPED_CHARS_MAX = 131_072;
/** Most tokens that a configuration may count for one image, sound or file: the largest contexts are a few million. */
export const MEDIA_TOKENS_MAX = 10_000_000;

// ---- executors ----

/**
 * Attempts that one executor holds at most if headers limit it: a Worker, a lane or a Workflow instance. A streamed call waits
 * for headers only until its first byte, so an executor is awake for many; and its loss loses no more than these. At 32, an
 * object would be awake for .55 s per call of 20 s at width 512, half of what such a call costs.
 */
export const EXECUTOR_CALLS_MAX = 64;
/**
 * How often an executor could begin all calls that it is to hold while one of them lasts: enough that a batch is at its width
 * after half a call, and few enough that one executor suffices for 64 calls whose headers come within a twentieth of it.
 */
export const FILLS_PER_CALL = 2;
/** How long a call counts as lasting before one has ended, ms: a short answer of an LLM. */
export const CALL_MS_ASSUMED = 5_000;
/** Models of which an isolate knows how soon their headers come: each is three numbers and a name. */
export const MODEL_PACES_KEPT = 256;
/**
 * Longest time between two looks at an executor whose fetches all wait for headers, ms: nothing beside headers that come after tens of
 * seconds, and a timer that costs nothing where calls are in flight anyway.
 */
export const FULL_CHECK_MS_MAX = 2_560;
/**
 * Most attempts that such a Worker holds where nothing limits them: its loss loses no more than these, and each of them is renewed and
 * compared with every claim. A wider run has lanes beside it.
 */
export const WORKER_CALLS_MAX = 512;
/**
 * Most attempts that a Worker requests with the opening of its group: to grant, write and send hundreds takes tens of milliseconds, in which
 * the first ones are already under way.
 */
export const FIRST_CLAIM_MAX = 64;
/** Attempts that an executor begins before it lets them leave: to begin hundreds takes tens of milliseconds, in which none would leave. */
export const BEGUN_AT_ONCE_MAX = 64;
/**
 * Time for which a Worker collects answers before it settles, ms, unless all of its calls have ended before: a
 * settlement costs as much as the fetches of several calls, and 2 ms are nothing to an LLM call.
 */
export const WORKER_MERGE_MS = 2;
/**
 * Attempts in flight of an executor per ms for which it collects answers at least: the hundreds of a wide wave, which end within tens of
 * milliseconds, then make a few settlements, and a wait of 8 ms at 512 is nothing to an LLM call.
 */
export const ATTEMPTS_PER_MERGE_MS = 64;
/**
 * The same while attempts are so short that the gateway limits the speed of the run, ms: fewer settlements make it faster, and
 * an executor with few calls waits until all of them have ended.
 */
export const WORKER_SHORT_MERGE_MS = 4;
/**
 * The same once nothing but the end of its group waits for what it ends, ms: the answers of a wide wave then make a few commits instead of
 * dozens. The last of them waits for nothing; a Worker that dies loses what it has gathered, so the time is short beside any LLM call.
 */
export const WORKER_GATHER_MS = 25;
/**
 * Time for which a Worker without a client completes its calls, ms: the platform ends it after 30 s, and it needs some to
 * report those that it gives up.
 */
export const WORKER_LEAVE_MS = 25_000;
/**
 * Longest that an attempt goes on whose client has left and wants no answer (`detach: false`), ms: it then is aborted, and its end
 * is settled within `WORKER_LEAVE_MS`.
 */
export const UNWANTED_END_MS = 20_000;
/** Time for which an executor must be full while slots wait before others join it, ms: the first headers of a local upstream take less. */
export const LANES_JOIN_MS = 5;
/**
 * Time for which an executor collects places of fetches that no longer wait for headers, ms, unless half of them are free: a claim
 * costs a commit and a row, and at most a third of a model's usual time to its headers is lost.
 */
export const ROOM_MERGE_MS = 200;
/** Time for which it waits, ms, when half of them are free, for headers that come at the same time: little beside any headers. */
export const ROOM_TOGETHER_MS = 5;
/**
 * Time in which an executor that is signalled at its socket claims, ms: a message, a request and a commit take less. After that
 * others are signalled in its place, so that no slot waits for one that has ended without a word.
 */
export const SIGNALLED_CLAIM_MS = 250;
/** Time for which lanes that were named or called count as starting, ms: the first use of an object takes less. */
export const LANES_START_MS = 1_000;
/**
 * Bytes of prompts in one reply to an executor, and characters of answers in one settlement, after which the rest waits for
 * the next call: a call takes at most 32 MB, and both are in memory twice. The last may exceed it by one call.
 */
export const CLAIM_BYTES_MAX = 8 * 1024 * 1024;
/** Characters of answers that a Worker keeps for its client; the others are read from the run's rows when their turn comes. */
export const WORKER_KEPT_CHARS_MAX = 4 * 1024 * 1024;
/**
 * Longest time for which a lane claims, ms; each lane draws its own, from half of it on, so that few end together. Together
 * with the longest call it is below the delay that wrangler.toml allows a deploy: then a deploy finds every lane idle once.
 */
export const LANE_LIFE_MS = 600_000;
/**
 * Time without a call or a lease after which a lane's object counts as idle, ms: longer than a claim waits in the run
 * object and the 10 s after which the platform takes an idle object out of memory.
 */
export const LANE_REST_MS = 35_000;
/**
 * Time after which a busy lane keeps itself in memory by alarms, ms: until then its calls do, for each of them counts for 15
 * minutes at most.
 */
export const LANE_ALARM_FROM_MS = 600_000;
/** Interval of these alarms, ms: the platform takes an object without events out of memory after 70 s at the earliest. */
export const LANE_ALARM_MS = 45_000;
/** Fetches of one object that may wait for headers if the configuration names none: Cloudflare queues a seventh. */
export const WAITING_FETCHES_DEFAULT = 6;
/** Most waiting fetches that a configuration may name: on plain workerd nothing limits them, and no executor holds more. */
export const WAITING_FETCHES_MAX = WORKER_CALLS_MAX;
/**
 * Lanes that one Worker or object calls at the same time: as many as a run of 512 calls has, six in each. Of a wider run the others follow
 * as these reply, so that what else their caller does is not held up behind hundreds of calls.
 */
export const LANES_CALLED_AT_ONCE = 86;
/**
 * Attempts in flight per ms of batching delay before a lane settles: a settlement then carries about four slots at any
 * width.
 */
export const ATTEMPTS_PER_BATCHING_MS = 16;
/**
 * Longest batching delay, ms: it halves the cost of settlements at width 192 and above, and is short beside any LLM
 * call.
 */
export const BATCHING_DELAY_MS_MAX = 12;
/**
 * Life of a lease whose executor has no socket, ms: more than two heartbeats of a lane, so that one may be lost, and
 * twenty times the age at which a Worker opens its socket; recovery stays < 60 s. The lease of a single call whose Worker has
 * a socket lasts this long beyond its attempt's time limit: its end is noticed by the socket, so the term is a backstop, and
 * the margin is longer than all retries of a settlement.
 */
export const LEASE_TTL_MS = 30_000;
/**
 * Longest that a run looks late for a single call that was lost, ms: while nothing waits for its permit or its reservation, nor, if it is
 * stored, for its answer, and nothing but its silence speaks for the loss of its Worker. An alarm for each call would cost as much as
 * the call's own rows.
 */
export const LOST_CALL_MS = 600_000;
/**
 * Stored calls in flight up to which a run looks late for those that were lost: each turn visits all of them, and an alarm that more calls
 * share costs each of them little.
 */
export const LATE_CALLS_MAX = 64;
/**
 * Life of a lease that a restarted run object finds in its rows, or whose executor's socket broke, ms: longer than two
 * heartbeats, and than the longest delay before a socket is opened again. Together with the life
 * of a lease, by which the alarm is set, and the delay of a retry it is below the minute within which everything runs
 * again.
 */
export const FOUND_LEASE_TTL_MS = 25_000;
/**
 * Life of a lease whose executor has a socket, ms: an executor names its attempts when it opens a socket, each SOCKET_RENEW_MS,
 * and has the time of a reconnect for that. A socket that closes ends it sooner; so it is a backstop, and stays < 60 s.
 */
export const EXECUTOR_LEASE_MS = 55_000;
/** Time between two heartbeats of an executor whose leases the run does not renew at a socket, ms. */
export const HEARTBEAT_MS = 10_000;
/**
 * Time after the run has renewed an executor's leases at its socket until it sends a heartbeat all the same, ms: longer than
 * SOCKET_RENEW_MS with a reconnect, and more than one heartbeat before the leases end.
 */
export const HEARTBEAT_AFTER_SOCKET_MS = 40_000;
/**
 * Longest that a call waits in the run object for a permit, a slot's end or a group's end, ms. A caller that must wait
 * longer waits at a socket, so that the object sleeps. The object is billed for the time of the wait, a socket for its
 * opening, which costs about as much as a wait of 100 ms.
 */
export const RPC_WAIT_MS = 100;
/**
 * Longest time for which the run object sets a timer, ms: retries of a call are drawn from below it. For what is due later
 * it sets its alarm, and sleeps: an alarm costs about as much as 0.7 s of being awake, and may ring later than a timer.
 */
export const TIMER_MS_MAX = 2_000;
/**
 * Longest that `POST /runs/:id/turn` waits for the jobs of a run's alarm, ms: some wait for objects that do not answer, and an operator
 * at a terminal wants to know that.
 */
export const TURN_NOW_MS = 10_000;
/**
 * Longest that a call of an executor without a socket waits in the run object, ms: below every idle cut-off on the way. One that
 * has a socket waits there after RPC_WAIT_MS.
 */
export const LONG_POLL_MS = 20_000;
/**
 * Time after which a queued call counts as left by its Worker, which neither waits nor opens a socket, ms. It gets no permit meanwhile,
 * so that it costs nobody anything; a Worker on a loaded machine is slower than a round trip.
 */
export const ABANDONED_MS = 10_000;
/**
 * Time for which a lane keeps answers that it cannot deliver, ms: longer than a deploy or a platform fault of one
 * object.
 */
export const LANE_KEEP_MS = 600_000;
/** Failed calls in a row after which a lane without answers to deliver ends: the run's alarm starts it when needed. */
export const LANE_EMPTY_FAILURES_MAX = 6;
/** Upper bound of a lane's first delay before it retries a call to its run, ms; it doubles with each failure. */
export const LANE_RECONNECT_FIRST_MS = 100;
/**
 * Largest upper bound of such a delay, ms: below FOUND_LEASE_TTL_MS, so that a restarted run gets a heartbeat in time.
 */
export const LANE_RECONNECT_MAX_MS = 15_000;
/** Interval at which an object with pending calls replies to those that have waited long enough, ms: as long as most may. */
export const SWEEP_MS = RPC_WAIT_MS;
/**
 * Age at which a call's Worker, or an executor, opens a socket to the run object, ms. The socket reports a cancellation, which
 * must end a call within two seconds, and the Worker's own end; what is shorter is not worth what a socket costs.
 */
export const CALL_SOCKET_AFTER_MS = 1_500;
/** Upper bounds of the delays before a lost socket is opened again, ms; the last repeats. Below FOUND_LEASE_TTL_MS. */
export const SOCKET_RETRY_LIMITS_MS: readonly number[] = [50, 200, 1_000, 5_000];
/**
 * Time after which a Worker that waits at a socket opens another, ms: an object that ends may not close its sockets (seen
 * on workerd, where all objects are ended at once), and then no signal would ever come. Below a minute, within which
 * everything runs again.
 */
export const SOCKET_RENEW_MS = 30_000;
/** Sockets of callers of one run at once: the platform allows 32,768, and followers have theirs beside them. */
export const RUN_SOCKETS_MAX = 20_000;
/**
 * Upper bounds of the delays before a call to a run object is retried, ms; each delay is drawn below its bound. A
 * restart takes well under a second; a deploy ends within the last two delays. All of them last 4.6 s on average.
 */
export const OBJECT_RETRY_LIMITS_MS: readonly number[] = [50, 200, 1_000, 4_000, 4_000];
/** Wait advised to a client whose run object is overloaded, ms: its queue is a few seconds long by then. */
export const OBJECT_OVERLOADED_RETRY_MS = 2_000;
/**
 * Retry-After of a request that met an object of another version, ms: a deploy replaces objects when they are idle, which takes
 * seconds for most.
 */
export const OBJECT_OUTDATED_RETRY_MS = 5_000;
/** Retry-After of a request for which the disk has no room, ms: somebody has to free some, or what is open must expire. */
export const DISK_FULL_RETRY_MS = 30_000;
/**
 * Bytes of the disk of a gateway on its own machine that are kept for what is open: below them nothing opens. They hold the answers of
 * a thousand calls in flight at 64 KB each, the logs of their databases (4 MB for each busy run) and the output of their batches.
 */
export const DISK_RESERVE_BYTES = 256 * 1024 * 1024;
/**
 * How long an instance of the gateway uses a figure of the free space, ms: asking costs a request to the process beside it, and
 * in a second the bodies that it may hold are a fifth of the reserve.
 */
export const DISK_LOOK_MS = 1_000;
/**
 * Longest that a request waits for a figure of the free space, ms: without one it goes on, because a slow answer says nothing about the disk.
 */
export const DISK_ANSWER_MS_MAX = 1_000;
/**
 * Longest that a relayed call is queued, ms: OpenAI's Node client gives up after 300 s without headers, and retries.
 */
export const RELAY_QUEUE_MS_MAX = 120_000;
/**
 * Time for which a single call's settlement waits for a request of its run that takes it along, ms: its permit and its
 * reservation are freed that much later, which is little beside a model's answer, and a busy run saves a call to its
 * object per call.
 */
export const SETTLE_SEND_LAG_MS = 10;
/**
 * Time after which another request takes over the sending of an isolate's settlements, ms: the platform ends a request
 * 30 s after its reply, and this one may have ended with its isolate's memory limit before.
 */
export const SETTLE_HANDOVER_MS = 250;
/**
 * Time after which a call requests its permit by itself, ms, if the request that asks for several calls has not
 * replied: that request may have ended with its client. A reply takes a few ms.
 */
export const PERMIT_GUARD_MS = 250;
/**
 * Requests for permits of one run that an isolate has under way at once, where its object is far away. With two, sent half the way there
 * and back apart, a call waits a quarter of it for its request instead of a half, and a busy run makes at most twice as many requests.
 */
export const SHARED_REQUESTS_MAX = 2;
/**
 * Time that the fastest replies of an object take, ms, from which it counts as far away: another data center of the same city is one or
 * two ms away, another region 10 or more. Nearer, the next request is better sent after the one before, with more calls.
 */
export const FAR_OBJECT_MS_MIN = 10;
/**
 * Runs for which an isolate remembers which of their calls share a request: each of them has some under way, or one whose Worker ended
 * with its client in the middle of its own, of which nobody else hears. A run beyond them shares less, and misses nothing.
 */
export const SHARING_RUNS_MAX = 1_000;
/** Permits in one request to the run object: it bounds the request's size. The calls of a wider run that arrive together send several. */
export const PERMITS_PER_REQUEST_MAX = 512;
/** Wait advised to a relayed call that was queued for too long, ms. */
export const RELAY_RETRY_AFTER_MS = 1_000;
/** Time for which an isolate caches the list of an upstream's models, ms. */
export const MODELS_KEPT_MS = 300_000;
/** Largest list of models read from an upstream, bytes: the largest router lists some hundred models in 500 KB. */
export const MODELS_BYTES_MAX = 8 * 1024 * 1024;
/**
 * Time limit of a request for an upstream's models, ms: an upstream that hangs must not hide the models of the others.
 */
export const MODELS_TIMEOUT_MS = 5_000;
/** Delay before a run object retries to notify its parent of its end or its limits, or its children of its end, ms. */
export const NOTIFY_RETRY_MS = 5_000;
/** Interval of white space in a JSON answer that is not ready, ms: proxies cut silent connections after 30 s and up. */
export const KEEP_ALIVE_MS = 10_000;

/** Longest that a single call's settlement stays unwritten, ms: it saves a commit per call while calls keep coming. */
export const SETTLE_LAG_MS = 50;

// ---- upstreams ----

/** Attempts in flight at one upstream by one run, if the configuration names no number: no run is wider. */
export const UPSTREAM_IN_FLIGHT_DEFAULT = PARALLEL_MAX;
/** Most attempts in flight that a configuration may allow one upstream: above any provider's, small enough to count. */
export const UPSTREAM_IN_FLIGHT_MAX = 10_000;
/**
 * Highest price that a configuration may name, USD per million tokens: models in use cost below 1,000; more is a typo.
 */
export const PRICE_USD_PER_MILLION_MAX = 10_000;
/** Time limit of one attempt if neither client nor configuration names one, ms: both OpenAI SDKs wait this long. */
export const TIMEOUT_MS_DEFAULT = 600_000;
/** Attempts of one call if the configuration names no number: the first and two retries, as in both OpenAI SDKs. */
export const ATTEMPTS_DEFAULT = 3;
/** Most attempts of one call that a configuration may name: each can cost money. */
export const ATTEMPTS_MAX = 10;
/** Largest upstream answer that is read, bytes: an answer becomes one row, and a row has at most 2 MB. */
export const RESPONSE_BYTES_MAX = 1_900_000;
/**
 * Largest stream that is aggregated to an answer, bytes: its events take up to twenty times the bytes of the answer.
 */
export const STREAM_BYTES_MAX = 24 * 1024 * 1024;
/**
 * Bytes that the runtime collects of such a stream per read: a long answer is a few reads, and 512 attempts of one
 * isolate take 8 MB of buffers.
 */
export const STREAM_READ_BYTES = 16 * 1024;
/** Bytes of the first such read, which ends with the first byte: an event or two, beside which the buffers above stay as they are. */
export const STREAM_FIRST_BYTES = 1024;
/**
 * Longest pause between two looks at the copy of a relayed stream, ms: each look wakes JavaScript, and the copy may hold what
 * arrives in between.
 */
export const COPY_LOOK_MS = 250;
/** Pause before the first look at such a copy, ms: a stream that fills its connection must not go unseen for longer. */
export const COPY_LOOK_FIRST_MS = 20;
/** Bytes that one look should find: faster streams are looked at more often, so that their copies hold about this much. */
export const COPY_LOOK_BYTES = 256 * 1024;
/** Buffer of a look's first read, bytes. If its client reads no further, a stream goes on by this much per look. */
export const COPY_WAITING_BYTES = 4 * 1024;
/** Buffer of a look's further reads, bytes: it exists only while a look finds more than its first read takes. */
export const COPY_READ_BYTES = 16 * 1024;
/** Bytes of a stream that the runtime gathers while those before them are edited: some dozens of events. */
export const BATCH_WINDOW_BYTES = 16 * 1024;
/**
 * Shortest pause before the next batch of a stream that is too fast to be read event by event, ms: its events come at a
 * greater rate than one in two pauses, and a batch costs as much as an event.
 */
export const BATCH_PAUSE_MS = 2;
/** Chunks of a stream that are read one by one before a batch is tried: several streams begin with two or three at once. */
export const BATCH_FIRST_READS = 4;
/** Reads before a batch is tried again after one of a single event: a try that gathers nothing costs a timer. */
export const BATCH_RETRY_READS = 16;
/**
 * Events in a batch after which the next pause is twice as long: a stream of more than a thousand events a second, which would take a
 * thread for itself in smaller batches. Nobody reads so fast that he sees them come together.
 */
export const BATCH_MANY_EVENTS = 3;
/** Longest pause before many events have come in one batch, ms; then it is twice as long. Events within 16 ms look the same to a reader. */
export const BATCH_PAUSE_MS_MAX = 8;
/**
 * Streams that an isolate edits at once per ms of their pause: each batch costs about 50 µs, so that they take less than half
 * of its thread.
 */
export const BATCH_STREAMS_PER_MS = 8;
/** Secrets of upstreams whose search is prepared: more than an operator configures, and 300 bytes each. */
export const SECRETS_PREPARED_MAX = 1_024;
/** Longest wait for the rest of the copy of a stream that was stopped, ms: the runtime has it, and ends it at once. */
export const COPY_REST_MS_MAX = 1_000;
/** Mean latency of a model from which its calls are requested as streams, ms: common proxies give up at 30 s and up. */
export const STREAM_FROM_MS = 10_000;
/** Models whose latencies an isolate remembers: each is four fields. */
export const STREAM_MODELS_KEPT = 256;
/**
 * Completion tokens added to those seen of a stream that was stopped, because a provider generates some before it
 * notices: half a second at the 1,000 tokens a second of the fastest hardware.
 */
export const SEEN_MARGIN_TOKENS = 512;
/**
 * An attempt of a group that stops early is taken to be stuck once it takes this many times as long as the answers on average: few
 * answers take that long, and one that never comes must not hold the others.
 */
export const STOP_PATIENCE_FACTOR = 10;
/** Least time before such an attempt is taken to be stuck, ms: answers that take milliseconds say little about slower ones. */
export const STOP_PATIENCE_MS_MIN = 1_000;
/** The same while the group has no answer, ms: most answers of models with long thoughts have come by then. */
export const STOP_PATIENCE_MS_UNKNOWN = 60_000;
/** Longest part of an upstream's error text that is shown, characters. */
export const UPSTREAM_MESSAGE_CHARS_MAX = 500;
/**
 * Longest error body of an upstream that is stored for a raw request, characters: errors are sentences, pages are cut.
 */
export const UPSTREAM_ERROR_CHARS_MAX = 16_384;
/** Upper bound of the first retry's delay, ms; it doubles per attempt. Full jitter: the delay is drawn below it. */
export const RETRY_BASE_MS = 800;
/** Upper bound of any retry delay drawn, ms. */
export const RETRY_MAX_MS = 10_000;
/** Longest Retry-After that is obeyed, ms; a call that gets a longer one fails as rate-limited. */
export const RETRY_AFTER_MAX_MS = 90_000;

// ---- gates ----

/**
 * Shortest time between two answers of one key whose headers an executor reads, ms: reading them is a noticeable part of a
 * short call's time, and a gate needs a few samples a second.
 */
export const RATE_SAMPLE_EVERY_MS = 100;
/**
 * Time for which a grant of a gate that limits is valid, ms: a run that was lost keeps its permits from the others for so
 * long, and one whose gate is restarted goes on for so long.
 */
export const GATE_TTL_MS = 5_000;
/** Time for which a gate counts the attempts of a run that does not report, ms: longer than any pause between its reports. */
export const GATE_RUN_TTL_MS = 60_000;
/**
 * Runs that a gate knows, each of about a thousand bytes: a tenth of an object's memory. One with nothing to do makes room for
 * another; if there is none, a newcomer waits.
 */
export const GATE_RUNS_MAX = 10_000;
/** Runs that one exchange looks at one by one, on average: it takes microseconds beside thousands of runs, and is exact beside a few. */
export const GATE_VISITS_MAX = 64;
/** Time of a gate per run between two of its exchanges, ms, where many use it: an object takes several hundred requests a second. */
export const GATE_EXCHANGE_EVERY_MS = 4;
/**
 * Attempts that all runs together may have in flight at a key of which nothing is known: as many as 64 new runs begin with. Each
 * of more runs begins with its part, so that thousands do not overrun a small key.
 */
export const GATE_UNKNOWN_IN_FLIGHT_MAX = 4_096;
/** Runs that are notified when the class of a gate changes: the others learn of it with their next exchange or failure. */
export const GATE_NOTICES_MAX = 64;
/** Shortest time between two exchanges of a run that waits for a rate, ms: a few calls to an object per second and run. */
export const GATE_NEXT_MIN_MS = 200;
/** Longest such time, ms: a newcomer gets its share within about this time. */
export const GATE_NEXT_MAX_MS = 1_000;
/**
 * Longest sleep of a run whose calls wait for a gate, ms: below the ten seconds after which Cloudflare takes an idle gate out of
 * memory, with what it knows of its key's buckets. Others that come wait for what it has been granted no longer than this.
 */
export const GATE_SLEEP_MS_MAX = 5_000;
/**
 * Calls that a run lets collect before it wakes up for them, if as many wait: a wake costs about as much as 0.8 s of being awake,
 * and so many calls at once are fewer than any provider takes for a burst.
 */
export const GATE_COLLECTED_CALLS = 8;
/** Part of a call's time for which a run sleeps that waits for a permit: a newcomer gets its share within about this time. */
export const GATE_SLEEP_LATENCY_SHARE = 0.25;
/** Time by which a deadline must be away for the calls of its run to collect, ms: then the delay is a twelfth of it at most. */
export const GATE_SLEEP_DEADLINE_MS = 60_000;
/**
 * Longest time without a report of a run with attempts in flight at a gate that limits, ms: half of the time for which the gate
 * counts them, so that one report may be lost.
 */
export const GATE_REPORT_MS_MAX = GATE_RUN_TTL_MS / 2;
/** Time between two exchanges of a run that waits for a permit, ms: below the time of most calls, whose ends free permits. */
export const GATE_FAST_NEXT_MS = 150;
/** Time by which a run may be late before it keeps others from what is its share, ms: a busy object, a slow way. */
export const GATE_PUNCTUAL_SLACK_MS = 500;
/** Time for which a gate counts as paced after calls have waited for a rate, ms: credit is not lent and recalled in between. */
export const GATE_PACED_MS = 2_000;
/** Part of what nobody waits for that one run may start without another exchange: the rest is for others that come. */
export const GATE_HEADROOM_SHARE = 0.5;
/** Part of a limit of which more must be left if a rejection is to be about something that the headers do not show. */
export const GATE_PLENTY_SHARE = 0.1;
/** Time whose refill is never granted, ms: for what was sent after the newest sample and is not reported yet. */
export const GATE_MARGIN_MS = 250;
/** Part of what was started since the newest headers that is left besides: by as much it may have been counted otherwise. */
export const GATE_UNSAMPLED_SHARE = 0.2;
/** Time for which calls count against a run that were started before a rate was known, ms: that of a full bucket. */
export const GATE_UNPAID_MS = 60_000;
/** Smallest and largest factor between what a provider counts as tokens and what a run does: beyond, others use the key, too. */
export const GATE_FACTOR_MIN = 0.02;
export const GATE_FACTOR_MAX = 20;
/** Time after an empty bucket was seen before one call looks whether it still is, ms, where nothing else would show it. */
export const GATE_LOOK_MS = 2_000;
/** Part of a limit that must have been counted before that factor is measured: less is blurred by late reports. */
export const GATE_FACTOR_WINDOW_SHARE = 0.02;
/** Smallest window in which a provider is taken to enforce a limit, ms: a second's part of it is there after any pause. */
export const GATE_LIMIT_WINDOW_MS_MIN = 1_000;
/** Time for which it is known what had been started by when, ms: the headers of a call of two minutes show that time. */
export const GATE_HISTORY_MS = 120_000;
/** Shortest time between two entries of that history, ms: it has a thousand entries at most. */
export const GATE_HISTORY_STEP_MS = 100;
/** Shortest time between two rows that a gate writes of figures that have moved, ms: it makes less than .01 rows per call. */
export const GATE_STORE_EVERY_MS = 30_000;
/**
 * Shortest such time of a width that has risen, ms: a gate that is lost while it searches must not go back to where it began. The
 * search for a width takes seconds, and then it hardly moves. One that has fallen is stored at once.
 */
export const GATE_STORE_WIDTH_EVERY_MS = 2_000;
/**
 * Shortest Retry-After that a gate stores, and shortest time by which a later one must exceed it, ms: Cloudflare takes an idle gate
 * out of memory after 10 s, and a deploy at any time. The loss of a shorter one costs a few rejected calls, and it makes no row.
 */
export const GATE_HOLD_STORE_MS = 10_000;
/**
 * Shortest time between two rows that a gate writes of how long its permits are valid, ms: an instance that begins after ten
 * seconds of silence knows that none is.
 */
export const GATE_PERMITS_STORE_EVERY_MS = 5_000;
/** Shortest time between two rows that a gate writes of how long attempts take, ms: percentiles move slowly. */
export const GATE_LATENCY_STORE_EVERY_MS = 60_000;
/** Unread runs whose exchanges a gate counts, a hundred bytes each: one beyond is read once more than it would have to be. */
export const GATE_MARKS_MAX = 10_000;
/**
 * Time since a run's last start at a gate after which it says that it is idle, ms: a reader visits it until then. The call that ends this
 * costs an exchange, which arrives before a real model has answered, but not before a simulated one has.
 */
export const METERS_RETIRE_MS = 10_000;
/** Days for which a gate keeps what an ended run has counted: by then no meter of it is on its way, and no alarm repeats one. */
export const METERS_ENDED_KEPT_DAYS = 7;
/** The same for a run that has not said that it ended: longer than a run and its retention last together, which are 30 days each. */
export const METERS_KEPT_DAYS = 70;
/** Longest that a run stays stored because a gate does not take what it has counted, ms: a gate that is gone for longer misses it. */
export const METERS_LATE_MS_MAX = 86_400_000;
/** Delay before such a run tries again, ms. */
export const METERS_RETRY_MS = 60_000;
/** Runs that one read of `GET /metrics` visits, a request each: the others take their turn with the next reads. */
export const METRICS_RUNS_MAX = 256;
/**
 * Longest that a read of `GET /metrics` waits for its gates, and for the runs that it visits, ms: half of the time that Prometheus
 * gives a target. What does not reply is in a later read.
 */
export const METRICS_WAIT_MS = 2_500;
/** Models that a gate counts apart: their names come from clients, and each makes 40 series. */
export const METERED_MODELS_MAX = 50;
/** Characters of a model's name in the metrics: providers' names are shorter. */
export const METER_MODEL_CHARS_MAX = 120;
/** Series of one reply of `GET /metrics`: what Prometheus takes from a target without a thought. Models beyond are shown together. */
export const METRICS_SERIES_MAX = 2_000;
/** Notices that a gate has under way at once: half of the requests of an object that may wait. */
export const GATE_NOTICES_AT_ONCE = 3;
/** Answers after which a gate believes that a provider's headers show no limits: until then runs exchange often. */
export const GATE_ANSWERS_MIN = 16;
/** Factor by which a rejection lowers a width: few rejections in a row find half of it, one costs little. */
export const GATE_WIDTH_CUT = 0.9;
/** Smallest width, calls: below 1 they are paced, down to one in the time of fifty. */
export const GATE_WIDTH_MIN = 0.02;
/** Part of the last ceiling up to which a width rises fast. */
export const GATE_WIDTH_NEAR = 0.97;
/** Time in which a width rises most of the way to just below its ceiling, ms. */
export const GATE_WIDTH_RISE_MS = 1_000;
/** Time without a rejection before a width rises beyond its ceiling, ms: one call in some hundred is rejected then. */
export const GATE_WIDTH_PROBE_MS = 2_000;
/** Rejections, with no longer pause between them than so many ms, before a width is limited: fewer are an accident of a server. */
export const GATE_WIDTH_PROOF = 4;
export const GATE_WIDTH_PROOF_MS = 1_000;
/**
 * Share of calls that a provider may fail as overloaded (503, 529) before that counts as a lack of room: its own faults and deploys
 * make a few in a hundred, whatever the width. Retries repair these.
 */
export const GATE_OVERLOAD_SHARE = 0.05;
/** Rejections for overload beyond that share before a width is lowered: at 3 %, chance gathers them once in some ten thousand calls. */
export const GATE_OVERLOAD_PROOF = 6;
/**
 * Share of the latest attempts at a model that fail as overloaded before it counts as overloaded by itself, while others of its key are
 * answered: twice what is expected, because the attempts are few.
 */
export const GATE_BUSY_MODEL_SHARE = 2 * GATE_OVERLOAD_SHARE;
/** Latest attempts by which a model is judged: enough to tell that share, and few enough that an outage shows within a dozen calls. */
export const GATE_MODEL_ATTEMPTS_KEPT = 64;
/** Time in which half of what they have shown is forgotten, ms: answers of slow models come once a minute. */
export const GATE_MODEL_HALF_MS = 60_000;
/** A gate calls a model overloaded by itself for so long after its last overload, ms: each busy run exchanges sooner, and learns of it. */
export const GATE_BUSY_MODEL_MS = 10_000;
/** Time after a rejection within which others belong to it, ms: they were sent before all runs knew of it. */
export const GATE_WIDTH_REST_MS = 150;
/** Time without a rejection after which a width that is more than what is used is forgotten, ms: the next answer shows that. */
export const GATE_WIDTH_FORGET_MS = 120_000;
/** Time over which the time to the first byte is judged, ms. */
export const GATE_TTFB_WINDOW_MS = 1_000;
/** Answers of a kind that such a time must have: the fastest tenth of fewer is the luck of a single call. */
export const GATE_TTFB_SAMPLES_MIN = 16;
/** Factor by which the time to the first byte must have risen before it counts as a queue, and ms besides: less is hardly felt. */
export const GATE_TTFB_FACTOR = 2;
export const GATE_TTFB_SLACK_MS = 250;
/** Such times in a row after which a smaller width is tried: fewer may be a hiccup of the provider, or of the machine. */
export const GATE_TTFB_SLOW_WINDOWS = 3;
/** Kinds of answers that a gate distinguishes, by model and size: the names of models come from clients. */
export const GATE_TTFB_LINES_MAX = 64;
/** Models whose times a gate keeps, and a report has: beyond, the one that was used least recently is forgotten. As many as a run's. */
export const GATE_MODELS_MAX = HEDGE_MODELS_KEPT;
/** Lines of a run's queue for overloaded models: more than are narrowed at once. Calls of others wait in the line of their key. */
export const BUSY_LINES_MAX = 4 * GATE_MODELS_MAX;
/** Mean time of a call before any has ended, ms. */
export const GATE_LATENCY_DEFAULT_MS = 1_000;
/** Attempts in flight of a run that exchanges more often with an open gate, and how often, ms: one exchange per dozens of calls. */
export const GATE_BUSY_IN_FLIGHT = 16;
export const GATE_BUSY_NEXT_MS = 2_000;
/**
 * Delays of the probes of a stopped key, ms; the last repeats. A fault of seconds ends soon, and a key whose quota is gone
 * costs one refused call a minute.
 */
export const GATE_PROBE_DELAYS_MS: readonly number[] = [2_000, 10_000, 30_000, 60_000];
/** Time for which a grant of an open gate is valid, ms: a run that calls seldom asks its gate as seldom. */
export const GATE_OPEN_TTL_MS = 60_000;
/** Time after which a run that calls exchanges with an open gate, ms: beside calls of seconds it costs nothing. */
export const GATE_OPEN_NEXT_MS = 10_000;
/**
 * Largest `max_penalty` and weight of `adaptive.mode` = `penalty`: at 100 a width of 512 is 5, and what is more is an error of
 * the configuration.
 */
export const PENALTY_MAX = 100;
/** What a failure adds to the penalty if the configuration does not say: a rejected rate counts twice a timeout. */
export const PENALTY_WEIGHTS = { rateLimited: 2, overloaded: 1.5, timeout: 1, schemaViolation: 0.5 } as const;
/** Largest penalty if the configuration does not say: the width falls to a quarter, and no further. */
export const PENALTY_DEFAULT_MAX = 3;
/** Time in which the penalty falls by a step if the configuration does not say, ms: some windows of limits per minute. */
export const PENALTY_DECAY_MS_DEFAULT = 480_000;
/** Shortest and longest such time, ms: below a second the penalty has no effect, and after a day nobody knows of it. */
export const PENALTY_DECAY_MS_MIN = 1_000;
export const PENALTY_DECAY_MS_MAX = 86_400_000;

/**
 * Attempts that a run may have in flight at a gate that has not replied yet: as many as the width of most runs, so that the
 * first calls of a run wait for nothing. All new runs of an isolate together have GATE_UNKNOWN_IN_FLIGHT_MAX.
 */
export const GATE_FREE_PERMITS = 64;
/**
 * Attempts that all new runs of an isolate may have in flight together, one each, at a key that a gate has lately called limited:
 * the first call of a lone run waits for nothing, and hundreds of runs that begin at once do not overrun a small key.
 */
export const GATE_LIMITED_FREE_MAX = 8;
/** Time for which new runs go by what a gate has told another run of their isolate, ms: as long as a grant of an open gate is valid. */
export const GATE_KNOWN_TTL_MS = GATE_OPEN_TTL_MS;
/** Shortest time between two exchanges of a run with a gate, ms: many failures at once are one report. */
export const GATE_GAP_MS = 100;
/** Longest wait for a gate's reply, ms: it decides at once, so one that takes this long is overloaded or gone. */
export const GATE_REPLY_MS_MAX = 5_000;
/** Upper bound of the first delay before a gate that could not be reached is tried again, ms; it doubles. */
export const GATE_RETRY_MS = 1_000;
/** Upper bound of any such delay, ms: while its gate is away, a run calls a limited key with one attempt at a time. */
export const GATE_RETRY_MAX_MS = 5_000;
/** Tasks that one entry of `waiting_for` names: it says where a graph is, and a task may have hundreds of dependencies. */
export const WAITS_NAMED_MAX = 8;
/** Samples of headers in one report: the gate uses the newest of each bucket, and they travel with every report. */
export const GATE_SAMPLES_MAX = 4;
/**
 * Attempts of a call that waits instead of failing, after which a rate limit fails it nevertheless. Rate limits do not count
 * towards `max_attempts`; 20 of them in a row are an outage.
 */
export const GATE_ATTEMPTS_MAX = 20;
/** Attempts of a call that waits, after which a key that does not work fails it nevertheless: as probes, one a minute, they are more than three hours. */
export const STOPPED_ATTEMPTS_MAX = 200;
/**
 * Time for which a group without a deadline waits at a key that does not work and has answered none of its slots, ms: a fault of
 * seconds passes meanwhile, and an operator who has configured a wrong key gets the error within a minute.
 */
export const STOPPED_FIRST_WAIT_MS = 60_000;
/**
 * The same for a group that has answers, ms: long enough to repair the key, and no client waits for an answer for ever.
 * Background work waits until its run expires.
 */
export const STOPPED_WAIT_MS = 600_000;

// ---- storage ----

/**
 * Characters of call bodies of one group that are rows; the rest goes to R2, if that is bound. As many as the page cache has
 * in memory: so the first calls start without a read of R2, and most batches have nothing there.
 */
export const ROW_BODIES_CHARS_MAX = 4 * 1024 * 1024;
/** Bodies in one object of R2: a read of it gives the widest run half of its calls, and a batch of 50,000 is 200 writes. */
export const BODY_OBJECT_SLOTS_MAX = 256;
/** Characters of bodies in one object of R2; a single larger body has an object to itself. It is read whole. */
export const BODY_OBJECT_CHARS_MAX = 512 * 1024;
/** Objects of bodies that a Worker writes at once: half of the six requests that may wait, for bodies in memory meanwhile. */
export const BODY_PUTS_IN_FLIGHT_MAX = 3;
/** Objects of bodies that a run object reads ahead of the one it dispatches from: a read takes as long as a few calls. */
export const BODY_OBJECTS_AHEAD = 2;
/** Reads of such objects at once: below the six that may wait, for the texts that are in memory meanwhile. */
export const BODY_LOADS_MAX = 4;
/** Characters of such objects in a run object's memory: three of the largest, and as much as the page cache has. */
export const BODY_CACHE_CHARS_MAX = 6 * 1024 * 1024;
/**
 * Characters of bodies that all run objects of one isolate keep, from rows and from R2: they share its 128 MB, and two of three have to be for
 * what calls, answers and turns need.
 */
export const INSTANCE_BODIES_CHARS_MAX = 24 * 1024 * 1024;
/** Characters of objects of bodies that all run objects of one isolate read at once: sixteen of the largest. */
export const INSTANCE_LOADS_CHARS_MAX = 16 * BODY_OBJECT_CHARS_MAX;
/** Time after which a read counts as over, ms: that of an instance that is gone ends never. */
export const LOAD_MS_MAX = 60_000;
/** Delay before a run object looks again whether there is room for a read, ms: a read takes as long. */
export const LOAD_RETRY_MS = 100;
/** Delay before an object of bodies that R2 did not give is read once more, ms. */
export const BODY_RETRY_MS = 2_000;
/** Calls in one stored call page: 32 in a row divide the price of writing them by 32. */
export const CALL_PAGE_SLOTS_MAX = 32;
/**
 * Characters of a stored single call, and of its answer, up to which both are in one row: as JSON, with every character escaped,
 * they stay below the 2 MB limit of a row.
 */
export const SINGLE_CHARS_MAX = 100_000;
/**
 * Characters of the Idempotency-Keys of such calls in a run object's memory, with 100 for each: 40,000 keys of 50 characters. An
 * index in storage would cost a row per call; the keys of further calls are rows.
 */
export const SINGLE_KEYS_CHARS_MAX = 6_000_000;
/** Bytes of one stored call page, below the 2 MB limit of a row. A page has at least one call. */
export const CALL_PAGE_BYTES_MAX = 262_144;
/** Call pages cached in a run object's memory, bytes: enough for the pages being dispatched, small beside 128 MB. */
export const PAGE_CACHE_BYTES_MAX = 4 * 1024 * 1024;
/**
 * Characters of calls with inserted outputs that a run object keeps from dispatch to their executors: what one claim carries,
 * so a call is rarely made twice.
 */
export const GRAPH_CALLS_CHARS_MAX = 8 * 1024 * 1024;
/**
 * Characters of outputs that a run object keeps for the tasks that insert them: those of the last thousands of short answers,
 * or of some long ones. What was dropped is read from its row.
 */
export const OUTPUTS_KEPT_CHARS_MAX = 4 * 1024 * 1024;
/**
 * Outputs whose elements a run object keeps parsed while `foreach` tasks work on them. Parsed JSON takes many times the memory
 * of its text, and few such tasks run at once.
 */
export const GRAPH_SOURCES_KEPT = 4;
/** Bytes of results in one reply of the run object: strings made of it stay below the size that V8 treats as large. */
export const RESULTS_REPLY_BYTES_MAX = 128 * 1024;
/**
 * Pages of calls whose ids a reader of a group keeps: as many calls as a wide group has in flight, so that each page is read about once
 * for all of their events.
 */
export const NAMED_PAGES_KEPT = 16;
/** Groups whose ids of calls the run object keeps for readers of the log, who read the newest ones: each takes up to a megabyte. */
export const LOG_NAMED_GROUPS_MAX = 8;
/** Characters of one row of the log: at most 1.5 MB of the 2 MB of a row. A larger write is several rows. */
export const LOG_ROW_CHARS_MAX = 512 * 1024;
/** Events that wait in the row of a shard for a row of the log: a call has three, so the log costs 0.02 rows per call. */
export const LOG_TAIL_EVENTS_MAX = 128;
/** Characters of these events: the shard's row is rewritten with every turn, and must not grow far beyond its leases. */
export const LOG_TAIL_CHARS_MAX = 48 * 1024;
/** Characters of log rows that the export of spans takes at once. */
export const LOG_EXPORT_CHARS_MAX = 256 * 1024;
/** Followers of one run's events at once, with the operator's key: each is a socket of the run object. */
export const FOLLOWERS_MAX = 256;
/**
 * Followers of one run's events at once with one run token: a page, a terminal and some programs. The log is read and sent once for each
 * of them, so this is how many times what a client adds to it is sent.
 */
export const FOLLOWERS_PER_TOKEN_MAX = 16;
/** Wait that a refused follower or reader is told, ms: as long as one may take that leaves or reconnects. */
export const FOLLOWER_RETRY_MS = 5_000;
/** Readers of one run's log so far at once, with the operator's key: each is a socket of the run object while it reads. */
export const LOG_READERS_MAX = 256;
/**
 * Readers of one run's log so far at once with one run token, its trace and its saved page among them. A log may have 256 MB, and each
 * reader has it read and sent once more: with 16, what they have read at once stays about as cheap as what followers have.
 */
export const LOG_READERS_PER_TOKEN_MAX = 16;
/**
 * Characters of the log in one page for those who read or follow it, unless one event has more. A client that reads nothing holds one page,
 * and a page takes about a millisecond to make and send, after which it is the turn of others.
 */
export const LOG_PAGE_CHARS_MAX = 64 * 1024;
/** Characters of the largest event of a client that followers get whole; of a larger one they get its address. Output of a step fits. */
export const FOLLOWED_EVENT_CHARS_MAX = 8 * 1024;
/**
 * Characters of prepared log rows that the run object keeps for its followers, and as many for its readers, who mostly read the same ones: two
 * of the largest rows.
 */
export const LOG_PAGED_ROWS_CHARS_MAX = 2 * LOG_ROW_CHARS_MAX;
/**
 * Calls of one log that have begun and not ended, and that a picture of the run remembers, as for `trace.json`: twice as many as an upstream
 * may have in flight, for the others wait for a retry. They take 15 MB of an isolate, which serves others beside.
 */
export const PICTURE_CALLS_MAX = 20_000;
/**
 * Characters that all followers of a run with one token may have unread in one instance of the gateway. The runtime keeps what a WebSocket's
 * client does not read, and has no API for how much that is.
 */
export const FOLLOWERS_UNREAD_CHARS_MAX = 8 * 1024 * 1024;
/** The same for all followers of all runs: a quarter of an instance's memory. */
export const INSTANCE_UNREAD_CHARS_MAX = 16 * 1024 * 1024;
/** Time after which what a follower was sent last counts as read, ms: the runtime may drop a request, which then gives nothing back. */
export const UNREAD_MS_MAX = 600_000;
/** Time after which a follower that has found no room for its page looks again, ms. */
export const UNREAD_RETRY_MS = 1_000;
/** Characters of an answer in one row, at most 1.5 MB; the rest of a longer answer is in further rows. */
export const TEXT_CHUNK_CHARS = 512 * 1024;
/**
 * Characters of what few slots have, such as an answer that a cascade has kept, beside which the answer begins in the same row. Beside more,
 * all of it is in rows of its own: a row of Cloudflare's takes 2 MB, and both together may have more.
 */
export const EXTRAS_BESIDE_TEXT_CHARS_MAX = 64 * 1024;
/**
 * Bytes that one root run may store with all runs below it (calls, answers, logs, files, contexts) before they accept no more: half of
 * Cloudflare's limit for an object, because the answers of calls that are queued by then still arrive.
 */
export const RUN_STORED_BYTES_MAX = 5 * 1024 * 1024 * 1024;
/**
 * Bytes that every child run counts from its opening on, and may store without asking the root run of its tree: the tables of an empty
 * run and a few calls, so that most children never ask.
 */
export const RUN_FLOOR_BYTES = 128 * 1024;
/** Bytes by which the root run allows a descendant to grow at once: one more request to it for so many stored bytes. */
export const RUN_SPACE_STEP_BYTES = 4 * 1024 * 1024;
/**
 * Child runs that one run may open in all: each is an object with rows of its own. With their floors they are four fifths of what a
 * tree may store.
 */
export const CHILDREN_MAX = 32_768;
/**
 * Time after which the pages of a staged upload that was never opened are dropped, ms: an upload lasts minutes at most.
 */
export const STAGED_KEPT_MS = 600_000;
/** Opened groups that an object recognises when a client whose first reply was lost opens them again. */
export const OPENINGS_KEPT = 256;
/** Time in which a request to open a group may be repeated because its reply was lost, ms: an object's client tries again for 10 s. */
export const OPENINGS_RECALLED_MS = 60_000;
/** Open groups that the record of settled ones names one by one, among newer ones that have ended. Of more, a restart reads what is newer. */
export const SETTLED_OPEN_MAX = 64;
/** Shards that ends of stored calls carry before the next writes its shard's row: a waking object reads the rows of all these calls. */
export const CARRIED_SHARDS_MAX = 16;
/** Characters of a shard that the end of a call may carry: the call's row keeps them, 3,000 with counters of five models, as long as its run. */
export const CARRIED_CHARS_MAX = 4_096;
/** Attempts in flight of a shard that the end of a call may carry: each has about 400 characters, which stay in the call's row. */
export const CARRIED_LEASES_MAX = 4;
/** Idempotency-Keys of single calls in one row of keys: a waking object reads so many fewer rows to know them. */
export const KEYS_PER_ROW = 256;
/** Batches and graphs of one run that are open at once: each has up to 50,000 slots with their counters and a queue in memory. */
export const GROUPS_OPEN_MAX = 256;
/** Open groups of one batch: a run has room for 256 batches and graphs, of this and other batches and of clients. */
export const BATCH_GROUPS_OPEN_MAX = 32;
/**
 * Model names whose targets a run object caches, or an instance that holds its credit: the names come from clients, and a run
 * uses a few of them.
 */
export const RUN_TARGETS_CACHED_MAX = 1_000;
/** Model names whose prices an instance keeps for each upstream: looking one up in the catalogue costs as much as a small call. */
export const PRICES_KEPT_MAX = 1_000;
/** Sets of fields for which an instance keeps a parser of each kind of object: clients send a few, and could send any. */
export const FIELD_SETS_KEPT_MAX = 100;
/** Retry-After of what a run has no room for at the moment, ms: its calls, groups and children end within seconds. */
export const RUN_FULL_RETRY_AFTER_MS = 1_000;
/** Ended groups in a run object's memory, so that their streaming readers see the order in which slots ended. */
export const GROUPS_ENDED_KEPT = 8;
/** Characters of call bodies in one group: those of a full-size request, with room for escapes. */
export const GROUP_CHARS_MAX = 64 * 1024 * 1024;
/**
 * Characters of what the calls of one group share, times its calls, if each call is compared with others (`dedupe`, a run that
 * records): a hash of each whole call takes 6 ms per MB, and a client sends the shared part once.
 */
export const GROUP_HASHED_CHARS_MAX = 64 * 1024 * 1024;
/** Characters of a graph's shared settings from which they are stored once: shorter ones cost less than reading two texts. */
export const GRAPH_SETTINGS_CHARS_MIN = 4_096;
/**
 * Retries of a group, of its retry, and so on: each refers to the rows of all groups before it, which are read together. A client that
 * retries until all is done needs a few.
 */
export const RETRIES_IN_A_ROW_MAX = 64;
/** Characters of the distinct models that the calls of one group name: they are in one row, which has at most 2 MB. */
export const GROUP_MODELS_CHARS_MAX = 512 * 1024;
/** Characters of call pages in one RPC to the run object: during the call they are in memory several times. */
export const PAGES_CALL_CHARS_MAX = 1024 * 1024;
/**
 * Characters of call pages on their way to the run object at once: four calls hide the way there and back of each, and
 * are copies of 8 MB beside the body that they are read from.
 */
export const PAGES_AHEAD_CHARS_MAX = 4 * PAGES_CALL_CHARS_MAX;
/** Pages of results that are read before the client has taken those before them: each has 128 KB. */
export const RESULT_PAGES_AHEAD = 2;
/**
 * `/query` calls that are queued or in flight in one run: each has a waiting Worker, and takes about 3 KB of the run object.
 * Those without an Idempotency-Key and those with one, which are stored as groups of one, have this many each.
 */
export const DIRECT_CALLS_MAX = 10_000;
/**
 * Withdrawn calls that a run remembers, and as many with their last settled attempt: a request for their permit that arrives later,
 * over another connection, must not be granted. It arrives within milliseconds; a whole queue may be withdrawn at once.
 */
export const WITHDRAWN_CALLS_MAX = DIRECT_CALLS_MAX;
/** Verified run tokens that an isolate remembers: signature checks cost more than the rest of a small request. */
export const TOKEN_CACHE_MAX = 1_000;
/**
 * Objects over which the list of root runs is spread: one object takes about 150 openings per second, and each page of
 * the list is a call to every one of them.
 */
export const DIRECTORY_SHARDS = 64;
/**
 * Places of a part of the list that are read for a run from the first that it may have, µs: a place is that of its opening, or the next
 * free one. A tenth of a second has about 15 runs at most, and no isolate or part gives so many places away at one time.
 */
export const LIST_PLACES_READ_MAX = 100_000;
/**
 * Shares into which what is left of a day's root budget is divided for leases ahead: two for each part of the list, so that all of
 * them together have leased at most half of it ahead, and the number of leases grows with the logarithm of the runs.
 */
export const DAY_LEASE_SHARES = 2 * DIRECTORY_SHARDS;
/**
 * How long the parts of the list are waited for that give back what they do not use of a day's budget, ms: all runs that open then wait
 * with it. A part answers within milliseconds, one that begins within a second; one that hangs must not stop all openings.
 */
export const DAY_RECALL_MS_MAX = 5_000;
/** Runs that one request for a lease of a day's budget asks for: a number each, and more wait for the next one. */
export const DAY_LEASE_WANTED_MAX = 1_000;
/**
 * So often, at most, a run tells the list of root runs how far it is, while it is busy, ms: each time is a request and a row, 1.2 USD
 * per million, and whoever watches a hundred runs reads no faster.
 */
export const SUMMARY_MS = 10_000;
/**
 * The same of a run whose reservation in the root budget of its day is in the object of the whole budget, ms. All of these runs are in
 * that one object, which takes about 150 requests per second.
 */
export const SUMMARY_OF_DAY_MS = 60_000;
/** Names of slots in one page of `GET /groups/:id/names`: at most some hundred KB, and one row for some hundred of them. */
export const SLOT_NAMES_PAGE = 5_000;
/**
 * Hours for which a run's row in the list keeps what it has used in each: today and yesterday of every time zone. Each is about 100
 * bytes of a row that is written anyway.
 */
export const OVERVIEW_HOURS = 48;
/** Models that an hour of a run counts apart, and the overview of all runs: their names come from clients. */
export const OVERVIEW_MODELS_MAX = 16;
/** Codes of failures that it counts apart: there are fewer. */
export const OVERVIEW_CODES_MAX = 64;
/** Names of runs that a part of the overview counts apart: each part sends all of its names. */
export const OVERVIEW_NAMES_MAX = 200;
/** Names that the overview shows, those that cost most: more are read in the list. */
export const OVERVIEW_NAMES_SHOWN_MAX = 20;
/** Runs that a look at the overview visits in each part of the list, the newest: two rows each, read in some milliseconds. */
export const OVERVIEW_RUNS_MAX = 1_000;
/** A run's rate is shown if it has reported within this time, ms: a busy one under a root budget per day reports every 60 s. */
export const OVERVIEW_RATE_MS_MAX = 90_000;
/** Shortest time between two reports of a run because the operator reads its document, ms: a page reads it every few seconds. */
export const SUMMARY_LOOK_MS = 2_000;
/** Runs that one page of the list with a filter visits: each is a call, and a request may make a thousand. */
export const LIST_RUNS_VISITED_MAX = 300;
/** Characters of a text that is searched for in runs. Shorter ones are in nearly every text. */
export const SEARCH_TEXT_CHARS_MIN = 2;
export const SEARCH_TEXT_CHARS_MAX = 200;
/** Runs that one page of a search visits: each is a call to its object, which may have to wake. */
export const SEARCH_RUNS_MAX = 200;
/** Runs of a search that are asked at the same time: what the last of them need not have been asked for is little. */
export const SEARCH_RUNS_AT_ONCE = 25;
/** Calls of one run that a look searches: each is a row of its object, and all of them some ten milliseconds of it. */
export const SEARCH_CALLS_MAX = 10_000;
/** Characters of one run after which such a look stops: they are read and compared in some ten milliseconds. */
export const SEARCH_CHARS_MAX = 4 * 1024 * 1024;
/** Characters of all runs after which a page of a search ends: a second of processor time, wherever the objects are. */
export const SEARCH_PAGE_CHARS_MAX = 32 * SEARCH_CHARS_MAX;
/** Matches in one reply about one run: a page has them in its memory, and each has up to some hundred bytes. */
export const SEARCH_MATCHES_MAX = 500;
/** Older runs that each part of the list counts, to say how far a search has come: more are said to be so many at least. */
export const SEARCH_COUNTED_MAX = 10_000;
/**
 * Longest wait for one row of a list of runs, ms: an object that hangs must not keep the list from an operator who looks for it. A
 * call with its retries over a restart takes 4.6 s on average.
 */
export const LIST_ROW_MS = 10_000;
/**
 * So long a run that is listed may have no data yet, ms: it is listed while its object is opened, which is over, with all retries,
 * within a minute. Afterwards a run without data was deleted, and is taken off the list.
 */
export const LIST_OPENING_MS = 10 * 60_000;
/** Root runs among which the run of a group is searched: their ids come from all parts of the list, a few KB from each. */
export const GROUP_RUNS_SEARCHED_MAX = 5_000;
/** Runs in one page of `GET /runs`: each is a call to its object. */
export const LIST_PAGE_MAX = 100;
/** Runs in such a page if the request names no number. */
export const LIST_PAGE_DEFAULT = 20;
/** Characters of results that a Worker keeps to write them twice into a JSON answer; larger results are read twice. */
export const ANSWER_KEPT_CHARS_MAX = 1024 * 1024;
/**
 * Characters of `errors`, of `items`, or of a report's failures that a Worker keeps while it writes what comes before them:
 * those of 10,000 slots fit, so that only larger answers are read once more for each.
 */
export const ANSWER_NOTES_CHARS_MAX = 3 * 1024 * 1024;

// ---- tools ----

/** Tools of one run: they are part of its settings and its document; agents in the field have a dozen. */
export const TOOLS_PER_RUN_MAX = 32;
/** Longest URL of a tool, characters: common servers accept as much in a request line. */
export const TOOL_URL_CHARS_MAX = 2_048;
/** Longest description of a tool, characters: it is repeated in each run document. */
export const TOOL_DESCRIPTION_CHARS_MAX = 1_024;
/** Time limit of one tool call if its registration names none, ms: stubs in the field wait as long for a tool. */
export const TOOL_TIMEOUT_MS_DEFAULT = 60_000;
/** Longest time limit of a tool call, ms: below the read timeout of the stubs. */
export const TOOL_TIMEOUT_MS_MAX = 600_000;
/** Largest tool call, bytes of JSON, received and sent: arguments of a function, not files. */
export const TOOL_CALL_BYTES_MAX = 1024 * 1024;
/**
 * Largest answer that is read from a tool, bytes: a long document; it is in memory several times while it is relayed.
 */
export const TOOL_REPLY_BYTES_MAX = 2 * 1024 * 1024;
/** Longest that a tool call waits for a permit, ms: short beside the 60 s after which clients give up. */
export const TOOL_QUEUE_MS_MAX = 5_000;
/** Most attempts of a tool task: as many as an upstream has by default. Only tools that may be repeated get a second one. */
export const TOOL_ATTEMPTS_MAX = 3;
/** Answers of a model that uses tools, if its request names no number: agents in the field need five. */
export const TOOL_TURNS_DEFAULT = 8;
/** Most answers of a model that uses tools: each is paid for, with all that came before it once more. */
export const TOOL_TURNS_MAX = 32;
/** Calls of tools that one answer may ask for: with more the call ends. So many at once are a loop of the model's. */
export const TOOL_CALLS_PER_TURN_MAX = 32;
/** Longest id that a model gives to its call of a tool, characters: each result repeats it. Providers write about 30. */
export const TOOL_CALL_ID_CHARS_MAX = 256;
/**
 * What the answers and results of one call may come to, bytes of JSON: they are stored in one row of at most 2 MB, as texts in JSON,
 * where a byte may need two. Longer than the context of most models.
 */
export const TOOL_TALK_BYTES_MAX = 512 * 1024;
/** Longest result of a tool that a model is shown, bytes of JSON: its end is cut. About 16,000 tokens, which each further turn pays for. */
export const TOOL_RESULT_BYTES_MAX = 64 * 1024;
/** Times that calls of tools are made again whose executor was lost: then the model is told that their results are not known. */
export const TOOL_ROUNDS_LOST_MAX = 1;
/** Tool calls of one run that wait for a permit: each has a waiting Worker. */
export const TOOL_CALLS_WAITING_MAX = 1_000;
/** Cancelled tool calls that a run object remembers, so that the next heartbeat of their Workers learns of it. */
export const TOOL_CALLS_OVER_KEPT = 1_024;

// ---- batches ----

/** Requests in one batch file: OpenAI's limit, which its clients split their work by. */
export const BATCH_LINES_MAX = 50_000;
/** Largest input file of a batch, bytes: OpenAI's 200 MB, read so that both meanings of MB fit. */
export const BATCH_FILE_BYTES_MAX = 200 * 1024 * 1024;
/** Longest line of a batch file, bytes: its body becomes one stored call. */
export const BATCH_LINE_BYTES_MAX = PROMPT_BYTES_MAX;
/** Errors listed of a refused batch file: enough to see the pattern; clients poll the batch every few seconds. */
export const BATCH_ERRORS_MAX = 100;
/** Embedding inputs of one batch in total: OpenAI's limit. */
export const BATCH_EMBEDDING_INPUTS_MAX = 50_000;
/** Models of one batch that its document names: the list is for information only. */
export const BATCH_MODELS_MAX = 32;
/** Longest custom_id, characters: each answer's line has one, and 50,000 of them are compared. */
export const CUSTOM_ID_CHARS_MAX = 512;
/**
 * All custom_ids of one batch file together, characters: they are in memory while the file is checked, in one or two bytes
 * each, so this is at most 32 MB of an isolate's 128. 50,000 ids of 300 characters fit; UUIDs are a tenth of it.
 */
export const CUSTOM_IDS_CHARS_MAX = 16 * 1024 * 1024;
/** Time from a batch's creation to its expiry, seconds: the only window that OpenAI offers. */
export const BATCH_WINDOW_S = 86_400;
/** `metadata` of a batch: pairs, and characters of a key and of a value; OpenAI's limits. */
export const BATCH_METADATA_PAIRS_MAX = 16;
export const BATCH_METADATA_KEY_CHARS_MAX = 64;
export const BATCH_METADATA_VALUE_CHARS_MAX = 512;
/** Batches in one page of their list: at most, and if the request names no number; OpenAI's limits. */
export const BATCHES_PAGE_MAX = 100;
export const BATCHES_PAGE_DEFAULT = 20;
/** Requests in one message batch: Anthropic's limit. */
export const MESSAGE_BATCH_REQUESTS_MAX = 100_000;
/** Longest `custom_id` of a message batch, characters: Anthropic's limit. */
export const MESSAGE_BATCH_ID_CHARS_MAX = 64;
/** Largest `limit` of a list of message batches: Anthropic's; a page has at most `BATCHES_PAGE_MAX`, as each is one request to an object. */
export const MESSAGE_BATCH_PAGE_MAX = 1_000;
/** How long a message batch's results can be read, seconds from its creation: Anthropic's 29 days. */
export const MESSAGE_BATCH_RESULTS_S = 2_505_600;
/** Largest file, bytes: OpenAI's 512 MB. */
export const FILE_BYTES_MAX = 512 * 1024 * 1024;
/** Files in one page of their list, at most and by default; OpenAI's limit. */
export const FILES_PAGE_MAX = 10_000;
/** Shortest and longest life of a file that a request may name, seconds (an hour, 30 days); OpenAI's limits. */
export const FILE_EXPIRES_S_MIN = 3_600;
export const FILE_EXPIRES_S_MAX = 2_592_000;
/** Largest part of an upload, bytes: OpenAI's 64 MB, below Cloudflare's limit of one request. */
export const UPLOAD_PART_BYTES_MAX = 64 * 1024 * 1024;
/** Parts of one upload: R2's limit for one object. */
export const UPLOAD_PARTS_MAX = 10_000;
/** Largest body that completes an upload: the ids of all its parts, 40 bytes each, and some room. */
export const UPLOAD_COMPLETE_BYTES_MAX = 512 * 1024;
/** Largest upload, bytes: OpenAI's 8 GB. */
export const UPLOAD_BYTES_MAX = 8 * 1024 * 1024 * 1024;
/** Time in which an upload must be completed, seconds: OpenAI's hour. */
export const UPLOAD_EXPIRES_S = 3_600;

/** Largest body of `POST /v1/batches`: sixteen pairs of metadata and two ids, several times over. */
export const BATCH_BODY_BYTES_MAX = 65_536;
/** Expired files that are deleted at once: R2 deletes a thousand keys in one call. */
export const FILES_DROPPED_AT_ONCE = 1_000;
/** Lines of a batch in one group of its run: a failed read repeats few, and four groups fill a run of 512 calls. */
export const BATCH_CHUNK_LINES = 256;
/** Bytes after which such a group is full, however few its lines: it is in memory while it is sent. */
export const BATCH_CHUNK_BYTES = 4 * 1024 * 1024;
/** Open groups of one batch: together they fill a run of 512 calls while the results of one are collected. */
export const BATCH_CHUNKS_OPEN = 4;
/** Bytes of a file in one row of a batch, below the 2 MB of a row. */
export const BATCH_TAIL_BYTES = 1024 * 1024;
/** Longest that a batch object works in one alarm before it sets the next, ms: an alarm may take 15 minutes. */
export const BATCH_ALARM_MS = 60_000;
/**
 * Time after which a batch looks at its open groups if its run has not notified it, ms: a notification is lost if the run
 * restarts before it is sent. An alarm is billed like almost a second of the object's time.
 */
export const BATCH_LOOK_MS = 30_000;
/** The same for a batch whose lines go through its provider's: it waits for hours, and minutes do not matter at its end. */
export const BATCH_PROVIDER_LOOK_MS = 300_000;
/** Age from which what a batch knows of its groups is old for a client that reads the batch, ms: a look is a call for each. */
export const BATCH_FRESH_MS = 1_000;
/** Longest that a batch waits before it feeds an overloaded run once more, ms. */
export const BATCH_WAIT_MS = 1_000;
/** Delay before a batch continues after a transient failure, ms. */
export const BATCH_RETRY_MS = 5_000;
/** Attempt limit of a rate-limited batch line: a batch has a day, and 20 rate limits in a row are an outage. */
export const BATCH_ATTEMPTS_MAX = 20;
/** Attempt limit of a batch line that fails otherwise, at least: a few more than a waiting client gets. */
export const BATCH_FAILED_ATTEMPTS_MAX = 6;
/** Attempts to deliver a webhook, and the delay before the second, ms; it doubles. */
export const WEBHOOK_TRIES_MAX = 6;
export const WEBHOOK_RETRY_MS = 5_000;
/** Time limit of one delivery of a webhook, ms. */
export const WEBHOOK_TIMEOUT_MS = 10_000;
/** When an alarm looks for a delivery whose object may be gone, ms: it is over by then. */
export const WEBHOOK_LOST_MS = 2 * WEBHOOK_TIMEOUT_MS;
/** Deliveries of one run in flight at once: fewer than the platform's six connections, which other requests need, too. */
export const WEBHOOKS_AT_ONCE = 4;
/** Events of one run that wait for the webhook: they share a row. What comes while so many wait is in the run's log only. */
export const WEBHOOKS_PENDING_MAX = 100;

// ---- files ----

/** One part of an object in R2, bytes: the smallest that R2 accepts, because every upload has two of them in memory. */
export const FILE_PART_BYTES = 5 * 1024 * 1024;
/** Most parts of one object: R2's limit, and so 52 GB in one file. */
export const FILE_PARTS_MAX = 10_000;
/** Bytes that are read from a request's body at a time: few reads of a large upload, little memory for a small one. */
export const SOURCE_READ_BYTES = 64 * 1024;
/** Parts of one form: a file and its settings are five, and clients may add further fields. */
export const FORM_PARTS_MAX = 32;
/** Longest value of a form field that is not a file, bytes: purposes and numbers are below a hundred. */
export const FORM_FIELD_BYTES_MAX = 16 * 1024;
/** Longest header of a form's part, bytes: Node allows as much for the headers of a whole request. */
export const FORM_HEADER_BYTES_MAX = 16 * 1024;
/** Bytes before a form's first boundary, and after its last, that are ignored: clients send none. */
export const FORM_REST_BYTES_MAX = 64 * 1024;
/** Bytes of a stored file that are read at once while it is processed: no connection stays open between reads. */
export const FILE_PAGE_BYTES = 1024 * 1024;
/** Largest body of a form, bytes: its file, and 2 MB for its few fields and headers. */
export const FILE_FORM_BYTES_MAX = FILE_BYTES_MAX + 2 * 1024 * 1024;
export const PART_FORM_BYTES_MAX = UPLOAD_PART_BYTES_MAX + 2 * 1024 * 1024;

// ---- probes ----

/** Longest that a probe holds a request, ms: longer than a call of 20 minutes, whose end it must see. */
export const PROBE_HOLD_MS_MAX = 1_500_000;
/** Calls, sockets or runs of one probe: a wide batch; a mistake of the operator must not cost more. */
export const PROBE_CALLS_MAX = 1_000;
// ---- schemas of answers ----

/** Largest JSON Schema of a call, bytes as JSON: those of tools and forms have a few thousand; it is sent with every attempt. */
export const SCHEMA_BYTES_MAX = 64 * 1024;
/** Schemas inside a schema, with itself: each is compiled for every answer that is checked. */
export const SCHEMA_PARTS_MAX = 2_000;
/** States of all patterns of a schema: they are laid out for every answer that is checked, in a few milliseconds. */
export const SCHEMA_PATTERN_STATES_MAX = 20_000;
/**
 * Steps of one check: a part compared, a character counted, a state of a pattern followed. An answer of a megabyte needs two
 * million; these take about a tenth of a second, for which a hostile schema could occupy an executor. A clock would not do:
 * it does not advance in Workers while code runs.
 */
export const SCHEMA_CHECK_STEPS_MAX = 5_000_000;
/** Schemas that may apply to a value inside each other, through references too: the stack holds several times as many. */
export const SCHEMA_NESTING_MAX = 500;
/** Deepest nesting of an answer that is checked: it is parsed, shown and compared by code that walks it. */
export const SCHEMA_ANSWER_DEPTH_MAX = 64;
/** Most times that one call may be asked again for an answer that fits: what two do not mend, a third seldom does. */
export const SCHEMA_RETRIES_MAX = 5;
/** Most agents of one request: a schema is checked for each, and a longer list is one of items. */
export const AGENTS_MAX = 256;
/** Models of the panel: each call pays for all of them. */
export const PANEL_MEMBERS_MAX = 8;
/** Most models of one call: each may be paid for, and a fifth one seldom answers what four did not. */
export const CASCADE_MODELS_MAX = 5;
/** Most samples of one call: the share of an answer among sixteen is known well enough, and each is paid for. */
export const SAMPLES_MAX = 16;
/** Samples of a call whose request does not say how many: two that agree are the cheapest check of an answer. */
export const SAMPLES_MIN_DEFAULT = 2;
/** Samples at which a call that does not say ends: three of four agree, or six of eight, or its answers are a guess. */
export const SAMPLES_MAX_DEFAULT = 8;
/**
 * Longest answer that is kept while further samples are made, characters: it is stored as JSON, up to six bytes each, in one
 * row of at most 2 MB. Of longer answers only the last sample's is delivered.
 */
export const KEPT_ANSWER_CHARS_MAX = 300_000;
/** Times that a call is asked again if it does not say. */
export const SCHEMA_RETRIES_DEFAULT = 1;
/** Characters of an invalid answer that the request for another one repeats: more would cost more than it helps. */
export const SCHEMA_REPAIR_CHARS_MAX = 100_000;
/** Messages that such a request has more than the first: the answer, and what is wrong with it. */
export const REPAIR_MESSAGES_MAX = 2;
/** Characters of the sentence that says why an answer is invalid. */
export const SCHEMA_VIOLATION_CHARS_MAX = 500;
/** Schemas that an isolate remembers an upstream to have refused: after that they are sent in the prompt at once. */
export const REFUSED_SCHEMAS_KEPT = 64;

// ---- leased credit ----

/** Instances of the gateway that hold credit of one run at once: each has a share of its width. */
export const CREDITS_MAX = 8;
/** Fewest permits of a credit: with one, calls would wait for each other's report. */
export const CREDIT_PERMITS_MIN = 2;
/** Most permits of a credit: it bounds a report, and what an instance must remember. */
export const CREDIT_PERMITS_MAX = 128;
/** Calls of the largest recent size that a credit must cover: for fewer it saves nothing. */
export const CREDIT_CALLS_MIN = 4;
/**
 * Time after which a credit whose instance has not reported is charged, ms: longer than all retries of a report (4.6 s on
 * average, 10 s at most), shorter than a minute, within which a run recovers from anything.
 */
export const CREDIT_TTL_MS = 20_000;
/** Interval at which an instance reports its calls, ms: pausing or ending a run takes effect that late in another instance. */
export const CREDIT_REPORT_MS = 100;
/** Time without a call after which an instance returns its credit, ms. */
export const CREDIT_IDLE_MS = 1_000;
/**
 * Calls that an instance starts inside credit before it reports early: at 100 ms a report, an instance that makes thousands
 * a second. A report takes calls in flight out of the credit, so too many reports would do its work twice.
 */
export const CREDIT_REPORT_CALLS = 512;
/**
 * Calls started inside credit that an instance keeps until the run knows of them, at most: it bounds a report's size, to
 * less than a megabyte, and leaves room for what starts while an early report is under way. Further calls are the run's to start.
 */
export const CREDIT_CALLS_KEPT_MAX = 2 * CREDIT_REPORT_CALLS;
/** Calls of one run within CREDIT_IDLE_MS after which an instance asks for credit: fewer are served as well without. */
export const CREDIT_AFTER_CALLS = 4;
/** Upstreams of a credit: its permits count at each of them. */
export const CREDIT_UPSTREAMS_MAX = 4;
/** Runs whose latest calls an instance remembers, to know whether it should ask for credit. */
export const CREDIT_RUNS_MAX = 1_000;
/** Time without a sign of the request that reports, ms, after which another one takes over. */
export const CREDIT_HANDOVER_MS = 500;
/** Time for which one request reports, ms: the platform ends what a request does 30 s after its reply. */
export const CREDIT_KEEPER_MS = 20_000;

// ---- replay ----

/** Recorded answers that a run knows: about 360 bytes each in the memory of its object, which has 128 MB for all. */
export const RECORDED_ANSWERS_MAX = 100_000;
/** Epochs whose answers a run remembers: programs that run at once, and those before them that may still send calls. */
export const REPLAY_EPOCHS_MAX = 32;
/** Answers that all remembered epochs have had: two whole lives of the largest program, about 10 MB. */
export const REPLAY_USES_MAX = 2 * RECORDED_ANSWERS_MAX;
/** Characters of an epoch's name: a UUID has 36. */
export const EPOCH_CHARS_MAX = 64;
/** Slots that end with recorded answers in one turn of a run: the turn holds their texts until they are written. */
export const REPLAYED_PER_TURN_MAX = 1_024;
/**
 * Slots that end in one turn of a run without an attempt of their own: for each a row and two events are written, about 60 µs, and
 * other requests of the run wait for the turn.
 */
export const ENDS_PER_TURN_MAX = 1_024;
/** Characters of a text that count as one more slot of these two: a turn then holds at most about 4 million characters. */
export const REPLAYED_UNIT_CHARS = 4_096;
/** Characters of a recorded answer of a single call, which is in one row with others: at most 1.5 MB of the 2 MB of a row. */
export const RECORDED_CHARS_MAX = 512 * 1024;
/** Keys that a run looks up in another run with one request. */
export const ANSWERS_ASKED_MAX = 256;
/** Characters of the answers in one reply to that; the rest is requested again. */
export const ANSWERS_REPLY_CHARS_MAX = 4 * 1024 * 1024;
/**
 * Characters of another run's answers that wait to be taken: four replies, because callers that wait take theirs within a turn. The
 * rest was requested by calls that were cancelled meanwhile.
 */
export const ANSWERS_READY_CHARS_MAX = 4 * ANSWERS_REPLY_CHARS_MAX;
/** Single calls whose replayed answers a run remembers, for a request that is repeated because its reply was lost. */
export const REPLAYED_CALLS_KEPT = 1_024;

// ---- patterns of clients ----

/** Characters of a client's regular expression: longer ones are generated, and their states are bounded anyway. */
export const PATTERN_CHARS_MAX = 1_000;
/** States of a client's regular expression, with its repetitions written out: each costs a step at each character. */
export const PATTERN_STATES_MAX = 2_000;
/** Steps of one match of a client's regular expression: about a second of an object that nothing else runs in. */
export const PATTERN_STEPS_MAX = 20_000_000;
/**
 * Steps that one rule of a group may take over all its answers, shared equally, 250 ms: the answers of a group may all arrive in
 * one turn of its object. The share is by the number of calls, so that the verdict does not depend on the order of answers.
 */
export const PATTERN_GROUP_STEPS_MAX = 50_000_000;
/** Steps that each answer has in any case: a short pattern over 10,000 characters. */
export const PATTERN_ANSWER_STEPS_MIN = 20_000;

// ---- votes, merges, early stops ----

/** Characters of an answer whose JSON is compared or merged: longer ones take too long to parse beside all others. */
export const ANSWER_JSON_CHARS_MAX = 1_000_000;
/** Levels of the JSON of an answer that is compared or merged: it is walked by recursion. */
export const ANSWER_JSON_DEPTH_MAX = 64;
/** Characters of a vote that are kept as they are: of longer ones a hash, because a group may have 50,000 different ones. */
export const VOTE_KEY_CHARS_MAX = 64;
/** Answers that the result of a vote lists, and characters of each: the whole ones are in `results`. */
export const VOTE_CHOICES_SHOWN = 20;
export const VOTE_SHOWN_CHARS = 100;
/**
 * Characters of answers in the prompt of one call that combines them: some 50,000 tokens, which most models read. A request
 * may name more, up to a bound that leaves room in the largest prompt for what is not ASCII.
 */
export const COMBINING_CHARS_DEFAULT = 200_000;
export const COMBINING_CHARS_MAX = 400_000;
/** The least of it: two parts of a merge have to fit, and be worth a call. */
export const COMBINING_CHARS_MIN = 2_000;
/** Characters of the rubric or instruction of such a call: several pages. */
export const RUBRIC_CHARS_MAX = 20_000;
/** Characters that are shown of an answer, however many there are: less says nothing. Those beyond what fits are left out. */
export const ANSWER_SHOWN_CHARS_MIN = 200;
/** Number of answers that share the characters of an early stop's judge: with more, each would be cut too short to judge. */
export const JUDGED_ANSWERS_SHARE = 100;
/**
 * Characters of answers in one call of an early stop's judge. Less than for other calls: the run keeps what is shown in memory
 * for each of its 256 open groups, and the judge is called often.
 */
export const JUDGED_CHARS_DEFAULT = 50_000;
export const JUDGED_CHARS_MAX = 100_000;
/** Early calls of one graph that are open at once: each is one of the 256 open groups of its run. */
export const EARLY_CALLS_OPEN_MAX = 32;
/**
 * Tasks whose prompts are whole that are priced, at the end of others, to find one whose early call the bound pays for: pricing one reads
 * what its prompt inserts, and a graph may have thousands that are too dear.
 */
export const EARLY_CALLS_PRICED_MAX = 32;
/** Calls of an early stop's judge for one group: each may read all answers, so their cost must not grow with the group. */
export const STOP_JUDGEMENTS_MAX = 100;
/** Weights that a vote may name: a team has roles, not a weight for each of thousands of calls. */
export const VOTE_WEIGHTS_MAX = 100;
/** Characters of all answers that are merged: the output is held in memory beside the answer of its group. */
export const MERGE_CHARS_MAX = 4_000_000;
/** Characters of the text between merged answers. */
export const MERGE_SEPARATOR_CHARS_MAX = 200;
/** Conflicts that a merge lists: the rest are counted. */
export const MERGE_CONFLICTS_SHOWN = 100;
/** Characters of an answer in which confidence, evidence and conflicts are looked for. */
export const UNCERTAINTY_TEXT_CHARS = 100_000;
/** Pieces of evidence that are counted in an answer; the formula asks whether there is any. */
export const UNCERTAINTY_EVIDENCE_MAX = 50;
/** Slots without an answer that a group with `at_least` lists: all of them are in `errors`. */
export const MISSING_LISTED_MAX = 1_000;
/** Failed slots of a tier that an answer lists: all of them are in `errors`. */
export const TIER_FAILURES_LISTED = 100;

/** Code points in a block of a context's index: a range is known to a block, and the index of 100 MB has 600 KB. */
export const CONTEXT_BLOCK_CHARS = 1_024;
/**
 * Tokens that a part of a text can have beyond those counted between the same places of the whole: a cut word at either end,
 * each of at most 18 letters that counted as one token, and the last word before a block ends, which counts in the next.
 */
export const CONTEXT_CUT_TOKENS = 64;
/** The placeholder for the text of a chunk, in the prompt of a batch over chunks. */
export const CHUNK_PLACE = "{{chunk}}";
/** Stands between a context and what follows it in the same message. */
export const CONTEXT_SEPARATOR = "\n\n";
/** Largest context, bytes: above the 100 MB that Cloudflare takes in one body, and its index fits a row of 2 MB. */
export const CONTEXT_BYTES_MAX = 128 * 1024 * 1024;
/** Largest body of `POST /contexts` as JSON: it is parsed whole. A larger text is sent as `text/plain`, or as a file. */
export const CONTEXT_JSON_BYTES_MAX = CALL_BODY_BYTES_MAX;
/** Largest context that is a row, bytes; a larger one is in R2. The row has its index, too, and must fit 2 MB. */
export const CONTEXT_ROW_BYTES_MAX = 1024 * 1024;
/** Contexts of one run, and their bytes together: they are in one object, and no run needs the space of a bucket. */
export const CONTEXTS_MAX = 10_000;
export const CONTEXTS_BYTES_MAX = 1024 * 1024 * 1024;
/** Contexts in one page of their list, at most and by default. */
export const CONTEXTS_PAGE_MAX = 1_000;
export const CONTEXTS_PAGE_DEFAULT = 100;
/** Different contexts that one request may refer to: their indexes are in memory while it is read. */
export const CONTEXTS_PER_REQUEST_MAX = 100;
/** Largest text of a context in one call, bytes: more than any model reads, and an executor holds it while it sends it. */
export const CONTEXT_RANGE_BYTES_MAX = 8 * 1024 * 1024;
/**
 * Texts of contexts that one isolate holds, bytes: calls that need others wait until some have been sent. A few hundred chunks fit;
 * of an isolate's 128 MB it is little. A larger text is held alone.
 */
export const CONTEXTS_HELD_BYTES_MAX = 4 * 1024 * 1024;
/** What an isolate needs to hold one such text beside its bytes: its name, its promise and its buffer, about 450 bytes. */
export const CONTEXT_HELD_ENTRY_BYTES = 512;
/** Time after which such a text is dropped if no call has used it, ms: calls of one batch follow one another sooner. */
export const CONTEXT_HELD_IDLE_MS_MAX = 60_000;
/** Bytes that a token of a shared text has at most, as a rule: shorter texts than a provider caches are not marked. */
export const PREFIX_BYTES_PER_TOKEN = 6;
/** Shortest system message that calls share as a prefix, bytes: no provider caches fewer than 1,024 tokens. */
export const PREFIX_BYTES_MIN = 1_024 * PREFIX_BYTES_PER_TOKEN;
/** Longest that calls wait for the first call with the same prefix, ms: by default, and at most. */
export const WARM_MS_DEFAULT = 5_000;
export const WARM_MS_MAX = 60_000;
/** Shared prefixes of a run that are remembered: each is a few words, and a forgotten one costs one more write. */
export const PREFIXES_KEPT = 1_000;
/** Bytes of a context that are written to a request at once: hundreds of requests may be on their way, each with a copy. */
export const CONTEXT_WRITE_BYTES = 64 * 1024;
/** Bytes of a context that are read between two looks whether a pause is due: they may be as many lines, of half a microsecond each. */
export const SPLIT_PIECE_BYTES = 16 * 1024;
/**
 * Bytes that the lines of one text take at most, and those of all texts whose lines an isolate remembers: an eighth of its memory. A line of less than
 * 32 characters takes one byte, so a text that is refused has 16 million lines, of 8 characters each in the largest one.
 */
export const TEXT_LINES_BYTES_MAX = 16 * 1024 * 1024;
/** Bytes that the lines of a text count as at least: name, entry and array of a text of one line. It bounds the texts to 32,768. */
export const TEXT_LINES_BYTES_MIN = 512;
/** Texts that are noted as being read: a reading whose client has left may never end, and its note goes with newer ones. */
export const TEXT_READERS_MAX = 1_000;
/** Time after which a text is read by another request for its lines if its reader has given no sign of life, ms: a page of it takes far less. */
export const TEXT_READER_GONE_MS = 2_000;
/** Time between two looks whether the lines of a text are known that another request reads, ms. */
export const TEXT_READ_LOOK_MS = 20;
/** Lines of a text that a split passes between two pauses, of some nanoseconds each. */
export const SPLIT_SLICE_LINES = 500_000;
/** Sizes of chunks of one batch whose calls share their facts: 3 MB while its request is read. Chunks of further sizes have facts of their own. */
export const CHUNK_KINDS_MAX = 10_000;
/** Largest chunk of a split, characters, and the default: a few pages of a book, which every model reads well. */
export const CHUNK_CHARS_MAX = 1_000_000;
export const CHUNK_CHARS_DEFAULT = 8_000;

// ---- export of traces ----

/** Shortest time between two exports of a run's log, ms: an export writes a few rows, however many calls it reports. */
export const OTLP_INTERVAL_MS = 5_000;
/** Time limit of one post to the collector, ms: OpenTelemetry's own default. */
export const OTLP_TIMEOUT_MS = 10_000;
/** Spans of one post: OpenTelemetry's own default. */
export const OTLP_SPANS_MAX = 512;
/** Characters of the spans of one post: below the 4 MB that collectors accept by default, even if most of them are not ASCII. */
export const OTLP_BODY_CHARS_MAX = 1024 * 1024;
/** Characters of one text in a span: names of models, runs and tools are shorter. */
export const OTLP_TEXT_CHARS_MAX = 256;
/** Posts of one export: the rest of a long log follows with the next one. */
export const OTLP_POSTS_MAX = 16;
/** Posts of one batch that fail before the run drops what it has: the spans are lost, and the log still has them. */
export const OTLP_TRIES_MAX = 4;
/** Delay before the second post of a batch, ms; it doubles. */
export const OTLP_RETRY_MS = 5_000;
/** Delay after an export that an error of the gateway itself has ended, ms: it may end the next one, too. */
export const OTLP_ERROR_PAUSE_MS = 60_000;
/**
 * Characters of the texts in one attribute with prompts or answers (OTLP_CONTENT): an attempt has three, and the log and reports of
 * credit carry them. As JSON, a text of control characters is six times as long.
 */
export const OTLP_CONTENT_CHARS_MAX = 4_096;
/** Characters that a message or a part counts beside its text, so that many empty ones are bounded too. */
export const OTLP_CONTENT_PART_CHARS = 32;
/** Bytes of a relayed request that is read a second time for its content: of a larger one, nothing is exported. */
export const OTLP_CONTENT_READ_BYTES_MAX = 1024 * 1024;
/** Characters of a `tracestate` that are kept: the least that the standard wants passed along. Events of single calls repeat it. */
export const TRACESTATE_CHARS_MAX = 512;
/** Members of a longer `tracestate` above this are left out first, as the standard says. */
export const TRACESTATE_MEMBER_CHARS_MAX = 128;
/** Members that a `tracestate` may have: the standard's number. */
export const TRACESTATE_MEMBERS_MAX = 32;

// ---- cassettes ----

/** Bytes of a tape, as the file that it is exported to: one request loads it, and its body is read whole. */
export const CASSETTE_BYTES_MAX = BODY_BYTES_MAX;
/** Exchanges on a tape: the sketches of all of them, 128 bytes each, are read to find the nearest request. */
export const CASSETTE_EXCHANGES_MAX = 20_000;
/** Bytes of one exchange, as a line of the file: a row takes 2 MB. A longer answer is counted, and not recorded. */
export const CASSETTE_LINE_BYTES_MAX = 1_500_000;
/** Characters of a request that a tape keeps whole. Of a longer one it keeps its hash, which finds it as well. */
export const CASSETTE_REQUEST_CHARS_MAX = 200_000;
/** Characters of such a request that are kept for people to recognise it by. */
export const CASSETTE_CUT_CHARS = 2_000;
/** Pieces of an answer that are kept apart; the rest is one piece. More than a stream of the longest answer has tokens. */
export const CASSETTE_CHUNKS_MAX = 50_000;
/** Answers that a tape notes as had, over all runs: those of the runs before are forgotten first. About 20 MB. */
export const CASSETTE_USES_MAX = 100_000;
/** Wait before a call is made again whose tape could not be reached, ms: its object restarts within a second. */
export const CASSETTE_RETRY_MS = 1_000;
/** Characters of exchanges in one reply of a cassette's object, which may be 32 MB; one exchange more at most. */
export const CASSETTE_PAGE_CHARS = 4 * 1024 * 1024;
/** Characters of a text that its sketch is made of: the hashes of a long one would take as long as its call. */
export const SKETCH_TEXT_CHARS = 16_384;
/** Requests on the tape that are compared with one that is not, word by word: the sketches choose them. */
export const CASSETTE_COMPARED_MAX = 5;
/** Misses that a tape keeps for its operator, whose programs may hide their errors: each has up to 2,000 characters. */
export const CASSETTE_MISSES_KEPT = 5;
/** Differences that an error names; the number of the others follows. */
export const DIFFERENCES_SHOWN_MAX = 5;
/** Characters of a difference that are shown, on each side: an error of five has about 1,500. */
export const DIFFERENCE_CHARS = 80;

/**
 * Shortest deadline of a group with `service_tier: "batch"`: of a shorter one, cancelling and sending live would leave a provider
 * only minutes. OpenRouter has reported that half of the batches end within 7 minutes, nine of ten within an hour.
 */
export const BATCH_TIER_DEADLINE_MS_MIN = 3_600_000;
/**
 * Calls of one batch at a provider. Their leases are one row of a run, of at most 2 MB, at about 400 bytes each; a provider takes
 * 50,000.
 */
export const PROVIDER_BATCH_LINES_MAX = 2_000;
/** UTF-8 bytes of the prompts of one batch at a provider: its file is built in memory, twice. A provider takes 200 MB. */
export const PROVIDER_BATCH_BYTES_MAX = 8 * 1024 * 1024;
/** Batches of one group that are at a provider at once: the claims and files of the others wait. */
export const PROVIDER_BATCHES_OPEN_MAX = 25;
/** How long a provider may take to cancel a batch: OpenAI documents up to ten minutes. A call without an outcome by then is unknown. */
export const PROVIDER_CANCEL_MS_MAX = 720_000;
/** Time for one live call after a batch was cancelled, of a slow model: it sets how early a large group leaves its provider. */
export const PROVIDER_LIVE_CALL_MS = 30_000;
/** Least time for live calls after a batch was cancelled: some retries with their delays. */
export const PROVIDER_LIVE_MS_MIN = 480_000;
/** Default of the first wait between two polls of a provider's batch. A poll costs the gateway a row. */
export const PROVIDER_POLL_MS_DEFAULT = 60_000;
/** Shortest first wait that an operator may set: a poll a second is what a test needs, and no provider notices. */
export const PROVIDER_POLL_MS_MIN = 100;
/** Longest wait between two polls of a batch: half of a cancellation's bound, and a small part of the shortest deadline. */
export const PROVIDER_POLL_MS_MAX = 360_000;
/** Factor by which each wait between two polls is longer than the one before: the later a batch is, the longer it will take. */
export const PROVIDER_POLL_GROWTH = 1.5;
/** First delay of a request to a provider's Batch API that failed, which doubles with each further one, and the longest. */
export const PROVIDER_RETRY_MS = 10_000;
export const PROVIDER_RETRY_MS_MAX = 300_000;
/** How long the gateway searches for a batch whose creation had no reply before it creates it again: longer than a request lives. */
export const PROVIDER_FIND_MS = 90_000;
/** Pages of 100 batches that are searched for one that was created shortly before. */
export const PROVIDER_FIND_PAGES_MAX = 5;
/** How far a provider's clock may be from the gateway's where a batch is known by the time of its creation, ms. */
export const PROVIDER_CLOCK_MS = 60_000;
/** Characters of a run's id in the ids of Anthropic's batches, which have 64 in total: 64 bits of it, beside up to four numbers. */
export const MESSAGE_RUN_CHARS = 16;
/** Time limit of one request to a provider's Batch API, without the reading of a file. */
export const PROVIDER_REQUEST_MS_MAX = 120_000;
/** Answers that are settled with one call of the run: a turn writes their rows, and holds their texts. */
export const PROVIDER_SETTLE_LINES_MAX = 128;
/** Characters of the answers that are settled with one call of the run: an RPC carries 32 MB. */
export const PROVIDER_SETTLE_CHARS_MAX = 4 * 1024 * 1024;
/** How long the object that feeds a provider tries to reach its run after the group's deadline: then the run is gone. */
export const PROVIDER_ORPHAN_MS = 3_600_000;
