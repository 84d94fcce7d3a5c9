/*
 * The small files and folders around the arrays: reading the .json of a graph or partition directory with messages that
 * name the file, and folders that appear whole or not at all.
 */
#ifndef RUDDER_GRAPH_FILES_H
#define RUDDER_GRAPH_FILES_H

#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "base/json.h"
#include "rudder/status.h"

enum { FILES_MAX_PATH = 4096 };

/* path[FILES_MAX_PATH] = directory/name. Errors: ARGUMENT (too long). */
rudder_status_t files_join(const char *directory, const char *name, char *path, rudder_error_t *error);

/* The last part of a path, cut to size - 1 bytes: what a folder is called when it has no name. Returns text. */
char *files_name(const char *path, char *text, size_t size);

/* A JSON object on disk, and its path for messages. */
typedef struct files_json {
    char path[FILES_MAX_PATH];
    cJSON *object;
} files_json_t;

/* Reads directory/name, whose members "format" and "version" must be `format` and 1. Errors: IO, DATA, MEMORY. */
rudder_status_t files_json_open(const char *directory, const char *name, const char *format, files_json_t *file,
                                rudder_error_t *error);
void files_json_close(files_json_t *file);

/* A member that is a whole number in [low, high]. Errors: DATA. */
rudder_status_t files_json_int(const files_json_t *file, const cJSON *object, const char *key, int64_t low,
                               int64_t high, int64_t *value, rudder_error_t *error);
/* A member that is a string, cut to size - 1 bytes. Errors: DATA. */
rudder_status_t files_json_string(const files_json_t *file, const cJSON *object, const char *key, char *text,
                                  size_t size, rudder_error_t *error);
/* A member that is an array of n items. Errors: DATA. */
rudder_status_t files_json_array(const files_json_t *file, const cJSON *object, const char *key, int64_t n,
                                 const cJSON **array, rudder_error_t *error);
/* Writes what was built to directory/name. Errors: IO, MEMORY. */
rudder_status_t files_json_write(const char *directory, const char *name, const json_t *json, rudder_error_t *error);

/*
 * Reads a whole file of at most `most` bytes into *text (to be freed), with a NUL behind its *n bytes. Errors: IO, DATA
 * (too large, not a file), MEMORY.
 */
rudder_status_t files_read(const char *path, int64_t most, char **text, int64_t *n, rudder_error_t *error);

/* Whether directory/name exists. */
int files_exist(const char *directory, const char *name);

/*
 * A folder in the making: files are written into `work` ("PATH.tmp"), which takes the place of `path` when all is done. What a
 * killed process left there is cleared by the next one; a lock on it keeps two apart.
 */
typedef struct files_folder {
    char path[FILES_MAX_PATH];
    char work[FILES_MAX_PATH]; /* "": there is none */
    int lock;
    const char *main_file; /* "graph.json": marks folders of this kind */
} files_folder_t;

/*
 * Starts a folder. What stands at `path` may be nothing, an empty folder, or a folder that holds main_file and nothing
 * but .npy and .json files and folders of such: it is replaced. Anything else: ARGUMENT, unless `force`: then it is moved
 * aside to a new name. Errors: ARGUMENT, IO (another process is writing it, too).
 */
rudder_status_t files_folder_open(const char *path, const char *main_file, int force, files_folder_t *folder,
                                  rudder_error_t *error);
/* Puts the folder in its place; *aside (FILES_MAX_PATH bytes) is where an earlier one was moved, "" for none. */
rudder_status_t files_folder_close(files_folder_t *folder, char *aside, rudder_error_t *error);
/* Removes what was written. A zeroed folder is fine. */
void files_folder_abandon(files_folder_t *folder);

#endif
