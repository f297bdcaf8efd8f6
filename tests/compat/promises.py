# SPDX-License-Identifier: Apache-2.0
"""
What a release has put into messages, shared memory and records keeps its place: compares the sources of two releases.

Of control.proto every field and enumerator of the old release must be there with its number and type. Of the headers of
shared memory and of the registry's records every struct keeps offset and size of each field, every enumerator its value.
Words that are called reserved may get a name; things may be added, and a struct that has a page of its own may grow.
"""
import re
import subprocess

HEADERS = ["proto/ring.h", "proto/pair.h", "proto/yard.h", "proto/region.h", "daemon/registry/record.h"]
ENUMS = ["proto/status.h", *HEADERS]
# have a page of their own, and may grow in it
PAGES = {"session_region", "beacon"}
# the name went to another struct; what there was before is known by this one
RENAMED = {"pair_ring": "pair_ring_first"}
# enumerators that count
COUNTS = {"CAUSE_COUNT", "RECORD_KINDS"}


def strip_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


def proto_fields(text):
    """{(message, name): (type, number)} of messages, enums and oneofs, nested ones by their path."""
    fields, path = {}, []
    for token in re.findall(r"(?:message|enum|oneof)\s+\w+\s*\{|\}|[\w.]+(?:\s+[\w.]+)*\s*=\s*\w+\s*;", strip_comments(text)):
        if token == "}":
            path.pop()
        elif token.endswith("{"):
            kind, name = token[:-1].split()
            path.append("" if kind == "oneof" else name)  # fields of a oneof belong to the message
        else:
            left, number = token.rstrip("; ").split("=")
            words = left.split()
            fields[".".join(filter(None, path)), words[-1]] = (" ".join(words[:-1]), number.strip())
    return fields


def compare_proto(old, new):
    old_fields = proto_fields((old / "proto/control.proto").read_text())
    new_fields = proto_fields((new / "proto/control.proto").read_text())
    if len(old_fields) < 100:
        return [f"control.proto: only {len(old_fields)} fields found"]
    return [f"control.proto: {message}.{name} was {' = '.join(value)}, now {' = '.join(new_fields.get((message, name), ('gone',)))}"
            for (message, name), value in old_fields.items() if new_fields.get((message, name)) != value]


def struct_fields(text):
    """[(struct, field)] of the structs whose members are plain declarations; what is in a nested union by its name."""
    found = []
    for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\}", strip_comments(text), re.M | re.S):
        for declaration in re.sub(r"struct \{|union \{|\}", "", body).split(";"):
            declaration = re.sub(r"_Alignas\([^)]*\)|\[[^\]]*\]", "", declaration).strip()
            if not declaration:
                continue
            first, *more = declaration.split(",")
            for word in [first.split()[-1], *more]:
                field = re.match(r"\**(\w+)", word.strip())[1]
                if not field.startswith("reserved"):
                    found.append((name, field))
    return found


def enumerators(text):
    names = []
    for body in re.findall(r"\benum (?:\w+ )?\{(.*?)\}", strip_comments(text), re.S):
        names += re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"=[^,]*", "", body))
    return [name for name in names if name not in COUNTS]


def print_layout(release, program, structs, names, compiler, renamed):
    """{what: number} as the compiler sees it in the tree @release, by the names of before it @renamed structs."""
    lines = [f'#include "{header}"' for header in ENUMS] + ["#include <stddef.h>", "#include <stdio.h>", "int main(void) {"]
    for struct in sorted({struct for struct, _ in structs}):
        lines.append(f'printf("sizeof(struct {struct}) %zu\\n", sizeof(struct {renamed.get(struct, struct)}));')
    for struct, field in structs:
        name = renamed.get(struct, struct)
        lines.append(f'printf("{struct}.{field} %zu\\n", offsetof(struct {name}, {field}));')
        lines.append(f'printf("sizeof({struct}.{field}) %zu\\n", sizeof(((struct {name} *)0)->{field}));')
    lines += [f'printf("{name} %d\\n", (int){name});' for name in names]
    program.with_suffix(".c").write_text("\n".join(lines + ["return 0; }", ""]))
    result = subprocess.run([*compiler, "-std=gnu17", "-D_GNU_SOURCE", f"-I{release}", f"-I{release}/include", f"-I{release}/daemon",
                             program.with_suffix(".c"), "-o", program], capture_output=True, text=True, check=False)
    if result.returncode:
        return None, result.stderr
    out = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return dict(line.rsplit(" ", 1) for line in out.splitlines()), ""


def compare_layouts(old, new, directory, compiler):
    structs, names = [], []
    for header in HEADERS:
        structs += struct_fields((old / header).read_text())
    for header in ENUMS:
        names += enumerators((old / header).read_text())
    # what ends with an array without a size has none that sizeof could tell
    structs = [(s, f) for s, f in structs if (s, f) not in (("comm_region", "members"), ("eager_pool", "heads"))]
    before, error = print_layout(old, directory / "layout-old", structs, names, compiler, {})
    if before is None or len(before) < 200:
        return [f"the layout of the old release: {error or len(before)}"]
    renamed = {name: later for name, later in RENAMED.items() if later not in {struct for struct, _ in structs}}
    after, error = print_layout(new, directory / "layout-new", structs, names, compiler, renamed)
    if after is None:
        return [f"something of the old release is gone:\n{error}"]
    grown = {f"sizeof(struct {name})" for name in PAGES if int(after[f"sizeof(struct {name})"]) <= 4096}
    return [f"{what} was {number}, now {after[what]}" for what, number in before.items()
            if after[what] != number and what not in grown]


def broken(old, new, directory, compiler):
    """What the tree @new has changed of what the tree @old had. A list of texts."""
    return compare_proto(old, new) + compare_layouts(old, new, directory, compiler)
