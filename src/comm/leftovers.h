/*
 * What a job may leave on the machine when it is stopped hard: processes, and files in shared memory. The launcher alone
 * survives all of its job, so it cleans up; after one that was killed itself the next one does.
 */
#ifndef RUDDER_COMM_LEFTOVERS_H
#define RUDDER_COMM_LEFTOVERS_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Kills every living descendant of this process with SIGKILL; returns how many there were. Zombies do not count. */
int32_t leftovers_kill_descendants(void);
int32_t leftovers_count_descendants(void);

/*
 * Makes a folder for the job of this process below `base`, an existing folder: path[size] is its name, "" if it cannot be
 * made. Returns a file descriptor that marks it as in use until it is closed, -1: none.
 */
int leftovers_make_folder(const char *base, char *path, size_t size);
/* Removes the folders of this user below `base` whose makers are gone. */
void leftovers_remove_abandoned(const char *base);
/* Removes a folder and all below it. NULL and "" are allowed. */
void leftovers_remove_folder(const char *path);

/*
 * Removes files of a library under /dev/shm whose names begin with `prefix`, which belong to this user, were made since
 * `since` and which no process has open or mapped: files of jobs that live are always one of the two.
 */
void leftovers_remove_shared(const char *prefix, time_t since);

#endif
