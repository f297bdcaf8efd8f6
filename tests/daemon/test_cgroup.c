/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as they are found on real systems, and where they are cut. */
#include <string.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "tests/support/test.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "pod6d1e2c1b_8a40_4e33_9f6e_cd5d8e2d9c11"

static const struct {
	const char *path, *cut;
} cases[] = {
	/* nothing to cut at */
	{ "/", "" },
	{ "", "" },
	{ "/init.scope", "/init.scope" },
	{ "/user.slice", "" },
	{ "/process_api/1b9bbec9", "" },
	{ "/../../somewhere", "" },
	/* login sessions and services */
	{ "/user.slice/user-1000.slice/session-3.scope",
	  "/user.slice/user-1000.slice/session-3.scope" },
	{ "/user.slice/user-1000.slice/session-c1.scope/nested",
	  "/user.slice/user-1000.slice/session-c1.scope" },
	/* the user names what is below: one tenant */
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.gnome.Terminal.slice/vte-spawn-1.scope",
	  "/user.slice/user-1000.slice/user@1000.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container",
	  "/user.slice/user-1000.slice/user@1000.service" },
	{ "/system.slice/train.service", "/system.slice/train.service" },
	{ "/system.slice/system-getty.slice/getty@tty1.service/job_12",
	  "/system.slice/system-getty.slice/getty@tty1.service" },
	/* Kubernetes: systemd driver, cgroupfs driver, kind, k3s, as seen from a namespace */
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-" POD
	  ".slice/cri-containerd-" ID ".scope",
	  "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-" POD ".slice" },
	{ "/kubepods.slice/kubepods-" POD ".slice/crio-" ID ".scope",
	  "/kubepods.slice/kubepods-" POD ".slice" },
	{ "/kubepods/besteffort/pod2b801b7a-5266-4386-864e-45ed71136371/" ID,
	  "/kubepods/besteffort/pod2b801b7a-5266-4386-864e-45ed71136371" },
	{ "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-" POD
	  ".slice/cri-containerd-" ID ".scope",
	  "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-" POD
	  ".slice" },
	{ "/system.slice/k3s.service/kubepods/burstable/podabc/" ID,
	  "/system.slice/k3s.service/kubepods/burstable/podabc" },
	{ "/system.slice/containerd.service/kubepods-besteffort-" POD ".slice:cri-containerd:" ID,
	  "/system.slice/containerd.service/kubepods-besteffort-" POD
	  ".slice:cri-containerd:" ID },
	{ "/system.slice/containerd.service", "/system.slice/containerd.service" },
	{ "/docker/" ID "/kubelet/kubepods/besteffort/podabc/" ID, "/docker/" ID },
	{ "/../kubepods/burstable/podabc", "/../kubepods/burstable/podabc" },
	/* batch systems: version 1 and 2 */
	{ "/slurm/uid_1000/job_42/step_0/task_3", "/slurm/uid_1000/job_42" },
	{ "/slurm_node7/uid_1000/job_42/step_batch", "/slurm_node7/uid_1000/job_42" },
	{ "/system.slice/slurmstepd.scope/job_42/step_0/user/task_0",
	  "/system.slice/slurmstepd.scope/job_42" },
	{ "/system.slice/node7_slurmstepd.scope/job_42/step_extern/user/task_special",
	  "/system.slice/node7_slurmstepd.scope/job_42" },
	{ "/system.slice/slurmstepd.scope/system", "/system.slice/slurmstepd.scope" },
	{ "/system.slice/slurmd.service", "/system.slice/slurmd.service" },
	{ "/pbs_jobs.service/jobid/123.head", "/pbs_jobs.service/jobid/123.head" },
	{ "/lsf/cluster1/job.77.2211.1700000000", "/lsf/cluster1/job.77.2211.1700000000" },
	/* containers */
	{ "/docker/" ID, "/docker/" ID },
	{ "/system.slice/docker-" ID ".scope", "/system.slice/docker-" ID ".scope" },
	{ "/system.slice/docker-" ID ".scope/init.scope", "/system.slice/docker-" ID ".scope" },
	{ "/default/" ID, "/default/" ID },
	{ "/system.slice/nerdctl-" ID ".scope", "/system.slice/nerdctl-" ID ".scope" },
	{ "/machine.slice/libpod-" ID ".scope/container", "/machine.slice/libpod-" ID ".scope" },
	{ "/libpod_parent/libpod-" ID "/job_1", "/libpod_parent/libpod-" ID },
	{ "/lxc/web/init.scope", "/lxc/web" },
	{ "/lxc.payload.web/system.slice/x.service", "/lxc.payload.web" },
	{ "/machine.slice/machine-debian.scope/payload/system.slice/x.service",
	  "/machine.slice/machine-debian.scope" },
	{ "/machine.slice/systemd-nspawn@debian.service/payload",
	  "/machine.slice/systemd-nspawn@debian.service" },
};

TEST(paths_are_cut_at_the_outermost_unit)
{
	char cut[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cgroup_cut(cases[i].path, cut, sizeof(cut));
		check_msg(strcmp(cut, cases[i].cut) == 0, "%s: cut at '%s' instead of '%s'",
			  cases[i].path, cut, cases[i].cut);
	}
}

TEST(files_of_both_versions)
{
	char cut[256];

	cgroup_cut_file("0::/user.slice/user-1000.slice/session-3.scope\n", cut, sizeof(cut));
	check_eq_str(cut, "/user.slice/user-1000.slice/session-3.scope");
	/* hybrid: version 2 has no more than the root */
	cgroup_cut_file("12:pids:/docker/" ID "\n4:memory:/docker/" ID
			"\n1:name=systemd:/docker/" ID "\n0::/\n",
			cut, sizeof(cut));
	check_eq_str(cut, "/docker/" ID);
	/* version 1: the batch system has only some controllers */
	cgroup_cut_file("9:cpuset:/slurm/uid_1000/job_42/step_0\n8:memory:/\n"
			"1:name=systemd:/system.slice/slurmd.service\n",
			cut, sizeof(cut));
	check_eq_str(cut, "/slurm/uid_1000/job_42");
	cgroup_cut_file("5:cpu,cpuacct:/slurm/uid_1/job_7\n", cut, sizeof(cut));
	check_eq_str(cut, "/slurm/uid_1/job_7");
	/* nonsense */
	static const char *const nonsense[] = { "", "\n", ":", "::", "0:", "0::", "x:y", "0::\n\n",
						"0::relative" };
	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
		cgroup_cut_file(nonsense[i], cut, sizeof(cut));
		check_eq_str(cut, "");
	}
}

TEST(long_names_stay_different)
{
	char path[2048] = "/system.slice/", a[256], b[256];
	size_t length = strlen(path);

	for (int i = 0; i < 7; i++) {
		memset(path + length, 'a' + i, 200);
		length += 200;
		strcpy(path + length++, "/");
	}
	strcpy(path + length, "x.service");
	cgroup_cut(path, a, sizeof(a));
	check_lt_uint(strlen(a), sizeof(a));
	check_eq_int(a[0], '#');
	path[20] = 'z';
	cgroup_cut(path, b, sizeof(b));
	check(strcmp(a, b) != 0);
	check_str_contains(a, "x.service");
	/* deeper than anything that makes sense, and a component that is too long */
	for (length = 0; length < 2000; length += 2)
		strcpy(path + length, "/a");
	cgroup_cut(path, a, sizeof(a));
	check_eq_str(a, "");
	memset(path, 'a', 2000);
	cgroup_cut(path, a, sizeof(a));
	check_eq_str(a, "");
}

TEST(own_cgroup_can_be_read)
{
	char cut[256];

	check_eq_int(cgroup_of_process((int32_t)getpid(), cut, sizeof(cut)), 0);
	check_lt_int(cgroup_of_process(0, cut, sizeof(cut)), 0);
	check_lt_int(cgroup_of_process(INT32_MAX, cut, sizeof(cut)), 0);
}
