/* The ring of announced minibatches. A piece that would run over the end of the ring begins at its start instead. */
#include "buffer/announced.h"

void announced_layout(arena_t *arena, int64_t max_announced, int64_t max_ids, int64_t max_plans, announced_t *announced)
{
    announced_t a = {.size = announced_size(max_announced, max_ids, max_plans),
                     .most = announced_most(max_announced, max_plans),
                     .limit = max_announced,
                     .last = -1};
    a.node = arena_take(arena, (size_t)a.size, sizeof *a.node);
    a.list = arena_take(arena, (size_t)a.most, sizeof *a.list);
    if (announced != NULL) {
        *announced = a;
    }
}

/* Where a minibatch of n ids would begin. */
static int64_t announced_place(const announced_t *announced, int64_t n)
{
    if (announced->tail == announced->head) {
        return 0; /* nothing is kept: from the start, which is in the cache */
    }
    const int64_t at = announced->end % announced->size;
    return at + n <= announced->size ? announced->end : announced->end + announced->size - at;
}

int announced_has_room(const announced_t *announced, int64_t n)
{
    if (n > announced->limit - announced->n_ids || announced->head - announced->tail >= announced->most) {
        return 0;
    }
    const int64_t begin = announced_place(announced, n);
    return announced->tail == announced->head ||
           begin + n - announced_at(announced, announced->tail)->begin <= announced->size;
}

int32_t *announced_add(announced_t *announced, int64_t minibatch, int64_t n)
{
    const int64_t begin = announced_place(announced, n);
    announced_minibatch_t *added = announced_at(announced, announced->head++);
    *added = (announced_minibatch_t){.minibatch = minibatch, .begin = begin, .n = n};
    announced->end = begin + n;
    announced->n_ids += n;
    announced->largest = n > announced->largest ? n : announced->largest;
    return announced_nodes(announced, added);
}

const announced_minibatch_t *announced_plan(announced_t *announced, int64_t minibatch)
{
    if (announced->first == announced->head || announced_at(announced, announced->first)->minibatch != minibatch) {
        return NULL;
    }
    const announced_minibatch_t *next = announced_at(announced, announced->first++);
    announced->n_ids -= next->n;
    return next;
}

void announced_take_back(announced_t *announced, int64_t minibatch)
{
    if (announced->first > announced->tail && announced_at(announced, announced->first - 1)->minibatch == minibatch) {
        announced->n_ids += announced_at(announced, --announced->first)->n;
    }
}

void announced_forget(announced_t *announced, int64_t minibatch)
{
    while (announced->tail < announced->first && announced_at(announced, announced->tail)->minibatch <= minibatch) {
        announced->tail++;
    }
}
