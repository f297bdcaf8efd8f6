/* SPDX-License-Identifier: Apache-2.0 */
/* Who has heard that a communicator failed. Control thread. */
#include <stdlib.h>

#include "registry/comm.h"
#include "registry/session.h"

void comm_tell(struct comm *comm, const struct session *session, uint32_t rank)
{
	struct told *larger;

	if (comm->told_count == comm->told_room) {
		larger = realloc(comm->told, (comm->told_room + 64) * sizeof(*larger));
		/* it is told twice then */
		if (!larger)
			return;
		comm->told = larger;
		comm->told_room += 64;
	}
	comm->told[comm->told_count++] = (struct told){ session->view.id, rank };
}

bool comm_was_told(const struct comm *comm, const struct session *session, uint32_t rank)
{
	for (uint32_t i = 0; i < comm->told_count; i++)
		if (comm->told[i].session == session->view.id && comm->told[i].rank == rank)
			return true;
	return false;
}
