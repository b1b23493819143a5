"""Stands for modal 1.6.4: the calls of docs/sandboxes.md, and no others."""
from _place import Place


class App:
    @staticmethod
    def lookup(name, *, create_if_missing=False):
        return App()


class Image:
    @staticmethod
    def debian_slim():
        return Image()


class _Stream:
    def __init__(self, text):
        self._text = text

    def read(self):
        return self._text


class _Process:
    def __init__(self, done):
        self.stdout, self.stderr, self.returncode = _Stream(done.stdout), _Stream(done.stderr), done.returncode


class _Filesystem:
    def __init__(self, place):
        self._place = place

    def write_text(self, data, remote_path):
        if not remote_path.startswith("/"):
            raise ValueError("expected an absolute path")
        self._place.write(remote_path, data.encode())


class Sandbox:
    @staticmethod
    def create(*args, app=None, image=None, env=None, outbound_domain_allowlist=None, timeout=300):
        if not isinstance(app, App) or not isinstance(image, Image) or isinstance(outbound_domain_allowlist, str):
            raise TypeError("expected an App, an Image and a list of domains")
        return Sandbox(env or {})

    def __init__(self, env):
        self._place = Place(env)
        self.filesystem = _Filesystem(self._place)

    def exec(self, *args, workdir=None):
        return _Process(self._place.run(*args, workdir=workdir or "/"))

    def terminate(self):
        self._place.remove()
