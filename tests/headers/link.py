#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An installed tree links and runs programs as Makefiles for CANN do it, from any directory: no
warning, and only faces among the libraries a program needs. A program whose rpath is the faces'
directory runs without LD_LIBRARY_PATH; one without an rpath runs after set_env.sh.

Usage: link.py BUILD_DIRECTORY"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
include = here.parent.parent / 'include'
faces = {'libascendcl.so', 'libacl_rt.so', 'libhcomm.so', 'libhccl.so', 'libmsprofiler.so'}
failures = []
# What a test prints must not depend on what the caller's environment points to.
environment = {key: value for key, value in os.environ.items()
               if key not in ('LD_LIBRARY_PATH', 'LD_RUN_PATH', 'LD_PRELOAD', 'ASCEND_HOME_PATH', 'ASCEND_TOOLKIT_HOME')}


def run(command, **options):
    options.setdefault('env', environment)
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)


def expect(what, condition, detail=''):
    if not condition:
        failures.append(f'{what}: {detail}')


def dynamic(path):
    """{tag: [values]} of a dynamic section."""
    tags = {}
    for tag, value in re.findall(r'\((\w+)\)\s+.*?:?\s*\[?([^\[\]\n]*)\]?$', run(['readelf', '-dW', path]).stdout, re.M):
        tags.setdefault(tag, []).append(value)
    return tags


def install(build, scratch):
    """Installs into a directory whose name has a space; returns the ascend tree there."""
    staged = scratch / 'staged'
    result = run(['meson', 'install', '-C', build, '--no-rebuild', '--quiet', '--destdir', staged])
    expect('install', result.returncode == 0, result.stdout)
    found = list(staged.rglob('lib/hccld/ascend'))
    assert len(found) == 1, found
    prefix = found[0].parent.parent.parent
    moved = scratch / 'moved to'
    shutil.move(prefix, moved)
    return moved / 'lib/hccld/ascend'


def check_tree(tree):
    for source in include.rglob('*.h'):
        copy = tree / 'include' / source.relative_to(include)
        expect('installed headers', copy.is_file() and copy.read_bytes() == source.read_bytes(), copy)
    expect('installed headers', len(list(include.rglob('*.h'))) == len(list((tree / 'include').rglob('*.h'))))
    expect('lib64', {path.name for path in (tree / 'lib64').iterdir()} == faces | {'libc_sec.so', 'libhccld.so', 'libhccld.so.1'})
    expect('libc_sec.so', dynamic(tree / 'lib64/libc_sec.so')['NEEDED'] == ['libc.so.6'] and
           dynamic(tree / 'lib64/libc_sec.so')['SONAME'] == ['libc_sec.so'])
    for face in faces:
        tags = dynamic(tree / 'lib64' / face)
        expect(face, tags.get('SONAME') == [face], tags)
        expect(face, 'libhccld.so.1' in tags['NEEDED'], tags)
        expect(face, all(part.startswith('$ORIGIN') for part in tags['RUNPATH'][0].split(':')), tags)
        expect(face, 'NODELETE' in tags['FLAGS_1'][0] and 'NOW' in tags['FLAGS_1'][0], tags)
    expect('libhccl.so', {'libhcomm.so', 'libascendcl.so'} <= set(dynamic(tree / 'lib64/libhccl.so')['NEEDED']))


def check_link(tree, scratch):
    program = scratch / 'program'
    compilers = [name for name in ('gcc', 'g++', 'clang', 'clang++') if shutil.which(name)]
    exact = ['-lhccl', '-lascendcl', '-Wl,-z,now', '-Wl,--copy-dt-needed-entries']
    for compiler in compilers:
        for options in (exact, exact + ['-Wl,--as-needed'], ['-Wl,--as-needed', '-lhccl', '-lascendcl'],
                        ['-lhccl', '-lacl_rt', '-lmsprofiler'], ['-lhccl', '-lhcomm', '-lascendcl', '-Wl,--no-as-needed']):
            what = f'{compiler} {" ".join(options)}'
            program.unlink(missing_ok=True)
            result = run([compiler, '-Wall', '-Wextra', '-Werror', '-x', 'c++' if '+' in compiler else 'c', here / 'program.c',
                          '-x', 'none', f'-I{tree}/include', f'-L{tree}/lib64', f'-Wl,-rpath,{tree}/lib64', '-o', program] + options)
            expect(what, result.returncode == 0 and not result.stdout, result.stdout)
            if not program.exists():
                continue
            needed = {name for name in dynamic(program)['NEEDED'] if re.match('lib(hc|acl|asc|msp)', name)}
            expect(what, needed <= faces and 'libhccl.so' in needed, needed)
            result = run([program])
            expect(what, result.returncode == 0, f'exit status {result.returncode} {result.stdout}')


def check_weak(tree, scratch):
    """A program that calls no operator loses libhccl.so to --as-needed, and works."""
    program = scratch / 'weak'
    source = ('#include <hccl/hccl.h>\nint main(void) { return !(aclrtFree(0) == 100000 && HcclBarrier(0, 0) == HCCL_E_PTR '
              '&& HcclGetErrorString(HCCL_E_PTR)); }\n')
    for face in ('-lascendcl', '-lacl_rt'):
        # as README says, for a program that calls no acl function either
        lonely = '#include <hccl/hccl.h>\nint main(void) { HcclComm c; int32_t d = 0; return HcclCommInitAll(0, &d, &c) != HCCL_E_PARA; }\n'
        result = run(['gcc', '-x', 'c', '-', '-x', 'none', f'-I{tree}/include', f'-L{tree}/lib64', f'-Wl,-rpath,{tree}/lib64', '-o', program,
                      '-Wl,--no-as-needed', '-lhccl', face], input=lonely)
        expect('lonely', result.returncode == 0 and not result.stdout, result.stdout)
        result = run([program])
        expect(f'lonely {face}', result.returncode == 0, f'exit status {result.returncode} {result.stdout}')
        for options in ([], ['-no-pie'], ['-fno-plt'], ['-Wl,-z,now']):
            result = run(['gcc', '-x', 'c', '-', '-x', 'none', f'-I{tree}/include', f'-L{tree}/lib64', f'-Wl,-rpath,{tree}/lib64', '-o', program,
                          '-Wl,--as-needed', '-lhccl', face] + options, input=source)
            expect('weak', result.returncode == 0 and not result.stdout, result.stdout)
            result = run([program])
            expect(f'weak {face} {options}', result.returncode == 0, f'exit status {result.returncode} {result.stdout}')


def check_securec(tree, scratch):
    """-lc_sec: with our header, whose functions are inline, and for a program that only declares them."""
    program = scratch / 'securec'
    body = 'int main(void) { char t[4]; return !(memset_s(t, 4, 0, 4) == 0 && strcpy_s(t, 4, "abc") == 0 && strcpy_s(t, 4, "abcd") == 162); }\n'
    declarations = ('#include <stddef.h>\n#ifdef __cplusplus\nextern "C"\n#endif\nint memset_s(void *, size_t, int, size_t);\n'
                    '#ifdef __cplusplus\nextern "C"\n#endif\nint strcpy_s(char *, size_t, const char *);\n')
    for compiler, language in (('gcc', 'c'), ('g++', 'c++')):
        for what, head, link in (('header', '#include <securec.h>\n', ['-Wl,--no-as-needed', '-lc_sec']), ('symbols', declarations, ['-lc_sec'])):
            result = run([compiler, '-x', language, '-', '-x', 'none', '-Wall', '-Werror', f'-I{tree}/include', f'-L{tree}/lib64',
                          f'-Wl,-rpath,{tree}/lib64', '-o', program] + link, input=head + body)
            expect(f'{compiler} {what}', result.returncode == 0 and not result.stdout, result.stdout)
            expect(f'{compiler} {what}', 'libc_sec.so' in dynamic(program)['NEEDED'])
            result = run([program])
            expect(f'{compiler} {what}', result.returncode == 0, f'exit status {result.returncode} {result.stdout}')


def check_environment(tree, scratch):
    """set_env.sh finds its tree; a program without an rpath, and one that uses the core, run then."""
    program = scratch / 'program'
    result = run(['gcc', here / 'program.c', '-DUSE_HOST_KERNEL', f'-I{tree}/include', f'-L{tree}/lib64', '-o', program,
                  '-lhccl', '-lhcomm', '-lhccld', '-lascendcl'])
    expect('-lhccld', result.returncode == 0 and not result.stdout, result.stdout)
    expect('no environment', run([program]).returncode != 0, 'the program has found other libraries')
    for shell in ('bash', 'dash', 'zsh'):
        for script in ('set_env.sh', 'bin/setenv.bash'):
            if not shutil.which(shell) or (script.endswith('bash') and shell != 'bash'):
                continue
            text = '. "$1" && . "$1" && echo "$ASCEND_HOME_PATH|$ASCEND_TOOLKIT_HOME|$LD_LIBRARY_PATH" && exec "$2"'
            result = run([shell, '-euc', text, shell, tree / script, program])
            expected = f'{tree}|{tree}|{tree}/lib64\n'
            expect(f'{shell} {script}', result.returncode == 0 and result.stdout == expected, result.stdout)


def check_dlopen(tree, scratch):
    """Communicator and acl functions are found through a handle of libhccl.so."""
    program = scratch / 'program'
    source = ('#include <dlfcn.h>\nint main(int c, char **v) { void *h = c == 2 ? dlopen(v[1], RTLD_NOW | RTLD_LOCAL) : 0;\n'
              'return !(h && dlsym(h, "HcclCommInitRootInfo") && dlsym(h, "HcclBatchSendRecv") && dlsym(h, "aclrtMalloc") && !dlclose(h)); }\n')
    result = run(['gcc', '-x', 'c', '-', '-o', program], input=source)
    expect('dlopen', result.returncode == 0, result.stdout)
    result = run([program, tree / 'lib64/libhccl.so'])
    expect('dlopen', result.returncode == 0, result.stdout)


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name).resolve()
        tree = install(sys.argv[1], scratch)
        check_tree(tree)
        check_link(tree, scratch)
        check_weak(tree, scratch)
        check_securec(tree, scratch)
        check_environment(tree, scratch)
        check_dlopen(tree, scratch)
    print(f'{len(failures)} failures')
    print('\n'.join(map(str, failures)))
    return 1 if failures else 0


sys.exit(main())
