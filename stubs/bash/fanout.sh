#!/usr/bin/env bash
# Calls a fanout gateway from Bash 4.1 or newer, with curl and jq (1.6 or newer).
#
# One file: copy it into the sandbox and source it. It can also be run (fanout.sh llm_query "…"), or through links in
# the PATH that have the names of its functions.
#
#   llm_query [PROMPT [MODEL]]
#       Writes the answer. Without arguments the prompt is read from standard input.
#   llm_message [PROMPT [MODEL]]
#       Writes the whole message of an answer as JSON: content, tool_calls, … PROMPT may be a JSON array of messages.
#   llm_query_batch [PROMPT]...
#       Writes a JSON array of the answers, in the order of the prompts; a failed one is "[error] message".
#   llm_batch [--json [JSON] | --lines] [--concurrency N] [--model MODEL] [PROMPT]...
#       The same. --json reads a JSON array of prompts, --lines one prompt a line. Without prompts and without these,
#       standard input is JSON or else a single prompt.
#   llm_stream [PROMPT]...
#       Writes one line of JSON for each slot as it ends: index, result, error, …
#   llm_dag [TASKS]
#       Runs a graph and writes its answer as JSON. TASKS is a JSON array: {"id": "b", "prompt": "{{a.output}} …"}, …
#   llm_vote N [PROMPT [MODEL]]
#       Asks a prompt N times and writes the vote as JSON: decided, winner, agreement, …
#   with_run [NAME=VALUE]... COMMAND [ARGUMENT]...
#       Opens a child run, runs the command, a function or a program, inside it, and closes it.
#   llm_budget
#       Writes what is left of the run's budget as JSON, child runs included.
#   llm_usage [--reset]
#       Writes what the run itself has used since the last reset as JSON, child runs not included.
#   tool_call NAME [JSON]
#       Writes the result of a tool of the run. Sent once, also if the connection is lost: a tool may have effects.
#   FINAL [TEXT]
#       Records the program's result in the run's log.
#   llm_log TYPE [JSON]
#       Appends an event to the run's log.
#
# Environment variables:
#   FANOUT_URL        the gateway's address (default http://127.0.0.1:8787); or GATEWAY_URL
#   FANOUT_TOKEN      the run token, which POST /runs returned; or GATEWAY_TOKEN
#   FANOUT_TIMEOUT_S  how long a whole call may take before it fails (default 3600)
#   FANOUT_EPOCH      names a life of the program: in a run that records, each of its calls gets another recorded answer
#                     (default: a random name for the shell that sources this file; none for a call that is run)
#   FANOUT_OPTIONS    request fields as JSON: FANOUT_OPTIONS='{"max_tokens":50}' llm_query "…"
#
# With a "schema" in FANOUT_OPTIONS, answers are the JSON values that fit it. With "tools" of a chat completion, or
# "include":["message"], those of llm_query_batch are whole messages: sent back as one of the messages, with the results
# of its tools, a message goes on. Tools of the run go by their names: the gateway calls them itself, in at most
# "max_turns" answers of the model.
#
# `idempotency_key` in FANOUT_OPTIONS is sent as a header: a restarted program that repeats the call under the same key
# gets the recorded answer at no cost. If the connection is lost, the request is repeated under the same key and is paid
# once. All other retries happen in the gateway.
#
# Exit status: 1 the call failed; 2 wrong use; 3 no token, address or program; 4 the budget is exhausted; 75 the call
# may succeed later. Unless the function ran in a subshell, $(…) or a pipe, FANOUT_ERROR_CODE, FANOUT_ERROR_STATUS (of
# HTTP), FANOUT_ERROR_RETRYABLE (true or false) and FANOUT_ERROR_MESSAGE describe the failure; FANOUT_ERROR_ATTEMPTS and
# FANOUT_ERROR_CHARGED_USD say what a call has used up that was made.

# The value of an answer that was checked against a schema, else its text.
_fanout_answer='if has("json") then .json else .text end'
_fanout_answers='
  ($options | fromjson | if any(.include[]?; . == "message") or any(.tools[]?; type == "object")
    then "message" else "json" end) as $name
  | [.results, .items // []] | transpose
  | map(.[0] as $text | .[1] | if has($name) then .[$name] else $text end)'

llm_query() {
  _fanout "$_fanout_answer" _fanout_paid /query '{prompt: .[0]}' "${2-}" "" "${1-$(cat)}"
}

llm_message() {
  _fanout .message _fanout_paid /query '.[0] as $text
    | [$text | try fromjson catch null | arrays][0] as $messages
    | {include: []} + (if $messages then {messages: $messages} else {prompt: $text} end)
  ' "${2-}" "" "${1-$(cat)}"
}

llm_query_batch() {
  _fanout "$_fanout_answers" _fanout_paid /batch calls "" "" "$@"
}

llm_query_batched() {
  llm_query_batch "$@"
}

llm_batch() {
  local form=arguments model='' concurrency='' texts=()
  while [[ $# -gt 0 ]]; do
    case $1 in
      --json) form=json ;;
      --lines) form=lines ;;
      --model)
        model=${2-}
        shift $(($# > 1))
        ;;
      --concurrency)
        concurrency=${2-}
        shift $(($# > 1))
        ;;
      *) texts+=("$1") ;; # Whatever is not an option is a prompt.
    esac
    shift
  done
  [[ $form != lines && ${#texts[@]} -gt 0 ]] || texts=("$(cat)")
  _fanout "$_fanout_answers" _fanout_paid /batch "$form | calls" "$model" "$concurrency" "${texts[@]}"
}

llm_stream() {
  local failure
  { failure=$(_fanout_alone _fanout_slots "$@"); } 3>&1 || _fanout_failed "$failure"
}

llm_dag() {
  _fanout . _fanout_paid /dag '{tasks: (.[0] | fromjson)}' "" "" "${1-$(cat)}"
}

llm_vote() {
  _fanout .aggregation _fanout_paid /batch '{
    prompts: [.[1] as $prompt | range(.[0] | tonumber) | $prompt],
    aggregate: {strategy: "vote"}
  }' "${3-}" "" "$1" "${2-$(cat)}"
}

# Opens a child run for a command: calls of the command spend the child's budget.
#
#   with_run usd=0.05 calls=20 name=translate translate_all "$folder"
#
# usd, calls, prompt_tokens and completion_tokens are limits. They are reserved in the budget of the run around the
# command; a limit that is left out becomes an equal split of what remains there. Other names are the fields of
# POST /runs: name, max_parallel, models, default_model, … A value that is JSON is sent as that value.
#
# The command runs in a subshell, with the child's FANOUT_TOKEN and FANOUT_RUN_ID in its environment. When it ends,
# however it ends, the child run is closed and what it has not spent returns. The exit status is that of the command.
# Commands nest, and several can run at once in the background.
with_run() {
  local file writer reader status failure=''
  file=$(mktemp) || return
  # The subshell reports failures in this file. It has no name any more, so nothing remains if this shell ends early.
  exec {writer}>"$file" {reader}<"$file"
  rm -f "$file"
  # Not in a list with || and not in an if: in those, Bash ignores the caller's set -e within the scope.
  _fanout_scope "$writer" "$@"
  status=$?
  while IFS= read -rd '' -u "$reader" failure; do
    _fanout_remember "$failure"
  done
  exec {writer}>&- {reader}<&-
  return "$status"
}

llm_budget() {
  _fanout . _fanout_ask GET /budget 'has("usd")'
}

llm_usage() {
  _fanout . _fanout_ask GET "/usage${1:+?reset=1}" 'has("llm_calls")'
}

tool_call() {
  _fanout .result _fanout_free /tool_call '{tool_name: .[0], input: (.[1] // "{}" | fromjson)}' "$@"
}

llm_log() {
  _fanout empty _fanout_free /log '(.[1] // "{}" | fromjson) + {event_type: .[0]}' "$@"
}

FINAL() {
  _fanout empty _fanout_free /log '{event_type: "final_result", output: .[0], data: .[0]}' "${1-$(cat)}"
}

# Failures. Inside the stub a failure is text: code, HTTP status, retryability, attempts, charge, message, separated by
# the byte 0x1F.

_fanout_failure() { # CODE MESSAGE [RETRYABLE]
  printf '%s\x1f\x1f%s\x1f\x1f\x1f%s' "$1" "${3-false}" "$2"
  return 1
}

_fanout_failed() { # FAILURE
  _fanout_remember "$1"
  printf 'fanout: %s: %s\n' "$FANOUT_ERROR_CODE" "$FANOUT_ERROR_MESSAGE" >&2
  case $FANOUT_ERROR_CODE,$FANOUT_ERROR_RETRYABLE in
    wrong_use,*) return 2 ;;
    no_token,* | bad_url,* | no_program,*) return 3 ;;
    budget_exhausted,*) return 4 ;;
    *,true) return 75 ;;
    *) return 1 ;;
  esac
}

_fanout_remember() { # FAILURE
  IFS=$'\x1f' read -rd '' FANOUT_ERROR_{CODE,STATUS,RETRYABLE,ATTEMPTS,CHARGED_USD,MESSAGE} < <(printf '%s\0' "$1")
  [[ -z ${_fanout_report-} ]] || printf '%s\0' "$1" >&"$_fanout_report"
}

# The scope of with_run. The command sees its variables: their names must not collide with the command's own.
_fanout_scope() ( # DESCRIPTOR_FOR_FAILURES [NAME=VALUE]... COMMAND [ARGUMENT]...
  _fanout_traced=$-
  { set +x; } 2>/dev/null # A trace would show the tokens.
  _fanout_report=$1
  _fanout_settings=()
  shift
  while [[ ${1-} =~ ^[a-z_]+= ]]; do
    _fanout_settings+=("$1")
    shift
  done
  if ! _fanout_opened=$(_fanout_alone _fanout_open "$#" ${_fanout_settings[@]+"${_fanout_settings[@]}"}); then
    _fanout_failed "$_fanout_opened"
    exit
  fi
  _fanout_outer_token=${FANOUT_TOKEN:-${GATEWAY_TOKEN-}}
  export FANOUT_RUN_ID=${_fanout_opened%%$'\x1f'*}
  _fanout_run_id=$FANOUT_RUN_ID
  trap '_fanout_close "$?"' EXIT
  # Another subshell, so that a trap of the command does not replace the one above.
  (
    export FANOUT_TOKEN=${_fanout_opened#*$'\x1f'}
    [[ $_fanout_traced != *x* ]] || set -x
    "$@"
  )
)

_fanout_close() { # STATUS_OF_THE_COMMAND
  local status=$1 failure
  if ! failure=$(FANOUT_TOKEN=$_fanout_outer_token _fanout_alone _fanout_close_run "$_fanout_run_id"); then
    # The failure of the command matters more.
    if [[ $status == 0 ]]; then
      _fanout_failed "$failure" || status=$?
    fi
  fi
  exit "$status"
}

_fanout_open() { # NUMBER_OF_THE_COMMAND'S_WORDS [NAME=VALUE]...
  local answer
  [[ $1 -gt 0 ]] || {
    _fanout_failure wrong_use "with_run needs a command"
    return
  }
  FANOUT_OPTIONS='' _fanout_request settings "" "" "${@:2}" || return
  if ! answer=$(_fanout_ask POST /runs 'has("token")' "$body" "$key"); then
    printf %s "$answer"
    return 1
  fi
  printf %s "$answer" | command jq -r '"\(.id)\u001f\(.token)"'
}

_fanout_close_run() { # ID
  _fanout_ask POST "/runs/$1/close" 'has("status")' '{}' "$(_fanout_fresh_key)"
}

# Writes what FILTER makes of the answer that COMMAND writes.
_fanout() { # FILTER COMMAND ARGUMENT...
  local answer
  if answer=$(_fanout_alone "${@:2}"); then
    printf %s "$answer" | command jq -rc --arg options "${FANOUT_OPTIONS:-"{}"}" "$1"
  else
    _fanout_failed "$answer"
  fi
}

# Runs a command in a subshell that the caller's options do not affect. A failure is its output, and status 1.
_fanout_alone() { # COMMAND ARGUMENT...
  # A trace would show the token.
  { set +efux +o pipefail; } 2>/dev/null
  local IFS=$' \t\n' LC_ALL=C key count body
  local url=${FANOUT_URL:-${GATEWAY_URL:-http://127.0.0.1:8787}}
  local token=${FANOUT_TOKEN:-${GATEWAY_TOKEN:-}}
  local address='^https?://[^/?#@[:space:]]+(/[^?#[:space:]]*)?$'
  while [[ $url == */ ]]; do
    url=${url%/}
  done
  # With the /v1 that OpenAI's clients want, it is the same gateway.
  url=${url%/v1}
  if ! type -P curl jq od tr >/dev/null; then
    _fanout_failure no_program "curl, jq, od and tr are needed"
  elif [[ -z $token || $token == *[!-._~+/=[:alnum:]]* ]]; then
    _fanout_failure no_token "FANOUT_TOKEN is not a run token"
  elif [[ ! $url =~ $address ]]; then
    _fanout_failure bad_url "FANOUT_URL is not an http(s) address"
  else
    "$@"
  fi
}

# A request without a key, which is sent once.
_fanout_free() { # PATH FIELDS TEXT...
  FANOUT_OPTIONS='' _fanout_request "$2" "" "" "${@:3}" &&
    _fanout_ask POST "$1" 'has("result") or has("appended")' "$body"
}

_fanout_paid() { # PATH FIELDS MODEL CONCURRENCY TEXT...
  _fanout_request "${@:2}" || return
  if [[ $count == 0 ]]; then
    printf '{"results":[]}'
  else
    _fanout_ask POST "$1" '(.text | strings) // .tasks // (.results | length == $count)' "$body" "$key"
  fi
}

_fanout_fresh_key() {
  od -vAn -N16 -tx1 /dev/urandom | tr -d ' \n'
}

# Sets key, count and body. FIELDS is a filter that makes fields of the array of texts.
_fanout_request() { # FIELDS MODEL CONCURRENCY TEXT...
  local lines program='
    def list:
      . as $text | fromjson
      | if type == "array" then .
        elif type == "string" then [.]
        elif type == "object" then .prompts // .kwargs.prompts // .args // [.]
        else [$text] end;
    def json: .[0] | list;
    def lines: .[0] / "\n" | map(rtrimstr("\r"));
    def arguments:
      if length != 1 then .
      else .[0] as $text | try ($text | list) catch [$text | select(. != "")] end;
    def item:
      if type == "string" then {prompt: .}
      elif type == "array" then {messages: .}
      else . end;
    def calls:
      if all(.[]; type == "string") then {prompts: .}
      else {items: map(item)} end;
    def settings:
      reduce .[] as $setting ({};
        ($setting | index("=")) as $at
        | $setting[:$at] as $name
        | ($setting[$at + 1:] | . as $text | try fromjson catch $text) as $value
        | if $name | IN("usd", "calls", "prompt_tokens", "completion_tokens") then .budget[$name] = $value
          else .[$name] = $value end);
    # A call that asks for the whole message. Tools of the run go by their names, definitions are for the model.
    def asking:
      .include = ["message"] + ((.include // []) - ["message"])
      | if any(.tools[]?; type == "object") then .params.tools = .tools | del(.tools) else . end;
    ($given / "\u0000")[:-1]
    | .[0] as $options | .[1] as $model | .[2] as $concurrency
    | (.[3:] | '"$1"') as $fields
    | $fields + ($options | fromjson)
      + (if $model == "" then {} else {model: $model} end)
      + (if $concurrency == "" then {} else {concurrency: ($concurrency | tonumber)} end)
    | if $fields.include or any(.tools[]?; type == "object") then asking else . end
    | (.idempotency_key // "" | if all(explode[]; 32 < . and . < 127) then . else error("idempotency_key") end),
      (.prompts // .items // [0] | length),
      (del(.idempotency_key) | tojson)'
  # The texts come as a file: a long standard input loses characters in jq 1.6.
  if ! lines=$(command jq -nr --rawfile given \
    <(printf '%s\0' "${FANOUT_OPTIONS:-"{}"}" "${@:2}") "$program" 2>&1); then
    _fanout_failure wrong_use "$lines"
    return
  fi
  key=${lines%%$'\n'*}
  lines=${lines#*$'\n'}
  count=${lines%%$'\n'*}
  body=${lines#*$'\n'}
  [[ $key ]] || key=$(_fanout_fresh_key)
}

# Writes the answer if TEST, a filter, is true of it. With a key the request is repeated if the connection is lost.
_fanout_ask() { # METHOD PATH TEST [BODY [KEY]]
  local wait_s reply curl_status http_status
  local test='select(length == 1) | .[0] | select(.error == null and ('$3'))'
  for wait_s in ${5:+0.25 0.5 1 2} ""; do
    reply=$(
      _fanout_send "$1" "$2" '\n%{http_code}' application/json "${4-}" "${5-}"
      printf '\n%s' "$?"
    )
    curl_status=${reply##*$'\n'}
    reply=${reply%$'\n'*}
    [[ $curl_status != 0 ]] || break
    _fanout_wait "$curl_status" "$wait_s" || return
  done
  http_status=${reply##*$'\n'}
  reply=${reply%$'\n'*}
  if [[ $http_status == 2?? ]]; then
    printf %s "$reply" | command jq -ecs --argjson count "${count:-0}" "$test" 2>/dev/null && return
  fi
  _fanout_refused "$http_status" "$reply"
}

# Writes the failure that an answer reports.
_fanout_refused() { # STATUS ANSWER
  printf %s "$2" | command jq -Rsr --arg status "$1" '
    . as $text
    | (try (fromjson | .error) catch null)
    | (if type == "string" then {code: "tool_error", message: .} else objects // {} end)
    | {
        code: "bad_answer",
        message: "HTTP \($status), unexpected answer: \($text[:200])",
        retryable: ($status | IN("408", "503"))
      } + .
    | [.code, ($status | ltrimstr("200")), .retryable, .attempts // "", .charged_usd // "", .message]
    | map(tostring) | join("\u001f")'
  return 1
}

# Sends a request once. The token is not on the command line, which all users of the machine can see.
_fanout_send() { # METHOD PATH WRITE_OUT ACCEPT BODY KEY
  local arguments=(
    -qsN
    --globoff
    --proto '=http,https'
    --max-time "${FANOUT_TIMEOUT_S:-3600}"
    --request "$1"
    --url "$url$2"
    --write-out "$3"
    --header "accept: $4"
    --header "content-type: application/json"
    --header expect:
  )
  [[ $1 == GET ]] || arguments+=(--data-binary @-)
  [[ -z $6 ]] || arguments+=(--header "idempotency-key: $6")
  [[ -z $_fanout_epoch ]] || arguments+=(--header "x-fanout-epoch: $_fanout_epoch")
  # A proxy does not reach this machine's own addresses.
  [[ ! $url =~ ://(localhost|127\.|\[::1\]) ]] || arguments+=(--noproxy '*')
  printf %s "$5" | command curl "${arguments[@]}" --config <(printf 'header = "authorization: Bearer %s"\n' "$token")
  return "${PIPESTATUS[1]}"
} 2>/dev/null

# Waits after a lost connection, or writes the failure if the request cannot be repeated.
_fanout_wait() { # CURL_STATUS WAIT_S
  if [[ $1 == 28 ]]; then
    _fanout_failure timeout "no whole answer from $url in time" true
  elif [[ " 5 6 7 16 18 35 52 55 56 92 95 96 " != *" $1 "* ]]; then
    _fanout_failure unreachable "curl ended with status $1"
  elif [[ -z $2 ]]; then
    _fanout_failure unreachable "no answer from $url: curl ended with status $1" true
  else
    sleep "$2"
  fi
}

# Writes the slots to descriptor 3, each once, although a repeated request streams all slots again.
_fanout_slots() { # PROMPT...
  local wait_s kind line http error curl seen=()
  _fanout_request calls "" "" "$@" || return
  for wait_s in ${1+0.25 0.5 1 2 ""}; do # Without prompts nothing is sent.
    http=''
    error=''
    while IFS=$'\x1f' read -r kind line; do
      case $kind in
        done) return 0 ;;
        http) http=$line ;;
        error) error=$line ;;
        curl) curl=$line ;;
        *)
          [[ ${seen[kind]-} ]] || printf '%s\n' "$line" >&3
          seen[kind]=1
          ;;
      esac
    done < <(_fanout_lines)
    if [[ $error || $curl == 0 && $http != 200 ]]; then
      _fanout_refused "$http" "$error"
      return
    fi
    # Without its last line the answer was cut, even if curl reports success.
    _fanout_wait "${curl/#0/18}" "$wait_s" || return
  done
}

# Sends a batch once. Writes lines of two fields: a slot's index and the slot, or what a line is and the line.
_fanout_lines() {
  _fanout_send POST /batch '\n{"http":"%{http_code}"}' application/x-ndjson "$body" "$key" |
    command jq --unbuffered -r '
      if .type == "slot" then "\(.index | floor)\u001f\(tojson)"
      elif .type == "group_completed" then "done"
      elif .http then "http\u001f\(.http)"
      elif .error then "error\u001f\(tojson)"
      else empty end' 2>/dev/null
  printf 'curl\x1f%s\n' "${PIPESTATUS[0]}"
}

_fanout_epoch=${FANOUT_EPOCH-}
# A sourced file may return; otherwise the file is run as a program.
if (return 0) 2>/dev/null; then
  _fanout_epoch=${_fanout_epoch:-$(_fanout_fresh_key)}
else
  _fanout_names='^(llm_[a-z_]+|with_run|tool_call|FINAL)$'
  [[ ! ${0##*/} =~ $_fanout_names ]] || set -- "${0##*/}" "$@"
  if [[ ! ${1-} =~ $_fanout_names ]] || ! declare -F "$1" >/dev/null; then
    sed -n 's/^#   //p' "$0" | sed '/^FANOUT_URL/,$d' >&2
    exit 2
  fi
  "$@"
fi
