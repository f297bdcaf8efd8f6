/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI on the common workload: mpirun bench_mpi CASE... A batch is one MPI_Irecv or MPI_Isend per item and one MPI_Waitall.
 * mpirun bench_mpi scale: as bench_scale.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "measure.h"
#include "workload.h"

static MPI_Request *requests;
static const struct workload_item *batch;

void contender_prepare(const struct workload_item *items, uint32_t count)
{
	free(requests);
	requests = calloc(count, sizeof(*requests));
	batch = items;
}

void contender_batch(uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct workload_item *item = &batch[first + i];

		if (item->sends)
			MPI_Isend(item->buffer, (int)item->size, MPI_BYTE, (int)item->peer, 0, MPI_COMM_WORLD, &requests[i]);
		else
			MPI_Irecv(item->buffer, (int)item->size, MPI_BYTE, (int)item->peer, 0, MPI_COMM_WORLD, &requests[i]);
	}
	MPI_Waitall((int)count, requests, MPI_STATUSES_IGNORE);
}

void contender_barrier(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

uint64_t contender_broadcast(uint64_t value)
{
	MPI_Bcast(&value, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	return value;
}

uint64_t contender_maximum(uint64_t value)
{
	uint64_t result;

	MPI_Allreduce(&value, &result, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
	return result;
}

/* Every rank sends 8 bytes to every other. */
static void scale(const char *name, int rank, int size)
{
	struct workload_item *items = calloc((size_t)size * 2, sizeof(*items));
	char *buffers[2] = { calloc((size_t)size, 64), calloc((size_t)size, 64) };
	const char *start = getenv("SCALE_START_NS");
	uint64_t now, pss, sum;
	uint32_t n = 0;

	for (int sends = 0; sends < 2; sends++)
		for (int d = 1; d < size; d++)
			items[n++] = (struct workload_item){
				.peer = (uint32_t)((rank + (sends ? d : size - d)) % size), .sends = sends, .size = 8,
				.buffer = buffers[sends] + 64 * d,
			};
	contender_prepare(items, n);
	contender_batch(0, n);
	contender_barrier();
	now = measure_now_ns();
	pss = measure_pss_kib(0);
	contender_barrier();
	MPI_Reduce(&pss, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("scale peer=%s np=%d up_ms=%.1f pss_mib=%.1f\n", name, size,
		       start ? (double)(now - strtoull(start, NULL, 10)) / 1e6 : 0.0, (double)sum / 1024);
}

/* Before MPI_Init() places memory and threads. */
static void place(void)
{
	static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getenv(names[i]))
			measure_place((uint32_t)strtoul(getenv(names[i]), NULL, 10));
}

int main(int argc, char **argv)
{
	struct workload workload;
	int rank, size, bad = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	place();
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	workload_init(&workload, "mpi", (uint32_t)rank, (uint32_t)size, argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "scale") == 0) {
		scale(workload.name, rank, size);
	} else {
		for (int i = 0; i < 2; i++) {
			workload.areas[i] = mmap(NULL, workload.area, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (workload.areas[i] == MAP_FAILED)
				MPI_Abort(MPI_COMM_WORLD, 1);
			measure_populate(workload.areas[i], workload.area);
		}
		bad = workload_run(&workload, argc - 1, argv + 1);
	}
	MPI_Finalize();
	return bad != 0;
}
