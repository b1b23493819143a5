// Drives stubs/go/fanout.go for the conformance test.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"driver/fanout"
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
		write(fmt.Sprintf("\x15%s\x1f%s\x1f%t", failed.Code, status, failed.Retryable))
	}
}

func run(command string, args []string) error {
	ctx := context.Background()
	switch command {
	case "query":
		options := []fanout.Fields{}
		if len(args) > 1 {
			options = append(options, fanout.Fields{"model": args[1]})
		}
		answer, err := fanout.Query(ctx, args[0], options...)
		return told(answer, err)
	case "batch":
		return batch(fanout.Batch(ctx, args))
	case "batch-model":
		return batch(fanout.Batch(ctx, args[1:], fanout.Fields{"model": args[0]}))
	case "stream":
		return fanout.Stream(ctx, args, func(slot fanout.Slot) error {
			write(fmt.Sprintf("%d\x1f%s", slot.Index, textOf(slot)))
			return nil
		})
	case "budget":
		budget, err := fanout.Budget(ctx)
		if err != nil {
			return err
		}
		return told(fmt.Sprintf("%.9f", budget["usd"].(map[string]any)["remaining"]), nil)
	case "usage":
		usage, err := fanout.Usage(ctx, false)
		return told(fmt.Sprint(usage["llm_calls"]), err)
	case "final":
		return told("ok", fanout.Final(ctx, args[0]))
	case "log":
		return told("ok", fanout.Log(ctx, args[0], fanout.Fields{args[1]: args[2]}))
	case "tool":
		result, err := fanout.ToolCall(ctx, args[0], fanout.Fields{args[1]: args[2]})
		return told(fmt.Sprint(result), err)
	}
	return errors.New("no command " + command)
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

func told(record string, err error) error {
	if err == nil {
		write(record)
	}
	return err
}

func write(record string) { fmt.Print(record + "\x1e") }
