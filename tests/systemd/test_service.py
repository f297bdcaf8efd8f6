#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hccld as a service, below a real systemd: tests/systemd/boot runs this as root in a system of its own.

usage: test_service.py [CASE...]     in /opt/test, which has the programs `rank` and `freeze`
"""
import grp
import os
import pwd
import re
import signal
import subprocess
import sys
import tempfile
import time

SCALE = int(os.environ.get("TEST_TIMEOUT_SCALE", "1"))
SOCKET = "/run/hccld/hccld.sock"
LIBRARIES = "/usr/local/lib/hccld/ascend/lib64"
CONFIGURATION = "/usr/local/etc/hccld/hccld.conf.d"
DROP_IN = "/etc/systemd/system/hccld.service.d"


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


def run(*command, ok=True, seconds=60):
    """(status, output) of a command; a Failure if @ok and it fails."""
    result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            timeout=seconds * SCALE, check=False, text=True, errors="replace")
    if ok and result.returncode:
        raise Failure("%s: status %d: %s" % (" ".join(command), result.returncode, result.stdout))
    return result.returncode, result.stdout


def show(name, unit="hccld.service"):
    return run("systemctl", "show", "-P", name, unit)[1].strip()


def pid():
    return int(show("MainPID"))


def wait_for(condition, seconds, text):
    end = time.monotonic() + seconds * SCALE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise Failure("not within %d s: %s" % (seconds, text() if callable(text) else text))


def as_user(name, command, **options):
    """A process of @name's, with the groups of a login."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LD_LIBRARY_PATH": LIBRARIES}
    environment.update(options.pop("environment", {}))
    user = pwd.getpwnam(name)
    return subprocess.Popen(command, env=environment, user=user.pw_uid, group=user.pw_gid,
                            extra_groups=os.getgrouplist(name, user.pw_gid), stdin=subprocess.DEVNULL, text=True, **options)


class Job:
    """Ranks of one communicator, as an unprivileged member of the group."""

    def __init__(self, count=4, rounds=1000000, expect="any", environments=None):
        self.directory = tempfile.mkdtemp(dir="/opt/test/jobs")
        os.chown(self.directory, pwd.getpwnam("alice").pw_uid, -1)
        self.ranks = []
        for rank in range(count):
            environment = {"RANK_ID": str(rank), "RANK_SIZE": str(count), "DEVICE_ID": str(rank % 8)}
            environment.update((environments or {}).get(rank, {}))
            error = open("%s/%d" % (self.directory, rank), "w", encoding="utf-8")
            self.ranks.append(as_user("alice", ["/opt/test/rank", self.directory + "/root", str(rounds), expect],
                                      environment=environment, stdout=subprocess.PIPE, stderr=error))
            error.close()

    def ready(self):
        for rank, process in enumerate(self.ranks):
            check(process.stdout.readline() == "ready\n", "rank %d did not start: %s" % (rank, self.error(rank)))
        return self

    def error(self, rank):
        with open("%s/%d" % (self.directory, rank), encoding="utf-8") as file:
            return file.read()

    def check_running(self, seconds=0.5):
        time.sleep(seconds)
        for rank, process in enumerate(self.ranks):
            check(process.poll() is None, "rank %d has ended: %s" % (rank, self.error(rank)))

    def wait(self, seconds):
        """Statuses."""
        end = time.monotonic() + seconds * SCALE
        for process in self.ranks:
            process.wait(max(0.1, end - time.monotonic()))
        return [process.returncode for process in self.ranks]

    def kill(self):
        for process in self.ranks:
            process.kill()
            process.wait()


def sessions():
    return len(re.findall(r"^ *\d+ ", run("hcclctl", "ps")[1], re.M))


def set_options(text):
    """Settings of the unit for one case."""
    os.makedirs(DROP_IN, exist_ok=True)
    with open(DROP_IN + "/test.conf", "w", encoding="utf-8") as file:
        file.write("[Service]\n" + text)
    run("systemctl", "daemon-reload")


def configure(text):
    """Settings of hccld for one case."""
    os.makedirs(CONFIGURATION, exist_ok=True)
    with open(CONFIGURATION + "/test.conf", "w", encoding="utf-8") as file:
        for line in text.splitlines():
            section = {"log_level": "log", "devices": "devices"}.get(line.split()[0], "daemon")
            file.write("[%s]\n%s\n" % (section, line))


def fresh():
    """Both units anew."""
    run("systemctl", "stop", "hccld.socket", "hccld.service")
    run("systemctl", "start", "hccld.socket", "hccld.service")


def ring(rounds=60):
    statuses = Job(rounds=rounds, expect="ok").ready().wait(60)
    check(statuses == [0] * 4, "a ring: %s" % statuses)


def case_security():
    status, text = run("systemd-analyze", "security", "--no-pager", "--threshold=25", "hccld.service", ok=False)
    check(status == 0, text)
    for unit in "hccld.service", "hccld.socket":
        status, text = run("systemd-analyze", "verify", "--man=no", unit, ok=False)
        check(status == 0 and "hccld" not in text, text)


def case_activation():
    run("systemctl", "stop", "hccld.service", "hccld.socket")
    check(not os.path.exists(SOCKET), "the socket is there without its unit")
    run("systemctl", "start", "hccld.socket")
    check(show("ActiveState") == "inactive", "the service has started already")
    info = os.stat(SOCKET)
    check((info.st_mode & 0o777, info.st_gid, info.st_uid) == (0o660, grp.getgrnam("hccld").gr_gid, 0), oct(info.st_mode))
    bob = as_user("bob", ["hcclctl", "status"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = bob.communicate()[0]
    check(bob.returncode == 3 and "permission" in text, "who is no member: %d %s" % (bob.returncode, text))
    check(show("ActiveState") == "inactive", "who may not connect has started the service")
    ring(6)
    check(show("ActiveState") == "active", "the service has not started")
    with open("/proc/%d/status" % pid(), encoding="utf-8") as file:
        text = file.read()
    check(re.search(r"^Uid:\t%d\t" % pwd.getpwnam("hccld").pw_uid, text, re.M), "not its own user")
    check(re.search(r"^CapEff:\t0+$", text, re.M), "it has capabilities")
    # what the machine lets us have may be less than what the unit asks for
    check((show("LimitMEMLOCK"), show("LimitNOFILE")) == ("infinity", "1048576"), "limits of the unit")
    with open("/proc/%d/limits" % pid(), encoding="utf-8") as file:
        soft, hard = re.search(r"Max open files +(\d+) +(\d+)", file.read()).groups()
    check(int(soft) == int(hard) - 32, "no reserve of descriptors: %s of %s" % (soft, hard))
    check(show("OOMScoreAdjust") == "-900", "OOMScoreAdjust= of the unit")
    if run("sh", "-c", "echo -900 >/proc/self/oom_score_adj", ok=False)[0] == 0:
        with open("/proc/%d/oom_score_adj" % pid(), encoding="utf-8") as file:
            check(file.read() == "-900\n", "oom_score_adj")


def case_start():
    run("systemctl", "stop", "hccld.socket", "hccld.service")
    run("systemctl", "start", "hccld.service")
    check(show("ActiveState", "hccld.socket") == "active", "the service brings no socket along")
    job = Job().ready()
    wait_for(lambda: "4 sessions" in show("StatusText"), 15, lambda: "status text: " + show("StatusText"))
    job.kill()
    wait_for(lambda: "0 sessions" in show("StatusText"), 15, lambda: "status text: " + show("StatusText"))


def case_wrong_settings():
    configure("devices = many\n")
    run("systemctl", "stop", "hccld.service")
    status, _ = run("systemctl", "start", "hccld.service", ok=False)
    check(status != 0 and show("ActiveState") == "failed", "it started, or is tried again and again: " + show("ActiveState"))
    check("'many'" in run("journalctl", "-u", "hccld.service", "-n", "20")[1], "the log does not say what is wrong")


def case_restart():
    job = Job().ready()
    for _ in range(3):
        before = pid()
        start = time.monotonic()
        run("systemctl", "restart", "hccld.service")
        check(time.monotonic() - start < 5 * SCALE, "a restart took %.1f s" % (time.monotonic() - start))
        check(pid() != before, "the same process")
        job.check_running()
    # also one that waits for a rank that computes
    job.ranks[0].send_signal(signal.SIGSTOP)
    time.sleep(0.3)
    run("systemctl", "restart", "hccld.service")
    job.ranks[0].send_signal(signal.SIGCONT)
    job.check_running()
    job.kill()


def case_reload():
    job = Job().ready()
    before = pid()
    configure("log_level = debug\ncopy_threads = 3\n")
    run("systemctl", "reload", "hccld.service")
    job.check_running()
    check(pid() == before, "another process")
    text = run("journalctl", "-u", "hccld.service", "-n", "20")[1]
    check("log_level is debug now" in text and "copy_threads" in text and "needs a restart" in text, text)
    configure("devices = many\n")
    check(run("systemctl", "reload", "hccld.service", ok=False)[0] != 0, "a wrong file is no error of reload")
    text = run("journalctl", "-u", "hccld.service", "-n", "20")[1]
    check("devices is 'many'" in text, text)
    check(show("ActiveState") == "active", "it has ended")
    job.check_running(0.2)
    check(pid() == before, "another process")
    job.kill()


def case_kill():
    job = Job().ready()
    for _ in range(2):
        before = pid()
        os.kill(before, signal.SIGKILL)
        wait_for(lambda: show("ActiveState") == "active" and pid() not in (0, before), 10, "started again")
        job.check_running()
    job.kill()


def freeze_and_wait(thread):
    before, start = pid(), time.monotonic()
    frozen = subprocess.Popen(["/opt/test/freeze", str(before), thread], stdout=subprocess.PIPE, text=True)
    check(frozen.stdout.readline() == "frozen\n", "could not stop the thread")
    wait_for(lambda: show("ActiveState") == "active" and pid() not in (0, before), 30, "the watchdog starts it again")
    frozen.kill()
    frozen.wait()
    return time.monotonic() - start


def case_watchdog():
    set_options("WatchdogSec=2s\n")
    fresh()
    job = Job().ready()
    # longer than the watchdog's time: a healthy daemon is left alone, working and idle
    before = pid()
    job.check_running(3)
    for thread in "hccld-engine", "hccld":
        freeze_and_wait(thread)
        job.check_running()
        check("watchdog" in run("journalctl", "-u", "hccld.service", "-n", "60")[1].lower(), "no word of the watchdog")
        before = pid()
    job.kill()
    time.sleep(3)
    check(pid() == before, "an idle daemon was taken for dead")


def case_stop():
    fresh()
    start = time.monotonic()
    run("systemctl", "stop", "hccld.service")
    check(time.monotonic() - start < 2 * SCALE, "an idle stop took %.1f s" % (time.monotonic() - start))
    # work in flight that finishes: the ring's ranks find out at their next call
    run("systemctl", "start", "hccld.service")
    job = Job().ready()
    start = time.monotonic()
    run("systemctl", "stop", "hccld.service", "hccld.socket")
    statuses = job.wait(15)
    check(set(statuses) == {3}, "ranks: %s" % statuses)
    # one finds out at its next call, and ends; to the others it may be that, or the stop, whatever comes first
    for rank in range(4):
        check("SIGTERM" in job.error(rank) or "EI0009" in job.error(rank), job.error(rank))
    check(any("SIGTERM" in job.error(rank) for rank in range(4)), job.error(0))


def case_stop_in_flight():
    configure("stop_grace = %ds\n" % GRACE)
    fresh()
    job = Job().ready()
    job.ranks[2].send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    start = time.monotonic()
    run("systemctl", "stop", "hccld.service", "hccld.socket")
    took = time.monotonic() - start
    check(GRACE - 1 < took < (GRACE + 8) * SCALE, "a stop with work in flight took %.1f s" % took)
    job.ranks[2].send_signal(signal.SIGCONT)
    statuses = job.wait(15)
    check(set(statuses) == {3}, "ranks: %s" % statuses)
    for rank in range(4):
        check("SIGTERM" in job.error(rank), job.error(rank))
    # not by its unit: of the last lines of a process the journal may not find out any more where they came from
    text = run("journalctl", "-n", "200")[1]
    check("ended by the stop" in text and "rank 2" in text, text)
    check(show("Result") == "success", "result: " + show("Result"))


def fill(path, size="2m"):
    """A full tmpfs on @path."""
    run("mount", "-t", "tmpfs", "-o", "mode=1777,size=" + size, "full", path)
    run("sh", "-c", "cat /dev/zero >%s/filler 2>/dev/null" % path, ok=False)


def case_full_log():
    os.makedirs("/var/log/journal", exist_ok=True)
    fill("/var/log/journal")
    run("systemctl", "restart", "systemd-journald.service")
    job = Job().ready()
    for _ in range(2):
        before = pid()
        run("systemctl", "restart", "hccld.service")
        check(pid() != before, "the same process")
        job.check_running()
    job.kill()
    run("umount", "-l", "/var/log/journal")
    os.rmdir("/var/log/journal")
    run("systemctl", "restart", "systemd-journald.service")


def case_no_journal():
    units = ["systemd-journald.service", "systemd-journald.socket", "systemd-journald-dev-log.socket"]
    job = Job().ready()
    run("systemctl", "stop", *reversed(units))
    job.check_running()
    before = pid()
    # what is logged goes nowhere, and nothing waits for it
    for _ in range(300):
        os.kill(before, signal.SIGHUP)
    run("hcclctl", "status")
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: show("ActiveState") == "active" and pid() not in (0, before), 10, "started again")
    job.check_running()
    job.kill()
    run("systemctl", "start", *units)


def case_stopped_journal():
    journal = int(show("MainPID", "systemd-journald.service"))
    job = Job().ready()
    os.kill(journal, signal.SIGSTOP)
    try:
        before = pid()
        for _ in range(6000):
            os.kill(before, signal.SIGHUP)
            time.sleep(0.0003)
        run("hcclctl", "status", seconds=10)
        job.check_running()
        check(pid() == before, "another process")
    finally:
        os.kill(journal, signal.SIGCONT)
    job.kill()


def case_full_tmpfs():
    job = Job().ready()
    for path in "/dev/shm", "/tmp":
        fill(path)
    info = os.statvfs("/run")
    used = (info.f_blocks - info.f_bfree) * info.f_frsize
    run("mount", "-o", "remount,size=%d" % (used + (1 << 20)), "/run")
    run("sh", "-c", "cat /dev/zero >/run/filler 2>/dev/null || true", ok=False)
    try:
        check(os.statvfs("/run").f_bavail == 0, "/run is not full")
        before = pid()
        os.kill(before, signal.SIGKILL)
        wait_for(lambda: pid() not in (0, before), 10, "started again")
        wait_for(lambda: run("hcclctl", "status", ok=False)[0] == 0, 10, "serves again")
        job.check_running()
        ring(12)
    finally:
        os.unlink("/run/filler")
        run("mount", "-o", "remount,size=%d" % (info.f_blocks * info.f_frsize), "/run")
        for path in "/dev/shm", "/tmp":
            run("umount", "-l", path)
    # and without the mount at all
    run("umount", "-l", "/dev/shm")
    run("systemctl", "restart", "hccld.service")
    job.check_running()
    ring(12)
    run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/dev/shm")
    job.kill()


def memory_group(limit):
    """A control group with a limit of memory, by whichever controller there is: (its folder, what to undo). Or None."""
    controllers = "/sys/fs/cgroup/cgroup.controllers"
    if os.path.exists(controllers):
        with open(controllers, encoding="utf-8") as file:
            if "memory" not in file.read().split():
                return None
        folder, name, mount = "/sys/fs/cgroup/hccld-limited", "memory.max", None
    else:
        mount = tempfile.mkdtemp()
        if run("mount", "-t", "cgroup", "-o", "memory", "cgroup", mount, ok=False)[0]:
            return None
        folder, name = mount + "/hccld-limited-%d" % os.getpid(), "memory.limit_in_bytes"
    os.mkdir(folder)
    try:
        with open(folder + "/" + name, "w", encoding="utf-8") as file:
            file.write(str(limit))
    except OSError:
        os.rmdir(folder)
        return None
    return folder, mount


def case_memory_limit():
    group = memory_group(64 << 20)
    if not group:
        print("memory_limit: this kernel gives us no memory controller: not tried", flush=True)
        return
    folder, mount = group
    try:
        bystander = Job().ready()
        sign = "/opt/test/jobs/eat-%d" % os.getpid()
        job = Job(environments={2: {"LD_PRELOAD": "/opt/test/eat.so", "HCCLD_TEST_EAT": sign}}).ready()
        with open(folder + "/cgroup.procs", "w", encoding="utf-8") as file:
            file.write(str(job.ranks[2].pid))
        before = pid()
        # its device memory is the daemon's: more than the limit, and within it
        job.check_running(0.5)
        with open(sign, "w", encoding="utf-8"):
            pass
        job.ranks[2].wait(30 * SCALE)
        statuses = job.wait(30)
        check(statuses == [3, 3, -signal.SIGKILL, 3], "ranks: %s" % statuses)
        # how it ended the kernel shows an unprivileged daemon only once its parent has waited for it
        check(any(re.search("rank 2, pid [0-9]+, (killed by signal 9|ended)", job.error(rank)) for rank in (0, 1, 3)), job.error(0))
        bystander.check_running()
        check(pid() == before, "another process")
        wait_for(lambda: sessions() == 4, 5, "the sessions of the job are gone")
        bystander.kill()
        ring(12)
    finally:
        os.rmdir(folder)
        if mount:
            run("umount", mount)


ALLOCATE = """
import ctypes, sys
acl = ctypes.CDLL("libascendcl.so")
acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
place, status = ctypes.c_void_p(), acl.aclInit(None) or acl.aclrtSetDevice(0)
for mib in sys.argv[1:]:
    status = status or acl.aclrtMalloc(ctypes.byref(place), ctypes.c_size_t(int(mib) << 20), 0)
print(status, (acl.aclGetRecentErrMsg() or b"").decode())
"""


# The daemon's engine writes all of an HCCL buffer, which is backed when it is written.
FILL = """
import ctypes
hccl = ctypes.CDLL("libhccl.so")
hccl.aclGetRecentErrMsg.restype = ctypes.c_char_p
comm, buffer, place, stream = (ctypes.c_void_p() for _ in range(4))
size, mib, root = ctypes.c_uint64(), ctypes.c_size_t(1 << 20), ctypes.create_string_buffer(4108)
status = hccl.aclrtSetDevice(0) or hccl.HcclGetRootInfo(root)
status = status or hccl.HcclCommInitRootInfo(ctypes.c_uint32(1), root, ctypes.c_uint32(0), ctypes.byref(comm))
status = status or hccl.HcclGetHcclBuffer(comm, ctypes.byref(buffer), ctypes.byref(size))
status = status or hccl.aclrtMalloc(ctypes.byref(place), mib, 0) or hccl.aclrtCreateStream(ctypes.byref(stream))
print("has", size.value >> 20, "MiB:", status, (hccl.aclGetRecentErrMsg() or b"").decode())
for i in range(size.value >> 20):
    status = status or hccl.aclrtMemcpyAsync(ctypes.c_void_p(buffer.value + (i << 20)), mib, place, mib, 3, stream)
status = status or hccl.aclrtSynchronizeStream(stream)
print("filled:", status, (hccl.aclGetRecentErrMsg() or b"").decode())
"""


def case_memory_limit_of_the_daemon():
    """Who asks for more than its control group may have is refused, and nobody is killed."""
    group = memory_group(256 << 20)
    if not group:
        print("memory_limit_of_the_daemon: this kernel gives us no memory controller: not tried", flush=True)
        return
    folder, mount = group
    job = Job().ready()
    before = pid()
    try:
        with open(folder + "/cgroup.procs", "w", encoding="utf-8") as file:
            file.write(str(before))
        for sizes in ["512"], ["40"] * 20, ["3"] * 200:
            asks = as_user("alice", ["python3", "-c", ALLOCATE, *sizes], stdout=subprocess.PIPE)
            text = asks.communicate(timeout=60 * SCALE)[0]
            check("control group" in text, "%s: %s" % (sizes, text))
            check(pid() == before, "another process")
        for _ in range(3):
            fills = as_user("alice", ["python3", "-c", FILL], stdout=subprocess.PIPE)
            text = fills.communicate(timeout=60 * SCALE)[0]
            check("has 400 MiB: 0" in text and re.search("filled: [1-9]", text), text)
            check(pid() == before, "another process after: %s" % text)
        job.check_running()
        ring(12)
        run("systemctl", "restart", "hccld.service")
        job.check_running()
        job.kill()
    finally:
        run("systemctl", "stop", "hccld.service")
        os.rmdir(folder)
        if mount:
            run("umount", mount)


GRACE = 3
CASES = {name[5:]: function for name, function in sorted(globals().items()) if name.startswith("case_")}


def prepare():
    # as the README has it
    run("systemd-sysusers")
    run("systemd-tmpfiles", "--create", "--prefix=/run/hccld")
    check(os.stat("/run/hccld").st_uid == pwd.getpwnam("hccld").pw_uid, "the directory is not the daemon's")
    for name, groups in ("alice", ["--groups", "hccld"]), ("bob", []):
        run("useradd", "--no-create-home", *groups, name)
    os.makedirs("/opt/test/jobs", exist_ok=True)
    run("systemctl", "daemon-reload")
    run("systemctl", "start", "dbus.service")


def one(name):
    start = time.monotonic()
    if os.path.exists(DROP_IN):
        run("rm", "-r", DROP_IN)
        run("systemctl", "daemon-reload")
    run("rm", "-rf", CONFIGURATION)
    run("systemctl", "reset-failed")
    # a new registry, too: one that has ended the daemon three times within 10 s of its start is dropped
    fresh()
    try:
        CASES[name]()
    except (Failure, subprocess.TimeoutExpired, OSError) as error:
        print("FAILED %s: %s" % (name, error))
        print(run("journalctl", "--no-pager", "-n", "60", ok=False)[1])
        print(run("systemctl", "status", "--no-pager", "hccld.service", ok=False)[1])
        return 1
    print("ok %s, %.1f s" % (name, time.monotonic() - start), flush=True)
    return 0


def main():
    prepare()
    failures = 0
    for name in sys.argv[1:] or CASES:
        failures += one(name)
        if failures:
            break
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
