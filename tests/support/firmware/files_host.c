/* The same on the host. */
#include "files.h"

#include <stdio.h>

static FILE *opened[8];

int32_t file_open(const char *name, int32_t mode)
{
    static int32_t count;

    opened[count] = fopen(name, mode == FILE_READ ? "rb" : "wb");
    return opened[count] == NULL ? -1 : count++;
}

int32_t file_read(int32_t file, void *to, int32_t bytes)
{
    return (int32_t)fread(to, 1, (size_t)bytes, opened[file]);
}

void file_write(int32_t file, const void *from, int32_t bytes)
{
    fwrite(from, 1, (size_t)bytes, opened[file]);
}

int main(void)
{
    const int32_t code = program();

    for (int32_t i = 0; i < 8 && opened[i] != NULL; i++) {
        fclose(opened[i]);
    }
    return code;
}
