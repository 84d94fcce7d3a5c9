/* Sums of counts and times, over minibatches and over ranks. */
#include "train/train.h"

void train_counts_add(train_counts_t *sum, const train_counts_t *counts)
{
    sum->minibatches += counts->minibatches;
    sum->seeds += counts->seeds;
    sum->input += counts->input;
    sum->remote += counts->remote;
    sum->hit += counts->hit;
    sum->miss += counts->miss;
    sum->fill += counts->fill;
    sum->bytes += counts->bytes;
    sum->window += counts->window;
    sum->most_window = counts->most_window > sum->most_window ? counts->most_window : sum->most_window;
    sum->cut += counts->cut;
}

void train_times_add(train_times_t *sum, const train_times_t *times, double weight)
{
    sum->sample += weight * times->sample;
    sum->plan += weight * times->plan;
    sum->exchange += weight * times->exchange;
    sum->complete += weight * times->complete;
    sum->gather += weight * times->gather;
    sum->idle += weight * times->idle;
    sum->wait += weight * times->wait;
    sum->forward += weight * times->forward;
    sum->backward += weight * times->backward;
    sum->allreduce += weight * times->allreduce;
    sum->step += weight * times->step;
    sum->evaluate += weight * times->evaluate;
    sum->wall += weight * times->wall;
}
