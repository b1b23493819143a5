# Drives stubs/r/fanout.R for the conformance test.
source(Sys.getenv("FANOUT_STUB"), encoding = "UTF-8")

write_record <- function(...) {
  cat(paste0(...), "\x1e", sep = "")
  flush(stdout())
}

arguments <- commandArgs(trailingOnly = TRUE)
command <- arguments[[1]]
args <- arguments[-1]
tryCatch(
  switch(command,
    "query" = write_record(do.call(llm_query, as.list(args))),
    "batch" = for (result in llm_query_batch(args)) write_record(result),
    "batch-model" = for (result in llm_query_batch(args[-1], args[[1]])) write_record(result),
    "stream" = llm_stream(args, function(slot) write_record(slot$index, "\x1f", slot$result)),
    "budget" = write_record(llm_budget()$usd$remaining),
    "usage" = write_record(llm_usage()$llm_calls),
    "final" = { FINAL(args[[1]]); write_record("ok") },
    "log" = { do.call(llm_log, c(args[[1]], setNames(list(args[[3]]), args[[2]]))); write_record("ok") },
    "tool" = write_record(do.call(tool_call, c(args[[1]], setNames(list(args[[3]]), args[[2]])))),
    stop("no command ", command)
  ),
  fanout_error = function(e) write_record("\x15", e$code, "\x1f", e$status, "\x1f", tolower(e$retryable))
)
