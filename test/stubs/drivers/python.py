"""Drives stubs/python/fanout.py for the conformance test."""

import sys
from concurrent.futures import ThreadPoolExecutor

import fanout


SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}


TOOLS = [{"type": "function", "function": {"name": "double", "parameters": SCHEMA}}]
MUST = {"tool_choice": "required"}


def name_of(message):
    return message["tool_calls"][0]["function"]["name"]


def write(record):
    sys.stdout.buffer.write(record.encode("utf-8") + b"\x1e")
    sys.stdout.buffer.flush()


def message(model, prompt):
    asked = fanout.llm_message(prompt, model, TOOLS, params=MUST)
    call_id = asked["tool_calls"][0]["id"]
    messages = [
        {"role": "user", "content": prompt},
        asked,
        {"role": "tool", "tool_call_id": call_id, "content": "8"},
        {"role": "user", "content": "done"},
    ]
    answer = fanout.llm_message(messages, model)
    return name_of(asked) + "\x1f" + answer["content"]


def query_in_child(prompt):
    with fanout.with_run(calls=1):
        return fanout.llm_query(prompt)


def main(command, *args):
    if command == "query":
        write(fanout.llm_query(*args))
    elif command == "batch":
        for result in fanout.llm_query_batch(list(args)):
            write(result)
    elif command == "batch-model":
        for result in fanout.llm_query_batch(list(args[1:]), args[0]):
            write(result)
    elif command == "stream":
        for event in fanout.llm_stream(list(args)):
            if event["type"] == "slot":
                write("{}\x1f{}".format(event["index"], event["result"]))
    elif command == "json":
        write(str(fanout.llm_query(args[0], schema=SCHEMA)["n"]))
    elif command == "batch-json":
        for value in fanout.llm_query_batch(args, schema=SCHEMA):
            write(value if isinstance(value, str) else str(value["n"]))
    elif command == "message":
        write(message(*args))
    elif command == "messages":
        prompts = list(args[1:])
        for answer in fanout.llm_query_batch(prompts, args[0], TOOLS, params=MUST):
            write(name_of(answer))
    elif command == "agent":
        model, tool, prompt = args
        answer = fanout.llm_message(prompt, model, [tool], max_turns=4)
        write(answer["content"])
    elif command == "dag":
        second = {"id": "b", "prompt": "{{a.output}} and two"}
        graph = fanout.llm_dag([{"id": "a", "prompt": args[0]}, second])
        write(graph["outputs"]["b"])
    elif command == "vote":
        vote = fanout.llm_vote(args[1], int(args[0]))
        write("{}\x1f{}".format(vote["winner"], vote["votes"]))
    elif command == "budget":
        write(str(fanout.llm_budget()["usd"]["remaining"]))
    elif command == "usage":
        write(str(fanout.llm_usage()["llm_calls"]))
    elif command == "final":
        fanout.FINAL(args[0])
        write("ok")
    elif command == "log":
        fanout.llm_log(args[0], **{args[1]: args[2]})
        write("ok")
    elif command == "tool":
        write(fanout.tool_call(args[0], **{args[1]: args[2]}))
    elif command == "child":
        with fanout.with_run(calls=int(args[0])):
            for prompt in args[1:]:
                write(fanout.llm_query(prompt))
    elif command == "nested":
        with fanout.with_run(calls=4):
            write(fanout.llm_query(args[0]))
            with fanout.with_run(calls=1):
                write(fanout.llm_query(args[0]))
            write(fanout.llm_query(args[0]))
        write(fanout.llm_query(args[0]))
    elif command == "children":
        with ThreadPoolExecutor(len(args)) as threads:
            for answer in threads.map(query_in_child, args):
                write(answer)
    else:
        raise SystemExit("no command " + command)


try:
    main(*sys.argv[1:])
except fanout.FanoutError as e:
    facts = [e.code, e.status, str(e.retryable).lower(), e.attempts, e.charged_usd]
    write("\x15" + "\x1f".join("" if fact is None else str(fact) for fact in facts))
