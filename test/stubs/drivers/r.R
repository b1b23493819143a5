# Drives stubs/r/fanout.R for the conformance test.
source(Sys.getenv("FANOUT_STUB"), encoding = "UTF-8")

write_record <- function(...) {
  cat(paste0(...), "\x1e", sep = "")
  flush(stdout())
}

write_all <- function(results) {
  for (result in results) {
    write_record(result)
  }
}

field <- function(name, value) {
  stats::setNames(list(value), name)
}

child <- function(calls, ...) {
  with_run(calls = as.numeric(calls), function(run) {
    for (prompt in c(...)) {
      write_record(llm_query(prompt))
    }
  })
}

nested <- function(prompt) {
  with_run(calls = 4, function(run) {
    write_record(llm_query(prompt))
    with_run(calls = 1, function() write_record(llm_query(prompt)))
    write_record(llm_query(prompt))
  })
  write_record(llm_query(prompt))
}

# Each child run in a process of its own.
children <- function(prompts) {
  query <- function(prompt) {
    with_run(calls = 1, function() llm_query(prompt))
  }
  write_all(parallel::mclapply(prompts, query, mc.cores = length(prompts)))
}

schema <- list(
  type = "object",
  properties = list(n = list(type = "integer")),
  required = list("n")
)

tools <- list(list(
  type = "function",
  "function" = list(name = "double", parameters = schema)
))
must <- list(tool_choice = "required")

name_of <- function(message) {
  message$tool_calls[[1]][["function"]]$name
}

asked_message <- function(model, prompt) {
  asked <- llm_message(prompt, model, tools = tools, params = must)
  id <- asked$tool_calls[[1]]$id
  messages <- list(
    list(role = "user", content = prompt),
    asked,
    list(role = "tool", tool_call_id = id, content = "8"),
    list(role = "user", content = "done")
  )
  write_record(name_of(asked), "\x1f", llm_message(messages, model)$content)
}

asked_messages <- function(model, ...) {
  prompts <- c(...)
  answers <- llm_query_batch(prompts, model, tools = tools, params = must)
  for (message in answers) {
    write_record(name_of(message))
  }
}

agent <- function(model, tool, prompt) {
  answer <- llm_message(prompt, model, tools = list(tool), max_turns = 4)
  write_record(answer$content)
}

arguments <- commandArgs(trailingOnly = TRUE)
command <- arguments[[1]]
args <- arguments[-1]
tryCatch(
  switch(
    command,
    "query" = write_record(do.call(llm_query, as.list(args))),
    "batch" = write_all(llm_query_batch(args)),
    "batch-model" = write_all(llm_query_batch(args[-1], args[[1]])),
    "stream" = llm_stream(args, function(slot) {
      write_record(slot$index, "\x1f", slot$result)
    }),
    "json" = write_record(llm_query(args[[1]], schema = schema)$n),
    "batch-json" = for (value in llm_query_batch(args, schema = schema)) {
      write_record(if (is.list(value)) value$n else value)
    },
    "message" = asked_message(args[[1]], args[[2]]),
    "messages" = do.call(asked_messages, as.list(args)),
    "agent" = agent(args[[1]], args[[2]], args[[3]]),
    "dag" = write_record(
      llm_dag(list(
        list(id = "a", prompt = args[[1]]),
        list(id = "b", prompt = "{{a.output}} and two")
      ))$outputs$b
    ),
    "vote" = {
      vote <- llm_vote(args[[2]], as.numeric(args[[1]]))
      write_record(vote$winner, "\x1f", vote$votes)
    },
    "budget" = write_record(llm_budget()$usd$remaining),
    "usage" = write_record(llm_usage()$llm_calls),
    "final" = {
      FINAL(args[[1]])
      write_record("ok")
    },
    "log" = {
      do.call(llm_log, c(args[[1]], field(args[[2]], args[[3]])))
      write_record("ok")
    },
    "tool" = write_record(do.call(
      tool_call,
      c(args[[1]], field(args[[2]], args[[3]]))
    )),
    "child" = invisible(do.call(child, as.list(args))),
    "nested" = nested(args[[1]]),
    "children" = children(args),
    stop("no command ", command)
  ),
  fanout_error = function(e) {
    used <- paste0(e$attempts, "\x1f", e$charged_usd)
    facts <- c(tolower(e$retryable), if (is.null(e$attempts)) "\x1f" else used)
    write_record("\x15", e$code, "\x1f", e$status, "\x1f", facts[1], "\x1f", facts[2])
  }
)
