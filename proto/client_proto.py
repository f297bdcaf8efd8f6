# SPDX-License-Identifier: Apache-2.0
"""
control.proto as the client library needs it: without what only tools ask for, whose descriptors every process would have in pages of its own.
usage: client_proto.py control.proto OUT. The structs in C stay the same, as the bodies of a message share one union of pointers.
"""
import pathlib
import re
import sys

TOOLS = {30, 31, 40, 41, 90, 91, 92, 93, 99}  # bodies of Request and Reply


def split(text):
    """[(name, text)] of what stands at the top level; the name of a message or None."""
    parts, at = [], 0
    for match in re.finditer(r"^message (\w+) \{", text, re.M):
        if match.start() < at:
            continue
        end, depth = match.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        parts += [(None, text[at:match.start()]), (match[1], text[match.start():end])]
        at = end
    return parts + [(None, text[at:])]


def main():
    text = re.sub(r"//[^\n]*", "", pathlib.Path(sys.argv[1]).read_text())
    messages = {name: body for name, body in split(text) if name}
    for name in ("Request", "Reply"):
        messages[name] = re.sub(r"^ *\w+ \w+ = (\d+); *\n", lambda m: "" if int(m[1]) in TOOLS else m[0], messages[name], flags=re.M)
    used, more = set(), {"Request", "Reply"}
    while more:
        used |= more
        more = {word for name in more for word in re.findall(r"\w+", messages[name]) if word in messages} - used
    kept = [body if name is None else messages[name] for name, body in split(text) if name is None or name in used]
    pathlib.Path(sys.argv[2]).write_text("".join(kept))


main()
