/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_boxes.h"

/* The heap has the worst candidate on top. The hole moves down to a leaf, then `one` up from there: where
 * scores are equal, this decides which of them ends up first. */
static void replace(thimble_candidate *heap, int32_t count, int32_t hole, thimble_candidate one)
{
    const int32_t top = hole;
    int32_t child = 2 * hole + 2;
    for (; child < count; child = 2 * hole + 2) {
        if (heap[child].score > heap[child - 1].score) {
            child--;
        }
        heap[hole] = heap[child];
        hole = child;
    }
    if (child == count) {
        heap[hole] = heap[child - 1];
        hole = child - 1;
    }
    for (int32_t parent = (hole - 1) / 2; hole > top && heap[parent].score > one.score;
         parent = (hole - 1) / 2) {
        heap[hole] = heap[parent];
        hole = parent;
    }
    heap[hole] = one;
}

void thimble_sort_partly(thimble_candidate *list, int32_t count, int32_t wanted)
{
    for (int32_t parent = wanted / 2 - 1; parent >= 0; parent--) {
        replace(list, wanted, parent, list[parent]);
    }
    for (int32_t i = wanted; i < count; i++) {
        if (list[i].score > list[0].score) {
            const thimble_candidate one = list[i];
            list[i] = list[0];
            replace(list, wanted, 0, one);
        }
    }
    for (int32_t last = wanted - 1; last > 0; last--) {
        const thimble_candidate one = list[last];
        list[last] = list[0];
        replace(list, last, 0, one);
    }
}
