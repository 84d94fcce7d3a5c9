/* One line at a time, in place. */
#include "base/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"

rudder_status_t lines_open(const char *path, lines_t *lines, rudder_error_t *error)
{
    struct stat about;
    *lines = (lines_t){.path = path, .file = fopen(path, "rbe")};
    if (lines->file == NULL || fstat(fileno(lines->file), &about) != 0) {
        const rudder_status_t status =
            RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
        lines_close(lines);
        return status;
    }
    if (S_ISDIR(about.st_mode)) {
        lines_close(lines);
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a text, found a directory", path);
    }
    return RUDDER_OK;
}

/* Reads a line whole; *end is 1 when there is none any more. */
static rudder_status_t lines_read(lines_t *lines, int *end, rudder_error_t *error)
{
    char *text = lines->text;
    memset(text, 1, sizeof lines->text); /* so that the last zero byte is the one that ends what was read */
    *end = fgets(text, sizeof lines->text, lines->file) == NULL;
    if (*end) {
        return ferror(lines->file)
                   ? RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be read: %s", lines->path, strerror(errno))
                   : RUDDER_OK;
    }
    snprintf(lines->where, sizeof lines->where, "%.200s: line %" PRId64, lines->path, ++lines->number);
    const size_t n = strlen(text);
    const int whole = n > 0 && (text[n - 1] == '\n' || feof(lines->file));
    if (!whole || text + n != memrchr(text, '\0', sizeof lines->text) || strcspn(text, "\r\n") > LINES_MOST) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a line of text of at most %d bytes, found none",
                           lines->where, LINES_MOST);
    }
    return RUDDER_OK;
}

rudder_status_t lines_next(lines_t *lines, char **line, rudder_error_t *error)
{
    static const char blanks[] = " \t\r\n";
    int end;
    for (*line = NULL; *line == NULL;) {
        RUDDER_TRY(lines_read(lines, &end, error));
        if (end) {
            break;
        }
        char *text = lines->text + strspn(lines->text, blanks);
        size_t n = strcspn(text, "#");
        while (n > 0 && strchr(blanks, text[n - 1]) != NULL) {
            n--;
        }
        text[n] = '\0';
        *line = n > 0 ? text : NULL;
    }
    return RUDDER_OK;
}

void lines_close(lines_t *lines)
{
    if (lines->file != NULL) {
        fclose(lines->file);
    }
    lines->file = NULL;
}
