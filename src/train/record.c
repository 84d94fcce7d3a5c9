/* The trace of a run: a recorder behind a lock. */
#include "train/record.h"

#include <stdio.h>

#include "base/error.h"

void record_init(record_t *record)
{
    pthread_mutex_init(&record->lock, NULL);
    record->recorder = NULL;
}

rudder_status_t record_open(const char *directory, const trace_info_t *info, record_t *record, rudder_error_t *error)
{
    char path[4096 + 64];
    snprintf(path, sizeof path, "%s/trace.rank%d.rtr", directory, (int)info->rank);
    pthread_mutex_lock(&record->lock);
    const rudder_status_t status = recorder_open(path, info, &record->recorder, error);
    pthread_mutex_unlock(&record->lock);
    return status;
}

rudder_status_t record_add(record_t *record, const trace_minibatch_t *minibatch, rudder_error_t *error)
{
    pthread_mutex_lock(&record->lock);
    const rudder_status_t status =
        record->recorder != NULL ? recorder_add(record->recorder, minibatch, error) : RUDDER_OK;
    pthread_mutex_unlock(&record->lock);
    return status;
}

rudder_status_t record_times(record_t *record, int64_t number, const trace_times_t *times, rudder_error_t *error)
{
    pthread_mutex_lock(&record->lock);
    const rudder_status_t status =
        record->recorder != NULL ? recorder_times(record->recorder, number, times, error) : RUDDER_OK;
    pthread_mutex_unlock(&record->lock);
    return status;
}

rudder_status_t record_stop(record_t *record, rudder_error_t *error)
{
    pthread_mutex_lock(&record->lock);
    const rudder_status_t status = recorder_close(record->recorder, error);
    record->recorder = NULL;
    pthread_mutex_unlock(&record->lock);
    return status;
}

void record_close(record_t *record)
{
    record_stop(record, NULL);
    pthread_mutex_destroy(&record->lock);
}
