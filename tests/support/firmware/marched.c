/* SPDX-License-Identifier: Apache-2.0 */
/* The march of the contact firmware on memory of this computer. */
#include "contact/march.c"

void contact_empty_caches(void)
{
}
