/*
 * Any bytes as the files of a run: they are refused with a reason, or the page that is made of them is well-formed. The input is
 * config.json, summary.json, steps.rank0.jsonl and decisions.rank0.jsonl, with a line "%%" between them; an empty part: no file.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "page_check.h"
#include "report/runs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64];

static void put_file(const char *name, const uint8_t *data, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
    FILE *file = size > 0 ? fopen(path, "w") : NULL;
    if (file != NULL) {
        fwrite(data, 1, size, file);
        fclose(file);
    }
}

static void put_run(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"config.json", "summary.json", "steps.rank0.jsonl", "decisions.rank0.jsonl"};
    const uint8_t *end = data + size;
    for (int i = 0; i < 4; i++) {
        const uint8_t *cut = i < 3 ? memmem(data, (size_t)(end - data), "%%\n", 3) : NULL;
        put_file(names[i], data, (size_t)((cut != NULL ? cut : end) - data));
        data = cut != NULL ? cut + 3 : end;
    }
}

static void report(const run_t *run, int html)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    page_t page;
    rudder_error_t error;
    page_begin(&page, html, file, "fuzz", "fuzz");
    if (runs_report(&page, run, 1, &error) != RUDDER_OK || page_end(&page, &error) != RUDDER_OK) {
        abort();
    }
    fclose(file);
    if (html) {
        page_check(text);
    }
    free(text);
}

static void clean_up(void)
{
    put_run((const uint8_t *)"", 0);
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run_t run;
    rudder_error_t error = {0};
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "/tmp/fuzz-run-XXXXXX");
        if (mkdtemp(folder) == NULL || atexit(clean_up) != 0) {
            abort();
        }
    }
    put_run(data, size);
    if (run_load(folder, &run, &error) != RUDDER_OK) {
        if (error.status != RUDDER_E_DATA && error.status != RUDDER_E_IO) {
            abort();
        }
        return 0;
    }
    report(&run, 1);
    report(&run, 0);
    run_free(&run);
    return 0;
}
