/* Reads references.json, which make_references.py wrote. To be included after cmocka.h: what is missing fails the test. */
#ifndef RUDDER_TESTS_REFERENCES_H
#define RUDDER_TESTS_REFERENCES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

static inline cJSON *references_read(void)
{
    const char *source = getenv("RUDDER_SOURCE_DIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/numerics/references.json", source == NULL ? "." : source);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fail_msg("%s cannot be read", path);
    }
    fseek(file, 0, SEEK_END);
    const long bytes = ftell(file);
    rewind(file);
    char *text = calloc((size_t)bytes + 1, 1);
    assert_int_equal(fread(text, 1, (size_t)bytes, file), bytes);
    fclose(file);
    cJSON *root = cJSON_Parse(text);
    free(text);
    assert_non_null(root);
    return root;
}

static inline double references_number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(object, name);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

/* The array of this name; the caller frees. */
static inline double *references_doubles(const cJSON *object, const char *name, int64_t *n)
{
    const cJSON *array = cJSON_GetObjectItem(object, name), *item;
    assert_true(cJSON_IsArray(array));
    double *x = calloc((size_t)cJSON_GetArraySize(array) + 1, sizeof *x);
    *n = 0;
    cJSON_ArrayForEach(item, array)
    {
        assert_true(cJSON_IsNumber(item));
        x[(*n)++] = item->valuedouble;
    }
    return x;
}

static inline float *references_floats(const cJSON *object, const char *name, int64_t *n)
{
    double *x = references_doubles(object, name, n);
    float *y = calloc((size_t)*n + 1, sizeof *y);
    for (int64_t i = 0; i < *n; i++) {
        y[i] = (float)x[i];
    }
    free(x);
    return y;
}

#endif
