"""What is asked for: tasks from a request in the coordinator's grammar, and which agent does each."""
import re

# Which agent takes an action; an unknown one goes to the first.
ACTIONS = {"glm": ["test", "docs", "implement", "refactor"],
           "codex": ["security", "review", "audit", "performance"],
           "opencode": ["analyze", "research", "search"]}
# The agent for texts that are too long for the others, and from how many tokens (four bytes each) on.
LONG_TEXTS, LONG_TOKENS = "gemini", 100_000
# Who reviews what an agent has done: never itself.
REVIEWERS = {"glm": "opencode", "codex": "glm", "opencode": "glm", "gemini": "glm"}
SAFE = {"test", "docs", "search"}


def parse(request):
    """The parts of `action "description" file… AND action …` as tasks, numbered from 1. Raises ValueError.

    A backslash at the end of a line continues it, also inside the quotes of a shell.
    """
    words = re.findall(r'"[^"]*"|[^\s"]+', re.sub(r"\\\r?\n", " ", request))
    tasks = []
    while words or not tasks:
        end = words.index("AND") if "AND" in words else len(words)
        part, words = words[:end], words[end + 1:]
        if not part or part[0].startswith('"'):
            raise ValueError("expected an action first in each part, not {!r}".format(" ".join(part)))
        described = [word.strip('"') for word in part[1:] if word.startswith('"')]
        files = [word for word in part[1:] if not word.startswith('"')]
        tasks.append(task(len(tasks) + 1, part[0].lower(), " ".join(described), files))
    return tasks


def task(number, kind, description, files):
    return {"id": number, "type": kind, "description": description or kind + " task", "files": list(dict.fromkeys(files))}


def from_plan(planned, files):
    """The tasks that a planner wrote: of each the first word that is an action, and the files that it names, else all."""
    known = {kind for kinds in ACTIONS.values() for kind in kinds}
    tasks = []
    for each in planned:
        kind = next((word for word in re.findall(r"[a-z]+", each["prompt"].lower()) if word in known), "implement")
        named = [file for file in files if re.search(r"(?<![\w./-])" + re.escape(file) + r"(?![\w/-])", each["prompt"])]
        tasks.append(task(len(tasks) + 1, kind, each["prompt"], named or files))
    return tasks


def agent_for(kind, size=0):
    """The agent of an action on files of so many bytes."""
    if size / 4 > LONG_TOKENS:
        return LONG_TEXTS
    return next((agent for agent, kinds in ACTIONS.items() if kind in kinds), "glm")
