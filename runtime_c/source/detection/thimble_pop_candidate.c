/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_boxes.h"

static int32_t better(const thimble_candidate *one, const thimble_candidate *two)
{
    return one->score > two->score || (one->score == two->score && one->place < two->place);
}

/* `one` sinks from `hole` to where no child is better. */
static void sink(thimble_candidate *heap, int32_t count, int32_t hole, thimble_candidate one)
{
    for (int32_t child = 2 * hole + 1; child < count; child = 2 * hole + 1) {
        if (child + 1 < count && better(&heap[child + 1], &heap[child])) {
            child++;
        }
        if (!better(&heap[child], &one)) {
            break;
        }
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = one;
}

void thimble_heap_candidates(thimble_candidate *heap, int32_t count)
{
    for (int32_t place = count / 2 - 1; place >= 0; place--) {
        sink(heap, count, place, heap[place]);
    }
}

thimble_candidate thimble_pop_candidate(thimble_candidate *heap, int32_t count)
{
    const thimble_candidate best = heap[0];
    sink(heap, count - 1, 0, heap[count - 1]);
    return best;
}

void thimble_replace_candidate(thimble_candidate *heap, int32_t count, thimble_candidate one)
{
    sink(heap, count, 0, one);
}
