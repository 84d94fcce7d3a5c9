/*
 * What a job may leave on the machine when it is stopped hard: processes, and files in shared memory. The launcher alone
 * survives all of its job, so it cleans up.
 */
#ifndef RUDDER_COMM_LEFTOVERS_H
#define RUDDER_COMM_LEFTOVERS_H

#include <stdint.h>
#include <time.h>

/* Kills every living descendant of this process with SIGKILL; returns how many there were. Zombies do not count. */
int32_t leftovers_kill_descendants(void);
int32_t leftovers_count_descendants(void);

/* Removes a folder and all below it. NULL and "" are allowed. */
void leftovers_remove_folder(const char *path);

/*
 * Removes files of a library under /dev/shm whose names begin with `prefix`, which belong to this user, were made since
 * `since` and which no process has open or mapped: files of jobs that live are always one of the two.
 */
void leftovers_remove_shared(const char *prefix, time_t since);

#endif
