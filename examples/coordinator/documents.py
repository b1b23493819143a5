"""The documents of a request: a folder of its own with a status and a result for each task, and proposals."""
import datetime
import json
import pathlib
import random
import secrets
import time

from request import SAFE

ENDED = ("completed", "error")


def now():
    return datetime.datetime.now().isoformat()


def new_id():
    """The time, and a random part: two requests of one second have two folders."""
    return "{:%Y%m%d_%H%M%S}_{}".format(datetime.datetime.now(), secrets.token_hex(2))


class Folder:
    """`OUTPUT/TASK_ID`: manifest, `{agent}_{id}_status`, `{agent}_{id}_result` and what a monitor reads."""

    def __init__(self, output, task_id):
        self.path = pathlib.Path(output) / task_id
        self.path.mkdir(parents=True)
        self.agent_ids = {}

    def write(self, name, document):
        path = self.path / (name + ".json")
        # A monitor never reads half a document.
        part = path.with_suffix(".part")
        part.write_text(json.dumps(document, indent=2), encoding="utf-8")
        part.replace(path)
        return path

    def manifest(self, tasks, status, **more):
        files = sorted({file for task in tasks for file in task["files"]})
        self.write("manifest", {"task_id": self.path.name, "created_at": more.pop("created_at", now()), "tasks": tasks,
                                "locked_files": files, "status": status, **more})

    def started(self, task, agent):
        """The status of a task before it is sent."""
        number = str(task["id"])
        self.agent_ids[number] = "{}_{}_{}".format(agent, int(time.time()), random.randint(1000, 9999))
        self.status(task, agent, status="running", started_at=now(), completed_at=None, duration=None)

    def status(self, task, agent, **fields):
        number = str(task["id"])
        name = "{}_{}_status".format(agent, number)
        path = self.path / (name + ".json")
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self.write(name, {**known, "agent": agent, "agent_id": self.agent_ids[number], "task_id": number, **fields})

    def ended(self, task, agent, output, error, duration):
        result = {"agent": agent, "task_id": str(task["id"]), "success": error is None, "output": output, "error": error,
                  "duration": duration}
        self.write("{}_{}_result".format(agent, task["id"]), result)
        self.status(task, agent, status="error" if error else "completed", completed_at=now(), duration=duration)

    def proposal(self, tasks, results, edits, conflicts):
        """`proposal_<time>.json`: every change with its agent, its output, its review and what it conflicts with."""
        done = [task["id"] for task in tasks if results[task["id"]]["error"] is None]
        kinds = {task["id"]: task["type"] for task in tasks}
        document = {"task_id": self.path.name, "completed_at": now(), "total_tasks": len(tasks),
                    "safe_changes": [each for each in done if kinds[each] in SAFE],
                    "risky_changes": [each for each in done if kinds[each] not in SAFE],
                    "conflicts": conflicts, "edits": edits, "output_dir": str(self.path), "root": str(pathlib.Path.cwd()),
                    "outputs": {str(number): {"agent": result["agent"], "output": result["output"], "error": result["error"]}
                                for number, result in results.items()}}
        return self.write("proposal_{:%Y%m%d_%H%M%S}".format(datetime.datetime.now()), document), document


def latest(output):
    """The folder of the newest request."""
    folders = [manifest.parent for manifest in pathlib.Path(output).glob("*/manifest.json")]
    if not folders:
        raise ValueError("no request has been made yet: {} has no manifest".format(output))
    return max(folders, key=lambda each: (each / "manifest.json").stat().st_ctime)


def visibility(folder):
    """What a monitor shows: whether the agents work, how far they are, and what was said last."""
    statuses = [json.loads(path.read_text()) for path in sorted(folder.glob("*_status.json"))]
    results = sorted(folder.glob("*_result.json"), key=lambda path: path.stat().st_mtime)
    ended = [each for each in statuses if each["status"] in ENDED]
    failed = any(each["status"] == "error" for each in statuses)
    last = json.loads(results[-1].read_text()) if results else {}
    active = len(ended) < len(statuses)
    return {"status": "active" if active else "error" if failed else "idle", "task": folder.name,
            "progress": round(len(ended) / len(statuses), 2) if statuses else 0.0,
            "agents": {"{} {}".format(each["agent"], each["task_id"]): each["status"] for each in statuses},
            "last_output": (last.get("output") or last.get("error") or "")[:200]}
