#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table api.txt, the headers and the built libraries agree: each header declares exactly its
functions, each library exports exactly its functions, strong and unversioned, and exactly the
functions that CANN declares weak are weak references in a program.

Usage: api_table.py LIBRARY_DIRECTORY"""

import pathlib
import re
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
include = here.parent.parent / 'include'
failures = []


def check_equal(what, expected, found):
    for name in sorted(expected - found):
        failures.append(f'{what}: {name} is missing')
    for name in sorted(found - expected):
        failures.append(f'{what}: {name} is not in api.txt')


def read_table():
    rows = []
    for line in (here / 'api.txt').read_text().splitlines():
        if not line.startswith('#'):
            name, header, libraries, since, weak = line.split()
            assert weak in ('weak', '-') and re.fullmatch(r'8\.5|9\.[012]|hccld', since), line
            rows.append((name, header, libraries.split(','), weak == 'weak'))
    return rows


def compile_c(source, *options):
    subprocess.run(['gcc', '-std=c11', f'-I{include}', f'-I{here}', '-x', 'c', '-', *options],
                   input=source, text=True, check=True)


def declared():
    """Pairs (name, header) of the functions that the public headers declare, as gcc sees them."""
    pattern = re.compile(r'/\* (?P<file>.*?):\d+:\w+ \*/ extern .*?\b(?P<name>\w+) \(')
    with tempfile.NamedTemporaryFile('r') as listing:
        compile_c('#include "public.h"\n', '-S', '-o', '/dev/null', '-aux-info', listing.name)
        for line in listing:
            match = pattern.match(line)
            path = pathlib.Path(match['file']).resolve() if match else None
            if path and include in path.parents:
                yield match['name'], str(path.relative_to(include))


def undefined(names):
    """The undefined symbols of a program that uses every function: {name: is it weak}."""
    uses = ',\n'.join(f'(void (*)(void)){name}' for name in names)
    source = f'#include "public.h"\nextern void (*const uses[])(void);\nvoid (*const uses[])(void) = {{\n{uses}\n}};\n'
    with tempfile.NamedTemporaryFile(suffix='.o') as output:
        compile_c(source, '-c', '-o', output.name)
        listing = subprocess.run(['nm', '-u', output.name], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {name: kind in 'wv' for kind, name in (line.split() for line in listing.splitlines())}


def exported(library):
    """Symbols that a library defines; fails for those that are not strong functions."""
    listing = subprocess.run(['nm', '-D', '--defined-only', library], stdout=subprocess.PIPE, text=True,
                             check=True).stdout
    for line in listing.splitlines():
        _, kind, name = line.split()
        if kind == 'A':  # a version node
            continue
        if kind != 'T':
            failures.append(f'{library}: {name} is of kind {kind}')
        yield name


def check_core(library, expected):
    """Public names under HCCLD_1, the faces' names under HCCLD_PRIVATE, nothing else."""
    names = set(exported(library))
    public = {name.removesuffix('@@HCCLD_1') for name in names if name.endswith('@@HCCLD_1')}
    check_equal(library.name, expected, public)
    for name in names - {name + '@@HCCLD_1' for name in public}:
        if not re.fullmatch(r'hccld_\w+@@HCCLD_PRIVATE', name):
            failures.append(f'{library.name}: {name} should not be exported')


def main():
    rows = read_table()
    check_equal('headers', {(name, header) for name, header, _, _ in rows}, set(declared()))

    if not failures:  # else the program would not compile
        found = undefined([name for name, _, _, _ in rows])
        check_equal('a program', {name for name, _, _, _ in rows}, set(found))
        check_equal('weak', {name for name, _, _, weak in rows if weak}, {name for name, weak in found.items() if weak})

    directory = pathlib.Path(sys.argv[1])
    securec = re.findall(r'^HCCLD_SECUREC_FUNCTION .*?(\w+)\(', (include / 'securec.h').read_text(), re.M)
    check_equal('libc_sec.so', set(securec), set(exported(directory / 'libc_sec.so')))
    for library in sorted({library for _, _, libraries, _ in rows for library in libraries}):
        expected = {name for name, _, libraries, _ in rows if library in libraries}
        if library == 'libhccld.so.1':
            check_core(directory / library, expected)
        else:
            check_equal(library, expected, set(exported(directory / library)))
    print(f'{len(rows)} functions, {len(failures)} failures')
    print('\n'.join(failures))
    return 1 if failures else 0


sys.exit(main())
