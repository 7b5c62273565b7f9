/* See report_artifact.h. */
#include "report_artifact.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs.h"

/* Up to `limit` bytes; -1 with errno. */
static int read_some(int fd, size_t limit, struct str *text)
{
	char buffer[16384];
	while (text->length < limit) {
		size_t most = limit - text->length < sizeof buffer ? limit - text->length : sizeof buffer;
		ssize_t got = read(fd, buffer, most);
		if (got == 0)
			break;
		if (got < 0 && errno != EINTR)
			return -1;
		if (got > 0)
			str_append_bytes(text, buffer, (size_t)got);
	}
	return 0;
}

static void cut_at_line(struct str *text)
{
	size_t end = ARTIFACT_LIMIT;
	while (end > 0 && text->data[end - 1] != '\n')
		end--;
	text->length = end > 0 ? end : ARTIFACT_LIMIT;
	text->data[text->length] = '\0';
}

int report_artifact_read(const char *state_folder, const char *path, struct str *text, bool *cut, struct error *error)
{
	cleanup_free char *folder = path_join(state_folder, "evidence");
	cleanup_free char *file = path_join(state_folder, path);
	cleanup_free char *real_folder = realpath(folder, NULL);
	cleanup_free char *real_file = realpath(file, NULL);
	if (real_folder == NULL || real_file == NULL)
		return error_set_errno(error, "%s", path);
	size_t length = strlen(real_folder);
	if (strncmp(real_file, real_folder, length) != 0 || real_file[length] != '/')
		return error_set(error, "%s: leads out of the evidence", path);
	/* not blocking: opening a FIFO would wait for its writer */
	cleanup_fd int fd = open(real_file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat status;
	if (fd < 0 || fstat(fd, &status) != 0)
		return error_set_errno(error, "%s", path);
	if (!S_ISREG(status.st_mode))
		return error_set(error, "%s: not a regular file", path);
	if (read_some(fd, ARTIFACT_LIMIT + 1, text) < 0)
		return error_set_errno(error, "%s", path);
	*cut = text->length > ARTIFACT_LIMIT;
	if (*cut)
		cut_at_line(text);
	return 0;
}
