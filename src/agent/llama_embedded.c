/*
 * The embedded back end. The constant head is evaluated once and kept as sequence 0 of the KV cache; a question is a copy
 * of that sequence (which shares its cells) plus a short tail, and questions that wait together are evaluated in one
 * batch, so that the weights are read once for all. The answer's skeleton is fed, not generated: a decision and a
 * prediction are each one comparison of logits, and only the explanation is written token by token.
 *
 * One thread, for more than one spin at barriers beside a training run. The weights stay mapped as they are in the file:
 * repacked copies double the memory, and the ones for AMX crash when the tile configuration is compiled by gcc 12.
 */
#include <inttypes.h>
#include <llama.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/answer.h"
#include "agent/gguf.h"
#include "agent/llama.h"
#include "agent/models.h"
#include "agent/prompt.h"
#include "base/error.h"
#include "decide/agent_protocol.h"

enum {
    LLAMA_MAX_TAIL = 384,       /* tokens of one question, its forced answer included */
    LLAMA_MAX_GENERATED = 96,   /* of one answer, the skeleton included */
    LLAMA_MAX_EXPLANATION = 28, /* tokens; the text's cap lies below it at any rate */
    LLAMA_MAX_BATCH = 512,
    LLAMA_MAX_HEAD = 1536
};

#define LLAMA_HASH 0xCBF29CE484222325u /* FNV-1a */

/* Logits of the same prompt differ by up to this when it is evaluated alone or beside others. */
#define LLAMA_DEAD_BAND 0.1

/*
 * Where logit(yes) - logit(no) crosses from one answer to the other: fitted on the frozen situations, in the middle between
 * the lowest that asks for a replacement and the highest that does not; 0 for models that are not listed.
 */
typedef struct llama_threshold {
    int64_t bytes; /* of the file: tells the model */
    double threshold;
} llama_threshold_t;

static const llama_threshold_t llama_thresholds[] = {
    {1117320768, -0.5}, /* Qwen2.5-Coder-1.5B-Instruct Q4_K_M: -0.79 and -0.19 but for ratios within 10 % */
};

typedef struct llama_text {
    llama_token tokens[LLAMA_MAX_TAIL];
    int32_t n;
} llama_text_t;

typedef struct llama_self {
    struct llama_model *model;
    struct llama_context *context;
    const struct llama_vocab *vocab;
    struct llama_batch batch;
    double threshold;
    int32_t head_tokens;
    uint64_t head_hash;
    llama_text_t
        suffix; /* between the question's words and the decision: end of turn, start of answer, forced prefix */
    llama_text_t before_hits, before_rows, before_explanation;
    llama_token decision[2];                                          /* no, yes: by rudder_verdict_t */
    llama_token hits[BACKEND_PREDICTIONS], rows[BACKEND_PREDICTIONS]; /* down, same, up */
} llama_self_t;

/* One question on its way through the skeleton. */
typedef enum llama_step { STEP_DECISION, STEP_HITS, STEP_ROWS, STEP_EXPLANATION, STEP_DONE } llama_step_t;

typedef struct llama_job {
    llama_step_t step;
    int32_t sequence, position, output; /* output: index in the batch of the token whose logits count */
    int32_t tokens, explained;
    llama_text_t next; /* to be evaluated */
    char text[1024];   /* the answer so far */
    size_t text_used;
} llama_job_t;

static const char *const llama_predictions[BACKEND_PREDICTIONS] = {"down", "same", "up"};
static const char *const llama_decisions[2] = {"no", "yes"};

static void llama_say(enum ggml_log_level level, const char *text, void *debug)
{
    (void)level;
    if (debug != NULL) {
        fputs(text, stderr);
    }
}

static uint64_t llama_hash(uint64_t hash, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001B3u;
    }
    return hash;
}

/* ---- Text to tokens --------------------------------------------------------------------------------------------- */

/* Tokens of a text, -1 when there are more than `most`. */
static int32_t llama_split(const llama_self_t *self, const char *text, size_t n, int begin, int special,
                           llama_token *tokens, int32_t most)
{
    const int32_t count = llama_tokenize(self->vocab, text, (int32_t)n, tokens, most, begin, special);
    return count < 0 ? -1 : count;
}

/*
 * The token that each of the words starts with when it follows `before`. They must differ; with `whole` each word must be
 * one token. Looked at in place, since what a word is split into depends on what stands in front of it.
 */
static rudder_status_t llama_choices(const llama_self_t *self, const char *before, const char *const *words, int32_t n,
                                     int whole, llama_text_t *before_tokens, llama_token *choices,
                                     rudder_error_t *error)
{
    char text[1024];
    llama_text_t both;
    before_tokens->n = llama_split(self, before, strlen(before), 0, 1, before_tokens->tokens, LLAMA_MAX_TAIL);
    if (before_tokens->n <= 0) {
        return RUDDER_FAIL(error, RUDDER_E_UNSUPPORTED, "the model's tokens cannot express \"%s\"", before);
    }
    for (int32_t i = 0; i < n; i++) {
        const int length = snprintf(text, sizeof text, "%s%s", before, words[i]);
        both.n = llama_split(self, text, (size_t)length, 0, 1, both.tokens, LLAMA_MAX_TAIL);
        const int32_t more = both.n - before_tokens->n;
        if (more < 1 || (whole && more != 1) ||
            memcmp(both.tokens, before_tokens->tokens, (size_t)before_tokens->n * sizeof both.tokens[0]) != 0) {
            return RUDDER_FAIL(error, RUDDER_E_UNSUPPORTED,
                               "the model splits the answer \"%s\" into %d tokens, expected one of its own", words[i],
                               (int)more);
        }
        choices[i] = both.tokens[before_tokens->n];
        for (int32_t j = 0; j < i; j++) {
            if (choices[j] == choices[i]) {
                return RUDDER_FAIL(error, RUDDER_E_UNSUPPORTED, "the model's answers \"%s\" and \"%s\" start alike",
                                   words[j], words[i]);
            }
        }
    }
    return RUDDER_OK;
}

/*
 * The conversation up to the question's words, and what follows them, in the model's chat format. A format that llama.cpp
 * does not know is taken for ChatML.
 */
static rudder_status_t llama_format(const llama_self_t *self, char *head, size_t head_size, char *suffix,
                                    size_t suffix_size, rudder_error_t *error)
{
    static const char mark[] = "@QUESTION@";
    char text[16384];
    struct llama_chat_message messages[2 + 2 * PROMPT_EXAMPLES];
    int32_t n = 0;
    const char *format = llama_model_chat_template(self->model, NULL);
    messages[n++] = (struct llama_chat_message){"system", prompt_system};
    for (int32_t i = 0; i < PROMPT_EXAMPLES; i++) {
        messages[n++] = (struct llama_chat_message){"user", prompt_examples[i].words};
        messages[n++] = (struct llama_chat_message){"assistant", prompt_examples[i].answer};
    }
    messages[n++] = (struct llama_chat_message){"user", mark};
    int32_t length = llama_chat_apply_template(format, messages, (size_t)n, true, text, sizeof text);
    if (length < 0) {
        length = llama_chat_apply_template("chatml", messages, (size_t)n, true, text, sizeof text);
    }
    const char *at =
        length > 0 && length < (int32_t)sizeof text ? memmem(text, (size_t)length, mark, sizeof mark - 1) : NULL;
    if (at == NULL || (size_t)(at - text) >= head_size) {
        return RUDDER_FAIL(error, RUDDER_E_UNSUPPORTED, "the model's chat format cannot carry the prompt");
    }
    snprintf(head, head_size, "%.*s", (int)(at - text), text);
    at += sizeof mark - 1;
    snprintf(suffix, suffix_size, "%.*s%s", (int)(text + length - at), at, PROMPT_BEFORE_DECISION);
    return RUDDER_OK;
}

/* ---- Loading ---------------------------------------------------------------------------------------------------- */

static int llama_decode_batch(llama_self_t *self)
{
    return llama_decode(self->context, self->batch);
}

static void llama_batch_token(llama_self_t *self, llama_token token, int32_t position, int32_t sequence, int output)
{
    struct llama_batch *batch = &self->batch;
    const int32_t i = batch->n_tokens++;
    batch->token[i] = token;
    batch->pos[i] = position;
    batch->n_seq_id[i] = 1;
    batch->seq_id[i][0] = sequence;
    batch->logits[i] = (int8_t)output;
}

static rudder_status_t llama_open_context(llama_self_t *self, int32_t head_tokens, const backend_config_t *config,
                                          rudder_error_t *error)
{
    const int32_t per_question = LLAMA_MAX_TAIL + (config->answer_mode == RUDDER_ANSWER_JSON ? LLAMA_MAX_GENERATED : 0);
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = (uint32_t)(head_tokens + BACKEND_MAX_QUESTIONS * per_question);
    params.n_batch = LLAMA_MAX_BATCH;
    params.n_ubatch = LLAMA_MAX_BATCH / 2;
    params.n_seq_max = BACKEND_MAX_QUESTIONS + 1;
    params.n_outputs_max = BACKEND_MAX_QUESTIONS + 1;
    params.n_threads = params.n_threads_batch = 1;
    params.kv_unified = true;
    params.swa_full = true; /* a window that slid over the head would lose it */
    params.no_perf = true;
    self->context = llama_init_from_model(self->model, params);
    if (self->context == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "model %s: no memory for a context of %u tokens", config->model,
                           params.n_ctx);
    }
    self->batch = llama_batch_init(LLAMA_MAX_BATCH, 0, 1);
    return RUDDER_OK;
}

/* Evaluates tokens [begin, n) of the head into sequence 0. */
static rudder_status_t llama_open_head(llama_self_t *self, const llama_token *tokens, int32_t begin, int32_t n,
                                       rudder_error_t *error)
{
    for (; begin < n; begin += LLAMA_MAX_BATCH) {
        const int32_t end = begin + LLAMA_MAX_BATCH < n ? begin + LLAMA_MAX_BATCH : n;
        self->batch.n_tokens = 0;
        for (int32_t i = begin; i < end; i++) {
            llama_batch_token(self, tokens[i], i, 0, i == end - 1);
        }
        const int code = llama_decode_batch(self);
        if (code != 0) {
            return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "llama.cpp could not evaluate the prompt (code %d)", code);
        }
    }
    self->head_tokens = n;
    return RUDDER_OK;
}

/* Where the state of the constant head is kept between runs; "" when there is no cache folder. */
static void llama_head_path(const char *head, const gguf_info_t *info, char *path, size_t size)
{
    char name[32];
    rudder_error_t ignored;
    const char *system = llama_print_system_info();
    uint64_t key = llama_hash(LLAMA_HASH, head, strlen(head));
    key = llama_hash(key, (const char *)&info->file_bytes, sizeof info->file_bytes);
    key = llama_hash(key, (const char *)&info->modified, sizeof info->modified);
    key = llama_hash(key, system, strlen(system));
    snprintf(name, sizeof name, "%016" PRIx64, key);
    if (models_cache("heads", name, path, size, &ignored) != RUDDER_OK) {
        path[0] = '\0';
    }
}

/* Reads the state of sequence 0; the hash in front is checked, since llama.cpp aborts on a state that is cut off. */
static int llama_head_read(llama_self_t *self, const char *path)
{
    uint64_t hash;
    struct stat at;
    char *data = NULL;
    int done = 0;
    FILE *file = fopen(path, "rb");
    if (file != NULL && fstat(fileno(file), &at) == 0 && at.st_size > (off_t)sizeof hash) {
        const size_t bytes = (size_t)at.st_size - sizeof hash;
        data = malloc(bytes);
        done = data != NULL && fread(&hash, sizeof hash, 1, file) == 1 && fread(data, 1, bytes, file) == bytes &&
               hash == llama_hash(LLAMA_HASH, data, bytes) &&
               llama_state_seq_set_data(self->context, (const uint8_t *)data, bytes, 0) > 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    free(data);
    return done;
}

/* Keeps the state of sequence 0. What goes wrong here only costs the next agent time. */
static void llama_head_write(llama_self_t *self, const char *path)
{
    char draft[4128];
    const size_t size = llama_state_seq_get_size(self->context, 0);
    char *data = malloc(size);
    snprintf(draft, sizeof draft, "%s.%d", path, (int)getpid());
    FILE *file = data != NULL ? fopen(draft, "wb") : NULL;
    if (file != NULL) {
        const size_t bytes = llama_state_seq_get_data(self->context, (uint8_t *)data, size, 0);
        const uint64_t hash = llama_hash(LLAMA_HASH, data, bytes);
        const int written =
            bytes > 0 && fwrite(&hash, sizeof hash, 1, file) == 1 && fwrite(data, 1, bytes, file) == bytes;
        if ((fclose(file) != 0) | !written || rename(draft, path) != 0) {
            unlink(draft);
        }
    }
    free(data);
}

/*
 * The part of the head that is the same in every run, from the cache folder if an earlier agent has left it there: reading
 * it takes milliseconds, evaluating it seconds that a short run does not have.
 */
static rudder_status_t llama_open_constant(llama_self_t *self, const char *head, const llama_token *tokens, int32_t n,
                                           const gguf_info_t *info, rudder_error_t *error)
{
    char path[4096];
    llama_head_path(head, info, path, sizeof path);
    if (path[0] != '\0' && llama_head_read(self, path)) {
        self->head_tokens = n;
        return RUDDER_OK;
    }
    llama_memory_clear(llama_get_memory(self->context), true);
    RUDDER_TRY(llama_open_head(self, tokens, 0, n, error));
    if (path[0] != '\0') {
        llama_head_write(self, path);
    }
    return RUDDER_OK;
}

/* All tokens that will be needed: of the head with the facts, of the suffix, of the skeleton, of the choices. */
static rudder_status_t llama_open_texts(llama_self_t *self, const backend_config_t *config, char *head,
                                        size_t head_size, llama_token *tokens, int32_t *constant, int32_t *n,
                                        rudder_error_t *error)
{
    char suffix[512], facts[1024];
    RUDDER_TRY(llama_format(self, head, head_size, suffix, sizeof suffix, error));
    RUDDER_TRY(llama_choices(self, suffix, llama_decisions, 2, 1, &self->suffix, self->decision, error));
    RUDDER_TRY(llama_choices(self, PROMPT_BEFORE_HITS, llama_predictions, BACKEND_PREDICTIONS, 0, &self->before_hits,
                             self->hits, error));
    RUDDER_TRY(llama_choices(self, PROMPT_BEFORE_ROWS, llama_predictions, BACKEND_PREDICTIONS, 0, &self->before_rows,
                             self->rows, error));
    self->before_explanation.n = llama_split(self, PROMPT_BEFORE_EXPLANATION, strlen(PROMPT_BEFORE_EXPLANATION), 0, 1,
                                             self->before_explanation.tokens, LLAMA_MAX_TAIL);
    /* A format that writes the start token itself must not get a second one. */
    const llama_token bos = llama_vocab_bos(self->vocab);
    const char *bos_text = bos == LLAMA_TOKEN_NULL ? NULL : llama_vocab_get_text(self->vocab, bos);
    const int has_bos = bos_text != NULL && bos_text[0] != '\0' && strncmp(head, bos_text, strlen(bos_text)) == 0;
    prompt_facts(config->facts, facts, sizeof facts);
    *constant = llama_split(self, head, strlen(head), !has_bos, 1, tokens, LLAMA_MAX_HEAD);
    const int32_t more =
        *constant <= 0 ? -1
                       : llama_split(self, facts, strlen(facts), 0, 0, tokens + *constant, LLAMA_MAX_HEAD - *constant);
    if (more < 0) {
        return RUDDER_FAIL(error, RUDDER_E_UNSUPPORTED, "the prompt's head has more than %d tokens", LLAMA_MAX_HEAD);
    }
    *n = *constant + more;
    self->head_hash = llama_hash(llama_hash(LLAMA_HASH, head, strlen(head)), facts, strlen(facts));
    return RUDDER_OK;
}

static rudder_status_t llama_open_prompt(llama_self_t *self, const backend_config_t *config, const gguf_info_t *info,
                                         rudder_error_t *error)
{
    char head[16384];
    llama_token tokens[LLAMA_MAX_HEAD];
    int32_t constant = 0, n = 0;
    RUDDER_TRY(llama_open_texts(self, config, head, sizeof head, tokens, &constant, &n, error));
    RUDDER_TRY(llama_open_context(self, n, config, error));
    RUDDER_TRY(llama_open_constant(self, head, tokens, constant, info, error));
    return llama_open_head(self, tokens, constant, n, error);
}

static void llama_close(void *opened)
{
    llama_self_t *self = opened;
    if (self != NULL) {
        if (self->context != NULL) {
            llama_batch_free(self->batch);
            llama_free(self->context);
        }
        llama_model_free(self->model);
        free(self);
    }
}

static rudder_status_t llama_open(const backend_config_t *config, void **opened, rudder_error_t *error)
{
    gguf_info_t info;
    rudder_status_t status;
    llama_self_t *self;
    *opened = NULL;
    RUDDER_TRY(gguf_check(config->model, &info, error));
    self = calloc(1, sizeof *self);
    if (self == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the agent");
    }
    setenv("GGML_NO_BACKTRACE", "1", 1); /* it would start a debugger on us */
    llama_log_set(llama_say, config->debug ? self : NULL);
    llama_backend_init();
    struct llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = 0;
    params.use_extra_bufts = false;
    self->model = llama_model_load_from_file(config->model, params);
    if (self->model == NULL) {
        status = RUDDER_FAIL(error, RUDDER_E_MEMORY,
                             "model %s: llama.cpp could not load it; the file is well-formed, so memory (%.1f GB "
                             "needed) or an architecture it does not know (\"%s\") is the likely cause",
                             config->model, (double)info.file_bytes / 1e9, info.architecture);
        goto failed;
    }
    self->vocab = llama_model_get_vocab(self->model);
    for (size_t i = 0; i < sizeof llama_thresholds / sizeof llama_thresholds[0]; i++) {
        if (llama_thresholds[i].bytes == info.file_bytes) {
            self->threshold = llama_thresholds[i].threshold;
        }
    }
    status = llama_open_prompt(self, config, &info, error);
    if (status == RUDDER_OK) {
        *opened = self;
        return RUDDER_OK;
    }
failed:
    llama_close(self);
    return status;
}

/* ---- Answering -------------------------------------------------------------------------------------------------- */

static void llama_job_text(llama_job_t *job, const char *text, size_t n)
{
    if (job->text_used + n < sizeof job->text) {
        memcpy(job->text + job->text_used, text, n);
        job->text_used += n;
        job->text[job->text_used] = '\0';
    }
}

/* Appends a chosen value and the piece of skeleton behind it: both are evaluated next. */
static void llama_job_force(llama_job_t *job, llama_token token, const char *word, const llama_text_t *piece,
                            const char *piece_text)
{
    job->next.tokens[0] = token;
    memcpy(job->next.tokens + 1, piece->tokens, (size_t)piece->n * sizeof piece->tokens[0]);
    job->next.n = 1 + piece->n;
    llama_job_text(job, word, strlen(word));
    llama_job_text(job, piece_text, strlen(piece_text));
}

static int32_t llama_best_of(const float *logits, const llama_token *choices, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++) {
        best = logits[choices[i]] > logits[choices[best]] ? i : best;
    }
    return best;
}

/* One more token of the explanation, greedily; it ends at a quote, at anything that JSON would have to escape, or full. */
static void llama_job_explain(const llama_self_t *self, llama_job_t *job, const float *logits)
{
    char piece[128];
    const int32_t n_vocab = llama_vocab_n_tokens(self->vocab);
    llama_token token = 0;
    for (llama_token i = 1; i < n_vocab; i++) {
        token = logits[i] > logits[token] ? i : token;
    }
    const int32_t n = llama_vocab_is_eog(self->vocab, token)
                          ? 0
                          : llama_token_to_piece(self->vocab, token, piece, sizeof piece, 0, false);
    int32_t used = 0;
    while (used < n && (unsigned char)piece[used] >= 0x20 && piece[used] != '"' && piece[used] != '\\') {
        used++;
    }
    llama_job_text(job, piece, used > 0 ? (size_t)used : 0);
    job->explained++;
    if (n <= 0 || used < n || job->explained >= LLAMA_MAX_EXPLANATION) {
        llama_job_text(job, PROMPT_END, strlen(PROMPT_END));
        job->step = STEP_DONE;
    } else {
        job->next.tokens[0] = token;
        job->next.n = 1;
    }
}

/* Takes the logits behind what was evaluated and says what is next. */
static void llama_job_advance(const llama_self_t *self, llama_job_t *job, rudder_answer_mode_t mode,
                              rudder_answer_t *answer)
{
    const float *logits = llama_get_logits_ith(self->context, job->output);
    int32_t best;
    switch (job->step) {
    case STEP_DECISION:
        answer->margin = (double)logits[self->decision[RUDDER_REPLACE]] - (double)logits[self->decision[RUDDER_KEEP]] -
                         self->threshold;
        answer->verdict = answer->margin > 0 ? RUDDER_REPLACE : RUDDER_KEEP;
        if (fabs(answer->margin) < LLAMA_DEAD_BAND) {
            snprintf(answer->explanation, sizeof answer->explanation, "too close to call (within %.1f)",
                     LLAMA_DEAD_BAND);
        }
        job->step = mode == RUDDER_ANSWER_JSON ? STEP_HITS : STEP_DONE;
        llama_job_force(job, self->decision[answer->verdict], llama_decisions[answer->verdict], &self->before_hits,
                        PROMPT_BEFORE_HITS);
        break;
    case STEP_HITS:
        best = llama_best_of(logits, self->hits, BACKEND_PREDICTIONS);
        job->step = STEP_ROWS;
        llama_job_force(job, self->hits[best], llama_predictions[best], &self->before_rows, PROMPT_BEFORE_ROWS);
        break;
    case STEP_ROWS:
        best = llama_best_of(logits, self->rows, BACKEND_PREDICTIONS);
        job->step = STEP_EXPLANATION;
        llama_job_force(job, self->rows[best], llama_predictions[best], &self->before_explanation,
                        PROMPT_BEFORE_EXPLANATION);
        break;
    case STEP_EXPLANATION:
        llama_job_explain(self, job, logits);
        break;
    case STEP_DONE:
        break;
    }
}

/* Starts a question: its words and the way to the decision, behind a copy of the head. */
static rudder_status_t llama_job_open(llama_self_t *self, llama_job_t *job, int32_t sequence,
                                      const backend_question_t *question, rudder_answer_t *answer)
{
    memset(job, 0, sizeof *job);
    memset(answer, 0, sizeof *answer);
    answer->size = sizeof *answer;
    answer->verdict = RUDDER_NO_VERDICT;
    answer->predict_hits = answer->predict_rows = RUDDER_NO_PREDICTION;
    answer->prompt_hash = llama_hash(self->head_hash, question->text, (size_t)question->text_bytes);
    answer_copy_text(answer->prompt, sizeof answer->prompt, question->text, (size_t)question->text_bytes);
    job->next.n = llama_split(self, question->text, (size_t)question->text_bytes, 0, 0, job->next.tokens,
                              LLAMA_MAX_TAIL - self->suffix.n);
    if (job->next.n < 0) {
        job->step = STEP_DONE;
        return RUDDER_E_ARGUMENT; /* too long */
    }
    memcpy(job->next.tokens + job->next.n, self->suffix.tokens, (size_t)self->suffix.n * sizeof self->suffix.tokens[0]);
    job->next.n += self->suffix.n;
    job->sequence = sequence;
    job->position = self->head_tokens;
    llama_job_text(job, PROMPT_BEFORE_DECISION, strlen(PROMPT_BEFORE_DECISION));
    llama_memory_seq_cp(llama_get_memory(self->context), 0, sequence, -1, -1);
    return RUDDER_OK;
}

/* Evaluates what the open jobs have next, in as few batches as it takes; the logits of each are read right behind. */
static int llama_round(llama_self_t *self, llama_job_t *jobs, int32_t n, const backend_question_t *questions,
                       rudder_answer_t *answers)
{
    int32_t i = 0;
    while (i < n) {
        const int32_t first = i;
        self->batch.n_tokens = 0;
        for (; i < n; i++) {
            llama_job_t *job = &jobs[i];
            if (job->step != STEP_DONE && self->batch.n_tokens + job->next.n > LLAMA_MAX_BATCH) {
                break;
            }
            for (int32_t t = 0; job->step != STEP_DONE && t < job->next.n; t++) {
                job->output = self->batch.n_tokens;
                llama_batch_token(self, job->next.tokens[t], job->position++, job->sequence, t == job->next.n - 1);
            }
        }
        if (self->batch.n_tokens == 0) {
            continue;
        }
        const int code = llama_decode_batch(self);
        if (code != 0) {
            return code;
        }
        for (int32_t j = first; j < i; j++) {
            if (jobs[j].step != STEP_DONE) {
                jobs[j].tokens += jobs[j].next.n;
                llama_job_advance(self, &jobs[j], questions[j].answer_mode, &answers[j]);
            }
        }
    }
    return 0;
}

static void llama_ask(void *opened, const backend_question_t *questions, int32_t n, rudder_answer_t *answers,
                      rudder_status_t *statuses)
{
    llama_self_t *self = opened;
    llama_job_t *jobs = malloc((size_t)n * sizeof *jobs);
    int code = 0, open = 1;
    for (int32_t i = 0; i < n; i++) {
        statuses[i] =
            jobs == NULL ? RUDDER_E_MEMORY : llama_job_open(self, &jobs[i], i + 1, &questions[i], &answers[i]);
    }
    while (jobs != NULL && code == 0 && open) {
        code = llama_round(self, jobs, n, questions, answers);
        open = 0;
        for (int32_t i = 0; i < n; i++) {
            open |= jobs[i].step != STEP_DONE;
        }
    }
    for (int32_t i = 0; jobs != NULL && i < n; i++) {
        if (statuses[i] != RUDDER_OK) {
            continue;
        }
        llama_memory_seq_rm(llama_get_memory(self->context), i + 1, -1, -1);
        answers[i].tokens = jobs[i].tokens;
        if (code != 0) {
            statuses[i] = RUDDER_E_AGENT;
        } else if (questions[i].answer_mode == RUDDER_ANSWER_JSON) {
            answer_parse(jobs[i].text, jobs[i].text_used, &answers[i]);
        }
    }
    free(jobs);
}

static int32_t llama_tokens(void *opened, const char *text, int32_t text_bytes)
{
    const llama_self_t *self = opened;
    const int32_t n = llama_tokenize(self->vocab, text, text_bytes, NULL, 0, false, false);
    return (n < 0 ? -n : n) + self->suffix.n;
}

const backend_t llama_backend = {"llama", llama_open, llama_ask, llama_tokens, llama_close};
