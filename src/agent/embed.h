/* Files of the source tree as bytes of the program. Paths are relative to src/, which is on the include path. */
#ifndef RUDDER_AGENT_EMBED_H
#define RUDDER_AGENT_EMBED_H

#include <stddef.h>

/* Defines `name`, the bytes of the file and a NUL; EMBED_BYTES(name) is their number without it. */
#define EMBED(name, path)                                                                                              \
    extern const unsigned char name[], name##_end[];                                                                   \
    __asm__(".pushsection .rodata\n.hidden " #name "\n.hidden " #name "_end\n.global " #name "\n.global " #name        \
            "_end\n" #name ":\n.incbin \"" path "\"\n" #name "_end:\n.byte 0\n.popsection\n");

#define EMBED_BYTES(name) ((size_t)(name##_end - name))

#endif
