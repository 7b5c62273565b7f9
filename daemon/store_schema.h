/* schema.sql as text, compiled in by the Makefile. */
#ifndef BISECTD_DAEMON_STORE_SCHEMA_H
#define BISECTD_DAEMON_STORE_SCHEMA_H

extern const char store_schema[];

#endif
