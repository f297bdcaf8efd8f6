#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
This tree and the release before it, together: compat.py SOURCE BUILD VERSION [TEST...]

Programs and libraries of the old release with the new daemon, new libraries with the old daemon, both hcclctl with both
daemons, ranks of both kinds in one communicator, and an old daemon that is replaced under its keeper while a job runs.
Programs are those of the old release's tests, compiled against its headers. What a daemon lacks, and is asked for, is tried
with the last one that lacked anything.
"""
import contextlib
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import promises
import release

SOURCE, BUILD, VERSION = pathlib.Path(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1)), sys.argv.pop(1)
SCALE = int(os.environ.get("TEST_TIMEOUT_SCALE", "1"))
NEW_HCCLD, NEW_HCCLCTL, NEW_LIBRARIES = BUILD / "daemon/hccld", BUILD / "hcclctl/hcclctl", BUILD / "client"
COMPILER = shlex.split(os.environ.get("CC", "cc"))
OLD = None  # release.Release
LACKING = None  # (hccld, version) of the last release that lacks what these tests ask for


def setUpModule():
    global OLD, LACKING
    OLD = release.build(SOURCE, BUILD / "compat", VERSION)
    LACKING = release.build_daemon_without(SOURCE, BUILD / "compat", "HCCLD_FEATURE_RESOURCES")


def environment(directory, libraries, **more):
    result = {"PATH": os.environ["PATH"], "TMPDIR": directory, "XDG_RUNTIME_DIR": directory, "LC_ALL": "C.UTF-8",
              "LD_LIBRARY_PATH": str(libraries)}
    result.update({name: str(value) for name, value in more.items()})
    return result


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="test-compat-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.socket = os.path.join(self.directory, "s")
        self.roots = 0

    def start(self, hccld, *options):
        """A daemon that serves self.socket; its log is shown when the case fails."""
        ready, told = os.pipe()
        self.log = open(os.path.join(self.directory, "log"), "w+", encoding="utf-8")
        self.addCleanup(self.log.close)
        daemon = subprocess.Popen([hccld, "--socket", self.socket, "--ready-fd", str(told), "--device-memory", "2G",
                                   "--log-level", "notice", *options],
                                  pass_fds=[told], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                  env=environment(self.directory, ""))
        os.close(told)
        self.addCleanup(self.stop, daemon)
        word = os.read(ready, 2)
        os.close(ready)
        self.assertEqual(word, b"1\n", self.log_text())
        return daemon

    def stop(self, daemon):
        daemon.terminate()
        self.assertEqual(daemon.wait(30 * SCALE), 0, self.log_text())

    def log_text(self):
        return pathlib.Path(self.log.name).read_text(encoding="utf-8")[-4000:]

    def spawn(self, program, libraries, *arguments, **more):
        return subprocess.Popen([program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env=environment(self.directory, libraries, HCCLD_SOCKET=self.socket, **more))

    def job(self, program, libraries, *arguments):
        """A process for each entry of @libraries; {root} in @arguments is the file of the root info."""
        self.roots += 1
        root = os.path.join(self.directory, f"root.{self.roots}")
        return [self.spawn(OLD.programs[program], libraries[i], *[a.format(root=root) for a in arguments], RANK_ID=i,
                           RANK_SIZE=len(libraries), DEVICE_ID=i) for i in range(len(libraries))]

    def finish(self, processes):
        results = []
        for process in processes:
            try:
                out, err = process.communicate(timeout=60 * SCALE)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                err += "(it did not end)"
            results.append((process.returncode, out, err))
        self.assertEqual([r[0] for r in results], [0] * len(results), f"{results}\n{self.log_text()}")
        return results

    def ctl(self, hcclctl, *arguments, timeout=30):
        return subprocess.run([hcclctl, "--socket", self.socket, *arguments], env=environment(self.directory, ""),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout * SCALE, check=False)

    def status(self, hcclctl=NEW_HCCLCTL):
        return json.loads(self.ctl(hcclctl, "status", "--json").stdout)


class Promises(Case):
    def test_messages_shared_memory_and_records_keep_their_places(self):
        self.assertEqual(promises.broken(OLD.source, SOURCE, pathlib.Path(self.directory), COMPILER), [])


class Programs(Case):
    """Rings of processes and threads, random batches."""

    def run_all(self, hccld, libraries):
        self.start(hccld, "--allow-duplicate-items")  # for random
        for _, out, _ in self.finish(self.job("ring", [libraries] * 4, "{root}")):
            self.assertIn(": ok", out)
        _, out, _ = self.finish([self.spawn(OLD.programs["ring"], libraries)])[0]
        self.assertEqual(out.count(": ok"), 8)
        self.finish(self.job("rank", [libraries] * 3, "{root}", "12", "ok"))
        self.finish([self.spawn(OLD.programs["random"], libraries, "--batches", "150", "--processes")])
        self.finish([self.spawn(OLD.programs["random"], libraries, "--batches", "300")])
        # a session ends a little after its process
        for _ in range(100 * SCALE):
            status = self.status()
            left = status["sessions"], status["comms"], sum(d["memory_used"] for d in status["devices"])
            if left == (0, 0, 0):
                break
            time.sleep(0.05)
        self.assertEqual(left, (0, 0, 0))

    def test_old_programs_with_the_new_daemon(self):
        self.run_all(NEW_HCCLD, OLD.libraries)

    def test_new_libraries_with_the_old_daemon(self):
        self.run_all(OLD.hccld, NEW_LIBRARIES)

    def test_what_an_older_daemon_lacks_is_told_by_name(self):
        hccld, version = LACKING
        self.start(hccld)
        program = """if True:
            import ctypes, sys
            acl = ctypes.CDLL("libascendcl.so")
            acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
            handle, stream = ctypes.c_void_p(), ctypes.c_void_p()
            kernel = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(lambda block, blocks, arg: print("called"))
            assert acl.aclrtSetDevice(0) == 0 and acl.aclrtCreateStream(ctypes.byref(stream)) == 0
            for call in (lambda: acl.aclrtCreateNotify(ctypes.byref(handle), ctypes.c_uint64(0)),
                         lambda: ctypes.CDLL("libhccld.so.1").HccldLaunchHostKernel(kernel, 1, None, ctypes.c_size_t(0), stream),
                         lambda: ctypes.CDLL("libhcomm.so").HcommThreadAlloc(0, 1, (ctypes.c_uint32 * 1)(1), ctypes.byref(handle))):
                print(call(), acl.aclGetRecentErrMsg().decode())
            assert acl.aclrtSynchronizeStream(stream) == 0
            """
        _, out, _ = self.finish([self.spawn(sys.executable, NEW_LIBRARIES, "-c", program)])[0]
        for code, what in ((207000, "notifies"), (207000, "host kernels"), (5, "threads")):
            self.assertRegex(out, rf"(?m)^{code} .*hccld {version}, which serves this process, has no {what}; update hccld")
        self.assertNotIn("called", out)

    def test_old_and_new_libraries_in_one_communicator(self):
        self.start(NEW_HCCLD)
        both = [OLD.libraries, NEW_LIBRARIES, NEW_LIBRARIES, OLD.libraries]
        for _, out, _ in self.finish(self.job("ring", both, "{root}")):
            self.assertIn(": ok", out)
        self.finish(self.job("rank", both, "{root}", "24", "ok"))

    def test_the_death_of_a_new_rank_is_told_to_old_ones(self):
        self.start(NEW_HCCLD)
        job = self.job("rank", [OLD.libraries, NEW_LIBRARIES, OLD.libraries], "{root}", "1000000", "death", "1")
        for process in job:
            process.stdout.readline()
        job[1].kill()
        job.pop(1).communicate()
        self.finish(job)


class Tools(Case):
    QUERIES = ["status", "ps", "comms", "comms -v", "devices", "waiting", "version"]

    def look(self, hcclctl, hccld, libraries):
        """Every command of the old release while a job waits for the rest of its ranks' data."""
        self.start(hccld)
        job = self.job("rank", [libraries] * 2, "{root}", "1000000", "any")
        self.addCleanup(lambda: [process.communicate() for process in job])
        self.addCleanup(lambda: [process.kill() for process in job])
        for process in job:
            process.stdout.readline()
        for command in self.QUERIES:
            result = self.ctl(hcclctl, *command.split())
            self.assertEqual((result.returncode, result.stderr), (0, ""), command)
            self.assertTrue(result.stdout, command)
            if command != "comms -v":
                json.loads(self.ctl(hcclctl, *command.split(), "--json").stdout)
        sessions = json.loads(self.ctl(hcclctl, "ps", "--json").stdout)["sessions"]
        self.assertEqual(sorted(s["pid"] for s in sessions), sorted(p.pid for p in job))
        self.assertEqual(len(json.loads(self.ctl(hcclctl, "comms", "--json").stdout)["comms"][0]["members"]), 2)

    def test_old_hcclctl_with_the_new_daemon(self):
        self.look(OLD.hcclctl, NEW_HCCLD, NEW_LIBRARIES)

    def test_new_hcclctl_with_the_old_daemon(self):
        self.look(NEW_HCCLCTL, OLD.hccld, OLD.libraries)
        self.assertIn(f"hccld {OLD.version} ", self.ctl(NEW_HCCLCTL, "version").stdout)

    def test_what_an_older_daemon_lacks_is_refused_by_its_version(self):
        hccld, version = LACKING
        self.start(hccld)
        for command in ("resources", "resources --json", "notifies", "threads"):
            result = self.ctl(NEW_HCCLCTL, *command.split())
            self.assertEqual((result.returncode, result.stdout), (1, ""), command)
            self.assertRegex(result.stderr, rf"hccld {version} does not (support|know)", command)
        self.assertEqual(self.ctl(NEW_HCCLCTL, "status").returncode, 0)

    def test_run_of_each_with_the_daemon_of_the_other(self):
        for hcclctl, hccld, libraries in ((OLD.hcclctl, NEW_HCCLD, OLD.libraries), (NEW_HCCLCTL, OLD.hccld, NEW_LIBRARIES)):
            result = subprocess.run([hcclctl, "run", "--daemon", hccld, "-n", "1", "--devices", "2", "--", OLD.programs["ring"]],
                                    env=environment(self.directory, libraries), stdin=subprocess.DEVNULL, capture_output=True,
                                    text=True, timeout=60 * SCALE, check=False)
            self.assertEqual((result.returncode, result.stdout.count(": ok")), (0, 2), result.stderr)


class Upgrade(Case):
    """The file of the daemon is replaced, as a package does, and its worker killed: the keeper starts the new one."""

    def worker(self, other_than=None):
        end = time.monotonic() + 30 * SCALE
        while time.monotonic() < end:
            with contextlib.suppress(ValueError, KeyError):
                status = self.status(OLD.hcclctl)
                if status["pid"] != other_than:
                    return status
            time.sleep(0.02)
        raise AssertionError(f"no worker serves\n{self.log_text()}")

    def replace(self, installed, hccld):
        new = installed.with_suffix(".new")
        shutil.copy(hccld, new)
        os.replace(new, installed)

    def test_sessions_memory_and_operations_in_flight_go_on(self):
        installed = pathlib.Path(self.directory) / "hccld"
        shutil.copy(OLD.hccld, installed)
        self.start(installed, "--keeper")
        before = self.worker()
        self.assertEqual(before["version"], OLD.version)
        job = self.job("rank", [OLD.libraries] * 4, "{root}", "400", "ok")
        for process in job:
            process.stdout.readline()
        # the others have posted what it has to take, and wait
        job[2].send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        before = self.status(OLD.hcclctl)
        self.replace(installed, NEW_HCCLD)
        os.kill(before["pid"], signal.SIGKILL)
        after = self.worker(before["pid"])
        self.assertEqual(after["version"], VERSION)
        for name in ("sessions", "comms", "streams", "devices"):
            self.assertEqual(after[name], before[name], name)
        self.assertEqual((after["sessions"], after["comms"]), (4, 1))
        job[2].send_signal(signal.SIGCONT)
        # once more: this time the records are the new daemon's own. Stopped again, the job cannot end meanwhile.
        time.sleep(0.02)
        job[2].send_signal(signal.SIGSTOP)
        os.kill(after["pid"], signal.SIGKILL)
        again = self.worker(after["pid"])
        self.assertEqual([again[name] for name in ("incarnation", "sessions", "comms")], [3, 4, 1])
        job[2].send_signal(signal.SIGCONT)
        self.finish(job)
        self.finish(self.job("rank", [OLD.libraries, NEW_LIBRARIES], "{root}", "12", "ok"))
        self.assertNotIn("cannot be used", self.log_text())
        self.assertNotIn("is dropped", self.log_text())


if __name__ == "__main__":
    try:
        release.find(SOURCE, VERSION)
    except release.Missing as error:
        sys.exit(f"compat: {error}")
    unittest.main(verbosity=2)
