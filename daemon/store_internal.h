/* What the files of the store share. */
#ifndef BISECTD_DAEMON_STORE_INTERNAL_H
#define BISECTD_DAEMON_STORE_INTERNAL_H

#include "sql.h"

struct store {
	struct sql *sql;
	int lock; /* descriptor that holds the state folder's lock */
};

#endif
