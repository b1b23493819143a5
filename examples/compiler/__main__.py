"""Answers a question by a plan of function calls that runs while a model writes it: independent calls run at once.

    FANOUT_URL=… FANOUT_TOKEN=… python3 examples/compiler ["A question"]

The functions are the tools of the run, which the operator registers when it opens it: the gateway offers the planner each with its
arguments. The planner writes one step a line, in which `{{t1.output}}` stands for the result of step t1. The gateway starts each step
when its line is complete and its inputs are there, so the first function is called while the model writes the second line. An answer
that has no step is asked for once more, with the gateway's message. A last call joins the results: it answers, or says why another
plan is needed. The same plan again would give the same results, so it ends the program. FANOUT_MODEL selects the model of all calls;
the default is the run's.
"""
import argparse
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "stubs" / "python"))

from fanout import FanoutError, llm_budget, llm_plan, llm_query, llm_run, with_run  # noqa: E402

MODEL = os.environ.get("FANOUT_MODEL")
QUESTION = "How much taller is the Tokyo Tower than the Eiffel Tower, and is either taller than the Shard?"
ROUNDS_MAX = 2
STEPS_MAX = 20

GOAL = """Answer this question: {}
Call a tool for each fact and for each calculation."""
JOINER = """Answer the question from the results of the steps, and from nothing else. Begin with ANSWER: if they suffice; else with
REPLAN: and what is missing."""


def planned(goal):
    """The graph of a plan, which ran while it was written. An answer without a step is asked for once more, with the message."""
    try:
        return llm_plan(goal, stream=True, max_tasks=STEPS_MAX)
    except FanoutError as refused:
        if refused.code != "invalid_request":
            raise
        print("The plan was refused: {}: {}".format(refused.code, refused))
        again = "{}\n\n# An earlier plan, which was refused\n{}".format(goal, refused)
        return llm_plan(again, stream=True, max_tasks=STEPS_MAX)


def call_of(step):
    """A step as a call: `search("…")`, or the prompt of one that is for a model."""
    if "tool" not in step:
        return json.dumps(step.get("prompt", step.get("messages")), ensure_ascii=False)
    given = step.get("input", {})
    values = given.values() if isinstance(given, dict) else [given]
    return "{}({})".format(step["tool"], ", ".join(json.dumps(value, ensure_ascii=False) for value in values))


def results_of(graph):
    """What each step is and what it gave, one a line: what the joiner reads, and what is printed. A line that is no step is a fault."""
    plan = graph["plan"]
    # Of two steps with one id, the first has run.
    steps = {step.get("id"): call_of(step) for step in reversed(plan["tasks"])}
    lines = []
    for name, task in graph["tasks"].items():
        failed = "! " + (task["error"]["message"] if task["error"] else task["status"])
        given = task.get("output", task.get("outputs")) if task["status"] == "completed" else failed
        lines.append("{}. {} = {}".format(name, steps.get(name, ""), given))
    lines += ["Line {} of the plan = ! {}".format(each["line"], each["message"]) for each in plan["errors"]]
    return lines


def show(listed, graph):
    metrics = graph["metrics"]
    print("Plan of {} steps, {} at once:".format(graph["count"], metrics["peak_parallel"]))
    for line in listed:
        print("  " + " ".join(line.split())[:110])
    print("  {} in {:.2f}s; the longest chain took {:.2f}s, all steps one after another {:.2f}s".format(
        graph["status"], metrics["wall_ms"] / 1000, metrics["critical_path_ms"] / 1000, metrics["sequential_ms"] / 1000))


def answer(question):
    """Plans, runs and joins until the joiner answers, at most ROUNDS_MAX times. Returns what the joiner said last."""
    goal, so_far, plans, said = GOAL.format(question), "", [], ""
    for _ in range(ROUNDS_MAX):
        graph = planned(goal + so_far)
        plan = graph["plan"]["tasks"]
        if plan in plans:
            return said + " (the planner has no other plan)"
        plans.append(plan)
        listed = results_of(graph)
        show(listed, graph)
        results = "\n".join(listed)
        said = llm_query("Question: {}\n\n# Results\n{}".format(question, results), system=JOINER, max_tokens=800)
        if not said.startswith("REPLAN:"):
            return said
        so_far = "\n\n# An earlier plan with its results, which were not enough\n{}\n{}".format(results, said)
    return said


def main():
    form = argparse.RawDescriptionHelpFormatter
    read = argparse.ArgumentParser(prog="compiler", description=__doc__, formatter_class=form)
    read.add_argument("question", nargs="?", default=QUESTION)
    question = read.parse_args().question
    if not llm_run()["tools"]:
        raise ValueError("this run has no tools, so there is nothing to plan with: register tools when you open it")
    print(question + "\n")
    left = llm_budget()["usd"]["remaining"]
    # The planner, the joiner and steps that are no tool go to the default model of the run in which the plan runs.
    settings = {**({"default_model": MODEL} if MODEL else {}), **({} if left is None else {"usd": left})}
    with with_run(name="compiler", **settings):
        said = answer(question)
    print("\n" + said)
    spent = llm_budget()
    print("The run has spent ${:.6f} for {} calls".format(spent["usd"]["spent"], spent["calls"]["spent"]))
    return 0 if said.startswith("ANSWER:") else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (FanoutError, ValueError) as error:
        sys.exit("{}: {}".format(error.code, error) if isinstance(error, FanoutError) else str(error))
