# Calls a fanout gateway from R 4.0 or newer.
#
# One file, base R only, which needs the program `curl`: copy it into the
# sandbox.
#
#     source("fanout.R")
#
#     answer <- llm_query("What is 2 + 2?")
#     answers <- llm_query_batch(paste("Summarise:", pages), max_tokens = 200)
#     llm_stream(prompts, function(slot) cat(slot$index, slot$result, "\n"))
#     with_run(usd = 0.05, function(run) {
#       # Calls in this function can spend 0.05 USD at most.
#       answers <<- llm_query_batch(paste("Translate:", pages))
#     })
#     FINAL(tool_call("search", query = "fanout"))
#
# Environment variables:
#     FANOUT_URL        the gateway's address (default http://127.0.0.1:8787);
#                       or GATEWAY_URL
#     FANOUT_TOKEN      the run token, which POST /runs returned; or
#                       GATEWAY_TOKEN
#     FANOUT_TIMEOUT_S  how long a whole call may take before it fails
#                       (default 3600)
#
# A named argument is sent as the request field of that name.
# `idempotency_key` is sent as a header instead: a restarted program that
# repeats the call under the same key gets the recorded answer at no cost. If
# the connection is lost, the request is repeated under the same key and is
# paid once. All other retries happen in the gateway.
#
# A call that fails signals a condition of the class `fanout_error`, for
# tryCatch(..., fanout_error = function(e) e$code): `message`; `code`, which is
# the gateway's or `no_token`, `bad_url`, `unreachable`, `timeout`,
# `bad_answer`, `tool_error`; `status`, the HTTP status, NULL if there was no
# answer; `retryable`, whether the same call may succeed later; `attempts` and
# `charged_usd`, what a call has used up that was made, else NULL.

# The waits before a request whose connection was lost is repeated.
.fanout_retry_waits_s <- c(0.25, 0.5, 1, 2)

# What curl ends with if a call took longer than its `max-time`.
.fanout_curl_timed_out <- 28

.fanout_budget_fields <- c("usd", "calls", "prompt_tokens", "completion_tokens")

# The token of the child run in whose scope the program is.
.fanout_scope <- new.env()
.fanout_scope$token <- NULL

# Returns the answer to one prompt: a string, or a list of chat messages. With
# `schema = list(...)` the answer is the JSON value that fits it, in batches too.
llm_query <- function(prompt, model = NULL, ...) {
  field <- if (is.list(prompt)) "messages" else "prompt"
  body <- c(stats::setNames(list(prompt), field), list(model = model, ...))
  answer <- .fanout_call("/query", body, expects = "text")
  if ("json" %in% names(answer)) answer[["json"]] else answer$text
}

# Returns the whole message of an answer: `content`, `tool_calls`, ... With
# `tools` of a chat completion it may ask for them: sent back as one of the
# messages, with their results, it goes on. Tools of the run go by their names:
# the gateway calls them itself, and the message is the last of at most
# `max_turns` answers.
llm_message <- function(prompt, model = NULL, ...) {
  field <- if (is.list(prompt)) "messages" else "prompt"
  body <- c(stats::setNames(list(prompt), field), list(model = model, ...))
  .fanout_call("/query", .fanout_asking(body), expects = "message")$message
}

# Returns the answers to many prompts, in the order of `prompts`, by one
# request. The result of a failed prompt is the string "[error] message"; the
# other results are not affected. With `tools` of a chat completion, or
# `include = list("message")`, the answers are whole messages. Fails only if the
# whole request fails.
llm_query_batch <- function(prompts, model = NULL, ...) {
  if (length(prompts) == 0) {
    return(character())
  }
  body <- list(prompts = as.list(unname(prompts)), model = model, ...)
  if (.fanout_defines_tools(body)) {
    body <- .fanout_asking(body)
  }
  name <- if ("message" %in% body$include) "message" else "json"
  answer <- .fanout_call("/batch", body, expects = "results")
  results <- answer$results
  if (length(results) != length(prompts)) {
    counts <- sprintf(
      "sent %d prompts, got %d results",
      length(prompts),
      length(results)
    )
    .fanout_fail(counts, "bad_answer", 200)
  }
  for (at in which(vapply(answer$items, function(i) name %in% names(i), NA))) {
    results[at] <- list(answer$items[[at]][[name]])
  }
  are_texts <- all(vapply(results, is.character, NA))
  if (are_texts) unlist(results) else results
}

llm_query_batched <- llm_query_batch
llm_batch <- llm_query_batch

# Calls a function with each result of a batch as its slot ends: a list with
# `index` (from 0), `result` and `error` (NULL if the slot succeeded). A model
# is given before the function or after it.
llm_stream <- function(prompts, on_slot, model = NULL, ...) {
  if (!is.function(on_slot)) {
    return(llm_stream(prompts, on_slot = model, model = on_slot, ...))
  }
  body <- list(prompts = as.list(unname(prompts)), model = model, ...)
  if (length(prompts) > 0) {
    .fanout_stream(body, on_slot)
  }
  invisible()
}

# Returns the answer of a graph, a list of tasks whose prompts refer to each
# other: `list(id = "b", prompt = "{{a.output}} ...")`. The outputs of its last
# tasks are in `outputs`, by id.
llm_dag <- function(tasks, ...) {
  .fanout_call("/dag", list(tasks = tasks, ...), expects = "tasks")
}

# Asks a prompt so many times. Returns the vote: `decided`, `winner`,
# `agreement`, ... `aggregate` is its rule.
llm_vote <- function(
  prompt,
  count = 3,
  model = NULL,
  aggregate = list(strategy = "vote"),
  ...
) {
  prompts <- rep(list(prompt), count)
  body <- list(prompts = prompts, model = model, aggregate = aggregate, ...)
  .fanout_call("/batch", body, expects = "aggregation")$aggregation
}

# Opens a child run for a function: calls in the function spend the child's
# budget.
#
#     answers <- with_run(usd = 0.05, calls = 20, name = "translate",
#                         function(run) llm_query_batch(prompts))
#
# `usd`, `calls`, `prompt_tokens` and `completion_tokens` are limits. They are
# reserved in the budget of the run around the function; a limit that is left
# out becomes an equal split of what remains there. Other arguments are the
# fields of POST /runs: `name`, `max_parallel`, `models`, `default_model`, ...
#
# The function receives the child run's document with its `id` and its `token`;
# its value is returned. When it ends, also by an error, the child run is closed
# and what it has not spent returns. Scopes nest.
with_run <- function(scope, ...) {
  run <- .fanout_open_run(list(...))
  close_path <- paste0("/runs/", run$id, "/close")
  close_run <- function() .fanout_call(close_path, .fanout_object(), "status")
  outer_token <- .fanout_scope$token
  .fanout_scope$token <- run$token
  has_failed <- TRUE
  on.exit({
    .fanout_scope$token <- outer_token
    # The scope's own failure matters more than that of the close.
    if (has_failed) tryCatch(close_run(), fanout_error = function(e) NULL)
  })
  result <- if (length(formals(scope)) > 0) scope(run) else scope()
  has_failed <- FALSE
  .fanout_scope$token <- outer_token
  close_run()
  result
}

# Returns what is left of the run's budget, child runs included: `usd`, `calls`,
# `prompt_tokens` and `completion_tokens`, each with `limit`, `spent`,
# `reserved` and `remaining`.
llm_budget <- function() {
  .fanout_call("/budget", expects = "usd")
}

# Returns what the run itself has used since the last reset, child runs not
# included: `llm_calls`, `input_tokens`, `output_tokens`, `cost` in USD,
# `calls_by_model`. What child runs spent is in llm_budget().
llm_usage <- function(reset = FALSE) {
  path <- if (reset) "/usage?reset=1" else "/usage"
  .fanout_call(path, expects = "llm_calls")
}

# Appends an event to the run's log.
llm_log <- function(event_type, ...) {
  body <- list(event_type = event_type, ...)
  invisible(.fanout_call("/log", body, expects = "appended"))
}

# Records the program's result, any JSON value, as `final_result` in the run's
# log.
FINAL <- function(result) {
  is_text <- is.character(result) && length(result) == 1
  text <- if (is_text) result else .fanout_to_json(result)
  llm_log("final_result", output = text, data = result)
}

# Returns the result of a tool of the run. Sent once, also if the connection is
# lost: a tool may have effects.
tool_call <- function(tool, ...) {
  body <- list(tool_name = tool, input = .fanout_object(...))
  .fanout_call("/tool_call", body, expects = "result")$result
}

# Failures ---------------------------------------------------------------------

.fanout_fail <- function(message, code, status = NULL, retryable = FALSE,
                         used = list()) {
  stop(errorCondition(
    message,
    class = "fanout_error",
    code = code,
    status = status,
    retryable = isTRUE(retryable),
    attempts = used$attempts,
    charged_usd = used$charged_usd
  ))
}

# Returns the object in an answer, which has the field `expects`. Fails as the
# answer reports.
.fanout_parse <- function(text, status, expects) {
  answer <- tryCatch(.fanout_from_json(text), error = function(e) NULL)
  # Not $error, which would also take a field `errors`.
  error <- if (is.list(answer)) answer[["error"]]
  is_good <- is.list(answer) && status < 300 && is.null(error)
  if (is_good && all(expects %in% names(answer))) {
    return(answer)
  }
  http_status <- if (status >= 400) status
  if (is.list(error)) {
    http_status <- c(http_status, error$status)[1]
    .fanout_fail(
      error$message,
      error$code,
      http_status,
      error$retryable,
      error
    )
  }
  if (is.character(error)) {
    retryable <- status %in% c(408, 503)
    .fanout_fail(error, "tool_error", http_status, retryable)
  }
  start <- substr(text, 1, 200)
  message <- paste0("HTTP ", status, ", unexpected answer: ", start)
  .fanout_fail(message, "bad_answer", http_status)
}

# Requests ---------------------------------------------------------------------

# Returns the answer, an object with the field `expects`.
# Whether the tools are definitions for the model; tools of the run go by their
# names.
.fanout_defines_tools <- function(body) {
  any(vapply(body$tools, is.list, NA))
}

# The fields of a call that asks for the whole message.
.fanout_asking <- function(body) {
  body$include <- as.list(union("message", unlist(body$include)))
  if (.fanout_defines_tools(body)) {
    body$params <- c(body$params, list(tools = body$tools))
    body$tools <- NULL
  }
  body
}

.fanout_call <- function(path, body = NULL, expects) {
  answer <- .fanout_send(path, body)
  .fanout_parse(answer$text, answer$status, expects)
}

# Gives each slot once, although a repeated request streams all slots again.
.fanout_stream <- function(body, on_slot) {
  seen <- c()
  is_completed <- FALSE
  on_line <- function(line) {
    event <- tryCatch(.fanout_from_json(line), error = function(e) NULL)
    kind <- if (is.list(event)) event[["type"]]
    if (identical(kind, "slot") && !(event$index %in% seen)) {
      on_slot(event)
      seen <<- c(seen, event$index)
    }
    if (identical(kind, "group_completed")) {
      is_completed <<- TRUE
    }
    identical(kind, "slot") || is_completed
  }
  answer <- .fanout_send("/batch", body, on_line, function() is_completed)
  if (!is_completed) {
    .fanout_parse(answer$text, answer$status, "type")
  }
}

.fanout_open_run <- function(settings) {
  is_limit <- names(settings) %in% .fanout_budget_fields
  fields <- do.call(.fanout_object, settings[!is_limit])
  if (any(is_limit)) {
    fields$budget <- c(as.list(fields$budget), settings[is_limit])
  }
  .fanout_call("/runs", fields, expects = "token")
}

# Sends a request, and repeats it under its key if the connection is lost.
.fanout_send <- function(
  path,
  body,
  on_line = NULL,
  is_completed = function() FALSE
) {
  key <- NULL
  waits_s <- c()
  # The gateway recognises these requests by their idempotency key.
  if (grepl("^/(query|batch|dag|runs|runs/[^/]+/close)$", path)) {
    key <- c(body$idempotency_key, .fanout_fresh_key())[[1]]
    body$idempotency_key <- NULL
    waits_s <- .fanout_retry_waits_s
  }
  repeat {
    answer <- .fanout_exchange(path, body, key, on_line)
    if (is_completed()) {
      return(answer)
    }
    is_cut <- !is.null(on_line) && trimws(answer$text) == ""
    if (answer$exit == 0 && !is_cut) {
      return(answer)
    }
    if (answer$exit == .fanout_curl_timed_out) {
      .fanout_fail("no answer in time", "timeout", retryable = TRUE)
    }
    if (length(waits_s) == 0) {
      message <- paste("no answer: curl ended with", answer$exit)
      .fanout_fail(message, "unreachable", retryable = TRUE)
    }
    Sys.sleep(waits_s[[1]])
    waits_s <- waits_s[-1]
  }
}

# The process is in it: forked processes have the same random numbers.
.fanout_fresh_key <- function() {
  start <- paste0(format(Sys.time(), "%s%OS6-"), Sys.getpid(), "-")
  basename(tempfile(start))
}

# Sends a request once. Returns what curl ended with, the status, and the text
# without the lines that `on_line` took.
.fanout_exchange <- function(path, body, key, on_line) {
  # Files in this user's own folder: all users can see a command line.
  files <- tempfile(c("config", "body"))
  on.exit(unlink(files))
  config <- .fanout_curl_config(path, key, streams = !is.null(on_line))
  writeLines(config, files[[1]])
  command <- paste("curl -q -K", shQuote(files[[1]]))
  if (!is.null(body)) {
    fields <- Filter(Negate(is.null), body)
    writeLines(.fanout_to_json(fields), files[[2]], useBytes = TRUE)
    command <- paste(command, "--data-binary @- <", shQuote(files[[2]]))
  }
  curl <- pipe(command, "r")
  lines <- character()
  while (length(line <- readLines(curl, 1, warn = FALSE)) > 0) {
    if (is.null(on_line) || !on_line(line)) {
      lines <- c(lines, line)
    }
  }
  wait_status <- c(close(curl), 0)[[1]]
  list(
    exit = wait_status %/% 256,
    status = as.integer(lines[length(lines)]),
    text = paste(lines[-length(lines)], collapse = "\n")
  )
}

.fanout_curl_config <- function(path, key, streams) {
  # With the /v1 that OpenAI's clients want, it is the same gateway.
  url <- .fanout_setting("URL", "http://127.0.0.1:8787")
  base <- sub("/v1$", "", sub("/$", "", url))
  token <- c(.fanout_scope$token, .fanout_setting("TOKEN", ""))[[1]]
  if (token == "") {
    .fanout_fail("FANOUT_TOKEN is not set: it is the run token", "no_token")
  }
  if (!grepl("^https?://[^/]", base)) {
    message <- paste("FANOUT_URL is not an http(s) address:", base)
    .fanout_fail(message, "bad_url")
  }
  if (grepl('["\\\\[:cntrl:]]', paste(base, token, key))) {
    stop("no header can carry that token or that key")
  }
  # Names this life of the program, so that a run that records can replay the one
  # before.
  if (is.null(.fanout_scope$epoch)) {
    .fanout_scope$epoch <- .fanout_fresh_key()
  }
  headers <- c(
    paste("authorization: Bearer", token),
    paste("x-fanout-epoch:", .fanout_scope$epoch),
    "content-type: application/json",
    "expect:",
    if (streams) "accept: application/x-ndjson",
    if (!is.null(key)) paste("idempotency-key:", key)
  )
  # A proxy does not reach this machine's own addresses.
  is_local <- grepl("^https?://(localhost|127\\.|\\[::1])", base)
  c(
    "silent",
    "no-buffer",
    "globoff",
    'write-out = "\\n%{http_code}\\n"',
    paste0('url = "', base, path, '"'),
    paste("max-time =", .fanout_setting("TIMEOUT_S", "3600")),
    paste0('header = "', headers, '"'),
    if (is_local) 'noproxy = "*"'
  )
}

.fanout_setting <- function(name, default) {
  values <- trimws(Sys.getenv(paste0(c("FANOUT_", "GATEWAY_"), name)))
  c(values[values != ""], default)[[1]]
}

# JSON -------------------------------------------------------------------------

# Returns a list that is sent as an object, also without a field.
.fanout_object <- function(...) {
  if (...length() > 0) list(...) else stats::setNames(list(), character())
}

.fanout_to_json <- function(value) {
  if (is.list(value) || length(value) > 1) {
    parts <- vapply(as.list(value), .fanout_to_json, "")
    if (is.null(names(value))) {
      return(paste0("[", paste(parts, collapse = ","), "]"))
    }
    keys <- vapply(names(value), .fanout_quoted, "")
    fields <- if (length(parts) > 0) paste0(keys, ":", parts)
    return(paste0("{", paste(fields, collapse = ","), "}"))
  }
  if (length(value) == 0 || is.na(value)) {
    return("null")
  }
  if (is.logical(value)) {
    return(tolower(value))
  }
  if (is.numeric(value)) {
    return(sprintf("%.15g", value))
  }
  .fanout_quoted(as.character(value))
}

.fanout_quoted <- function(text) {
  codes <- utf8ToInt(enc2utf8(text))
  if (anyNA(codes)) {
    stop("a string is not UTF-8")
  }
  chars <- intToUtf8(codes, multiple = TRUE)
  is_special <- codes < 32 | codes == 34 | codes == 92
  chars[is_special] <- sprintf("\\u%04x", codes[is_special])
  paste0('"', paste(chars, collapse = ""), '"')
}

.fanout_from_json <- function(text) {
  token <- '"[^"\\\\]*+(?:\\\\.[^"\\\\]*+)*+"|[][{}:,]|[^][{}:,"\\s]+'
  found <- gregexpr(token, text, perl = TRUE, useBytes = TRUE)
  tokens <- regmatches(text, found)[[1]]
  Encoding(tokens) <- "UTF-8"
  position <- 0
  # Fails if the text ends too early.
  take <- function() {
    position <<- position + 1
    tokens[[position]]
  }
  array <- function() {
    items <- list()
    while ((token <- take()) != "]") {
      if (token != ",") items[length(items) + 1] <- list(value(token))
    }
    items
  }
  object <- function() {
    items <- list()
    names <- character()
    while ((token <- take()) != "}") {
      if (token != ",") {
        names <- c(names, .fanout_unquoted(token))
        take() # The colon.
        items[length(items) + 1] <- list(value(take()))
      }
    }
    stats::setNames(items, names)
  }
  value <- function(token) {
    switch(
      substr(token, 1, 1),
      "{" = object(),
      "[" = array(),
      "\"" = .fanout_unquoted(token),
      switch(
        token,
        true = TRUE,
        false = FALSE,
        null = NULL,
        as.numeric(token)
      )
    )
  }
  result <- value(take())
  if (position != length(tokens)) {
    stop("more than one value")
  }
  result
}

.fanout_unquoted <- function(token) {
  if (!grepl("\\", token, fixed = TRUE)) {
    return(substr(token, 2, nchar(token) - 1))
  }
  pair <- "\\\\u[dD][89abAB]..\\\\u[dD][c-fC-F].."
  piece <- paste0(pair, '|\\\\u....|\\\\.|[^"\\\\]+')
  pieces <- regmatches(token, gregexpr(piece, token, perl = TRUE))[[1]]
  paste(vapply(pieces, .fanout_unescaped, ""), collapse = "")
}

# Returns the characters of an escape, or the text that has none.
.fanout_unescaped <- function(piece) {
  switch(
    substr(piece, 1, 2),
    "\\b" = "\b",
    "\\f" = "\f",
    "\\n" = "\n",
    "\\r" = "\r",
    "\\t" = "\t",
    "\\u" = {
      hex <- strsplit(piece, "\\u", fixed = TRUE)[[1]][-1]
      codes <- strtoi(hex, 16L)
      char <- intToUtf8(codes, allow_surrogate_pairs = TRUE)
      # Half of a surrogate pair is no character.
      if (is.na(char)) "\ufffd" else char
    },
    sub("^\\\\", "", piece)
  )
}
