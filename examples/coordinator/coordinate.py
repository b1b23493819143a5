"""A request from its tasks to its proposal: one batch of agents, whose edits other agents review."""
import json
import os
import threading

import agents
import edits
from documents import Folder, new_id
from fanout import llm_cancel, llm_plan, llm_stream
from request import agent_for, from_plan, parse

MAX_WORKERS = 4
DEADLINE_S = float(os.environ.get("COORDINATOR_DEADLINE_S") or 300)


def tasks_of(given):
    if given.request and not given.task:
        return parse(given.request)
    if not given.task:
        raise ValueError("expected a request, or --task with a text")
    agents.sizes_of(given.files)
    how = "Begin each task's prompt with one of review, audit, test, docs, implement, refactor, and name its files."
    goal = "{}\nFiles: {}\n{}".format(given.task, ", ".join(given.files) or "none", how)
    planned = llm_plan(goal, run=False, **({"planner_model": agents.MODEL} if agents.MODEL else {}))
    return from_plan(planned["rounds"][-1]["tasks"], given.files)


def coordinate(given):
    tasks = tasks_of(given)
    assigned = {task["id"]: agent_for(task["type"], agents.sizes_of(task["files"])) for task in tasks}
    folder = Folder(given.output, new_id())
    folder.manifest(tasks, "in_progress")
    results, found = {}, []
    files = sorted({file for task in tasks for file in task["files"]})
    print("{} tasks on {}: {}".format(len(tasks), ", ".join(files) or "no file", folder.path))
    sent = []
    for task in tasks:
        agent = assigned[task["id"]]
        folder.started(task, agent)
        problem = agents.missing(agent)
        if problem is None:
            sent.append(task)
        else:
            end_of(folder, results, task, agent, None, problem, 0.0)
    needs_worker = any(agents.is_pull(assigned[task["id"]]) for task in sent)
    worker = agents.start_worker(given.width, given.tty) if needs_worker else None
    try:
        conflicts, speedup = send(given, folder, sent, assigned, results, found) if sent else ([], None)
        found.sort(key=lambda edit: edit["task"])
        edits.judge(found, ".")
        review(given, [edit for edit in found if edit["problem"] is None])
    finally:
        if worker:
            worker.stdin.close()
            worker.wait()
    folder.manifest(tasks, "completed")
    path, proposal = folder.proposal(tasks, results, found, conflicts)
    conclude(path, proposal, results, speedup)
    return 0 if all(result["error"] is None for result in results.values()) else 1


def send(given, folder, tasks, assigned, results, found):
    """One batch for all tasks. Shows each as it ends; at the deadline what has not ended is cancelled."""
    by_id = {str(task["id"]): task for task in tasks}
    calls = [agents.call_of(task, assigned[task["id"]]) for task in tasks]
    group, timer, conflicts, speedup = None, None, [], None
    options = {"concurrency": MAX_WORKERS if given.parallel else 1, "validate_independence": given.conflicts,
               "error_style": "null", "aggregate": {"strategy": "merge"}, "idempotency_key": "coordinator-" + folder.path.name}
    try:
        for event in llm_stream(calls, **options):
            if event["type"] == "group_started":
                group, conflicts = event["id"], event.get("conflicts", [])
                timer = threading.Timer(DEADLINE_S, llm_cancel, [group, "abort"])
                timer.daemon = True
                timer.start()
                for conflict in conflicts:
                    print("  conflict: {} is named by tasks {}".format(conflict["file"], ", ".join(conflict["items"])))
            elif event["type"] == "slot":
                task = by_id[event["id"]]
                agent = assigned[task["id"]]
                error = event["error"] and "{code}: {message}".format(**event["error"])
                seconds = round((event.get("latency_ms") or 0) / 1000, 3)
                output = None if error else event["result"]
                found += end_of(folder, results, task, agent, output, error, seconds)
                if given.verbose and output:
                    print("      " + output.replace("\n", "\n      "))
            elif event["type"] == "group_completed":
                speedup = event["metrics"]["speedup"]
    finally:
        if timer:
            timer.cancel()
    return conflicts, speedup


def end_of(folder, results, task, agent, output, error, seconds):
    """Writes and shows what became of a task. Returns its edits."""
    summary, found = agents.edits_of(task, agent, output) if error is None else ("", [])
    results[task["id"]] = {"agent": agent, "output": output, "error": error, "summary": summary, "edits": found}
    folder.ended(task, agent, output, error, seconds)
    show_end(task, agent, results[task["id"]], seconds)
    return found


def show_end(task, agent, result, seconds):
    ended = result["error"] or "{} edits in {:.2f}s".format(len(result["edits"]), seconds)
    mark = "!" if result["error"] else "✓"
    print("  {} {:<3}{:<10}{:<9}{}".format(mark, task["id"], task["type"], agent, ended), flush=True)


def review(given, found):
    """Has each edit reviewed by another agent. A review that failed approves nothing."""
    by_id = {edit["id"]: edit for edit in found}
    calls = [agents.review_of(edit, edit["agent"]) for edit in found]
    for event in llm_stream(calls, concurrency=MAX_WORKERS if given.parallel else 1, error_style="null"):
        if event["type"] != "slot":
            continue
        edit = by_id[event["id"]]
        failed = event["error"] and {"approved": False, "reason": event["error"]["message"]}
        said = failed or json.loads(event["result"])
        edit["review"] = {"by": agents.reviewer_of(edit["agent"]), **said}


def conclude(path, proposal, results, speedup):
    done = sum(result["error"] is None for result in results.values())
    faster = "" if speedup is None else ", {:.1f}x faster than one after another".format(speedup)
    print("{} of {} completed{}".format(done, len(results), faster))
    for edit in proposal["edits"]:
        print("  edit {id} of {path} by {agent}: {why} ({})".format(edits.state_of(edit), **edit))
    print("Proposal: {}\n  safe tasks: {}, to approve: {}".format(path, proposal["safe_changes"], proposal["risky_changes"]))
