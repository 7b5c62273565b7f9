/* SHA-256 over named parts: the keys of cells and preparations, and the identity of files (FIPS 180-4, by nettle). */
#ifndef BISECTD_COMMON_DIGEST_H
#define BISECTD_COMMON_DIGEST_H

#include <nettle/sha2.h>
#include <stddef.h>

struct digest {
	struct sha256_ctx context;
};

void digest_start(struct digest *digest);
void digest_add_bytes(struct digest *digest, const void *bytes, size_t length);
/* Name and value with their lengths, so that no two different sequences of parts hash alike.  NULL differs from "". */
void digest_add(struct digest *digest, const char *name, const char *value);
void digest_add_number(struct digest *digest, const char *name, long long value);
/* 64 lower-case hexadecimal digits, owned by the caller. */
char *digest_finish(struct digest *digest);
/* The hexadecimal form of any bytes, owned by the caller. */
char *hex_encode(const unsigned char *bytes, size_t length);

#endif
