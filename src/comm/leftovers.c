/* /proc tells which processes descend from us and which files are in use; both are read anew at every call. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm/leftovers.h"

typedef struct leftover_process {
    pid_t pid, parent;
    int zombie;
    int ours;
} leftover_process_t;

/* The next process of /proc, 0 at the end. */
static pid_t leftovers_next_pid(DIR *proc)
{
    const struct dirent *entry;
    while ((entry = readdir(proc)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0])) {
            return (pid_t)atoi(entry->d_name);
        }
    }
    return 0;
}

/* Reads "pid (name) state parent ..."; the name may hold anything, so what counts is the last ')'. */
static int leftovers_read_process(pid_t pid, leftover_process_t *process)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    const size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    char state;
    int parent;
    if (end == NULL || sscanf(end + 1, " %c %d", &state, &parent) != 2) {
        return 0;
    }
    *process = (leftover_process_t){.pid = pid, .parent = (pid_t)parent, .zombie = state == 'Z' || state == 'X'};
    return 1;
}

/* All processes, with those that descend from this one marked. */
static int32_t leftovers_list(leftover_process_t **list)
{
    leftover_process_t *processes = NULL, process;
    int32_t n = 0, capacity = 0;
    DIR *proc = opendir("/proc");
    for (pid_t pid; proc != NULL && (pid = leftovers_next_pid(proc)) > 0;) {
        if (!leftovers_read_process(pid, &process)) {
            continue;
        }
        if (n == capacity) {
            capacity = capacity > 0 ? capacity * 2 : 256;
            leftover_process_t *more = realloc(processes, (size_t)capacity * sizeof *more);
            if (more == NULL) {
                break;
            }
            processes = more;
        }
        processes[n++] = process;
    }
    if (proc != NULL) {
        closedir(proc);
    }
    const pid_t self = getpid();
    for (int changed = 1; changed;) {
        changed = 0;
        for (int32_t i = 0; i < n; i++) {
            int ours = processes[i].parent == self;
            for (int32_t j = 0; j < n && !ours; j++) {
                ours = processes[j].ours && processes[j].pid == processes[i].parent;
            }
            if (ours && !processes[i].ours) {
                processes[i].ours = changed = 1;
            }
        }
    }
    *list = processes;
    return n;
}

static int32_t leftovers_signal(int number)
{
    leftover_process_t *processes;
    const int32_t n = leftovers_list(&processes);
    int32_t living = 0;
    for (int32_t i = 0; i < n; i++) {
        if (processes[i].ours && !processes[i].zombie) {
            living += kill(processes[i].pid, number) == 0;
        }
    }
    free(processes);
    return living;
}

int32_t leftovers_kill_descendants(void)
{
    return leftovers_signal(SIGKILL);
}

int32_t leftovers_count_descendants(void)
{
    return leftovers_signal(0);
}

static int leftovers_remove(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    (void)remove(path);
    return 0;
}

void leftovers_remove_folder(const char *path)
{
    if (path != NULL && path[0] != '\0') {
        (void)nftw(path, leftovers_remove, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    }
}

int leftovers_make_folder(const char *base, char *path, size_t size)
{
    const int n = snprintf(path, size, "%s/rudder-%d-XXXXXX", base, (int)getpid());
    if (n < 0 || (size_t)n >= size || mkdtemp(path) == NULL) {
        path[0] = '\0';
        return -1;
    }
    const int held = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (held >= 0) {
        (void)flock(held, LOCK_EX | LOCK_NB);
    }
    return held;
}

/* The process that made a folder "rudder-PID-XXXXXX", 0: it has another name. */
static pid_t leftovers_maker(const char *name)
{
    int pid, at = 0;
    return sscanf(name, "rudder-%d-%n", &pid, &at) == 1 && at > 0 && strlen(name + at) == 6 && pid > 0 ? (pid_t)pid : 0;
}

/* The number tells of processes that this one sees, the lock of those in other containers too. */
static int leftovers_abandoned(int base, const char *name)
{
    struct stat status;
    const pid_t maker = leftovers_maker(name);
    if (maker == 0 || kill(maker, 0) == 0 || errno != ESRCH) {
        return 0;
    }
    const int folder = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int abandoned = folder >= 0 && fstat(folder, &status) == 0 && status.st_uid == getuid() &&
                          flock(folder, LOCK_EX | LOCK_NB) == 0;
    if (folder >= 0) {
        close(folder);
    }
    return abandoned;
}

void leftovers_remove_abandoned(const char *base)
{
    DIR *folder = opendir(base);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char path[PATH_MAX];
        const int n = snprintf(path, sizeof path, "%s/%s", base, entry->d_name);
        if (n > 0 && n < (int)sizeof path && leftovers_abandoned(dirfd(folder), entry->d_name)) {
            leftovers_remove_folder(path);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

static int leftovers_mapped(pid_t pid, const char *path)
{
    char name[64], *line = NULL;
    size_t size = 0;
    int found = 0;
    snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(name, "re");
    while (maps != NULL && !found && getline(&line, &size, maps) > 0) {
        found = strstr(line, path) != NULL;
    }
    if (maps != NULL) {
        fclose(maps);
    }
    free(line);
    return found;
}

static int leftovers_opened(pid_t pid, const struct stat *file)
{
    char name[64];
    int found = 0;
    snprintf(name, sizeof name, "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(name);
    const struct dirent *entry;
    while (folder != NULL && !found && (entry = readdir(folder)) != NULL) {
        struct stat status;
        found = fstatat(dirfd(folder), entry->d_name, &status, 0) == 0 && status.st_dev == file->st_dev &&
                status.st_ino == file->st_ino;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return found;
}

static int leftovers_in_use(const char *path, const struct stat *file)
{
    int used = 0;
    DIR *proc = opendir("/proc");
    for (pid_t pid; proc != NULL && !used && (pid = leftovers_next_pid(proc)) > 0;) {
        used = leftovers_mapped(pid, path) || leftovers_opened(pid, file);
    }
    if (proc != NULL) {
        closedir(proc);
    }
    return used || proc == NULL;
}

void leftovers_remove_shared(const char *prefix, time_t since)
{
    DIR *folder = opendir("/dev/shm");
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char path[sizeof "/dev/shm/" + sizeof entry->d_name];
        struct stat file;
        snprintf(path, sizeof path, "/dev/shm/%s", entry->d_name);
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && lstat(path, &file) == 0 && S_ISREG(file.st_mode) &&
            file.st_uid == getuid() && file.st_ctime >= since && !leftovers_in_use(path, &file)) {
            unlink(path);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}
