#!/usr/bin/env bash
# Drives stubs/bash/fanout.sh for the conformance test, as a careful script would: every error ends it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../../stubs/bash/fanout.sh"

folder=$(mktemp -d)
answer=$folder/answer
trap 'rm -rf "$folder"' EXIT

fail() {
  printf '\x15%s\x1f%s\x1f%s\x1f%s\x1f%s\x1e' "$FANOUT_ERROR_CODE" "$FANOUT_ERROR_STATUS" "$FANOUT_ERROR_RETRYABLE" \
    "$FANOUT_ERROR_ATTEMPTS" "$FANOUT_ERROR_CHARGED_USD"
  exit 0
}

# Runs a function of the stub whose answer goes into a file: in $(…) the variables of its failure would be lost.
ask() {
  "$@" >"$answer" || fail
}

each() {
  jq -j '.[] + "\u001e"' "$answer"
}

# The stub ends the answer's line.
record() { # FILE
  head -c -1 "$1"
  printf '\x1e'
}

query() { # PROMPT...
  local prompt
  for prompt; do
    llm_query "$prompt" >"$folder/query" || return
    record "$folder/query"
  done
}

nested() { # PROMPT
  query "$1" && with_run calls=1 query "$1" && query "$1"
}

children() { # PROMPT...
  local prompt number=0 processes=()
  for prompt; do
    with_run calls=1 llm_query "$prompt" >"$folder/$number" &
    processes+=($!)
    number=$((number + 1))
  done
  wait "${processes[@]}"
  for ((number = 0; number < $#; number++)); do
    record "$folder/$number"
  done
}

schema='{"schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}'

parameters='{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'
tools='{"tools":[{"type":"function","function":{"name":"double","parameters":'$parameters'}}],"params":{"tool_choice":"required"}}'

message() { # MODEL PROMPT
  local messages
  FANOUT_OPTIONS=$tools ask llm_message "$2" "$1"
  messages=$(jq -c --arg prompt "$2" '[
    {role: "user", content: $prompt}, .,
    {role: "tool", tool_call_id: .tool_calls[0].id, content: "8"},
    {role: "user", content: "done"}]' "$answer")
  jq -j '"\(.tool_calls[0].function.name)\u001f"' "$answer"
  ask llm_message "$messages" "$1" && jq -j '"\(.content)\u001e"' "$answer"
}

command=$1
shift
case $command in
  query) ask llm_query "$@" && record "$answer" ;;
  batch) ask llm_query_batch "$@" && each ;;
  batch-model) ask llm_batch --model "$1" --json "$(jq -cn '$ARGS.positional' --args -- "${@:2}")" && each ;;
  stream)
    exec 5> >(jq --unbuffered -j '"\(.index)\u001f\(.result)\u001e"')
    reader=$!
    ask_stream() { llm_stream "$@" >&5; }
    ask ask_stream "$@"
    exec 5>&-
    wait "$reader"
    ;;
  json) FANOUT_OPTIONS=$schema ask llm_query "$1" && jq -j '"\(.n)\u001e"' "$answer" ;;
  batch-json) FANOUT_OPTIONS=$schema ask llm_query_batch "$@" && jq -j '.[] | "\(.n? // .)\u001e"' "$answer" ;;
  message) message "$@" ;;
  messages)
    FANOUT_OPTIONS=$tools ask llm_batch --model "$1" --json "$(jq -cn '$ARGS.positional' --args -- "${@:2}")"
    jq -j '.[] | "\(.tool_calls[0].function.name)\u001e"' "$answer"
    ;;
  agent)
    FANOUT_OPTIONS=$(jq -cn '{tools: $ARGS.positional, max_turns: 4}' --args -- "$2") ask llm_message "$3" "$1"
    jq -j '"\(.content)\u001e"' "$answer"
    ;;
  dag)
    ask llm_dag "$(jq -cn '[{id: "a", prompt: $ARGS.positional[0]}, {id: "b", prompt: "{{a.output}} and two"}]' --args -- "$1")"
    jq -j '"\(.outputs.b)\u001e"' "$answer"
    ;;
  vote) ask llm_vote "$@" && jq -j '"\(.winner)\u001f\(.votes)\u001e"' "$answer" ;;
  budget) ask llm_budget && jq -j '"\(.usd.remaining)\u001e"' "$answer" ;;
  usage) ask llm_usage && jq -j '"\(.llm_calls)\u001e"' "$answer" ;;
  final) ask FINAL "$1" && printf 'ok\x1e' ;;
  log) ask llm_log "$1" "$(jq -cn '{($ARGS.positional[0]): $ARGS.positional[1]}' --args -- "$2" "$3")" && printf 'ok\x1e' ;;
  tool)
    ask tool_call "$1" "$(jq -cn '{($ARGS.positional[0]): $ARGS.positional[1]}' --args -- "$2" "$3")"
    record "$answer"
    ;;
  child) with_run "calls=$1" query "${@:2}" || fail ;;
  nested) with_run calls=4 nested "$1" && query "$1" || fail ;;
  children) children "$@" ;;
  *) exit 64 ;;
esac
