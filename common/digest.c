/* See digest.h. */
#include "digest.h"

#include <stdio.h>
#include <string.h>

#include "str.h"

void digest_start(struct digest *digest)
{
	sha256_init(&digest->context);
}

void digest_add_bytes(struct digest *digest, const void *bytes, size_t length)
{
	sha256_update(&digest->context, length, bytes);
}

void digest_add(struct digest *digest, const char *name, const char *value)
{
	cleanup_free char *head = value != NULL ? text_format("%zu:%s=%zu:", strlen(name), name, strlen(value))
						: text_format("%zu:%s!", strlen(name), name);
	digest_add_bytes(digest, head, strlen(head));
	if (value != NULL)
		digest_add_bytes(digest, value, strlen(value));
}

void digest_add_number(struct digest *digest, const char *name, long long value)
{
	cleanup_free char *text = text_format("%lld", value);
	digest_add(digest, name, text);
}

char *hex_encode(const unsigned char *bytes, size_t length)
{
	static const char digits[] = "0123456789abcdef";
	char *hex = memory_new(length * 2 + 1, 1);
	for (size_t i = 0; i < length; i++) {
		hex[i * 2] = digits[bytes[i] >> 4];
		hex[i * 2 + 1] = digits[bytes[i] & 15];
	}
	return hex;
}

char *digest_finish(struct digest *digest)
{
	unsigned char bytes[SHA256_DIGEST_SIZE];
	sha256_digest(&digest->context, sizeof bytes, bytes);
	return hex_encode(bytes, sizeof bytes);
}
