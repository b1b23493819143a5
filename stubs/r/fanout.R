# Ask a fanout gateway from R 4.0 or newer. One file, base R only, which needs the program `curl`: source("fanout.R").
#     answer <- llm_query("What is 2 + 2?")                          # a string, or a list of chat messages
#     answers <- llm_query_batch(paste("Summarise:", pages), max_tokens = 200)   # a failed one is "[error] message"
#     llm_stream(prompts, function(slot) cat(slot$index, slot$result, "\n"))     # slots as they end; `index` from 0
#     llm_budget()$usd$remaining; llm_usage()$cost                   # llm_usage(reset = TRUE) also begins to count anew
#     FINAL(tool_call("search", query = "fanout"))                   # also llm_log(event_type, output = "...")
# FANOUT_URL names the gateway (default http://127.0.0.1:8787), FANOUT_TOKEN carries the run token; GATEWAY_URL and
# GATEWAY_TOKEN stand in for them. FANOUT_TIMEOUT_S is the longest that a call may take (3600). A named argument is sent
# as the request field of that name; but `idempotency_key` names the call, so that a restarted program finds the answers
# that it has paid for. A call that spends is sent again under its key when the connection breaks; nothing else is.
# tryCatch(..., fanout_error = function(e) e$code): `message`; `code`, one of the gateway's, or no_token, bad_url,
# unreachable, timeout, bad_answer; `status`, the HTTP status, NULL where there was no answer; `retryable`.

llm_query <- function(prompt, model = NULL, ...) {
  asked <- if (is.list(prompt)) list(messages = prompt) else list(prompt = prompt)
  .fanout_call("/query", c(asked, list(model = model, ...)), "text")$text
}
llm_query_batch <- function(prompts, model = NULL, ...) {
  if (length(prompts) == 0) return(character())
  body <- list(prompts = as.list(unname(prompts)), model = model, ...)
  results <- .fanout_call("/batch", body, "results")$results
  if (length(results) != length(prompts)) .fanout_fail("one result for each prompt is missing", "bad_answer", 200)
  if (all(vapply(results, is.character, NA))) unlist(results) else results
}
llm_query_batched <- llm_batch <- llm_query_batch
llm_stream <- function(prompts, on_slot, model = NULL, ...) {
  body <- list(prompts = as.list(unname(prompts)), model = model, ...)
  if (length(prompts) > 0) .fanout_call("/batch", body, on_slot = on_slot)
}
llm_budget <- function() .fanout_call("/budget", wanted = "usd")
llm_usage <- function(reset = FALSE) .fanout_call(if (reset) "/usage?reset=1" else "/usage", wanted = "llm_calls")
llm_log <- function(event_type, ...) invisible(.fanout_call("/log", list(event_type = event_type, ...)))
FINAL <- function(result) {
  text <- if (is.character(result) && length(result) == 1) result else .fanout_to_json(result)
  llm_log("final_result", output = text, data = result)
}
tool_call <- function(tool, ...) {
  input <- if (...length() > 0) list(...) else stats::setNames(list(), character()) # An object, also without a field.
  .fanout_call("/tool_call", list(tool_name = tool, input = input), "result")$result
}
.fanout_fail <- function(message, code, status = NULL, retryable = FALSE) {
  stop(errorCondition(message, class = "fanout_error", code = code, status = status, retryable = isTRUE(retryable)))
}
.fanout_call <- function(path, body = NULL, wanted = NULL, on_slot = NULL) {
  key <- body$idempotency_key
  if (is.null(key) && path %in% c("/query", "/batch")) key <- basename(tempfile(format(Sys.time(), "%s%OS6-")))
  body$idempotency_key <- NULL
  given <- c()
  on_line <- function(line) {
    event <- tryCatch(.fanout_from_json(line), error = function(e) NULL)
    kind <- c(if (is.list(event)) event[["type"]], "none")[[1]]
    index <- switch(kind, slot = event$index, group_completed = "all")
    if (kind == "slot" && !(index %in% given)) on_slot(event)
    given <<- c(given, index)
    !is.null(index)
  }
  for (wait_s in c(if (!is.null(key)) c(0.25, 0.5, 1, 2), 0)) { # Under a key nothing is made twice.
    answer <- .fanout_exchange(path, body, key, !is.null(on_slot), on_line)
    if ("all" %in% given) return(invisible())
    cut <- answer$exit != 0 || (!is.null(on_slot) && trimws(answer$text) == "")
    if (!cut) return(.fanout_understood(answer$text, answer$status, wanted))
    if (answer$exit == 28) .fanout_fail("no answer in time", "timeout", retryable = TRUE)
    if (wait_s == 0) .fanout_fail(paste("no answer: curl ended with", answer$exit), "unreachable", retryable = TRUE)
    Sys.sleep(wait_s)
  }
}
.fanout_exchange <- function(path, body, key, streams, on_line) { # One try. What `on_line` takes is not of its text.
  base <- sub("/$", "", .fanout_setting("URL", "http://127.0.0.1:8787"))
  token <- .fanout_setting("TOKEN", "")
  if (token == "") .fanout_fail("FANOUT_TOKEN, the run token, is not set", "no_token")
  if (!grepl("^https?://[^/]", base)) .fanout_fail(paste("FANOUT_URL is no http(s) address:", base), "bad_url")
  if (grepl('["\\\\[:cntrl:]]', paste(base, token, key))) stop("no header can carry that token or that key")
  headers <- c(paste("authorization: Bearer", token), "content-type: application/json", "expect:",
    if (streams) "accept: application/x-ndjson", if (!is.null(key)) paste("idempotency-key:", key))
  config <- c("silent", "no-buffer", "globoff", 'write-out = "\\n%{http_code}\\n"', paste0('url = "', base, path, '"'),
    paste("max-time =", .fanout_setting("TIMEOUT_S", "3600")), paste0('header = "', headers, '"'),
    if (grepl("^https?://(localhost|127\\.|\\[::1])", base)) 'noproxy = "*"')
  files <- tempfile(c("config", "body")) # In this user's own folder, for everybody can see a command line.
  on.exit(unlink(files))
  writeLines(config, files[[1]])
  writeLines(.fanout_to_json(Filter(Negate(is.null), body)), files[[2]], useBytes = TRUE)
  command <- paste("curl -q -K", shQuote(files[[1]]))
  if (!is.null(body)) command <- paste(command, "--data-binary @- <", shQuote(files[[2]]))
  curl <- pipe(command, "r")
  lines <- character()
  while (length(line <- readLines(curl, 1, warn = FALSE))) if (!streams || !on_line(line)) lines <- c(lines, line)
  text <- paste(lines[-length(lines)], collapse = "\n")
  list(exit = c(close(curl), 0)[[1]] %/% 256, status = as.integer(lines[length(lines)]), text = text)
}
.fanout_understood <- function(text, status, wanted) {
  answer <- tryCatch(.fanout_from_json(text), error = function(e) NULL)
  error <- if (is.list(answer)) answer[["error"]] # Not $error, which would take `errors`.
  if (is.list(answer) && status < 300 && is.null(error) && all(wanted %in% names(answer))) return(answer)
  refused <- if (status >= 400) status
  if (is.character(error)) .fanout_fail(error, "tool_error", refused, status %in% c(408, 503))
  if (!is.list(error)) .fanout_fail(paste0("HTTP ", status, ": ", substr(text, 1, 200)), "bad_answer", refused)
  .fanout_fail(error$message, error$code, c(refused, error$status)[1], error$retryable)
}
.fanout_setting <- function(name, default) {
  values <- trimws(Sys.getenv(paste0(c("FANOUT_", "GATEWAY_"), name)))
  c(values[values != ""], default)[[1]]
}
.fanout_to_json <- function(value) {
  if (is.list(value) || length(value) > 1) {
    parts <- vapply(as.list(value), .fanout_to_json, "")
    if (is.null(names(value))) return(paste0("[", paste(parts, collapse = ","), "]"))
    if (length(parts) > 0) parts <- paste0(vapply(names(value), .fanout_to_json, ""), ":", parts)
    return(paste0("{", paste(parts, collapse = ","), "}"))
  }
  if (length(value) == 0 || is.na(value)) return("null")
  if (is.logical(value) || is.numeric(value)) return(tolower(if (is.numeric(value)) sprintf("%.15g", value) else value))
  codes <- utf8ToInt(enc2utf8(as.character(value)))
  if (anyNA(codes)) stop("a string is no UTF-8")
  special <- codes < 32 | codes == 34 | codes == 92
  chars <- intToUtf8(codes, multiple = TRUE)
  chars[special] <- sprintf("\\u%04x", codes[special])
  paste0('"', paste(chars, collapse = ""), '"')
}
.fanout_from_json <- function(text) {
  pattern <- '"[^"\\\\]*+(?:\\\\.[^"\\\\]*+)*+"|[][{}:,]|[^][{}:,"\\s]+'
  tokens <- regmatches(text, gregexpr(pattern, text, perl = TRUE, useBytes = TRUE))[[1]]
  Encoding(tokens) <- "UTF-8"
  at <- 0
  take <- function() tokens[[at <<- at + 1]] # Fails where the text ends too early.
  value <- function(token) {
    first <- substr(token, 1, 1)
    if (first == '"') return(.fanout_unquoted(token))
    if (!(first %in% c("{", "["))) return(switch(token, true = TRUE, false = FALSE, null = NULL, as.numeric(token)))
    items <- names <- list()
    while (!((token <- take()) %in% c("}", "]"))) {
      if (token == ",") next
      if (first == "{") names <- c(names, .fanout_unquoted(token))
      if (first == "{") token <- c(take(), take())[[2]] # After the colon.
      items[length(items) + 1] <- list(value(token))
    }
    if (first == "{") stats::setNames(items, names) else items
  }
  result <- value(take())
  if (at == length(tokens)) result else stop("more than one value")
}
.fanout_unquoted <- function(token) {
  if (!grepl("\\", token, fixed = TRUE)) return(substr(token, 2, nchar(token) - 1))
  pattern <- '\\\\u[dD][89abAB]..\\\\u[dD][c-fC-F]..|\\\\u....|\\\\.|[^"\\\\]+'
  char <- function(hex) c(stats::na.omit(intToUtf8(strtoi(hex, 16L), allow_surrogate_pairs = TRUE)), "\ufffd")[[1]]
  read <- function(piece) {
    switch(substr(piece, 1, 2), "\\b" = "\b", "\\f" = "\f", "\\n" = "\n", "\\r" = "\r", "\\t" = "\t",
      "\\u" = char(strsplit(piece, "\\u", fixed = TRUE)[[1]][-1]), sub("^\\\\", "", piece))
  }
  paste(vapply(regmatches(token, gregexpr(pattern, token, perl = TRUE))[[1]], read, ""), collapse = "")
}
