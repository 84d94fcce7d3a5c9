/*
 * The embedded back end: llama.cpp inside the agent. Compiled from llama_embedded.c where llama.cpp was built, from
 * llama_absent.c otherwise; the latter answers every open() with what to do about it.
 */
#ifndef RUDDER_AGENT_LLAMA_H
#define RUDDER_AGENT_LLAMA_H

#include "agent/backend.h"

extern const backend_t llama_backend;

#endif
