"""Answers a question by a plan of function calls that a model writes: independent calls run at once, each when its inputs are there.

    FANOUT_URL=… FANOUT_TOKEN=… python3 examples/compiler ["A question"]

The functions are the tools of the run, which the operator registers when it opens it: the planner is offered each with its
arguments. One call writes a plan in LLMCompiler's notation, `1. search("…")`, in which `$1` stands for the result of step 1; the
gateway checks it, runs it as a graph and calls the tools. A plan that it refuses is written once more, with the gateway's message. A
last call joins the results: it answers, or says why another plan is needed. The same plan again would give the same results, so it
ends the program. FANOUT_MODEL selects the model that plans and joins; the default is the run's.
"""
import argparse
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "stubs" / "python"))

from fanout import FanoutError, llm_budget, llm_dag, llm_query, llm_run, with_run  # noqa: E402

MODEL = os.environ.get("FANOUT_MODEL")
QUESTION = "How much taller is the Tokyo Tower than the Eiffel Tower, and is either taller than the Shard?"
ROUNDS_MAX = 2
REFUSED = ("invalid_graph", "invalid_request", "invalid_input", "not_found")

PLANNER = """Write a plan that answers the question. One step a line, numbered from 1, as name("argument"). $1 in an argument is the
result of step 1. Steps that do not need each other run at once. Use only these functions:
{functions}
End with join(). Answer with the plan and nothing else."""
JOINER = """Answer the question from the results of the steps, and from nothing else. Begin with ANSWER: if they suffice; else with
REPLAN: and what is missing."""


def functions_of(run):
    """The run's tools as a planner is offered them, one a line. Raises ValueError if there are none."""
    lines = ["- {}({}): {}".format(tool["name"], ", ".join((tool.get("parameters") or {}).get("properties", {"…": {}})),
                                   tool["description"] or "no description") for tool in run["tools"]]
    if not lines:
        raise ValueError("this run has no tools, so there is nothing to plan with: register tools when you open it")
    return "\n".join(lines)


def planned(question, functions, so_far):
    """A plan, and what it ended as. A plan that the gateway refuses is written once more, with its message."""
    system, prompt = PLANNER.format(functions=functions), "Question: {}{}".format(question, so_far)
    plan = llm_query(prompt, model=MODEL, system=system, max_tokens=800)
    try:
        return plan, llm_dag(plan)
    except FanoutError as refused:
        if refused.code not in REFUSED:
            raise
        print("The plan was refused: {}: {}".format(refused.code, refused))
        again = "{}\n\nThis plan was refused:\n{}\n\n{}".format(prompt, plan, refused)
        plan = llm_query(again, model=MODEL, system=system, max_tokens=800)
        return plan, llm_dag(plan)


def steps_of(plan):
    """The steps as the plan has them, by number."""
    return {number: step.strip() for number, step in re.findall(r"^\s*(\d+)[.)]\s*(\w+\(.*)$", plan, re.MULTILINE)}


def results_of(plan, graph):
    """What each step is and what it gave, one a line: what the joiner reads, and what is printed."""
    steps = steps_of(plan)
    return ["{}. {} = {}".format(number, steps.get(number, ""), task["output"] if task["error"] is None else "! " + task["error"]["message"])
            for number, task in graph["tasks"].items()]


def show(listed, graph):
    metrics = graph["metrics"]
    print("Plan of {} steps, {} at once:".format(len(listed), metrics["peak_parallel"]))
    for line in listed:
        print("  " + " ".join(line.split())[:110])
    print("  {} in {:.2f}s; the longest chain took {:.2f}s, all steps one after another {:.2f}s".format(
        graph["status"], metrics["wall_ms"] / 1000, metrics["critical_path_ms"] / 1000, metrics["sequential_ms"] / 1000))


def answer(question):
    """Plans, runs and joins until the joiner answers, at most ROUNDS_MAX times. Returns what the joiner said last."""
    functions, so_far, plans, said = functions_of(llm_run()), "", [], ""
    for _ in range(ROUNDS_MAX):
        plan, graph = planned(question, functions, so_far)
        if plan in plans:
            return said + " (the planner has no other plan)"
        plans.append(plan)
        listed = results_of(plan, graph)
        show(listed, graph)
        results = "\n".join(listed)
        said = llm_query("Question: {}\n\n# Results\n{}".format(question, results), model=MODEL, system=JOINER, max_tokens=800)
        if not said.startswith("REPLAN:"):
            return said
        so_far = "\n\nAn earlier plan was not enough:\n{}\n\nIts results:\n{}\n{}".format(plan, results, said)
    return said


def main():
    form = argparse.RawDescriptionHelpFormatter
    read = argparse.ArgumentParser(prog="compiler", description=__doc__, formatter_class=form)
    read.add_argument("question", nargs="?", default=QUESTION)
    question = read.parse_args().question
    print(question + "\n")
    left = llm_budget()["usd"]["remaining"]
    # Steps that are no tool go to the default model of the run in which the plan runs.
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
