/* Any bytes as an .npy file: the header is refused or describes data that lie inside the file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    npy_t npy = {0};
    size_t offset = 0;
    rudder_error_t error = {0};
    const rudder_status_t status = npy_parse_header(data, size, (int64_t)size, "fuzz.npy", &npy, &offset, &error);
    if (status == RUDDER_OK) {
        int64_t count = 1;
        for (int32_t i = 0; i < npy.n_dimensions; i++) {
            count = npy.shape[i] == 0 || count == 0 ? 0 : count * npy.shape[i];
        }
        if (count != npy.count || offset + (size_t)npy.count * npy.item_bytes != size || offset % npy.item_bytes != 0) {
            abort();
        }
    } else if (status != RUDDER_E_DATA || strstr(error.text, "expected") == NULL) {
        abort();
    }
    return 0;
}
