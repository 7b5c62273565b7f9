/* What a webhook carries: bodies for each kind of receiver, their signature, and the secrets behind it.  See webhook.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <nettle/hmac.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "digest.h"
#include "fs.h"
#include "webhook.h"

enum {
	SLACK_LIMIT = 40000,  /* characters: "text" of chat.postMessage and incoming webhooks; more is cut by Slack */
	GITHUB_LIMIT = 65536, /* characters: "body is too long (maximum is 65536 characters)" */
	SECRET_LIMIT = 64 << 10
};

/* How the text around a cut must be mended. */
struct dialect {
	size_t limit; /* in UTF-16 code units, so that it holds however the receiver counts characters */
	const char *cut_notice;
	/* Append to `end` what closes everything that the first `length` bytes of `text` leave open. */
	void (*close)(const char *text, size_t length, struct str *end);
};

static size_t count_units(const char *text, size_t length)
{
	size_t units = 0;
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)text[i];
		units += (byte & 0xC0) != 0x80; /* the first byte of a character */
		units += byte >= 0xF0;          /* a surrogate pair */
	}
	return units;
}

/* The number of bytes that hold at most `units` units and end between two characters. */
static size_t bytes_within(const char *text, size_t units)
{
	size_t at = 0;
	while (text[at] != '\0') {
		size_t size = 1;
		while (((unsigned char)text[at + size] & 0xC0) == 0x80)
			size++;
		size_t cost = count_units(text + at, size);
		if (cost > units)
			break;
		units -= cost;
		at += size;
	}
	return at;
}

/* A place to cut at or before `length`: a line's end where one is near, never inside `&amp;` or a run of backticks. */
static size_t good_cut(const char *text, size_t length)
{
	enum { NEAR = 2000, LONGEST_ENTITY = 5 };
	for (size_t at = length; at > 0 && length - at < NEAR; at--)
		if (text[at - 1] == '\n')
			return at - 1;
	for (size_t at = length; at > 0 && length - at < LONGEST_ENTITY; at--) {
		if (text[at - 1] == ';')
			break;
		if (text[at - 1] == '&')
			return at - 1;
	}
	while (length > 0 && (text[length - 1] == '`' || text[length - 1] == '~'))
		length--;
	return length;
}

/* Slack: three backticks anywhere open and close preformatted text. */
static void close_slack(const char *text, size_t length, struct str *end)
{
	bool open = false;
	for (size_t i = 0; i + 3 <= length;) {
		bool fence = memcmp(text + i, "```", 3) == 0;
		open ^= fence;
		i += fence ? 3 : 1;
	}
	if (open)
		str_append(end, "\n```");
}

/* The length of the code fence (CommonMark 4.5) that a line starts with, 0 where there is none. */
static size_t fence_length(const char *line, size_t length, size_t *indent)
{
	size_t start = 0;
	while (start < length && start < 4 && line[start] == ' ')
		start++;
	size_t end = start;
	while (start < 4 && end < length && (line[end] == '`' || line[end] == '~') && line[end] == line[start])
		end++;
	*indent = start;
	return end - start >= 3 ? end - start : 0;
}

static bool is_blank_to_end(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
			return false;
	return true;
}

static size_t count_text(const char *text, size_t length, const char *word)
{
	size_t count = 0;
	for (size_t size = strlen(word), i = 0; i + size <= length; i++)
		count += memcmp(text + i, word, size) == 0;
	return count;
}

/* GitHub-flavoured Markdown: fenced code, and <details> outside of it. */
static void close_markdown(const char *text, size_t length, struct str *end)
{
	size_t open = 0; /* the open fence's length */
	char mark = '`';
	size_t details = 0;
	for (size_t at = 0; at < length;) {
		const char *line = text + at;
		const char *newline = memchr(line, '\n', length - at);
		size_t size = newline != NULL ? (size_t)(newline - line) : length - at;
		size_t indent = 0;
		size_t fence = fence_length(line, size, &indent);
		const char *rest = line + indent + fence;
		size_t rest_size = size - indent - fence;
		if (open > 0) {
			if (fence >= open && line[indent] == mark && is_blank_to_end(rest, rest_size))
				open = 0;
		} else if (fence > 0 && (line[indent] == '~' || memchr(rest, '`', rest_size) == NULL)) {
			open = fence;
			mark = line[indent];
		} else {
			size_t closed = count_text(line, size, "</details>");
			details += count_text(line, size, "<details");
			details -= closed < details ? closed : details;
		}
		at += size + 1;
	}
	if (open > 0)
		str_append(end, "\n");
	for (size_t i = 0; i < open; i++)
		str_append_bytes(end, &mark, 1);
	for (size_t i = 0; i < details; i++)
		str_append(end, "\n</details>");
}

/* Cut `text` down to the dialect's limit, with a line that says so. */
static void cut_text(struct str *text, const struct dialect *dialect)
{
	const char *notice = dialect->cut_notice;
	if (count_units(str_text(text), text->length) <= dialect->limit)
		return;
	size_t most = dialect->limit - count_units(notice, strlen(notice));
	for (size_t room = most;;) {
		cleanup_str struct str end = {0};
		size_t cut = good_cut(text->data, bytes_within(text->data, room));
		dialect->close(text->data, cut, &end);
		size_t units = count_units(text->data, cut) + count_units(str_text(&end), end.length);
		if (units <= most) {
			text->length = cut;
			str_append(text, str_text(&end));
			str_append(text, notice);
			return;
		}
		room -= units - most < room ? units - most : room;
	}
}

static const char *member(const json_t *finding, const char *name)
{
	const char *value = json_string_value(json_object_get(finding, name));
	return value != NULL ? value : "";
}

static void append_escaped(struct str *str, const char *text)
{
	for (; *text != '\0'; text++) {
		switch (*text) {
		case '&':
			str_append(str, "&amp;");
			break;
		case '<':
			str_append(str, "&lt;");
			break;
		case '>':
			str_append(str, "&gt;");
			break;
		default:
			str_append_bytes(str, text, 1);
		}
	}
}

static void slack_text(const json_t *finding, struct str *text)
{
	const char *title = member(finding, "title");
	const char *bold = *title != '\0' && strpbrk(title, "*\n") == NULL ? "*" : "";
	str_append(text, bold);
	append_escaped(text, title);
	str_append(text, bold);
	if (*member(finding, "link") != '\0') { /* in front: the end may be cut off */
		str_append(text, "\nThe whole report: ");
		append_escaped(text, member(finding, "link"));
	}
	if (*title != '\0' && *member(finding, "text") != '\0')
		str_append(text, "\n");
	append_escaped(text, member(finding, "text"));
}

static void github_text(const json_t *finding, struct str *text)
{
	const char *markdown = member(finding, "markdown");
	if (*member(finding, "link") != '\0')
		str_append_format(text, "The whole report: <%s>\n\n", member(finding, "link"));
	str_append(text, *markdown != '\0' ? markdown : member(finding, "title"));
}

/* Owned by the caller.  A finding is a tree of valid UTF-8, so only memory can be missing. */
static char *dump(const json_t *json)
{
	char *text = json_dumps(json, JSON_COMPACT);
	if (text == NULL)
		memory_exhausted();
	return text;
}

char *webhook_body(enum webhook_format format, const json_t *finding)
{
	static const struct {
		const char *member;
		void (*write)(const json_t *finding, struct str *text);
		struct dialect dialect;
	} forms[] = {
		[WEBHOOK_SLACK] = {"text",
				   slack_text,
				   {SLACK_LIMIT,
				    "\n_(cut here: too long for Slack; the whole text is in bisectd's report)_",
				    close_slack}},
		[WEBHOOK_GITHUB_ISSUE_COMMENT] =
			{"body",
			 github_text,
			 {GITHUB_LIMIT,
			  "\n\n*(cut here: too long for a comment; the whole text is in bisectd's report)*\n",
			  close_markdown}},
	};
	size_t row = (size_t)format;
	if (row >= sizeof forms / sizeof *forms || forms[row].write == NULL)
		return dump(finding);
	cleanup_str struct str text = {0};
	forms[row].write(finding, &text);
	cut_text(&text, &forms[row].dialect);
	json_t *object = json_pack("{s:s}", forms[row].member, str_text(&text));
	if (object == NULL)
		memory_exhausted();
	char *body = dump(object);
	json_decref(object);
	return body;
}

char *webhook_sign(const char *secret, const char *body)
{
	struct hmac_sha256_ctx context;
	unsigned char digest[SHA256_DIGEST_SIZE];
	hmac_sha256_set_key(&context, strlen(secret), (const unsigned char *)secret);
	hmac_sha256_update(&context, strlen(body), (const unsigned char *)body);
	hmac_sha256_digest(&context, sizeof digest, digest);
	return hex_encode(digest, sizeof digest);
}

static int check_secret_file(const char *file, const struct stat *status, struct error *error)
{
	cleanup_str struct str word = {0};
	str_append_shell_word(&word, file);
	if (!S_ISREG(status->st_mode))
		return error_set(error, "secret file %s: not a regular file", file);
	if (status->st_uid != geteuid() && status->st_uid != 0)
		return error_set(
			error,
			"secret file %s: belongs to user %lu, who is neither this user nor root; run: chown %lu %s",
			file, (unsigned long)status->st_uid, (unsigned long)geteuid(), word.data);
	if ((status->st_mode & (S_IRWXG | S_IRWXO)) != 0)
		return error_set(error, "secret file %s: mode %04o lets others at it; run: chmod 600 %s", file,
				 (unsigned)(status->st_mode & 07777), word.data);
	return 0;
}

/* All that is in `fd`, but at most one byte more than is allowed. */
static int read_all(int fd, struct str *contents)
{
	char buffer[4096];
	while (contents->length <= SECRET_LIMIT) {
		ssize_t got = read(fd, buffer, sizeof buffer);
		if (got == 0)
			break;
		if (got < 0 && errno != EINTR)
			return -1;
		if (got > 0)
			str_append_bytes(contents, buffer, (size_t)got);
	}
	explicit_bzero(buffer, sizeof buffer);
	return 0;
}

static int read_secret_file(const char *file, struct str *contents, struct error *error)
{
	/* Not blocking: opening a FIFO would wait for its writer. */
	cleanup_fd int fd = open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat status;
	if (fd < 0 || fstat(fd, &status) != 0)
		return error_set_errno(error, "secret file %s", file);
	if (check_secret_file(file, &status, error) != 0)
		return -1;
	if (read_all(fd, contents) != 0)
		return error_set_errno(error, "secret file %s", file);
	if (contents->length > 0 && contents->data[contents->length - 1] == '\n')
		contents->data[--contents->length] = '\0';
	return 0;
}

int webhook_read_secret(const char *file, const char *variable, char **secret, struct error *error)
{
	*secret = NULL;
	if (file == NULL && variable == NULL)
		return 0;
	cleanup_str struct str contents = {0};
	cleanup_free char *place =
		file != NULL ? text_format("secret file %s", file) : text_format("environment variable %s", variable);
	if (file != NULL) {
		if (read_secret_file(file, &contents, error) != 0)
			return -1;
	} else {
		const char *value = getenv(variable);
		if (value == NULL)
			return error_set(error, "%s: not set", place);
		str_append(&contents, value);
	}
	if (contents.length == 0)
		return error_set(error, "%s: empty", place);
	if (contents.length > SECRET_LIMIT)
		return error_set(error, "%s: longer than %d KiB", place, SECRET_LIMIT >> 10);
	if (memchr(contents.data, '\0', contents.length) != NULL)
		return error_set(error, "%s: holds a zero byte", place);
	*secret = str_steal(&contents);
	return 0;
}
