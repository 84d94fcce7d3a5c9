/*
 * JSON members that are missing or odd are the user's data: every message names the file, the member, what was expected
 * and what was found. Folders are written under a temporary name beside their own, so a killed import leaves no half one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "graph/files.h"

enum { FILES_MAX_JSON = 64 << 20 };

rudder_status_t files_join(const char *directory, const char *name, char *path, rudder_error_t *error)
{
    const int n = snprintf(path, FILES_MAX_PATH, "%s/%s", directory, name);
    if (n < 0 || n >= FILES_MAX_PATH) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "%s: expected a path of less than %d bytes, found %d", name,
                           FILES_MAX_PATH, n);
    }
    return RUDDER_OK;
}

char *files_name(const char *path, char *text, size_t size)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') {
        end--;
    }
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    snprintf(text, size, "%.*s", (int)(end - begin < size ? end - begin : size - 1), path + begin);
    return text;
}

int files_exist(const char *directory, const char *name)
{
    char path[FILES_MAX_PATH];
    return files_join(directory, name, path, NULL) == RUDDER_OK && access(path, F_OK) == 0;
}

/* ---- JSON ---------------------------------------------------------------------------------------------------------- */

rudder_status_t files_read(const char *path, int64_t most, char **text, int64_t *n, rudder_error_t *error)
{
    struct stat info;
    rudder_status_t status = RUDDER_OK;
    char *bytes = NULL;
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
    }
    if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode)) {
        status = RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a file, found something else", path);
        goto end;
    }
    if (info.st_size > most) {
        status = RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected at most %" PRId64 " bytes, found %" PRId64, path, most,
                             (int64_t)info.st_size);
        goto end;
    }
    bytes = malloc((size_t)info.st_size + 1);
    if (bytes == NULL) {
        status =
            RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for its %" PRId64 " bytes", path, (int64_t)info.st_size);
        goto end;
    }
    const size_t got = fread(bytes, 1, (size_t)info.st_size, file);
    if (ferror(file)) {
        status = RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be read: %s", path, strerror(errno));
        goto end;
    }
    bytes[got] = '\0';
    *text = bytes;
    *n = (int64_t)got;
    bytes = NULL;
end:
    free(bytes);
    fclose(file);
    return status;
}

rudder_status_t files_json_open(const char *directory, const char *name, const char *format, files_json_t *file,
                                rudder_error_t *error)
{
    char *text = NULL, found[64];
    const char *end = NULL;
    int64_t n;
    RUDDER_TRY(files_join(directory, name, file->path, error));
    RUDDER_TRY(files_read(file->path, FILES_MAX_JSON, &text, &n, error));
    file->object = cJSON_ParseWithOpts(text, &end, 1);
    const long at = file->object == NULL && end != NULL ? end - text : 0;
    free(text);
    if (!cJSON_IsObject(file->object)) {
        cJSON_Delete(file->object);
        file->object = NULL;
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a JSON object, found something else at byte %ld",
                           file->path, at);
    }
    int64_t version;
    rudder_status_t status = files_json_string(file, file->object, "format", found, sizeof found, error);
    if (status == RUDDER_OK && strcmp(found, format) != 0) {
        status = RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected \"format\": \"%s\", found \"%s\"", file->path, format,
                             found);
    }
    if (status == RUDDER_OK) {
        status = files_json_int(file, file->object, "version", 1, 1, &version, error);
    }
    if (status != RUDDER_OK) {
        files_json_close(file);
    }
    return status;
}

void files_json_close(files_json_t *file)
{
    cJSON_Delete(file->object);
    file->object = NULL;
}

rudder_status_t files_json_int(const files_json_t *file, const cJSON *object, const char *key, int64_t low,
                               int64_t high, int64_t *value, rudder_error_t *error)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsNumber(item)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a number \"%s\", found %s", file->path, key,
                           item == NULL ? "none" : "something else");
    }
    const double v = item->valuedouble;
    if (!(v >= (double)low && v <= (double)high && fabs(v) <= 0x1p53) || v != floor(v)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected \"%s\" in %" PRId64 "..%" PRId64 ", found %.17g",
                           file->path, key, low, high, v);
    }
    *value = (int64_t)v;
    return RUDDER_OK;
}

rudder_status_t files_json_string(const files_json_t *file, const cJSON *object, const char *key, char *text,
                                  size_t size, rudder_error_t *error)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsString(item)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a string \"%s\", found %s", file->path, key,
                           item == NULL ? "none" : "something else");
    }
    snprintf(text, size, "%s", item->valuestring);
    return RUDDER_OK;
}

rudder_status_t files_json_array(const files_json_t *file, const cJSON *object, const char *key, int64_t n,
                                 const cJSON **array, rudder_error_t *error)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsArray(item)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected an array \"%s\", found %s", file->path, key,
                           item == NULL ? "none" : "something else");
    }
    if (cJSON_GetArraySize(item) != n) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected \"%s\" of %" PRId64 " items, found %d", file->path, key,
                           n, cJSON_GetArraySize(item));
    }
    *array = item;
    return RUDDER_OK;
}

rudder_status_t files_json_write(const char *directory, const char *name, const json_t *json, rudder_error_t *error)
{
    char path[FILES_MAX_PATH];
    if (json->failed || json->text == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s/%s: no memory for its text", directory, name);
    }
    RUDDER_TRY(files_join(directory, name, path, error));
    FILE *file = fopen(path, "wbe");
    if (file == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be written: %s", path, strerror(errno));
    }
    const int wrote = fwrite(json->text, 1, json->length, file) == json->length && fputc('\n', file) != EOF;
    if (fclose(file) != 0 || !wrote) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be written: %s", path, strerror(errno));
    }
    return RUDDER_OK;
}

/* ---- folders ------------------------------------------------------------------------------------------------------- */

/* .npy and .json files, and what a killed writer of one leaves ("feat.npy.123.tmp"). */
static int files_is_ours(const char *name)
{
    const size_t n = strlen(name);
    return (n > 4 && strcmp(name + n - 4, ".npy") == 0) || (n > 5 && strcmp(name + n - 5, ".json") == 0) ||
           (n > 4 && strcmp(name + n - 4, ".tmp") == 0 && strstr(name, ".npy.") != NULL);
}

/* Entries of a folder that are not .npy or .json files, nor (`depth` times) folders of such; -1: not a folder. */
static int64_t files_foreign(const char *path, int depth, int64_t *entries)
{
    int64_t foreign = 0;
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return -1;
    }
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char sub[FILES_MAX_PATH];
        struct stat info;
        int64_t inner = 0;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        ++*entries;
        if (files_join(path, entry->d_name, sub, NULL) != RUDDER_OK || lstat(sub, &info) != 0) {
            foreign++;
        } else if (S_ISDIR(info.st_mode)) {
            foreign += depth == 0 || files_foreign(sub, depth - 1, &inner) != 0;
        } else {
            foreign += !S_ISREG(info.st_mode) || !files_is_ours(entry->d_name);
        }
    }
    closedir(directory);
    return foreign;
}

/* Empties a folder that files_foreign() finds nothing foreign in, or that we wrote. */
static void files_clear(const char *path)
{
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char sub[FILES_MAX_PATH];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            files_join(path, entry->d_name, sub, NULL) != RUDDER_OK) {
            continue;
        }
        if (unlink(sub) != 0) {
            files_clear(sub);
            rmdir(sub);
        }
    }
    closedir(directory);
}

/* 1: may be replaced, 0: is something else. */
static int files_replaceable(const char *path, const char *main_file)
{
    struct stat info;
    int64_t entries = 0;
    if (lstat(path, &info) != 0) {
        return errno == ENOENT;
    }
    const int64_t foreign = S_ISDIR(info.st_mode) ? files_foreign(path, 1, &entries) : -1;
    return foreign == 0 && (entries == 0 || files_exist(path, main_file));
}

/* Makes the work folder, or takes over what a killed process left of it. */
static rudder_status_t files_folder_take(files_folder_t *folder, rudder_error_t *error)
{
    struct stat opened, named;
    int64_t entries = 0;
    if (mkdir(folder->work, 0777) != 0 && errno != EEXIST) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be made: %s", folder->work, strerror(errno));
    }
    folder->lock = open(folder->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->lock < 0) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be opened: %s", folder->work, strerror(errno));
    }
    /* The second look: the other process may have renamed the folder into place between our open and our lock. */
    if (flock(folder->lock, LOCK_EX | LOCK_NB) != 0 || fstat(folder->lock, &opened) != 0 ||
        stat(folder->work, &named) != 0 || opened.st_ino != named.st_ino) {
        close(folder->lock);
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: expected to write it alone, found another process at it",
                           folder->path);
    }
    if (files_foreign(folder->work, 1, &entries) != 0) {
        close(folder->lock);
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "%s: expected the name to be free for work, found other content",
                           folder->work);
    }
    files_clear(folder->work);
    return RUDDER_OK;
}

rudder_status_t files_folder_open(const char *path, const char *main_file, int force, files_folder_t *folder,
                                  rudder_error_t *error)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') {
        n--;
    }
    if (n == 0 || n + 32 > FILES_MAX_PATH) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "the output folder: expected a path of 1 to %d bytes, found %zu",
                           FILES_MAX_PATH - 32, n);
    }
    files_folder_t f = {.main_file = main_file, .lock = -1};
    memcpy(f.path, path, n);
    memcpy(f.work, path, n);
    strcpy(f.work + n, ".tmp");
    if (!force && !files_replaceable(f.path, main_file)) {
        return RUDDER_FAIL(
            error, RUDDER_E_ARGUMENT,
            "%s: expected no folder, an empty one, or one written by this command (with %s), found other "
            "content; --force moves it aside",
            f.path, main_file);
    }
    RUDDER_TRY(files_folder_take(&f, error));
    *folder = f;
    return RUDDER_OK;
}

rudder_status_t files_folder_close(files_folder_t *folder, char *aside, rudder_error_t *error)
{
    char old[FILES_MAX_PATH] = "";
    struct stat info;
    aside[0] = '\0';
    if (lstat(folder->path, &info) == 0) {
        const int replace = files_replaceable(folder->path, folder->main_file);
        for (int i = 1; i < 1000 && (i == 1 || lstat(old, &info) == 0); i++) {
            snprintf(old, sizeof old, "%.*s.old%d", FILES_MAX_PATH - 16, folder->path, i);
        }
        if (rename(folder->path, old) != 0) {
            return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be moved to %s: %s", folder->path, old, strerror(errno));
        }
        if (!replace) {
            memcpy(aside, old, sizeof old);
            old[0] = '\0';
        }
    }
    if (rename(folder->work, folder->path) != 0) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be moved to %s: %s", folder->work, folder->path,
                           strerror(errno));
    }
    if (old[0] != '\0') {
        files_clear(old);
        rmdir(old);
    }
    close(folder->lock);
    *folder = (files_folder_t){0};
    return RUDDER_OK;
}

void files_folder_abandon(files_folder_t *folder)
{
    if (folder->work[0] != '\0') {
        files_clear(folder->work);
        rmdir(folder->work);
        close(folder->lock);
    }
    *folder = (files_folder_t){0};
}
