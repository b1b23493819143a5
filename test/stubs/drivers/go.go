// Drives stubs/go/fanout.go for the conformance test.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"driver/fanout"
)

var schema = fanout.Fields{
	"type":       "object",
	"properties": fanout.Fields{"n": fanout.Fields{"type": "integer"}},
	"required":   []string{"n"},
}

var (
	tools = []fanout.Fields{{"type": "function", "function": fanout.Fields{"name": "double", "parameters": schema}}}
	must  = fanout.Fields{"tools": tools, "params": fanout.Fields{"tool_choice": "required"}}
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		var failed *fanout.Error
		if !errors.As(err, &failed) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		status := ""
		if failed.Status != 0 {
			status = fmt.Sprint(failed.Status)
		}
		used := "\x1f"
		if failed.Attempts != 0 {
			used = fmt.Sprintf("%d\x1f%g", failed.Attempts, failed.ChargedUSD)
		}
		write(fmt.Sprintf("\x15%s\x1f%s\x1f%t\x1f%s", failed.Code, status, failed.Retryable, used))
	}
}

func run(command string, args []string) error {
	ctx := context.Background()
	switch command {
	case "query":
		model := ""
		if len(args) > 1 {
			model = args[1]
		}
		return query(ctx, args[0], model)
	case "batch":
		return batch(fanout.Batch(ctx, args, ""))
	case "batch-model":
		return batch(fanout.Batch(ctx, args[1:], args[0]))
	case "stream":
		return fanout.Stream(ctx, args, "", func(slot fanout.Slot) error {
			write(fmt.Sprintf("%d\x1f%s", slot.Index, textOf(slot)))
			return nil
		})
	case "json":
		value, err := fanout.QueryJSON(ctx, args[0], schema, "")
		if err != nil {
			return err
		}
		write(fmt.Sprint(value.(map[string]any)["n"]))
		return nil
	case "batch-json":
		slots, err := fanout.Batch(ctx, args, "", fanout.Fields{"schema": schema})
		for at, slot := range slots {
			if slot.Err == nil {
				slots[at].Text = fmt.Sprint(slot.JSON.(map[string]any)["n"])
			}
		}
		return batch(slots, err)
	case "message":
		return message(ctx, args[0], args[1])
	case "messages":
		slots, err := fanout.Batch(ctx, args[1:], args[0], must, fanout.Fields{"include": []string{"message"}})
		for at, slot := range slots {
			if slot.Err == nil {
				slots[at].Text = nameOf(slot.Message)
			}
		}
		return batch(slots, err)
	case "agent":
		options := fanout.Fields{"tools": []string{args[1]}, "max_turns": 4}
		answer, err := fanout.Message(ctx, args[2], args[0], options)
		return writeUnless(err, fmt.Sprint(answer["content"]))
	case "dag":
		graph, err := fanout.Dag(ctx, []fanout.Fields{
			{"id": "a", "prompt": args[0]},
			{"id": "b", "prompt": "{{a.output}} and two"},
		})
		if err != nil {
			return err
		}
		write(fmt.Sprint(graph["outputs"].(map[string]any)["b"]))
		return nil
	case "vote":
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		vote, err := fanout.Vote(ctx, args[1], n, "")
		return writeUnless(err, fmt.Sprintf("%v\x1f%v", vote["winner"], vote["votes"]))
	case "budget":
		budget, err := fanout.Budget(ctx)
		if err != nil {
			return err
		}
		write(fmt.Sprintf("%.9f", budget["usd"].(map[string]any)["remaining"]))
		return nil
	case "usage":
		usage, err := fanout.Usage(ctx, false)
		return writeUnless(err, fmt.Sprint(usage["llm_calls"]))
	case "final":
		return writeUnless(fanout.Final(ctx, args[0]), "ok")
	case "log":
		return writeUnless(fanout.Log(ctx, args[0], fanout.Fields{args[1]: args[2]}), "ok")
	case "tool":
		result, err := fanout.ToolCall(ctx, args[0], fanout.Fields{args[1]: args[2]})
		return writeUnless(err, fmt.Sprint(result))
	case "child":
		return child(ctx, args[0], args[1:])
	case "nested":
		return nested(ctx, args[0])
	case "children":
		return children(ctx, args)
	}
	return errors.New("no command " + command)
}

func query(ctx context.Context, prompt, model string) error {
	answer, err := fanout.Query(ctx, prompt, model)
	return writeUnless(err, answer)
}

func message(ctx context.Context, model, prompt string) error {
	asked, err := fanout.Message(ctx, prompt, model, must)
	if err != nil {
		return err
	}
	answer, err := fanout.Message(ctx, []fanout.Fields{
		{"role": "user", "content": prompt},
		asked,
		{"role": "tool", "tool_call_id": firstCall(asked)["id"], "content": "8"},
		{"role": "user", "content": "done"},
	}, model)
	return writeUnless(err, fmt.Sprintf("%s\x1f%v", nameOf(asked), answer["content"]))
}

func firstCall(message fanout.Fields) fanout.Fields {
	return message["tool_calls"].([]any)[0].(fanout.Fields)
}

func nameOf(message fanout.Fields) string {
	return fmt.Sprint(firstCall(message)["function"].(fanout.Fields)["name"])
}

func child(ctx context.Context, calls string, prompts []string) error {
	limit, err := strconv.Atoi(calls)
	if err != nil {
		return err
	}
	return fanout.WithRun(ctx, fanout.Fields{"calls": limit}, func(ctx context.Context, _ fanout.Run) error {
		for _, prompt := range prompts {
			if err := query(ctx, prompt, ""); err != nil {
				return err
			}
		}
		return nil
	})
}

func nested(ctx context.Context, prompt string) error {
	err := fanout.WithRun(ctx, fanout.Fields{"calls": 4}, func(ctx context.Context, _ fanout.Run) error {
		if err := query(ctx, prompt, ""); err != nil {
			return err
		}
		err := fanout.WithRun(ctx, fanout.Fields{"calls": 1}, func(ctx context.Context, _ fanout.Run) error {
			return query(ctx, prompt, "")
		})
		if err != nil {
			return err
		}
		return query(ctx, prompt, "")
	})
	if err != nil {
		return err
	}
	return query(ctx, prompt, "")
}

func children(ctx context.Context, prompts []string) error {
	answers := make([]string, len(prompts))
	failures := make(chan error)
	for index, prompt := range prompts {
		index, prompt := index, prompt
		go func() {
			limit := fanout.Fields{"calls": 1}
			failures <- fanout.WithRun(ctx, limit, func(ctx context.Context, _ fanout.Run) (err error) {
				answers[index], err = fanout.Query(ctx, prompt, "")
				return err
			})
		}()
	}
	for range prompts {
		if err := <-failures; err != nil {
			return err
		}
	}
	for _, answer := range answers {
		write(answer)
	}
	return nil
}

func batch(slots []fanout.Slot, err error) error {
	if err != nil {
		return err
	}
	for _, slot := range slots {
		write(textOf(slot))
	}
	return nil
}

func textOf(slot fanout.Slot) string {
	if slot.Err != nil {
		return "[error] " + slot.Err.Error()
	}
	return slot.Text
}

func writeUnless(err error, record string) error {
	if err == nil {
		write(record)
	}
	return err
}

func write(record string) { fmt.Print(record + "\x1e") }
