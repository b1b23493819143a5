#!/usr/bin/env bash
# Drives stubs/bash/fanout.sh for the conformance test, as a careful script would: with every error an end.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../../stubs/bash/fanout.sh"

# Runs a command of the stub whose answer goes into a file: in $(…) its failure's variables would be lost.
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT
ask() {
  local status=0
  "$@" >"$answer" || status=$?
  if [[ $status -ne 0 ]]; then
    printf '\x15%s\x1f%s\x1f%s\x1e' "$FANOUT_ERROR_CODE" "$FANOUT_ERROR_STATUS" "$FANOUT_ERROR_RETRYABLE"
    exit 0
  fi
}
each() { jq -j '.[] + "\u001e"' "$answer"; }

command=$1
shift
case $command in
  query)
    ask llm_query "$@"
    # The stub ends the answer's line.
    head -c -1 "$answer"
    printf '\x1e'
    ;;
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
  budget) ask llm_budget && jq -j '"\(.usd.remaining)\u001e"' "$answer" ;;
  usage) ask llm_usage && jq -j '"\(.llm_calls)\u001e"' "$answer" ;;
  final) ask FINAL "$1" && printf 'ok\x1e' ;;
  log) ask llm_log "$1" "$(jq -cn '{($ARGS.positional[0]): $ARGS.positional[1]}' --args -- "$2" "$3")" && printf 'ok\x1e' ;;
  tool)
    ask tool_call "$1" "$(jq -cn '{($ARGS.positional[0]): $ARGS.positional[1]}' --args -- "$2" "$3")"
    head -c -1 "$answer"
    printf '\x1e'
    ;;
  *) exit 64 ;;
esac
