#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Writes a C table of all public functions and the kinds of their parameters, as gcc sees them in the headers:
api_calls.py OUTPUT
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
INCLUDE, HEADERS = ROOT / "include", ROOT / "tests/headers"
DECLARATION = re.compile(r"/\* (?P<file>.*?):\d+:\w+ \*/ extern (?P<result>.*?)(?P<name>\w+) \((?P<parameters>.*)\);")
HANDLES = {"aclrtStream": "STREAM", "HcclComm": "COMM", "aclrtEvent": "EVENT", "aclrtContext": "CONTEXT",
           "aclrtNotify": "NOTIFY", "void *": "BUFFER", "const void *": "BUFFER"}
CODES = ("aclError", "HcclResult", "HcommResult")


def declarations():
    with tempfile.NamedTemporaryFile("r") as listing:
        subprocess.run(["gcc", "-std=c11", f"-I{INCLUDE}", f"-I{HEADERS}", "-x", "c", "-", "-S", "-o", "/dev/null", "-aux-info",
                        listing.name], input='#include "public.h"\n', text=True, check=True)
        for line in listing:
            match = DECLARATION.match(line)
            path = pathlib.Path(match["file"]).resolve() if match else None
            if path and INCLUDE in path.parents:
                yield match["name"], match["result"].strip(), match["parameters"].strip()


def kind(parameter):
    parameter = parameter.strip()
    if parameter in HANDLES:
        return "KIND_" + HANDLES[parameter]
    if parameter.rstrip("const ").endswith("*"):
        return "KIND_POINTER"
    if parameter.removeprefix("const ").strip() in ("size_t", "uint64_t", "int64_t"):
        return "KIND_SIZE"
    return f"KIND_OF({parameter.removeprefix('const ').strip()})"


def main():
    rows = []
    for name, result, parameters in sorted(set(declarations())):
        if "..." in parameters or "(*" in parameters:
            continue  # none of these is more than a text
        kinds = [] if parameters == "void" else [kind(p) for p in parameters.split(",")]
        rows.append(f'\t{{ "{name}", (void (*)(void)){name}, {int(result in CODES)}, {len(kinds)}, {{ {", ".join(kinds) or "0"} }} }},')
    pathlib.Path(sys.argv[1]).write_text('#include "public.h"\n#include "api_calls.h"\n\nconst struct api_call api_calls[] = {\n' +
                                         "\n".join(rows) + "\n};\nconst unsigned int api_call_count = "
                                         "sizeof(api_calls) / sizeof(api_calls[0]);\n", encoding="utf-8")


main()
