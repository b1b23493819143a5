// Package fanout calls a fanout gateway from Go 1.19 or newer. One file, standard library only: copy it into a module.
//
//	answer, err := fanout.Query(ctx, "What is 2 + 2?", "up/model")
//	slots, err := fanout.Batch(ctx, prompts, "", fanout.Fields{"max_tokens": 200}) // "" is the run's default model.
//	err = fanout.Stream(ctx, prompts, "", func(slot fanout.Slot) error { ... })    // Each slot as it ends.
//	err = fanout.WithRun(ctx, fanout.Fields{"usd": 0.05}, func(ctx context.Context, run fanout.Run) error {
//		answer, err := fanout.Query(ctx, "What is 3 + 3?", "") // Calls with this ctx can spend 0.05 USD at most.
//		...
//	})
//
// Also QueryJSON, Message, Dag, Vote, Budget, Usage, Final, Log and ToolCall.
//
// Environment variables:
//
//	FANOUT_URL        the gateway's address (default http://127.0.0.1:8787); or GATEWAY_URL
//	FANOUT_TOKEN      the run token, which POST /runs returned; or GATEWAY_TOKEN
//	FANOUT_TIMEOUT_S  how long the gateway may be silent before a call fails (default 660)
//
// If the connection is lost, a request is repeated under the same idempotency key and is paid once. All other retries
// happen in the gateway. Log and ToolCall are sent once.
package fanout

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// Error is a failed call, for errors.As.
type Error struct {
	// Code is the gateway's, or no_token, bad_url, unreachable, timeout, bad_answer, tool_error.
	Code    string
	Message string
	// Status is the HTTP status, or 0 if there was no answer.
	Status int
	// Retryable reports whether the same call may succeed later.
	Retryable bool
	// Attempts and ChargedUSD are what a call has used up that was made.
	Attempts   int
	ChargedUSD float64
}

func (e *Error) Error() string { return e.Message }

// Slot is the result for the prompt at Index: Text is its answer, unless Err (an *Error) is set. With the option
// schema, JSON is the value that fits it. Message is the whole message, if it has more than text or the option include
// asks for it.
type Slot struct {
	Index   int
	Text    string
	JSON    any
	Message Fields
	Err     error
}

// Fields are fields of a request or an answer. The field idempotency_key is sent as a header: a restarted program that
// repeats the call under the same key gets the recorded answer at no cost.
type Fields = map[string]any

// The name of this life of the program, so that a run that records can replay the one before.
var epoch, _ = idempotencyKey(nil)

// Run is a child run.
type Run struct {
	ID string
	// Token is for another process: its FANOUT_TOKEN.
	Token string
}

// Query answers one prompt.
func Query(ctx context.Context, prompt, model string, options ...Fields) (string, error) {
	answer, err := exchange(ctx, call{
		method: http.MethodPost,
		path:   "/query",
		fields: merge(Fields{"prompt": prompt}, modelField(model), options...),
		expect: "text",
		isSafe: true,
	})
	text, _ := answer["text"].(string)
	return text, err
}

// QueryJSON answers one prompt with a value that fits a JSON Schema.
func QueryJSON(ctx context.Context, prompt string, schema any, model string, options ...Fields) (any, error) {
	answer, err := exchange(ctx, call{
		method: http.MethodPost,
		path:   "/query",
		fields: merge(Fields{"prompt": prompt, "schema": schema}, modelField(model), options...),
		expect: "json",
		isSafe: true,
	})
	return answer["json"], err
}

// Message returns the whole message of an answer to a prompt, or to a list of chat messages: content, tool_calls, …
//
// With the option tools of a chat completion it may ask for them: sent back as one of the messages, with their results,
// it goes on. Tools of the run go by their names, a []string: the gateway calls them itself, and the message is the
// last of at most max_turns answers.
func Message(ctx context.Context, promptOrMessages any, model string, options ...Fields) (Fields, error) {
	name := "messages"
	if _, isText := promptOrMessages.(string); isText {
		name = "prompt"
	}
	fields := merge(Fields{name: promptOrMessages}, modelField(model), options...)
	fields["include"] = []string{"message"}
	answer, err := exchange(ctx, call{
		method: http.MethodPost,
		path:   "/query",
		fields: withTools(fields),
		expect: "message",
		isSafe: true,
	})
	message, _ := answer["message"].(Fields)
	return message, err
}

// Dag runs a graph of tasks whose prompts refer to each other: {"id": "b", "prompt": "{{a.output}} …"}. The outputs of
// its last tasks are in the field outputs, by id.
func Dag(ctx context.Context, tasks []Fields, options ...Fields) (Fields, error) {
	return exchange(ctx, call{
		method: http.MethodPost,
		path:   "/dag",
		fields: merge(Fields{"tasks": tasks}, nil, options...),
		expect: "tasks",
		isSafe: true,
	})
}

// Vote answers a prompt n times and returns the vote: decided, winner, agreement, … The option aggregate changes its
// rule.
func Vote(ctx context.Context, prompt string, n int, model string, options ...Fields) (Fields, error) {
	prompts := make([]string, n)
	for at := range prompts {
		prompts[at] = prompt
	}
	fields := Fields{"prompts": prompts, "aggregate": Fields{"strategy": "vote"}}
	answer, err := exchange(ctx, call{
		method: http.MethodPost,
		path:   "/batch",
		fields: merge(fields, modelField(model), options...),
		expect: "aggregation",
		isSafe: true,
	})
	vote, _ := answer["aggregation"].(Fields)
	return vote, err
}

// Batch answers prompts at once, in their order. The error is for the whole request; each slot has an error of its own.
func Batch(ctx context.Context, prompts []string, model string, options ...Fields) ([]Slot, error) {
	slots := make([]Slot, len(prompts))
	collect := func(slot Slot) error {
		slots[slot.Index] = slot
		return nil
	}
	err := Stream(ctx, prompts, model, collect, options...)
	return slots, err
}

// Stream calls each with every slot as it ends. An error of each ends the stream and is returned.
func Stream(ctx context.Context, prompts []string, model string, each func(Slot) error, options ...Fields) error {
	if len(prompts) == 0 {
		return nil
	}
	seen := map[int]bool{} // A repeated request streams all slots once more.
	take := func(event Fields) error {
		number, isSlot := event["index"].(float64)
		index := int(number)
		if !isSlot || index < 0 || index >= len(prompts) || seen[index] {
			return nil
		}
		seen[index] = true
		if event["error"] != nil {
			return each(Slot{Index: index, Err: failure(event["error"], 0)})
		}
		message, _ := event["message"].(Fields)
		return each(Slot{Index: index, Text: fmt.Sprint(event["result"]), JSON: event["json"], Message: message})
	}
	_, err := exchange(ctx, call{
		method: http.MethodPost,
		path:   "/batch",
		fields: withTools(merge(Fields{"prompts": prompts}, modelField(model), options...)),
		expect: "type",
		take:   take,
		isSafe: true,
	})
	if err == nil && len(seen) < len(prompts) {
		return failure(nil, http.StatusOK)
	}
	return err
}

// WithRun opens a child run for the time of scope: calls with the context that scope receives spend the child's budget.
//
// The settings usd, calls, prompt_tokens and completion_tokens are limits. They are reserved in the budget of the run
// that opens the child; a limit that is left out becomes an equal split of what remains there. Other settings are the
// fields of POST /runs. When scope returns or panics, the child is closed and what it has not spent returns. The error
// is that of scope, or else that of opening or closing the child.
func WithRun(ctx context.Context, settings Fields, scope func(ctx context.Context, run Run) error) (err error) {
	opened, err := exchange(ctx, call{
		method: http.MethodPost,
		path:   "/runs",
		fields: runFields(settings),
		expect: "token",
		isSafe: true,
	})
	if err != nil {
		return err
	}
	run := Run{ID: fmt.Sprint(opened["id"]), Token: fmt.Sprint(opened["token"])}
	defer func() {
		// The child is closed also if the context is cancelled.
		uncancelled := context.WithValue(context.Background(), tokenKey{}, ctx.Value(tokenKey{}))
		path := "/runs/" + run.ID + "/close"
		_, closeErr := exchange(uncancelled, call{method: http.MethodPost, path: path, expect: "status", isSafe: true})
		if err == nil {
			err = closeErr
		}
	}()
	return scope(context.WithValue(ctx, tokenKey{}, run.Token), run)
}

// Budget returns what is left of the run's budget, child runs included: usd, calls, prompt_tokens, completion_tokens,
// each with limit, spent, reserved and remaining. The limit of an open child is in reserved, what a closed one spent is
// in spent.
func Budget(ctx context.Context) (Fields, error) {
	return exchange(ctx, call{method: http.MethodGet, path: "/budget", expect: "usd", isSafe: true})
}

// Usage returns what the run itself has used: llm_calls, input_tokens, output_tokens, cost (USD) and calls_by_model.
// Child runs are not included; what they spent is in Budget. With reset, counting then starts at zero.
func Usage(ctx context.Context, reset bool) (Fields, error) {
	if reset {
		return exchange(ctx, call{method: http.MethodGet, path: "/usage?reset=1", expect: "llm_calls"})
	}
	return exchange(ctx, call{method: http.MethodGet, path: "/usage", expect: "llm_calls", isSafe: true})
}

// Final records the program's result in the run's log: a string, or any value that JSON can represent.
func Final(ctx context.Context, result any) error {
	output, isText := result.(string)
	if !isText {
		data, err := json.Marshal(result)
		if err != nil {
			return err
		}
		output = string(data)
	}
	return Log(ctx, "final_result", Fields{"output": output, "data": result})
}

// Log appends an event to the run's log, with output (a string), data (any value), code, reasoning, hasError or step.
func Log(ctx context.Context, eventType string, fields Fields) error {
	event := merge(fields, Fields{"event_type": eventType})
	_, err := exchange(ctx, call{method: http.MethodPost, path: "/log", fields: event, expect: "appended"})
	return err
}

// ToolCall returns the result of a tool of the run.
func ToolCall(ctx context.Context, name string, input any) (any, error) {
	fields := Fields{"tool_name": name, "input": input}
	answer, err := exchange(ctx, call{method: http.MethodPost, path: "/tool_call", fields: fields, expect: "result"})
	return answer["result"], err
}

// tokenKey is the context key of a child run's token.
type tokenKey struct{}

// call is a request and how to read its answer.
type call struct {
	method, path string
	fields       Fields
	// expect is a field that every object of a successful answer has.
	expect string
	// take receives each event of a stream. Without it, the first object is the whole answer.
	take func(Fields) error
	// isSafe reports whether the request may be repeated if the connection is lost.
	isSafe bool
}

func modelField(model string) Fields {
	if model == "" {
		return nil
	}
	return Fields{"model": model}
}

// runFields moves the limits of a run into its field budget.
func runFields(settings Fields) Fields {
	fields, budget := Fields{}, Fields{}
	if given, isGiven := settings["budget"].(Fields); isGiven {
		budget = merge(given, nil)
	}
	for name, value := range settings {
		switch name {
		case "usd", "calls", "prompt_tokens", "completion_tokens":
			budget[name] = value
		default:
			fields[name] = value
		}
	}
	if len(budget) > 0 {
		fields["budget"] = budget
	}
	return fields
}

// merge returns one set of fields, in which later values replace earlier ones.
func merge(first, second Fields, others ...Fields) Fields {
	merged := Fields{}
	for _, fields := range append([]Fields{first, second}, others...) {
		for name, value := range fields {
			merged[name] = value
		}
	}
	return merged
}

// withTools returns the fields with the tools where the gateway takes them: those of the run go by their names,
// definitions are the model's.
func withTools(fields Fields) Fields {
	tools, isSet := fields["tools"]
	if _, areNames := tools.([]string); !isSet || areNames {
		return fields
	}
	params, _ := fields["params"].(Fields)
	sent := merge(fields, Fields{"params": merge(params, Fields{"tools": tools})})
	delete(sent, "tools")
	return sent
}

// exchange sends a request, and repeats it if the connection is lost and that is safe.
func exchange(ctx context.Context, call call) (Fields, error) {
	key, err := idempotencyKey(call.fields)
	if err != nil {
		return nil, err
	}
	fields := merge(call.fields, nil)
	delete(fields, "idempotency_key")
	body := ""
	if call.method == http.MethodPost {
		data, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		body = string(data)
	}
	waits := []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second}
	for attempt := 0; ; attempt++ {
		answer, lost, err := send(ctx, call, key, body)
		if lost == nil {
			return answer, err
		}
		if !call.isSafe || attempt == len(waits) {
			return nil, &Error{Code: "unreachable", Message: "connection lost: " + lost.Error(), Retryable: true}
		}
		select {
		case <-time.After(waits[attempt]):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func idempotencyKey(fields Fields) (string, error) {
	if key, isGiven := fields["idempotency_key"].(string); isGiven {
		return key, nil
	}
	random := make([]byte, 16)
	_, err := rand.Read(random)
	return hex.EncodeToString(random), err
}

// send sends a request once. It returns the answer (the last event of a stream), or why the connection is lost, or the
// error that ends the call.
func send(ctx context.Context, call call, key, body string) (answer Fields, lost, err error) {
	silence := timeout()
	listening, hangUp := context.WithCancel(ctx)
	defer hangUp()
	request, err := newRequest(listening, call, key, body)
	if err != nil {
		return nil, nil, err
	}
	timer := time.AfterFunc(silence, hangUp)
	defer timer.Stop()
	// A transport follows no redirect, which would carry the token to another host.
	response, lost := http.DefaultTransport.RoundTrip(request)
	if lost == nil {
		defer response.Body.Close()
		reader := &timedReader{response.Body, timer, silence}
		answer, lost, err = read(reader, response.StatusCode, call)
	}
	switch {
	case lost == nil:
		return answer, nil, err
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case listening.Err() != nil:
		message := fmt.Sprintf("the gateway was silent for %v", silence)
		return nil, nil, &Error{Code: "timeout", Message: message, Retryable: true}
	}
	return nil, lost, nil
}

func newRequest(ctx context.Context, call call, key, body string) (*http.Request, error) {
	token, isChild := ctx.Value(tokenKey{}).(string)
	if !isChild {
		token = env("FANOUT_TOKEN", "GATEWAY_TOKEN")
	}
	if token == "" {
		message := "FANOUT_TOKEN is not set: it is the token that POST /runs returns"
		return nil, &Error{Code: "no_token", Message: message}
	}
	base := env("FANOUT_URL", "GATEWAY_URL")
	if base == "" {
		base = "http://127.0.0.1:8787"
	}
	// With the /v1 that OpenAI's clients want, it is the same gateway.
	url := strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1") + call.path
	request, err := http.NewRequestWithContext(ctx, call.method, url, strings.NewReader(body))
	if err != nil || request.URL.Host == "" || !strings.HasPrefix(request.URL.Scheme, "http") {
		message := "FANOUT_URL must be an http:// or https:// address, not " + base
		return nil, &Error{Code: "bad_url", Message: message}
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", "application/json")
	if call.take != nil {
		request.Header.Set("Accept", "application/x-ndjson")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Fanout-Epoch", epoch)
	if call.isSafe {
		// With this header the transport repeats requests by itself, too.
		request.Header.Set("Idempotency-Key", key)
	}
	return request, nil
}

// read reads an answer to its end.
func read(body io.Reader, status int, call call) (answer Fields, lost, err error) {
	objects := json.NewDecoder(body) // It skips the white space that keeps the connection alive.
	for {
		var value any
		lost = objects.Decode(&value)
		var malformed *json.SyntaxError
		isEmptyRefusal := lost == io.EOF && status > 299
		if errors.As(lost, &malformed) || isEmptyRefusal {
			return nil, nil, failure(nil, status)
		}
		if lost != nil {
			return nil, lost, nil
		}
		answer, _ = value.(Fields)
		_, isComplete := answer[call.expect]
		isError := answer["type"] == "error" || answer["error"] != nil && answer["type"] != "slot"
		if isError || !isComplete || status > 299 {
			return nil, nil, failure(answer["error"], status)
		}
		if call.take == nil || answer["type"] == "group_completed" {
			return answer, nil, nil
		}
		if err := call.take(answer); err != nil {
			return nil, nil, err
		}
	}
}

// timedReader starts the timer anew for each read, and stops it in between: a slow caller is not a silent gateway.
type timedReader struct {
	io.Reader
	timer   *time.Timer
	silence time.Duration
}

func (r *timedReader) Read(p []byte) (int, error) {
	r.timer.Reset(r.silence)
	defer r.timer.Stop()
	return r.Reader.Read(p)
}

// failure returns the error in an answer: an object, a tool's text, or nil if the answer is not as expected.
func failure(detail any, status int) *Error {
	isRetryable := status == http.StatusRequestTimeout || status == http.StatusServiceUnavailable
	if text, isText := detail.(string); isText {
		return &Error{Code: "tool_error", Message: text, Status: status, Retryable: isRetryable}
	}
	message := fmt.Sprintf("unexpected answer with status %d", status)
	result := &Error{Code: "bad_answer", Message: message, Status: status, Retryable: isRetryable}
	fields, _ := detail.(Fields)
	if code, isText := fields["code"].(string); isText {
		result.Code = code
	}
	if message, isText := fields["message"].(string); isText {
		result.Message = message
	}
	if own, isNumber := fields["status"].(float64); isNumber {
		result.Status = int(own)
	}
	if own, isKnown := fields["retryable"].(bool); isKnown {
		result.Retryable = own
	}
	if attempts, isNumber := fields["attempts"].(float64); isNumber {
		result.Attempts = int(attempts)
	}
	if charged, isNumber := fields["charged_usd"].(float64); isNumber {
		result.ChargedUSD = charged
	}
	return result
}

func timeout() time.Duration {
	// Longer than the gateway's own limit, so that its error message arrives.
	const byDefault = 660 * time.Second
	silence, err := time.ParseDuration(env("FANOUT_TIMEOUT_S") + "s")
	if err != nil {
		return byDefault
	}
	return silence
}

// env returns the first of the variables that is set.
func env(names ...string) string {
	for _, name := range names {
		if value := strings.TrimSpace(os.Getenv(name)); value != "" {
			return value
		}
	}
	return ""
}
