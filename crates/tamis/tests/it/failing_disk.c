/* Preloaded into the binary: calls on chosen files fail as on a dying or full disk.
 *
 * FAULT_CALL   fsync (fdatasync, too), write, rename, or * for all of them
 * FAULT_FILE   pattern (fnmatch) of the path it must be on
 * FAULT_ERRNO  what it fails with
 * FAULT_AFTER  calls that work before
 * FAULT_HANGS  file while which exists such a call does not return, and then works; in the place of FAULT_ERRNO
 *              and FAULT_AFTER
 * FAULT_LOG    file that gets a line for each such call: the path, and whether it failed
 *
 * A failed write leaves half of its bytes; a failed fsync leaves the pages as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_long calls;

static int fails(const char *call, const char *path) {
    const char *wanted = getenv("FAULT_CALL"), *pattern = getenv("FAULT_FILE");
    if (!wanted || !pattern || fnmatch(wanted, call, 0) != 0 || fnmatch(pattern, path, 0) != 0)
        return 0;
    const char *hangs = getenv("FAULT_HANGS");
    if (hangs) {
        while (access(hangs, F_OK) == 0)
            usleep(10000);
        return 0;
    }
    int number = atomic_fetch_add(&calls, 1) >= atol(getenv("FAULT_AFTER"));
    int log = open(getenv("FAULT_LOG"), O_WRONLY | O_APPEND | O_CREAT, 0666);
    if (log >= 0) {
        dprintf(log, "%s %s\n", number ? "failed" : "worked", path);
        close(log);
    }
    if (number)
        errno = atoi(getenv("FAULT_ERRNO"));
    return number;
}

static int fails_on(const char *call, int file) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return fails(call, path);
}

int fsync(int file) {
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return fails_on("fsync", file) ? -1 : next(file);
}

int fdatasync(int file) {
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    return fails_on("fsync", file) ? -1 : next(file);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    ssize_t (*next)(int, const void *, size_t, off64_t) =
        (ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
    if (!fails_on("write", file))
        return next(file, bytes, count, offset);
    int error = errno;
    next(file, bytes, count / 2, offset);
    errno = error;
    return -1;
}

int rename(const char *from, const char *to) {
    int (*next)(const char *, const char *) = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    return fails("rename", to) ? -1 : next(from, to);
}
