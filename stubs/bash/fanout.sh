#!/usr/bin/env bash
# Asks a fanout gateway from Bash 4 or newer, with curl and jq (1.6 or newer). One file: copy it, and source it; or run
# it (fanout.sh llm_query "…"), also through links in the PATH that are called llm_query, llm_batch, …
#
#   llm_query [PROMPT [MODEL]]     writes the answer. Without arguments it reads the prompt.
#   llm_query_batch [PROMPT]...    writes a JSON array of the answers, in order; for a failed one "[error] message".
#   llm_batch [--json [JSON] | --lines] [--concurrency N] [--model MODEL] [PROMPT]...     the same. --json reads a JSON
#       array of prompts, --lines one prompt a line; without arguments it reads JSON or else a single prompt.
#   llm_stream [PROMPT]...         writes a line of JSON for each slot as it ends: index, result, error, …
#   llm_budget; llm_usage [--reset]; tool_call NAME [JSON]; FINAL [TEXT]; llm_log TYPE [JSON]
#
# FANOUT_URL names the gateway (default http://127.0.0.1:8787), FANOUT_TOKEN carries the run token, FANOUT_TIMEOUT_S is
# the longest whole call (default 3600); GATEWAY_URL and GATEWAY_TOKEN stand in. FANOUT_OPTIONS holds request fields as
# JSON: FANOUT_OPTIONS='{"max_tokens":50,"idempotency_key":"chapter-1"}' llm_query "…".
# Exit status: 1 failed for good; 2 wrong use; 3 no token, address or program; 4 budget exhausted; 75 may succeed later.
# Outside of $(…) and pipes FANOUT_ERROR_CODE, _STATUS (HTTP), _RETRYABLE (true or false) and _MESSAGE tell more.

llm_query() { _fanout .text _fanout_paid /query '{prompt: .[0]}' "${2-}" "" "${1-$(cat)}"; }
llm_query_batch() { _fanout .results _fanout_paid /batch calls "" "" "$@"; }
llm_query_batched() { llm_query_batch "$@"; }
llm_batch() { # As RLMEnv of verifiers has it: whatever is no option is a prompt.
  local form=arguments model='' concurrency='' texts=()
  while [[ $# -gt 0 ]]; do
    case $1 in
      --json | --lines) form=${1#--} ;;
      --model | --concurrency) printf -v "${1#--}" %s "${2-}" && shift $(($# > 1)) ;;
      *) texts+=("$1") ;;
    esac
    shift
  done
  [[ $form != lines && ${#texts[@]} -gt 0 ]] || texts=("$(cat)")
  _fanout .results _fanout_paid /batch "$form | calls" "$model" "$concurrency" "${texts[@]}"
}
llm_stream() { local failure; { failure=$(_fanout_alone _fanout_slots "$@"); } 3>&1 || _fanout_failed "$failure"; }
llm_budget() { _fanout . _fanout_ask GET /budget 'has("usd")'; }
llm_usage() { _fanout . _fanout_ask GET "/usage${1:+?reset=1}" 'has("llm_calls")'; }
tool_call() { _fanout .result _fanout_free /tool_call '{tool_name: .[0], input: (.[1] // "{}" | fromjson)}' "$@"; }
llm_log() { _fanout empty _fanout_free /log '(.[1] // "{}" | fromjson) + {event_type: .[0]}' "$@"; }
FINAL() { _fanout empty _fanout_free /log '{event_type: "final_result", output: .[0], data: .[0]}' "${1-$(cat)}"; }

_fanout() { # FILTER COMMAND ARGUMENT... Writes what FILTER makes of the answer that COMMAND writes.
  local answer
  if answer=$(_fanout_alone "${@:2}"); then printf %s "$answer" | command jq -rc "$1"; else _fanout_failed "$answer"; fi
}
_fanout_failed() {
  IFS=$'\x1f' read -rd '' FANOUT_ERROR_{CODE,STATUS,RETRYABLE,MESSAGE} < <(printf '%s\0' "$1")
  printf 'fanout: %s: %s\n' "$FANOUT_ERROR_CODE" "$FANOUT_ERROR_MESSAGE" >&2
  case $FANOUT_ERROR_CODE,$FANOUT_ERROR_RETRYABLE in
    wrong_use,*) return 2 ;;
    no_token,* | bad_url,* | no_program,*) return 3 ;;
    budget_exhausted,*) return 4 ;;
    *,true) return 75 ;;
    *) return 1 ;;
  esac
}
# Begins each subshell. Nothing in it meets the caller's options; a failure is its output, and status 1.
_fanout_alone() { # COMMAND ARGUMENT...
  { set +efux +o pipefail; } 2>/dev/null # Traced, the token would be shown.
  local IFS=$' \t\n' LC_ALL=C key count body address='^https?://[^/?#@[:space:]]+(/[^?#[:space:]]*)?$'
  local url=${FANOUT_URL:-${GATEWAY_URL:-http://127.0.0.1:8787}} token=${FANOUT_TOKEN:-${GATEWAY_TOKEN:-}}
  while [[ $url == */ ]]; do url=${url%/}; done
  type -P curl jq od tr >/dev/null || { _fanout_tell no_program "curl, jq, od and tr are needed"; return; }
  [[ $token && $token != *[!-._~+/=[:alnum:]]* ]] || { _fanout_tell no_token "FANOUT_TOKEN holds no token"; return; }
  [[ $url =~ $address ]] || { _fanout_tell bad_url "FANOUT_URL is no http(s) address"; return; }
  "$@"
}
_fanout_tell() { printf '%s\x1f\x1f%s\x1f%s' "$1" "${3-false}" "$2" && return 1; } # CODE MESSAGE [RETRYABLE]
_fanout_free() { # PATH FIELDS TEXT...
  FANOUT_OPTIONS='' _fanout_request "$2" "" "" "${@:3}" && _fanout_ask POST "$1" 'has("result") or has("seq")' "$body"
}
_fanout_paid() { # PATH FIELDS MODEL CONCURRENCY TEXT...
  local test='(.text | strings) // (.results | length == $count)'
  _fanout_request "${@:2}" || return
  if [[ $count == 0 ]]; then printf '{"results":[]}'; else _fanout_ask POST "$1" "$test" "$body" "$key"; fi
}
# Sets key, count and body. Texts come to jq as a file: a long standard input loses characters in jq 1.6.
_fanout_request() { # FIELDS MODEL CONCURRENCY TEXT...
  local lines program='
    def list: . as $text | fromjson | if type == "array" then . elif type == "string" then [.]
      elif type == "object" then .prompts // .kwargs.prompts // .args // [.] else [$text] end;
    def json: .[0] | list; def lines: .[0] / "\n" | map(rtrimstr("\r"));
    def arguments: if length != 1 then . else .[0] as $text | try ($text | list) catch [$text | select(. != "")] end;
    def calls: if all(.[]; type == "string") then {prompts: .} else {items: map(
      if type == "string" then {prompt: .} elif type == "array" then {messages: .} else . end)} end;
    ($given / "\u0000")[:-1] | (.[3:] | '"$1"') + (.[0] | fromjson) + (if .[1] == "" then {} else {model: .[1]} end)
      + (if .[2] == "" then {} else {concurrency: (.[2] | tonumber)} end)
    | (.idempotency_key // "" | if all(explode[]; 32 < . and . < 127) then . else error("idempotency_key") end),
      (.prompts // .items // [0] | length), (del(.idempotency_key) | tojson)'
  lines=$(command jq -nr --rawfile given <(printf '%s\0' "${FANOUT_OPTIONS:-"{}"}" "${@:2}") "$program" 2>&1) ||
    { _fanout_tell wrong_use "$lines"; return; }
  key=${lines%%$'\n'*} lines=${lines#*$'\n'} count=${lines%%$'\n'*} body=${lines#*$'\n'}
  [[ $key ]] || key=$(od -vAn -N16 -tx1 /dev/urandom | tr -d ' \n')
}
_fanout_ask() { # METHOD PATH TEST [BODY [KEY]]. Writes the answer if TEST, a filter, holds of it.
  local pause reply ended test='select(length == 1) | .[0] | select(.error == null and ('$3'))'
  for pause in ${5:+0.25 0.5 1 2} ""; do
    reply=$(_fanout_send "$1" "$2" '\n%{http_code}' application/json "${4-}" "${5-}"; printf '\n%s' "$?")
    ended=${reply##*$'\n'} reply=${reply%$'\n'*}
    [[ $ended == 0 ]] && break || _fanout_again "$ended" "$pause" || return
  done
  ended=${reply##*$'\n'} reply=${reply%$'\n'*}
  [[ $ended == 2?? ]] && printf %s "$reply" | command jq -ecs --argjson count "${count:-0}" "$test" 2>/dev/null ||
    _fanout_refused "$ended" "$reply"
}
_fanout_refused() { # STATUS ANSWER
  printf %s "$2" | command jq -Rsr --arg status "$1" '. as $text | (try (fromjson | .error) catch null)
    | (if type == "string" then {code: "tool_error", message: .} else objects // {} end)
    | {retryable: ($status | IN("408", "503")), message: "no answer: \($text[:200])", code: "bad_answer"} + .
    | "\(.code)\u001f\($status | ltrimstr("200"))\u001f\(.retryable)\u001f\(.message)"'
  return 1
}
_fanout_send() { # METHOD PATH WRITE_OUT ACCEPT BODY KEY
  local arguments=(-qsN --globoff --proto '=http,https' --max-time "${FANOUT_TIMEOUT_S:-3600}" --request "$1"
    --url "$url$2" --write-out "$3" --header "accept: $4" --header "content-type: application/json" --header expect:)
  [[ $1 == GET ]] || arguments+=(--data-binary @-)
  [[ -z $6 ]] || arguments+=(--header "idempotency-key: $6")
  [[ ! $url =~ ://(localhost|127\.|\[::1\]) ]] || arguments+=(--noproxy '*')
  printf %s "$5" | command curl "${arguments[@]}" --config <(printf 'header = "authorization: Bearer %s"\n' "$token")
  return "${PIPESTATUS[1]}"
} 2>/dev/null
_fanout_again() { # CURL_STATUS PAUSE. Waits where a lost connection may be tried again, else tells the failure.
  if [[ $1 == 28 ]]; then _fanout_tell timeout "no whole answer from $url in time" true
  elif [[ " 5 6 7 16 18 35 52 55 56 92 95 96 " != *" $1 "* ]]; then _fanout_tell unreachable "curl ended with status $1"
  elif [[ -z $2 ]]; then _fanout_tell unreachable "no answer from $url: curl ended with status $1" true
  else sleep "$2"; fi
}
_fanout_slots() { # PROMPT... The slots go to descriptor 3.
  local pause kind line http error curl given=()
  _fanout_request calls "" "" "$@" || return
  for pause in ${1+0.25 0.5 1 2 ""}; do # Not at all without prompts.
    http='' error=''
    while IFS=$'\x1f' read -r kind line; do
      case $kind in
        done) return 0 ;;
        http | error | curl) printf -v "$kind" %s "$line" ;;
        *) [[ ${given[kind]-} ]] || { given[kind]=1 && printf '%s\n' "$line" >&3; } ;;
      esac
    done < <(_fanout_send POST /batch '\n{"http":"%{http_code}"}' application/x-ndjson "$body" "$key" |
      command jq --unbuffered -r 'if .type == "slot" then "\(.index | floor)\u001f\(tojson)"
        elif .type == "group_completed" then "done" elif .http then "http\u001f\(.http)"
        elif .error then "error\u001f\(tojson)" else empty end' 2>/dev/null; printf 'curl\x1f%s\n' "${PIPESTATUS[0]}")
    if [[ $error || $curl == 0 && $http != 200 ]]; then _fanout_refused "$http" "$error"; return; fi
    _fanout_again "${curl/#0/18}" "$pause" || return # What ended well, but without the last line, was cut as well.
  done
}
if ! (return 0) 2>/dev/null; then # It is run: what is sourced may return.
  [[ ! ${0##*/} =~ ^(llm_.*|tool_call|FINAL)$ ]] || set -- "${0##*/}" "$@"
  [[ ${1-} =~ ^(llm_[a-z_]+|tool_call|FINAL)$ ]] && declare -F "$1" >/dev/null || { sed -n '5,10p' "$0" >&2; exit 2; }
  "$@"
fi
