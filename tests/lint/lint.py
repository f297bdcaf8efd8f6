#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Rules of CONTRIBUTING.md that a machine can check: lint.py [ROOT]

  - includes: a layer includes only itself and what is below it, and names the layer in quotes; some system headers
    belong to one file,
  - daemon/config.h is read by the daemon's composition root alone,
  - sources and scripts carry the SPDX line first,
  - functions of .c files have at most 60 lines, files at most 600; tests/lint/long-code lists exceptions and why,
  - no word stays behind that means something to its writer only.

Prints path:line: what is wrong, and ends with status 1 if anything is.
"""
import fnmatch
import os
import re
import sys

FUNCTION_LINES, FILE_LINES = 60, 600
ALLOW_LIST = "tests/lint/long-code"

SKIPPED_FOLDERS = {".git", "build", "__pycache__", ".cache"}
SOURCE_NAMES = ("*.c", "*.h", "*.cc", "*.py", "*.sh", "*.proto", "*.map", "Makefile", "meson.build", "meson_options.txt")
SPDX = "SPDX-License-Identifier: Apache-2.0"

# What each layer may include, itself included. Public headers (hccl/ hcomm/ acl/ hccld/) are open to all.
PROTO = {"proto"}
ENGINE = PROTO | {"engine"}
BASE = ENGINE | {"base"}
REGISTRY = BASE | {"registry"}
TRANSPORT = REGISTRY | {"transport"}
CONTROL = TRANSPORT | {"scheduler", "cluster", "control"}
MAY_INCLUDE = {
    "proto": PROTO,
    "engine": ENGINE,
    "client": ENGINE | {"client"},
    "hcclctl": PROTO | {"client", "hcclctl"},
    "daemon/base": BASE,
    "daemon/registry": REGISTRY,
    "daemon/transport": TRANSPORT,
    "daemon/scheduler": TRANSPORT | {"scheduler"},
    "daemon/cluster": TRANSPORT | {"cluster"},
    "daemon/control": CONTROL,
    "daemon": CONTROL | {"daemon"},
}
DAEMON_LAYERS = {"base", "registry", "transport", "scheduler", "cluster", "control"}
LAYERS = DAEMON_LAYERS | {"proto", "engine", "client", "hcclctl", "daemon"}
PUBLIC = {"hccl", "hcomm", "acl", "hccld"}

SOCKET = ["sys/socket.h", "sys/un.h", "netdb.h", "netinet/*", "arpa/*"]
PROTOBUF = ["protobuf-c/*", "google/protobuf*", "*.pb-c.h"]
LOOP = ["uv.h", "base/loop.h"]
VERBS = ["infiniband/*", "rdma/*"]
# Layer: headers it must not know, and why.
FORBIDDEN = {
    "engine": (SOCKET + PROTOBUF + LOOP + VERBS, "the engine knows no socket, protobuf, event loop or verbs"),
    "daemon/registry": (SOCKET + PROTOBUF + LOOP, "the registry knows no socket, protobuf or event loop"),
    "daemon/scheduler": (PROTOBUF, "the engine thread never sees protobuf"),
}
# Headers that belong to some files.
OWNED = [
    (["uv.h", "uv/*"], ["daemon/base/loop.c"]),
    (["systemd/*"], ["daemon/manager_systemd.c"]),
    (["daemon/config.h"], ["daemon/daemon.c", "daemon/main.c", "daemon/config*.c", "tests/*"]),
]

# In pieces, so that this file does not contain them.
STRAY = [
    (re.compile("/wo" + "rk/"), "a path of somebody's machine"),
    (re.compile("DEVEL" + r"OPERS\.md"), "a file that is not in this tree"),
    (re.compile(r"\b(?:TO" + "DO|FIX" + r"ME|XX" + r"X)\b"), "do it, or describe it where it is tracked"),
]

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
SIGNATURE = re.compile(r"(?:[A-Z_]+\()?(\w+)\s*[(,)]")  # TEST(name) is called name


def files_of(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in SKIPPED_FOLDERS)
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                yield os.path.relpath(path, root)


def is_any(path, patterns):
    return any(fnmatch.fnmatchcase(path, p) for p in patterns)


def layer_of(path):
    """The layer a file belongs to; None for files that are in none."""
    parts = path.split("/")
    if parts[0] == "daemon" and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0] if len(parts) > 1 and parts[0] in LAYERS else None


class Lint:
    def __init__(self, root):
        self.root = root
        self.found = []
        self.allowed = self.read_allow_list()
        self.allowed_used = set()

    def report(self, path, line, text):
        self.found.append(f"{path}:{line}: {text}")

    def read_allow_list(self):
        allowed = {}
        try:
            with open(os.path.join(self.root, ALLOW_LIST), encoding="utf-8") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            return allowed
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            name, _, reason = line.partition(" ")
            if not reason.strip():
                self.report(ALLOW_LIST, number, f"{name} has no reason")
            allowed[name] = number
        return allowed

    def is_allowed(self, name):
        self.allowed_used.add(name)
        return name in self.allowed

    def check_include(self, path, number, quote, header):
        first = header.split("/")[0] if "/" in header else None
        layer = layer_of(path)
        in_daemon = path.startswith("daemon/")
        for patterns, owners in OWNED:
            # daemon/ is on the include path: its files have a short name, too
            if is_any(header, patterns) or ("daemon/" + header in patterns and in_daemon):
                if not is_any(path, owners):
                    self.report(path, number, f"{header} may be included by {', '.join(owners)} only")
        if layer in FORBIDDEN and is_any(header, FORBIDDEN[layer][0]):
            self.report(path, number, f"{header}: {FORBIDDEN[layer][1]}")
        if layer is None or (first is None and quote == "<"):
            return
        if layer not in MAY_INCLUDE:
            self.report(path, number, f"{layer} is no layer; tests/lint/lint.py lists them")
            return
        if quote == '"' and (first is None or ".." in header.split("/")):
            self.report(path, number, f'"{header}" does not name its layer, as in "engine/{os.path.basename(header)}"')
            return
        if first == "daemon" and header.split("/")[1] in DAEMON_LAYERS:
            self.report(path, number, f'"{header}": within the daemon it is "{header.partition("/")[2]}"')
            first = header.split("/")[1]
        if first in LAYERS:
            if quote == "<":
                self.report(path, number, f"<{header}> is ours: use quotes")
            if first not in MAY_INCLUDE[layer]:
                self.report(path, number, f"{layer} must not include {header}: {first} is not below it")
        elif quote == '"' and first not in PUBLIC:
            self.report(path, number, f'"{header}": there is no layer {first}')

    def check_lengths(self, path, lines):
        if len(lines) > FILE_LINES and not self.is_allowed(path):
            self.report(path, len(lines), f"{len(lines)} lines, the limit is {FILE_LINES} ({ALLOW_LIST})")
        start = None
        for number, line in enumerate(lines, 1):
            if line == "{":
                start = number
            elif line == "}" and start is not None:
                name = self.function_name(lines, start)
                length = number - start + 1
                if length > FUNCTION_LINES and not self.is_allowed(f"{path}:{name}"):
                    self.report(path, start, f"{name}() has {length} lines, the limit is {FUNCTION_LINES} ({ALLOW_LIST})")
                start = None

    @staticmethod
    def function_name(lines, brace):
        """The function whose body opens in line @brace: the last line at the margin before it has its name."""
        for line in reversed(lines[: brace - 1]):
            if line and not line[0].isspace():
                match = SIGNATURE.search(line)
                return match.group(1) if match else "?"
        return "?"

    def check_file(self, path):
        with open(os.path.join(self.root, path), "rb") as file:
            data = file.read()
        if b"\0" in data:
            return
        text = data.decode("utf-8", "replace")
        lines = text.splitlines()
        name = os.path.basename(path)
        if is_any(name, SOURCE_NAMES) or text.startswith("#!"):
            head = lines[1:2] if text.startswith("#!") else lines[:1]
            if not head or SPDX not in head[0]:
                self.report(path, 1, f"the first line (the second, after #!) must hold {SPDX}")
        for number, line in enumerate(lines, 1):
            for pattern, why in STRAY:
                match = pattern.search(line)
                if match:
                    self.report(path, number, f"{match.group(0)}: {why}")
        if name.endswith((".c", ".h", ".cc")):
            for number, line in enumerate(lines, 1):
                match = INCLUDE.match(line)
                if match:
                    self.check_include(path, number, *match.groups())
        if name.endswith(".c"):
            self.check_lengths(path, lines)

    def run(self):
        for path in files_of(self.root):
            if path != "LICENSE":
                self.check_file(path)
        for name, number in self.allowed.items():
            if name not in self.allowed_used:
                self.report(ALLOW_LIST, number, f"{name} needs no exception")
        return self.found


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    found = Lint(root).run()
    for line in found:
        print(line)
    if found:
        print(f"{len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
