/*
 * Policy `lookahead`: rows are kept by when they are used next. Announced minibatches tell that exactly, as far as they reach;
 * rows beyond that are ordered by their learned use rate (policy/rates.h). A row without a known next use makes room first,
 * the coldest before others; then the row whose next use is farthest. A missed row enters only if its next use comes sooner
 * than that of the row which makes room. With all minibatches announced this is Belady's MIN with bypass (L. A. Belady, "A
 * study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966).
 *
 * Where rows of some owners cost more than others, a row is worth what it saves for each minibatch that it stays: its cost
 * over the distance of its next use. Without a known next use that is its cost times its rate, but no more than if it were
 * used just beyond the window. With equal costs the order by worth is the order above.
 *
 * Beside the ring of announced nodes (buffer/announced.h) lies one that says for each use in which minibatch the node is used
 * after it; the state of a node names its next use and where its last one stands in the ring. So a new announcement extends
 * the chains of its nodes, and a plan moves its nodes one use ahead: O(1) an id. The slots stand in lists, one for each
 * minibatch to come and class of costs; those without a known next use are marked. All of it follows from the ring and the slots: after an abort
 * it is made anew. (Rows that are used next in the same minibatch may then make room in another order.)
 */
#include <string.h>

#include "buffer/arena.h"
#include "buffer/nodes.h"
#include "policy/bins.h"
#include "policy/policy.h"
#include "policy/rates.h"

enum {
    LOOKAHEAD_LOOKS = 4, /* rows without a known next use that are looked at for each missed row */
    LOOKAHEAD_LEAST_LOOKS = 64,
    LOOKAHEAD_BLOCK = 64,
    LOOKAHEAD_AHEAD = 12,
    /*
     * With no number given one slot in so many may be left to a guess. But a buffer that has just filled is full of rows
     * that are never used again, which no window shows: so no more minibatches are looked ahead than this times those planned.
     */
    LOOKAHEAD_UNKNOWN = 400,
    LOOKAHEAD_GROWTH = 4
};

/* A minibatch to come, by its place in the ring of those: 1 + number modulo its size. 0: not known. */
typedef uint32_t lookahead_use_t;

static const lookahead_use_t lookahead_same = UINT32_MAX; /* the node stands in the same minibatch already */

typedef struct lookahead_state {
    rates_state_t rates;
    lookahead_use_t next;
    uint32_t last; /* place of its last announced use in the ring of nodes, if it has one to come */
} lookahead_state_t;

typedef struct lookahead_link {
    int32_t before, after; /* in the list of its minibatch; after < 0: without a known next use */
} lookahead_link_t;

typedef struct lookahead {
    rudder_nodes_t *nodes;
    rates_t *rates;
    int64_t window;                  /* minibatches to look ahead, 0: as many as help */
    int stale;                       /* slots or states were put back, or the start content came */
    lookahead_use_t *after;          /* ring [announced.size]: beside each announced node its use after this one */
    lookahead_link_t *links;         /* [capacity + cost_classes x announced.most]: slots, then the lists' ends */
    uint64_t *used;                  /* [cost_classes][announced.most / 64]: minibatches whose list may have slots */
    int64_t first, first_place;      /* number of the first minibatch to come, and that modulo announced.most */
    int64_t farthest[COSTS_CLASSES]; /* number of a minibatch; the lists of those after it are empty */
    int32_t n_classes;               /* that rows have now */
    uint32_t cost_version;
    double cost[COSTS_CLASSES];
    uint64_t *unknown; /* [capacity / 64]: slots with rows without a known next use */
    int64_t n_unknown;
    int64_t counted, rows_of_next; /* the minibatch for which rows of the next were counted; how many they are */
    bins_t inside, outside;        /* some of them, and missed rows */
} lookahead_t;

static int64_t lookahead_looks(int64_t n_misses, int64_t n_rows)
{
    const int64_t looks =
        LOOKAHEAD_LOOKS * n_misses > LOOKAHEAD_LEAST_LOOKS ? LOOKAHEAD_LOOKS * n_misses : LOOKAHEAD_LEAST_LOOKS;
    return looks < n_rows ? looks : n_rows;
}

static size_t lookahead_layout(unsigned char *self, const rudder_policy_setup_t *setup)
{
    arena_t arena = {.base = self};
    const size_t slots = (size_t)setup->capacity, ids = (size_t)setup->max_ids;
    const size_t uses = (size_t)announced_size(setup->max_announced, setup->max_ids, setup->max_plans);
    const size_t most = (size_t)announced_most(setup->max_announced, setup->max_plans);
    const size_t looks = (size_t)lookahead_looks(setup->max_ids, setup->capacity);
    lookahead_t *look = arena_take(&arena, 1, sizeof *look);
    const size_t classes = (size_t)setup->cost_classes;
    lookahead_t l = {.nodes = setup->nodes, .window = setup->window, .stale = 1, .counted = -1};
    l.rates = arena_take(&arena, 1, rates_memory(setup));
    l.after = arena_take(&arena, uses, sizeof *l.after);
    l.links = arena_take(&arena, slots + classes * most, sizeof *l.links);
    l.used = arena_take(&arena, classes * (most / 64), sizeof *l.used);
    l.unknown = arena_take(&arena, slots / 64 + 1, sizeof *l.unknown);
    l.inside.node = arena_take(&arena, looks, sizeof *l.inside.node);
    l.inside.bin = arena_take(&arena, looks, sizeof *l.inside.bin);
    l.outside.node = arena_take(&arena, ids, sizeof *l.outside.node);
    l.outside.bin = arena_take(&arena, ids, sizeof *l.outside.bin);
    if (self != NULL) {
        *look = l;
    }
    return arena.overflow || slots + classes * most > INT32_MAX ? SIZE_MAX
                                                                : arena.used; /* lists are numbered by int32_t */
}

static size_t lookahead_memory(const rudder_policy_setup_t *setup)
{
    return lookahead_layout(NULL, setup);
}

static rudder_status_t lookahead_open(void *self, const rudder_policy_setup_t *setup)
{
    lookahead_t *look = self;
    lookahead_layout(self, setup);
    for (int32_t class = 0; class < COSTS_CLASSES; class ++) {
        look->cost[class] = costs_of_class(class);
    }
    rates_open(look->rates, setup);
    return RUDDER_OK;
}

static inline lookahead_state_t *lookahead_state(const rudder_nodes_t *nodes, int32_t node)
{
    return nodes_state(nodes, node);
}

/* ---- Slots by next use ------------------------------------------------------------------------------------------ */

/* Where the minibatches to come begin: once for many numbers, since a division is slow. */
static inline void lookahead_set_first(lookahead_t *look, const announced_t *announced)
{
    look->first = announced->first;
    look->first_place = announced->first % announced->most;
}

/* Of a number from `first` on. */
static inline lookahead_use_t lookahead_use(const lookahead_t *look, int64_t number)
{
    const int64_t place = look->first_place + number - look->first, most = look->nodes->announced.most;
    return (lookahead_use_t)(place < most ? place : place - most) + 1;
}

/* How far away the minibatch is: 1 is the first to come. */
static inline int64_t lookahead_distance(const lookahead_t *look, lookahead_use_t use)
{
    const int64_t distance = (int64_t)use - look->first_place;
    return distance > 0 ? distance : distance + look->nodes->announced.most;
}

static inline int32_t lookahead_list(const rudder_nodes_t *nodes, int32_t class, lookahead_use_t use)
{
    return (int32_t)(nodes->capacity + class * nodes->announced.most + use - 1);
}

/* The word of `used` with the mark of a list, and that mark. */
static inline uint64_t *lookahead_used(const lookahead_t *look, const rudder_nodes_t *nodes, int32_t class,
                                       int64_t place)
{
    return &look->used[class * (nodes->announced.most / 64) + place / 64];
}

static inline uint64_t lookahead_mark(int64_t place)
{
    return (uint64_t)1 << (place % 64);
}

static void lookahead_empty_lists(lookahead_t *look, const rudder_nodes_t *nodes, lookahead_use_t use)
{
    for (int32_t class = 0; class < look->n_classes; class ++) {
        const int32_t list = lookahead_list(nodes, class, use);
        look->links[list] = (lookahead_link_t){.before = list, .after = list};
        *lookahead_used(look, nodes, class, use - 1) &= ~lookahead_mark(use - 1);
    }
}

/* The row of a slot takes its place among those with the same next use. */
static inline void lookahead_link(lookahead_t *look, const rudder_nodes_t *nodes, int32_t slot, lookahead_use_t use)
{
    if (use == 0) {
        look->links[slot].after = -1;
        look->unknown[slot / 64] |= lookahead_mark(slot);
        look->n_unknown++;
        return;
    }
    const int32_t class = look->n_classes == 1 ? 0 : nodes_cost_class(nodes, nodes->slot_node[slot]);
    const int32_t list = lookahead_list(nodes, class, use), second = look->links[list].after;
    const int64_t number = look->first + lookahead_distance(look, use) - 1;
    look->links[slot] = (lookahead_link_t){.before = list, .after = second};
    look->links[second].before = slot;
    look->links[list].after = slot;
    *lookahead_used(look, nodes, class, use - 1) |= lookahead_mark(use - 1);
    look->farthest[class] = number > look->farthest[class] ? number : look->farthest[class];
}

static inline void lookahead_unlink(lookahead_t *look, int32_t slot)
{
    const lookahead_link_t link = look->links[slot];
    if (link.after >= 0) {
        look->links[link.before].after = link.after;
        look->links[link.after].before = link.before;
    } else {
        look->unknown[slot / 64] &= ~lookahead_mark(slot);
        look->n_unknown--;
    }
}

/* The farthest minibatch to come whose list has slots; 0: none has. */
static lookahead_use_t lookahead_find_farthest(lookahead_t *look, const rudder_nodes_t *nodes, int32_t class)
{
    int64_t number = look->farthest[class];
    lookahead_use_t use = 0;
    while (number >= look->first) {
        use = lookahead_use(look, number);
        const int64_t place = (int64_t)use - 1; /* the ring is a multiple of 64: blocks of numbers are words of it */
        const uint64_t marks = *lookahead_used(look, nodes, class, place) << (63 - place % 64);
        if (marks >> 63) {
            const int32_t list = lookahead_list(nodes, class, use);
            if (look->links[list].after != list) {
                break;
            }
            *lookahead_used(look, nodes, class, place) &= ~lookahead_mark(place);
            number--;
        } else {
            number -= marks == 0 ? place % 64 + 1 : __builtin_clzll(marks);
        }
    }
    look->farthest[class] = number < look->first ? look->first - 1 : number;
    return number < look->first ? 0 : use;
}

/* ---- Announcements ---------------------------------------------------------------------------------------------- */

/* Rows that take new places: listed first, since inside or not is a coin toss that a branch would lose. */
typedef struct lookahead_moves {
    int32_t slot[LOOKAHEAD_BLOCK];
    lookahead_use_t use[LOOKAHEAD_BLOCK];
    int32_t n;
} lookahead_moves_t;

/* The row of a node, if it is inside and `moves`. */
static inline void lookahead_move(lookahead_moves_t *moves, int32_t place, lookahead_use_t use, int really)
{
    moves->slot[moves->n] = place & ~NODES_PENDING;
    moves->use[moves->n] = use;
    moves->n += really & (place >= 0);
}

/* The records of a minibatch were looked at a while ago: calls for one that will be needed soon. */
static inline void lookahead_call(const rudder_nodes_t *nodes, const int32_t *node, int64_t i, int64_t n)
{
    const int32_t ahead = node[i + LOOKAHEAD_AHEAD < n ? i + LOOKAHEAD_AHEAD : i];
    __builtin_prefetch(nodes_record(nodes, ahead & ~(ahead >> 31)), 1);
}

/* A block of nodes of a minibatch to come, from the i-th on, get one use more. */
static inline void lookahead_extend_block(lookahead_t *look, const rudder_nodes_t *nodes, const int32_t *node,
                                          uint32_t n, uint32_t begin, uint32_t i, lookahead_use_t use,
                                          lookahead_moves_t *moves)
{
    const uint32_t end = n - i < LOOKAHEAD_BLOCK ? n : i + LOOKAHEAD_BLOCK;
    for (; i < end; i++) {
        look->after[begin + i] = 0;
        lookahead_call(nodes, node, i, n);
        if (node[i] < 0) {
            continue;
        }
        const nodes_record_t *record = nodes_record(nodes, node[i]);
        lookahead_state_t *state = lookahead_state(nodes, node[i]);
        const int none = state->next == 0;
        if (!none && state->last - begin < i) { /* it stands there: a duplicate */
            look->after[begin + i] = lookahead_same;
            continue;
        }
        lookahead_use_t *before = none ? &state->next : &look->after[state->last];
        *before = use;
        state->last = begin + i;
        lookahead_move(moves, record->place, use, none);
    }
}

/* A minibatch to come is known: the chains of its nodes become longer. */
static void lookahead_extend(lookahead_t *look, rudder_nodes_t *nodes, int64_t number)
{
    const announced_minibatch_t *minibatch = announced_at(&nodes->announced, number);
    const int32_t *node = announced_nodes(&nodes->announced, minibatch);
    const uint32_t begin = (uint32_t)announced_index(&nodes->announced, minibatch), n = (uint32_t)minibatch->n;
    lookahead_set_first(look, &nodes->announced);
    const lookahead_use_t use = lookahead_use(look, number);
    lookahead_empty_lists(look, nodes, use);
    for (uint32_t i = 0; i < n; i += LOOKAHEAD_BLOCK) {
        lookahead_moves_t moves = {.n = 0};
        lookahead_extend_block(look, nodes, node, n, begin, i, use, &moves);
        for (int32_t m = 0; m < moves.n; m++) {
            lookahead_unlink(look, moves.slot[m]);
            lookahead_link(look, nodes, moves.slot[m], use);
        }
    }
}

/* The classes that rows have now. */
static void lookahead_count_classes(lookahead_t *look, const rudder_nodes_t *nodes)
{
    const costs_t *costs = nodes->costs;
    look->n_classes = 1;
    for (int32_t owner = 0; costs != NULL && owner < costs->n_owners; owner++) {
        const int32_t classes = costs->owners[owner].class + 1;
        look->n_classes = classes > look->n_classes ? classes : look->n_classes;
    }
    look->cost_version = rudder_nodes_cost_version(nodes);
}

/* Everything from the ring and the slots. */
static void lookahead_rebuild(lookahead_t *look, rudder_nodes_t *nodes)
{
    const announced_t *announced = &nodes->announced;
    lookahead_count_classes(look, nodes);
    lookahead_set_first(look, announced);
    for (int32_t node = 0; node < nodes->count; node++) {
        lookahead_state(nodes, node)->next = 0;
    }
    look->n_unknown = 0;
    look->counted = -1;
    for (int32_t class = 0; class < look->n_classes; class ++) {
        look->farthest[class] = announced->first - 1;
    }
    memset(look->unknown, 0, ((size_t)nodes->capacity / 64 + 1) * sizeof *look->unknown);
    for (int32_t slot = 0; slot < nodes->capacity; slot++) {
        if (nodes->slot_node[slot] >= 0) {
            lookahead_link(look, nodes, slot, 0);
        }
    }
    for (int64_t i = 0; i < announced->most; i++) {
        lookahead_empty_lists(look, nodes, (lookahead_use_t)i + 1);
    }
    for (int64_t number = announced->first; number < announced->head; number++) {
        lookahead_extend(look, nodes, number);
    }
    look->stale = 0;
}

/* The lists do not hold any more: slots or states were put back, or rows have other costs. */
static int lookahead_outdated(const lookahead_t *look, const rudder_nodes_t *nodes)
{
    return look->stale || look->cost_version != rudder_nodes_cost_version(nodes);
}

static void lookahead_announced(void *self, rudder_nodes_t *nodes, int64_t minibatch, const int32_t *node, int64_t n)
{
    lookahead_t *look = self;
    (void)minibatch, (void)node, (void)n; /* the newest of the ring */
    if (lookahead_outdated(look, nodes)) {
        lookahead_rebuild(look, nodes);
    } else {
        lookahead_extend(look, nodes, nodes->announced.head - 1);
    }
}

/* Whether the next minibatch is announced. */
static int lookahead_knows_next(const rudder_nodes_t *nodes)
{
    const announced_t *announced = &nodes->announced;
    return announced_to_come(announced) > 0 && announced_at(announced, announced->first)->minibatch == nodes->minibatch;
}

/* How many rows of the buffer the next minibatch uses: walked over once for each. */
static int64_t lookahead_rows_of_next(lookahead_t *look, const rudder_nodes_t *nodes)
{
    const announced_t *announced = &nodes->announced;
    const lookahead_use_t use = (lookahead_use_t)(announced->first % announced->most) + 1;
    if (look->counted == nodes->minibatch) {
        return look->rows_of_next;
    }
    look->counted = nodes->minibatch;
    look->rows_of_next = 0;
    for (int32_t class = 0; class < look->n_classes; class ++) {
        const int32_t list = lookahead_list(nodes, class, use);
        for (int32_t slot = look->links[list].after; slot != list; slot = look->links[slot].after) {
            look->rows_of_next++;
        }
    }
    return look->rows_of_next;
}

/*
 * Whether the plan of the next minibatch would have to guess. Its rows and those of the buffer are then ordered by their use
 * after it; where as many of them as there are slots have a known one the choice is exact: nothing unknown would be kept.
 */
static int lookahead_would_guess(lookahead_t *look, const rudder_nodes_t *nodes)
{
    const announced_t *announced = &nodes->announced;
    const announced_minibatch_t *next = announced_at(announced, announced->first);
    const int32_t *node = announced_nodes(announced, next);
    const lookahead_use_t *after = look->after + announced_index(announced, next);
    const int64_t rows = nodes->capacity - nodes->free, of_next = lookahead_rows_of_next(look, nodes);
    int64_t n = 0, again = 0;
    for (int64_t i = 0; i < next->n; i++) {
        const int distinct = node[i] >= 0 && after[i] != lookahead_same;
        n += distinct;
        again += distinct && after[i] != 0;
    }
    return rows + n - of_next > nodes->capacity &&
           rows - look->n_unknown - of_next + again < nodes->capacity - nodes->capacity / LOOKAHEAD_UNKNOWN;
}

/* The next minibatch itself does not count: what it asks for decides nothing. */
static int lookahead_wants(void *self, const rudder_nodes_t *nodes)
{
    lookahead_t *look = self;
    const announced_t *announced = &nodes->announced;
    if (look->window > 0) {
        return announced_to_come(announced) - lookahead_knows_next(nodes) < look->window;
    }
    if (look->stale) {
        lookahead_rebuild(look, look->nodes);
    }
    const int64_t growing = LOOKAHEAD_GROWTH * (nodes->minibatch + 1);
    return nodes->capacity > 0 && announced_to_come(announced) < growing &&
           (!lookahead_knows_next(nodes) || lookahead_would_guess(look, nodes));
}

/* ---- A minibatch ------------------------------------------------------------------------------------------------ */

/* The minibatch under way was announced: its nodes are used next when the ring says so. */
static void lookahead_move_on(lookahead_t *look, rudder_nodes_t *nodes)
{
    const announced_t *announced = &nodes->announced;
    const int64_t number = announced->first - 1;
    if (number < announced->tail || announced_at(announced, number)->minibatch != nodes->minibatch) {
        return;
    }
    const announced_minibatch_t *minibatch = announced_at(announced, number);
    const int32_t *node = announced_nodes(announced, minibatch);
    const lookahead_use_t *after = look->after + announced_index(announced, minibatch);
    lookahead_set_first(look, announced);
    lookahead_empty_lists(look, nodes, (lookahead_use_t)(number % announced->most) + 1); /* all of its slots move */
    for (int64_t i = 0; i < minibatch->n;) {
        lookahead_moves_t moves = {.n = 0};
        for (const int64_t end = minibatch->n - i < LOOKAHEAD_BLOCK ? minibatch->n : i + LOOKAHEAD_BLOCK; i < end;
             i++) {
            lookahead_call(nodes, node, i, minibatch->n);
            if (node[i] >= 0 && after[i] != lookahead_same) {
                lookahead_state(nodes, node[i])->next = after[i];
                lookahead_move(&moves, nodes_record(nodes, node[i])->place, after[i], 1);
            }
        }
        for (int32_t m = 0; m < moves.n; m++) {
            lookahead_link(look, nodes, moves.slot[m], moves.use[m]);
        }
    }
}

static void lookahead_enter(lookahead_t *look, rudder_nodes_t *nodes, int32_t node, int32_t victim)
{
    if (victim >= 0) {
        lookahead_unlink(look, nodes_slot(nodes_record(nodes, victim)));
    }
    const int32_t slot = rudder_nodes_admit(nodes, node, victim);
    lookahead_link(look, nodes, slot, lookahead_state(nodes, node)->next);
}

/* What the row of a node without a known next use is worth; with equal costs only the order counts, and that is the rate. */
static inline float lookahead_guess(const lookahead_t *look, const rudder_nodes_t *nodes, int32_t node)
{
    const float rate = rates_of(look->rates, nodes_state(nodes, node));
    if (look->n_classes == 1) {
        return rate;
    }
    const float most = 1 / (float)(announced_to_come(&nodes->announced) + 1);
    return (float)look->cost[nodes_cost_class(nodes, node)] * (rate < most ? rate : most);
}

static inline double lookahead_worth(const lookahead_t *look, const rudder_nodes_t *nodes, int32_t node)
{
    const lookahead_use_t use = lookahead_state(nodes, node)->next;
    const int32_t class = look->n_classes == 1 ? 0 : nodes_cost_class(nodes, node);
    return use == 0 ? (double)lookahead_guess(look, nodes, node)
                    : look->cost[class] / (double)lookahead_distance(look, use);
}

/* Rows without a known next use, somewhere else in each minibatch. */
static void lookahead_look(lookahead_t *look, const rudder_nodes_t *nodes, int64_t n_misses)
{
    const uint64_t turn = (uint64_t)nodes->minibatch * 0x9E3779B97F4A7C15u; /* golden section: even over time */
    const int64_t looks = lookahead_looks(n_misses, look->n_unknown), words = nodes->capacity / 64 + 1;
    int64_t word = (int64_t)rng_below((uint32_t)(turn >> 32), (uint32_t)words), n = 0;
    bins_clear(&look->inside);
    while (n < looks) {
        for (uint64_t marks = look->unknown[word]; marks != 0 && n < looks; marks &= marks - 1) {
            const int32_t node = nodes->slot_node[64 * word + __builtin_ctzll(marks)];
            __builtin_prefetch(nodes_state(nodes, node));
            look->inside.node[n++] = node;
        }
        word = word + 1 == words ? 0 : word + 1;
    }
    for (int64_t i = 0; i < looks; i++) {
        const int32_t node = look->inside.node[i];
        bins_add(&look->inside, node, lookahead_guess(look, nodes, node));
    }
}

/* Missed rows for those without a known next use. */
static void lookahead_swap_unknown(lookahead_t *look, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    lookahead_look(look, nodes, n);
    bins_clear(&look->outside);
    for (int64_t i = 0; i < n; i++) {
        if (look->n_classes == 1 && lookahead_state(nodes, node[i])->next != 0) {
            bins_put(&look->outside, node[i], BINS_SURE);
        } else {
            bins_add(&look->outside, node[i], (float)lookahead_worth(look, nodes, node[i]));
        }
    }
    const int64_t swaps = bins_choose(&look->inside, &look->outside);
    for (int64_t i = 0; i < swaps; i++) {
        lookahead_enter(look, nodes, look->outside.node[i], look->inside.node[i]);
    }
}

/* The list whose rows are worth the least, and how much; -1: no row has a known next use. */
static int32_t lookahead_least(lookahead_t *look, const rudder_nodes_t *nodes, double *worth)
{
    int32_t least = -1;
    for (int32_t class = 0; class < look->n_classes; class ++) {
        const lookahead_use_t use = lookahead_find_farthest(look, nodes, class);
        const double w = use == 0 ? 0 : look->cost[class] / (double)lookahead_distance(look, use);
        if (use != 0 && (least < 0 || w < *worth)) {
            least = lookahead_list(nodes, class, use);
            *worth = w;
        }
    }
    return least;
}

/* The missed rows that are still outside for rows with a known next use. */
static void lookahead_swap_known(lookahead_t *look, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        lookahead_call(nodes, node, i, n);
        const int known = lookahead_state(nodes, node[i])->next != 0 || look->n_classes > 1;
        double least = 0;
        if (!known || nodes_record(nodes, node[i])->place >= 0) {
            continue;
        }
        const int32_t list = lookahead_least(look, nodes, &least);
        if (list >= 0 && lookahead_worth(look, nodes, node[i]) > least) {
            const int32_t slot = look->links[list].after, next = look->links[slot].after;
            if (next < nodes->capacity) { /* likely to be the next to leave */
                __builtin_prefetch(nodes_record(nodes, nodes->slot_node[next]));
            }
            lookahead_enter(look, nodes, node[i], nodes->slot_node[slot]);
        }
    }
}

static void lookahead_hits(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    rates_hits(((lookahead_t *)self)->rates, nodes, node, n);
}

static void lookahead_misses(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    lookahead_t *look = self;
    rates_misses(look->rates, nodes, node, n);
    if (lookahead_outdated(look, nodes)) {
        lookahead_rebuild(look, nodes);
    } else {
        lookahead_move_on(look, nodes);
    }
    for (; n > 0 && nodes->free > 0; n--) {
        lookahead_enter(look, nodes, *node++, -1);
    }
    if (n > 0 && nodes->capacity > 0) {
        if (look->n_unknown > 0) {
            lookahead_swap_unknown(look, nodes, node, n);
        }
        lookahead_swap_known(look, nodes, node, n);
    }
}

/* ---- Other events ----------------------------------------------------------------------------------------------- */

static void lookahead_restored(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    lookahead_t *look = self;
    (void)node, (void)n;
    rates_restored(look->rates, nodes);
    look->stale = 1;
}

static void lookahead_dropped(void *self, rudder_nodes_t *nodes, int32_t node, int32_t slot)
{
    lookahead_t *look = self;
    (void)nodes, (void)node;
    look->counted = -1;
    if (!look->stale) {
        lookahead_unlink(look, slot);
    }
}

static void lookahead_started(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    (void)nodes, (void)node, (void)n;
    ((lookahead_t *)self)->stale = 1;
}

static void lookahead_known(void *self, rudder_nodes_t *nodes, const int32_t *node, const uint32_t *degree, int64_t n)
{
    rates_known(((lookahead_t *)self)->rates, nodes, node, degree, n);
}

const rudder_policy_t policy_lookahead = {.size = sizeof(rudder_policy_t),
                                          .name = "lookahead",
                                          .flags = RUDDER_POLICY_ADMITS,
                                          .state_bytes = sizeof(lookahead_state_t),
                                          .memory = lookahead_memory,
                                          .open = lookahead_open,
                                          .hits = lookahead_hits,
                                          .misses = lookahead_misses,
                                          .restored = lookahead_restored,
                                          .dropped = lookahead_dropped,
                                          .started = lookahead_started,
                                          .announced = lookahead_announced,
                                          .wants = lookahead_wants,
                                          .known = lookahead_known};
