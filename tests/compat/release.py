# SPDX-License-Identifier: Apache-2.0
"""The release before this tree: found in the history, built into a folder that keeps it."""
import fcntl
import os
import pathlib
import re
import shutil
import subprocess

PROGRAMS = {  # of the release itself, so that they use what it had
    "ring": ["tests/demo/ring.c"],
    "rank": ["tests/kill/rank.c"],
    "random": ["tests/random/random.c", "tests/random/rank.c", "tests/random/plan.c", "tests/support/private_daemon.c"],
}


class Missing(Exception):
    """There is no release to compare with; the text says why."""


def git(source, *arguments):
    # the tree may belong to another user than the one who tests it
    result = subprocess.run(["git", "-c", "safe.directory=*", "-C", str(source), *arguments], capture_output=True, check=False)
    if result.returncode:
        raise Missing(f"git {arguments[0]}: {result.stderr.decode(errors='replace').strip()}")
    return result.stdout


def version_of(source, commit):
    text = git(source, "show", f"{commit}:meson.build").decode()
    return re.search(r"version: '([^']+)'", text)[1]


def releases(source):
    """[(commit, version)] of the commits "release: ...", newest first."""
    try:
        lines = git(source, "log", "--format=%H %s", "--extended-regexp", "--grep=^release: ").decode().splitlines()
    except (Missing, OSError) as error:
        raise Missing(f"the previous release is built from the history of git, and {source} has none ({error}); "
                      "test in a clone of the repository") from error
    commits = [line.partition(" ")[0] for line in lines if line.partition(" ")[2].startswith("release: ")]
    return [(commit, version_of(source, commit)) for commit in commits]


def missing(source, what):
    is_shallow = git(source, "rev-parse", "--is-shallow-repository").strip() == b"true"
    return Missing(f"the history of {source} has no release {what}" + ("; it is shallow: git fetch --unshallow" if is_shallow else ""))


def find(source, version):
    """(commit, version) of the last release of another version than this tree's."""
    for commit, found in releases(source):
        if found != version:
            return commit, found
    raise missing(source, f"before {version}")


def find_without(source, feature):
    """(commit, version) of the last release whose proto/feature.h does not name @feature."""
    for commit, found in releases(source):
        if feature.encode() not in git(source, "show", f"{commit}:proto/feature.h"):
            return commit, found
    raise missing(source, f"without {feature}")


class Release:
    """An installed release: hccld, hcclctl, libraries, and test programs of it."""

    def __init__(self, directory, version):
        self.version = version
        self.hccld = directory / "prefix/sbin/hccld"
        self.hcclctl = directory / "prefix/bin/hcclctl"
        self.libraries = directory / "prefix/lib/hccld/ascend/lib64"
        self.source = directory / "source"
        self.programs = {name: directory / name for name in PROGRAMS}


def run(*arguments, **options):
    result = subprocess.run([str(a) for a in arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, check=False, **options)
    if result.returncode:
        raise RuntimeError(f"{' '.join(str(a) for a in arguments)}: status {result.returncode}\n{result.stdout[-4000:]}")


def compile_programs(release):
    for name, sources in PROGRAMS.items():
        run(*os.environ.get("CC", "cc").split(), "-O2", "-w", "-D_GNU_SOURCE", *[release.source / s for s in sources],
            "-o", release.programs[name], f"-I{release.source}", f"-I{release.source}/include", f"-L{release.libraries}",
            "-lhccl", "-lascendcl", "-pthread")


def make(source, directory, commit, targets, finish):
    """Unpacks, compiles and calls finish(), unless that was done in @directory before."""
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (directory / "done").exists():
            return
        for name in ("source", "build", "prefix"):
            shutil.rmtree(directory / name, ignore_errors=True)
        (directory / "source").mkdir()
        archive = git(source, "archive", commit)
        subprocess.run(["tar", "-x", "-C", directory / "source"], input=archive, check=True)
        run("meson", "setup", directory / "build", directory / "source", f"--prefix={directory}/prefix", "-Dtests=false",
            "-Ddebug=false", "-Dverbs=disabled", "-Dsystemd=disabled")
        run("ninja", "-C", directory / "build", *targets)
        finish()
        shutil.rmtree(directory / "build")
        (directory / "done").touch()


def build(source, folder, version):
    """The release before @version, from @folder or newly built into it."""
    commit, found = find(source, version)
    directory = pathlib.Path(folder) / commit[:12]
    release = Release(directory, found)
    make(source, directory, commit, ["install"], lambda: compile_programs(release))
    return release


def build_daemon_without(source, folder, feature):
    """(hccld, version) of the last release that has no @feature, as build() does."""
    commit, found = find_without(source, feature)
    directory = pathlib.Path(folder) / f"{commit[:12]}-daemon"
    make(source, directory, commit, ["daemon/hccld"], lambda: shutil.copy(directory / "build/daemon/hccld", directory))
    return directory / "hccld", found
