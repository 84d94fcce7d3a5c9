/*
 * Messages and the progress line. Each message is one write(), so that lines of several ranks and threads never mix; on a
 * terminal it first erases the progress line. Under a launcher standard error is a pipe: the parent that knows the
 * terminal passes its width on in RUDDER_TERMINAL_COLUMNS, and the ranks draw through the launcher.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static log_level_t log_level = LOG_INFO;
static int32_t log_rank = -1;
static int32_t log_columns; /* width of the progress line, 0: no progress */
static int log_terminal;    /* standard error ends on a terminal */
static int log_colour;
static double log_drawn_at;
static int log_drawn; /* a progress line stands on the terminal */

int32_t log_terminal_columns(int fd)
{
    struct winsize window;
    const char *told = getenv("RUDDER_TERMINAL_COLUMNS");
    if (isatty(fd)) {
        return ioctl(fd, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : 80;
    }
    return told != NULL && fd == STDERR_FILENO && atoi(told) > 0 ? atoi(told) : 0;
}

void log_setup(log_level_t level, int32_t rank, int progress)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    const int32_t columns = log_terminal_columns(STDERR_FILENO);
    const int dumb = term == NULL || strcmp(term, "dumb") == 0;
    log_level = level;
    log_rank = rank;
    log_terminal = columns > 0 && !dumb;
    log_colour = log_terminal && (no_color == NULL || no_color[0] == '\0');
    log_columns = log_terminal && progress && rank <= 0 ? columns : 0;
}

static void log_write(const char *text, size_t n)
{
    while (n > 0) {
        const ssize_t written = write(STDERR_FILENO, text, n);
        if (written <= 0) {
            return; /* nobody listens; a message is no reason to fail */
        }
        text += written;
        n -= (size_t)written;
    }
}

/* Writes "<erase>rudder: [rank N] <kind><text>\n". */
static void log_message(log_level_t level, const char *text)
{
    static const char *const kinds[] = {"", "warning: ", "", ""};
    static const char *const colours[] = {"\033[31m", "\033[33m", "", "\033[2m"};
    const char *colour = log_colour ? colours[level] : "";
    char rank[32] = "";
    char *line;
    if (log_rank > 0) {
        snprintf(rank, sizeof rank, "[rank %d] ", (int)log_rank);
    }
    const int n = asprintf(&line, "%srudder: %s%s%s%s%s\n", log_terminal ? "\r\033[K" : "", rank, colour, kinds[level],
                           text, colour[0] != '\0' ? "\033[0m" : "");
    if (n >= 0) {
        pthread_mutex_lock(&log_lock);
        log_write(line, (size_t)n);
        log_drawn = 0;
        pthread_mutex_unlock(&log_lock);
        free(line);
    }
}

void log_line(log_level_t level, const char *format, ...)
{
    va_list arguments;
    char *text;
    if (level > log_level || (log_rank > 0 && level > LOG_WARN)) {
        return;
    }
    va_start(arguments, format);
    const int n = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (n >= 0) {
        log_message(level, text);
        free(text);
    }
}

void log_error(const rudder_error_t *error)
{
    const char *text = error->text[0] != '\0' ? error->text : rudder_status_text(error->status);
    log_line(LOG_ERROR, "%s (%s)", text, rudder_status_name(error->status));
}

/* Bytes of text that fit in so many columns. */
static size_t log_clip(const char *text, int32_t columns)
{
    size_t n = 0;
    for (; text[n] != '\0'; n++) {
        const int starts = ((unsigned char)text[n] & 0xC0) != 0x80;
        if (starts && columns-- <= 0) {
            break;
        }
    }
    return n;
}

void log_progress(int64_t done, int64_t total, const char *format, ...)
{
    enum { BAR = 24 };
    char text[512], bar[BAR + 1], line[sizeof text + BAR + 64];
    va_list arguments;
    if (log_columns == 0) {
        return;
    }
    pthread_mutex_lock(&log_lock);
    const double now = clock_seconds();
    if (now - log_drawn_at < 0.1) {
        pthread_mutex_unlock(&log_lock);
        return;
    }
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    int n = snprintf(line, sizeof line, "\r\033[K");
    int32_t room = log_columns - 1;
    if (total > 0 && room > BAR + 8) {
        const double share = done <= 0 ? 0 : done >= total ? 1 : (double)done / (double)total;
        const int filled = (int)(share * BAR);
        memset(bar, '.', BAR);
        memset(bar, '=', (size_t)filled);
        bar[BAR] = '\0';
        n += snprintf(line + n, sizeof line - (size_t)n, "[%s] %3d%% ", bar, (int)(share * 100));
        room -= BAR + 8;
    }
    n += snprintf(line + n, sizeof line - (size_t)n, "%.*s", (int)log_clip(text, room), text);
    log_write(line, (size_t)n);
    log_drawn = 1;
    log_drawn_at = now;
    pthread_mutex_unlock(&log_lock);
}

void log_progress_end(void)
{
    pthread_mutex_lock(&log_lock);
    if (log_drawn) {
        log_write("\r\033[K", 4);
        log_drawn = 0;
    }
    pthread_mutex_unlock(&log_lock);
}
