"""Where a stand-in's sandbox is: a folder of its own, in which real processes run with the variables given and no others."""
import os
import shutil
import subprocess
import tempfile


class Place:
    def __init__(self, env):
        self.folder = tempfile.mkdtemp(prefix="fanout-sandbox-")
        self.env = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", **env}

    def path(self, path):
        """An absolute path of the sandbox is one below its folder."""
        return os.path.join(self.folder, path.lstrip("/"))

    def write(self, path, data):
        os.makedirs(os.path.dirname(self.path(path)) or self.folder, exist_ok=True)
        with open(self.path(path), "wb") as file:
            file.write(data)

    def run(self, *command, workdir="/"):
        os.makedirs(self.path(workdir), exist_ok=True)
        where = {"cwd": self.path(workdir), "env": self.env}
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, **where)

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def only(given, allowed):
    """Refuses what the real call would not take, or what was not checked against it."""
    unknown = set(given) - set(allowed)
    if unknown:
        raise TypeError(f"the stand-in does not know {sorted(unknown)}")
