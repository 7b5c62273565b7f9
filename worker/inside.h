/*
 * The keeper: the tiny server that runs inside the sandbox (`bisect-worker --inside`) and starts the commands of one
 * job, one after the other.
 *
 * It talks with the worker over the socket that is its standard input; its standard output is the pipe that the
 * commands' output goes to.  Inside bubblewrap it is process 1 of its namespace, so that nothing can outlive it;
 * without, it is a subreaper.  It hands out the raw wait status (bubblewrap's own exit status would turn a signal into
 * 128 + n), and before it does, everything that the command left behind is killed.  The socket's end means: kill
 * everything and go.
 */
#ifndef BISECTD_WORKER_INSIDE_H
#define BISECTD_WORKER_INSIDE_H

#include <stdint.h>

/* Sent once, when the keeper is ready. */
struct inside_hello {
	uint32_t magic;
	uint32_t network_left; /* 1 where it was asked to leave the network and could */
};

enum { INSIDE_MAGIC = 0x62697365 };

/* The worker sends orders of one byte; what a command's end made pointless is ignored. */
enum inside_order {
	INSIDE_START = 'S', /* a request follows */
	INSIDE_TERMINATE = 'T',
	INSIDE_KILL = 'K',
};

/* Then `text_bytes` bytes follow: the folder, the command's words, the environment's NAME=VALUE, each with its NUL. */
struct inside_request {
	uint64_t address_space; /* RLIMIT_AS */
	uint64_t tasks;         /* RLIMIT_NPROC; 0: leave it */
	uint64_t file_bytes;    /* RLIMIT_FSIZE */
	uint64_t text_bytes;
	uint32_t words;
	uint32_t variables;
	uint32_t drop; /* 1: become `user` and `group` first */
	uint32_t user;
	uint32_t group;
	uint32_t padding;
};

/* Then `text_bytes` bytes follow: why the command could not be started ("" where it could). */
struct inside_answer {
	int32_t status;     /* as from waitpid */
	uint32_t survivors; /* processes of the command that could not be killed */
	uint64_t text_bytes;
};

/* The whole program; returns the exit status. */
int inside_main(int argc, char **argv);

#endif
