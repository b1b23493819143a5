// Package fanout asks a fanout gateway from Go 1.19 or newer. One file, standard library only: copy it into a module.
//
//	answer, err := fanout.Query(ctx, "What is 2 + 2?")
//	slots, err := fanout.Batch(ctx, prompts, fanout.Fields{"model": "up/model", "max_tokens": 200})
//	err = fanout.Stream(ctx, prompts, func(slot fanout.Slot) error { ... }) // Each slot as it ends.
//
// Also Budget, Usage, Final, Log, ToolCall. FANOUT_URL names the gateway (default http://127.0.0.1:8787), FANOUT_TOKEN
// carries the run token; GATEWAY_URL and GATEWAY_TOKEN stand in. FANOUT_TIMEOUT_S (660) is the longest silence borne.
// A lost connection is tried again under the same idempotency key: nothing is paid twice. Log and ToolCall ask once.
package fanout

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// Error is a failed call, for errors.As. Code: the gateway's, or no_token, bad_url, unreachable, timeout, bad_answer,
// tool_error. Status is 0 where there was no answer. If Retryable, the same call may succeed later.
type Error struct { Code, Message string; Status int; Retryable bool }
func (e *Error) Error() string { return e.Message }

// Slot is what became of the prompt at Index: Text is its answer, unless Err (an *Error) is set.
type Slot struct { Index int; Text string; Err error }

// Fields of a request or an answer. An idempotency_key lets a program that starts again find its answers.
type Fields = map[string]any

// Query answers one prompt.
func Query(ctx context.Context, prompt string, options ...Fields) (string, error) {
	answer, err := ask(ctx, "POST /query", "text", append([]Fields{{"prompt": prompt}}, options...), nil)
	text, _ := answer["text"].(string)
	return text, err
}

// Batch answers prompts asked at once, in their order. Its error is the whole request's; a slot has its own.
func Batch(ctx context.Context, prompts []string, options ...Fields) ([]Slot, error) {
	slots := make([]Slot, len(prompts))
	err := Stream(ctx, prompts, func(slot Slot) error { slots[slot.Index] = slot; return nil }, options...)
	return slots, err
}

// Stream gives each slot as it ends. An error that each returns ends the stream, and is Stream's.
func Stream(ctx context.Context, prompts []string, each func(Slot) error, options ...Fields) error {
	if len(prompts) == 0 { return nil }
	given := map[float64]bool{} // A stream that is asked for again tells all its slots again.
	fields := append([]Fields{{"prompts": prompts}}, options...)
	_, err := ask(ctx, "POST /batch", "type", fields, func(event Fields) error {
		index, isSlot := event["index"].(float64)
		if !isSlot || given[index] || index < 0 || int(index) >= len(prompts) { return nil }
		given[index] = true
		if event["error"] == nil { return each(Slot{int(index), fmt.Sprint(event["result"]), nil}) }
		return each(Slot{int(index), "", failure(event["error"], 0)})
	})
	if err == nil && len(given) < len(prompts) { return failure(nil, 200) }
	return err
}

// Budget: usd, calls, prompt_tokens and completion_tokens, each with its limit, spent, reserved and remaining.
func Budget(ctx context.Context) (Fields, error) { return ask(ctx, "GET /budget", "usd", nil, nil) }
// Usage: llm_calls, input_tokens, output_tokens, cost (USD) and calls_by_model; with reset it counts anew.
func Usage(ctx context.Context, reset bool) (Fields, error) {
	return ask(ctx, map[bool]string{false: "GET /usage", true: "GET /usage?reset=1"}[reset], "llm_calls", nil, nil)
}

// Final leaves the run's result in its log: a string, or any value that JSON can hold.
func Final(ctx context.Context, result any) error {
	output, isText := result.(string)
	if data, err := json.Marshal(result); err == nil && !isText {
		output = string(data)
	}
	return Log(ctx, "final_result", Fields{"output": output, "data": result})
}

// Log leaves an event in the run's log, with output (a string), data (any value), code, reasoning, hasError or step.
func Log(ctx context.Context, eventType string, fields Fields) error {
	_, err := ask(ctx, "POST /log", "appended", []Fields{fields, {"event_type": eventType}}, nil)
	return err
}

// ToolCall calls a tool that was registered with the run.
func ToolCall(ctx context.Context, name string, input any) (any, error) {
	answer, err := ask(ctx, "POST /tool_call", "result", []Fields{{"tool_name": name, "input": input}}, nil)
	return answer["result"], err
}

// ask sends fields, and again where the connection is lost. Without take, the first object of the answer is all of it.
func ask(ctx context.Context, call, field string, parts []Fields, take func(Fields) error) (Fields, error) {
	fields, random := Fields{}, make([]byte, 16)
	for _, part := range parts { for name, value := range part { fields[name] = value } }
	key, isNamed := fields["idempotency_key"].(string)
	if rand.Read(random); !isNamed { key = fmt.Sprintf("%x", random) }
	delete(fields, "idempotency_key")
	data, err := json.Marshal(fields)
	if err != nil { return nil, err }
	base, token := env("FANOUT_URL", "GATEWAY_URL", "http://127.0.0.1:8787"), env("FANOUT_TOKEN", "GATEWAY_TOKEN", "")
	if token == "" { return nil, &Error{"no_token", "FANOUT_TOKEN is not set: it carries the token of a run", 0, false} }
	silence, _ := time.ParseDuration(env("FANOUT_TIMEOUT_S", "", "660") + "s")
	method, path, _ := strings.Cut(call, " ")
	isOnce := path == "/log" || path == "/tool_call" || path == "/usage?reset=1"
	body := map[bool]string{true: string(data)}[method == "POST"]
	for pause := time.Second / 4; ; pause *= 2 {
		heard, cancel := context.WithCancel(ctx); defer cancel()
		request, err := http.NewRequestWithContext(heard, method, strings.TrimRight(base, "/")+path, strings.NewReader(body))
		isUrl := err == nil && request.URL.Host != "" && strings.HasPrefix(request.URL.Scheme, "http")
		if !isUrl { return nil, &Error{"bad_url", "FANOUT_URL must be an http:// or https:// URL, not " + base, 0, false} }
		request.Header = http.Header{"Authorization": {"Bearer " + token}, "Accept": {"application/x-ndjson"}}
		request.Header.Set("Content-Type", "application/json")
		if !isOnce { request.Header.Set("Idempotency-Key", key) } // It has the transport repeat by itself.
		listener, status := &ear{nil, time.AfterFunc(silence, cancel), silence}, 0
		response, err := http.DefaultTransport.RoundTrip(request) // Follows no redirect.
		if err == nil { defer response.Body.Close(); listener.Reader, status = response.Body, response.StatusCode }
		for objects := json.NewDecoder(listener); err == nil; {
			var value any
			err = objects.Decode(&value)
			answer, _ := value.(Fields)
			_, isJunk := err.(*json.SyntaxError)
			_, isWhole := answer[field]
			isError := answer["type"] == "error" || answer["error"] != nil && answer["type"] != "slot"
			isTold := err == nil || err == io.EOF && status > 299
			if isJunk || isTold && (isError || !isWhole || status > 299) { return nil, failure(answer["error"], status) }
			if err == nil && (take == nil || answer["type"] == "group_completed") { return answer, nil }
			if err == nil { if err := take(answer); err != nil { return nil, err } }
		}
		if ctx.Err() != nil { return nil, ctx.Err() }
		if heard.Err() != nil { return nil, &Error{"timeout", fmt.Sprintf("silence for %v", silence), 0, true} }
		if isOnce || pause > 2*time.Second { return nil, &Error{"unreachable", "connection lost: " + err.Error(), 0, true} }
		time.Sleep(pause)
	}
}
// ear is a body of which only so much silence is borne.
type ear struct { io.Reader; timer *time.Timer; silence time.Duration }
func (e *ear) Read(p []byte) (int, error) { e.timer.Reset(e.silence); defer e.timer.Stop(); return e.Reader.Read(p) }

func failure(detail any, status int) *Error {
	e := &Error{"bad_answer", fmt.Sprintf("unexpected answer, status %d", status), status, status == 408 || status == 503}
	if data, err := json.Marshal(detail); err == nil { json.Unmarshal(data, e) }
	if text, isText := detail.(string); isText { e.Code, e.Message = "tool_error", text }
	return e
}

func env(name, other, fallback string) string {
	return append(strings.Fields(os.Getenv(name)+" "+os.Getenv(other)+" "+fallback), "")[0]
}
