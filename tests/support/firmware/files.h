/* Files of the host, for programs without a C library in QEMU, and for the same programs on the host. */
#ifndef FILES_H
#define FILES_H

#include <stdint.h>

enum { FILE_READ = 1, FILE_WRITE = 5 }; /* "rb", "wb" in semihosting's numbers */

/* A handle; below 0 if the file cannot be opened. */
int32_t file_open(const char *name, int32_t mode);

/* Bytes that were read. */
int32_t file_read(int32_t file, void *to, int32_t bytes);

void file_write(int32_t file, const void *from, int32_t bytes);

/* The program: its result becomes the exit code. */
int32_t program(void);

#endif
