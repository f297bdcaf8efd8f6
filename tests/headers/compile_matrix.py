#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every public header, alone and with the others, compiles without a warning: gcc and clang, C11 to
C++20, with the include directory alone and with include/hccl and include/hcomm in the path."""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
include = here.parent.parent / 'include'
headers = sorted(str(path.relative_to(include)) for path in include.rglob('*.h'))
standards = ['c11', 'c17', 'c++11', 'c++14', 'c++17', 'c++20']
paths = {
    'alone': [f'-I{include}'],
    'folders': [f'-I{include}', f'-I{include}/hccl', f'-I{include}/hcomm'],
}


def compile_source(job):
    compiler, standard, path, title, source = job
    language = 'c++' if '+' in standard else 'c'
    command = [compiler, '-x', language, f'-std={standard}', '-Wall', '-Wextra', '-Wpedantic', '-Werror',
               '-fsyntax-only', f'-I{here}'] + paths[path] + ['-']
    result = subprocess.run(command, input=source, text=True, stderr=subprocess.PIPE, check=False)
    if result.returncode == 0:
        return None
    return f'{compiler} {standard} {path}: {title}\n{result.stderr}'


def jobs():
    compilers = [name for name in ('gcc', 'clang') if shutil.which(name)]
    print('compilers:', ' '.join(compilers))
    for compiler in compilers:
        for standard in standards:
            for path in paths:
                together = [f'#include <{header}>\n' for header in headers]
                together += together[::-1]
                yield compiler, standard, path, 'all', ''.join(together)
                yield compiler, standard, path, 'all backwards', ''.join(together[len(headers):])
                yield compiler, standard, path, 'usage', '#include "usage_checks.h"\n'
                if path == 'folders' and standard not in ('c11', 'c++20'):
                    continue  # the standard does not change how files are found
                for header in headers:
                    name = pathlib.Path(header).name if path == 'folders' and header.startswith('hc') and \
                        not header.startswith('hccld') else header
                    yield compiler, standard, path, header, f'#include <{name}>\n#include <{header}>\n'


def main():
    listed = (here / 'public.h').read_text()
    missing = [header for header in headers if f'#include "{header}"' not in listed]
    failures = [f'public.h does not include {header}' for header in missing]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(compile_source, jobs()))
    failures += [result for result in results if result]
    print(f'{len(headers)} headers, {len(results)} compilations, {len(failures)} failures')
    print('\n'.join(failures[:10]))
    return 1 if failures or not results else 0


sys.exit(main())
