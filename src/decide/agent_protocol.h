/*
 * What a rank and the agent of its host say to each other: frames over a Unix stream socket in Linux's abstract namespace.
 * Such a name has no file: bind() is the election (one holder a name), the kernel frees it when the holder dies however it
 * dies, and it is apart for each network namespace. Both sides check the peer's user id. Native byte order: one host.
 */
#ifndef RUDDER_DECIDE_AGENT_PROTOCOL_H
#define RUDDER_DECIDE_AGENT_PROTOCOL_H

#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <stddef.h>
#include <string.h>

enum {
    AGENT_QUESTION_MAGIC = 0x52445151, /* "RDQQ" */
    AGENT_ANSWER_MAGIC = 0x52444141,   /* "RDAA" */
    AGENT_PROTOCOL_VERSION = 1,
    AGENT_MAX_TEXT = 4096
};

/* Followed by text_bytes bytes: the words of the context, and in json mode the last decisions. No final NUL. */
typedef struct agent_question {
    uint32_t magic, version;
    uint64_t number;      /* echoed */
    uint32_t answer_mode; /* rudder_answer_mode_t */
    uint32_t deadline_ms; /* the answer is not wanted later; a question that waited longer is not evaluated */
    uint32_t text_bytes;
    uint32_t reserved;
} agent_question_t;

/* Followed by text_bytes bytes: the explanation, or why there is no answer. No final NUL. */
typedef struct agent_answer {
    uint32_t magic, version;
    uint64_t number;
    int32_t status;  /* rudder_status_t: OK, AGENT (no model), DEADLINE (dropped from the queue) */
    int32_t verdict; /* rudder_verdict_t */
    double margin;
    int32_t tokens;
    int32_t predict_hits, predict_rows;
    uint32_t text_bytes;
    uint64_t prompt_hash;
} agent_answer_t;

/* The address of a job's agent. `job` may be any text; it is used as given, cut at 64 bytes. */
static inline socklen_t agent_address(const char *job, struct sockaddr_un *address)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    const int n =
        snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "rudder-agent-%u-%.64s", (unsigned)getuid(), job);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

#endif
