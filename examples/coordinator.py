"""Agents of several kinds work on one request: `review "security issues" auth.py AND test auth.py AND docs README.md`.

    FANOUT_URL=… FANOUT_TOKEN=… python3 examples/coordinator.py 'review auth.py AND test auth.py' [--conflicts reject]
    … coordinator.py worker               serves the items of command-line agents, until it is stopped
    … coordinator.py monitor GROUP        what a request has done so far
    … coordinator.py writes               50 writers write ten times each: nothing is lost or duplicated

The first word of each part is an action, which decides on the agent; a quoted text describes it; the rest are files. Two parts
that name one file conflict: the gateway says so before it sends anything. All parts are one batch, so the budget, the limits and
the log are those of the run. At the deadline the parts that have ended are what there is. Their status and result are written as
documents, and the proposal says which changes are safe to apply.

FANOUT_MODEL selects the model of the agents that have an API; the default is the gateway's simulated model. FANOUT_PULL_MODEL
names a model of an upstream of the kind `pull`: its agents are programs, CODEX_COMMAND or a stand-in, which a worker starts.
"""
import argparse
import concurrent.futures
import contextlib
import datetime
import http.client
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time
from urllib.parse import urlsplit

MODEL = os.environ.get("FANOUT_MODEL") or "sim/echo?ms=200"
PULL_MODEL = os.environ.get("FANOUT_PULL_MODEL")
STAND_IN = [sys.executable, "-c", "import sys; print('Looked at: ' + sys.stdin.read())"]
CODEX = shlex.split(os.environ.get("CODEX_COMMAND") or "") or STAND_IN
MAX_WORKERS = 4
DEADLINE_S = float(os.environ.get("COORDINATOR_DEADLINE_S") or 300)
LEASE_MS = int(os.environ.get("COORDINATOR_LEASE_MS") or 15_000)
# Which agent takes an action; an unknown one goes to the first.
ACTIONS = {"glm": ["test", "docs", "implement", "refactor"],
           "codex": ["security", "review", "audit", "performance"],
           "opencode": ["analyze", "research", "search"]}
SAFE = {"test", "docs", "search"}


class GatewayError(Exception):
    """A request that the gateway refused, in its words."""


@contextlib.contextmanager
def reply_to(method, path, body=None, headers=None):
    """Sends a request with the run's token, and yields the reply, which may be a stream."""
    if not os.environ.get("FANOUT_TOKEN"):
        raise GatewayError("FANOUT_TOKEN is not set: open a run, for example with npm run token")
    base = urlsplit(os.environ.get("FANOUT_URL") or "http://127.0.0.1:8787")
    connect = http.client.HTTPSConnection if base.scheme == "https" else http.client.HTTPConnection
    sent = {"authorization": "Bearer " + os.environ["FANOUT_TOKEN"], "content-type": "application/json", **(headers or {})}
    with contextlib.closing(connect(base.netloc, timeout=660)) as connection:
        connection.request(method, base.path.rstrip("/") + path, body=json.dumps(body) if body else None, headers=sent)
        reply = connection.getresponse()
        if reply.status >= 300:
            raise GatewayError("{code}: {message}".format(**json.loads(reply.read())["error"]))
        yield reply


def gateway(method, path, body=None, headers=None):
    with reply_to(method, path, body, headers) as reply:
        return json.loads(reply.read())


def parse(request):
    """The parts of a request as tasks, numbered from 1. Raises ValueError for a part without an action."""
    words = re.findall(r'"[^"]*"|\S+', request)
    tasks = []
    while words or not tasks:
        end = words.index("AND") if "AND" in words else len(words)
        part, words = words[:end], words[end + 1:]
        if not part or part[0].startswith('"'):
            raise ValueError("expected an action first in each part, not {!r}".format(" ".join(part)))
        kind = part[0].lower()
        described = [word.strip('"') for word in part[1:] if word.startswith('"')]
        files = [word for word in part[1:] if not word.startswith('"')]
        tasks.append({"id": len(tasks) + 1, "type": kind, "description": " ".join(described) or kind + " task",
                      "files": files})
    return tasks


def agent_for(kind):
    return next((agent for agent, kinds in ACTIONS.items() if kind in kinds), "glm")


def manifest_of(tasks):
    now = datetime.datetime.now()
    return {"task_id": now.strftime("%Y%m%d_%H%M%S"), "created_at": now.isoformat(), "tasks": tasks,
            "locked_files": sorted({file for task in tasks for file in task["files"]}), "status": "in_progress"}


def item_of(task):
    """The call of a task. It names its files, by which the gateway finds conflicts."""
    agent = agent_for(task["type"])
    model = PULL_MODEL if agent == "codex" and PULL_MODEL else MODEL
    prompt = "{}: {}\nFiles: {}".format(task["type"], task["description"], ", ".join(task["files"]) or "none")
    return {"id": str(task["id"]), "model": model, "prompt": prompt, "max_tokens": 800, "files": task["files"]}


def dispatch(manifest, policy):
    """One batch for all tasks: sent once, however often this is called for a manifest. Returns its state."""
    batch = {"items": [item_of(task) for task in manifest["tasks"]], "concurrency": MAX_WORKERS, "error_style": "null",
             "validate_independence": policy, "aggregate": {"strategy": "merge"}}
    key = "coordinator-" + manifest["task_id"]
    return gateway("POST", "/batch", batch, {"prefer": "respond-async", "idempotency-key": key})


def follow(group, kinds):
    """Shows each task as it ends. At the deadline what has not ended is cancelled: the rest is what there is."""
    due, is_cancelled = time.monotonic() + DEADLINE_S, False
    with reply_to("GET", "/groups/{}/results".format(group), headers={"accept": "application/x-ndjson"}) as lines:
        # The gateway sends an empty line every ten seconds.
        for line in lines:
            if time.monotonic() > due and not is_cancelled:
                gateway("DELETE", "/groups/" + group)
                is_cancelled = True
            event = json.loads(line) if line.strip() else {}
            if event.get("type") == "slot":
                kind = kinds[event["id"]]
                shown = event["error"]["code"] if event["error"] else "{:.2f}s".format(event["latency_ms"] / 1000)
                print("  {} {:<3}{:<10}{:<9}{}".format("!" if event["error"] else "✓", event["id"], kind, agent_for(kind), shown))


def documents_of(group):
    """The status and the result of every task, and what a monitor shows."""
    return gateway("GET", "/groups/{}/report?format=coordinator".format(group))


def write_documents(folder, group, manifest, conflicts):
    """One file for each status and result, the manifest, and the proposal: what is safe, and what a person must approve."""
    folder.mkdir(parents=True, exist_ok=True)

    def write(name, document):
        (folder / (name + ".json")).write_text(json.dumps(document, indent=2), encoding="utf-8")

    changes = {"safe_changes": [], "risky_changes": []}
    for task, document in zip(manifest["tasks"], documents_of(group)["tasks"]):
        for part in ("status", "result"):
            agent = agent_for(task["type"])
            write("{}_{}_{}".format(agent, task["id"], part), {**document[part], "agent": agent})
        if document["result"]["success"]:
            changes["safe_changes" if task["type"] in SAFE else "risky_changes"].append(task["id"])
    write("manifest", {**manifest, "status": "completed"})
    proposal = {"task_id": manifest["task_id"], "completed_at": datetime.datetime.now().isoformat(),
                "total_tasks": len(manifest["tasks"]), **changes, "conflicts": conflicts, "output_dir": str(folder)}
    write("proposal", proposal)
    return proposal


def coordinate(request, policy, folder):
    manifest = manifest_of(parse(request))
    kinds = {str(task["id"]): task["type"] for task in manifest["tasks"]}
    opened = dispatch(manifest, policy)
    print("{} tasks on {}: {}".format(len(kinds), ", ".join(manifest["locked_files"]) or "no file", opened["id"]))
    for conflict in opened["conflicts"]:
        print("  conflict: {} is named by tasks {}".format(conflict["file"], ", ".join(conflict["items"])))
    worker = start_worker() if PULL_MODEL else None
    try:
        follow(opened["id"], kinds)
    finally:
        if worker:
            worker.terminate()
    ended = gateway("GET", "/groups/" + opened["id"])
    proposal = write_documents(folder, opened["id"], manifest, opened["conflicts"])
    print("{}: {} of {} completed, {:.1f}x faster than one after another".format(
        ended["status"], ended["counts"]["completed"], len(kinds), ended["metrics"]["speedup"]))
    print("  safe: {safe_changes}, to approve: {risky_changes}, in {output_dir}".format(**proposal))
    print("  all outputs as one: {} characters".format(len(ended["aggregation"]["output"] or "")))
    return 0 if ended["status"] == "completed" else 1


def work_on(run, item):
    """Starts the agent's program for an item, keeps the lease while it runs, and delivers what it prints."""
    with subprocess.Popen(CODEX, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        prompt = unsent = item["prompt"] or json.dumps(item["request"])
        while True:
            try:
                text, _ = program.communicate(unsent, timeout=LEASE_MS / 3000)
                break
            except subprocess.TimeoutExpired:
                unsent = None
                kept = gateway("POST", run + "/heartbeat", {"lease_ids": [item["lease_id"]], "lease_ms": LEASE_MS})
                if kept["leases"][0]["state"] != "active":
                    program.kill()
                    return
    failed = {"error": {"message": "the agent ended with {}".format(program.returncode), "retryable": False}}
    used = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4}
    answer = failed if program.returncode else {"text": text.strip(), "usage": used}
    # A lease that was lost is another worker's: its answer counts.
    with contextlib.suppress(GatewayError):
        gateway("POST", run + "/complete", {"lease_id": item["lease_id"], **answer})


def start_worker():
    """Another process, whose token can do nothing but the work of this run."""
    granted = gateway("POST", "/runs/{}/worker-token".format(gateway("GET", "/run")["id"]))
    env = {**os.environ, "FANOUT_TOKEN": granted["token"], "COORDINATOR_RUN": granted["run_id"]}
    return subprocess.Popen([sys.executable, __file__, "worker"], env=env)


def serve():
    run = "/runs/" + (os.environ.get("COORDINATOR_RUN") or gateway("GET", "/run")["id"])
    while True:
        claimed = gateway("POST", run + "/claim", {"max": 1, "wait_ms": 20_000, "lease_ms": LEASE_MS})
        for item in claimed["items"]:
            work_on(run, item)


def write_all(writers=50, writes=10):
    """Writes from many threads at once, and counts what arrived in the run's log."""

    def write(writer):
        for at in range(writes):
            gateway("POST", "/log", {"event_type": "agent_write", "data": "{}-{}".format(writer, at)})

    with concurrent.futures.ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, range(writers)))
    with reply_to("GET", "/runs/{}/log".format(gateway("GET", "/run")["id"])) as log:
        events = [json.loads(line) for line in log]
    found = [event["data"] for event in events if event["event_type"] == "agent_write"]
    lost, doubled = writers * writes - len(set(found)), len(found) - len(set(found))
    print("{} writes by {} writers: {} lost, {} duplicated".format(writers * writes, writers, lost, doubled))
    return 1 if lost or doubled else 0


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("request", help="a request, or worker, writes, or monitor with a group")
    arguments.add_argument("group", nargs="?")
    arguments.add_argument("--conflicts", choices=["report", "reject", "serialize"], default="report", help="tasks that name one file")
    arguments.add_argument("--output", type=pathlib.Path, default=pathlib.Path("coordinator-output"), help="folder of documents")
    given = arguments.parse_args()
    if given.request == "monitor":
        return print(json.dumps(documents_of(given.group)["visibility"]))
    commands = {"worker": serve, "writes": write_all}
    return commands.get(given.request, lambda: coordinate(given.request, given.conflicts, given.output))()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (GatewayError, ValueError) as error:
        sys.exit(str(error))
