/* Preloaded: lets a chosen write below one folder fail, in every process that has it. What is chosen, and what was met,
   is in a file that all map; `failing_writes.py` writes and reads the same. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#undef open
#undef open64
#undef openat
#undef openat64

enum { OPEN, WRITE, SYNC, RENAME, MKDIR, TRUNCATE, LINK, REMOVE };
static const char *const NAMES[] = {"open", "write", "sync", "rename", "mkdir", "truncate", "link", "remove"};

struct control {
    int armed;    /* 0: nothing is counted or fails */
    int call;     /* which of NAMES; -1: none */
    int nth;      /* which of the calls that match, from 1 */
    int error;    /* what errno says of it */
    int lasting;  /* whether every write below the folder fails from then on */
    int seen;     /* calls that matched */
    int failed;   /* calls that failed */
    int process;  /* which process's failed first */
    char folder[1024];
    char pattern[256]; /* of the path below the folder */
    char first[1024];  /* what failed first: call and path */
    char log[1024];    /* a file outside the folder that gets a line for each call; empty: none */
};

static struct control *control;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("FAILING_WRITES");
    int file = name ? syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *there = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (there != MAP_FAILED) control = there;
    syscall(SYS_close, file);
}

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

/* The path below the folder; NULL where it is elsewhere. */
static const char *below(const char *path) {
    size_t length = strlen(control->folder);
    return strncmp(path, control->folder, length) == 0 && path[length] == '/' ? path + length + 1 : NULL;
}

static int path_of(int file, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, size - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return path[0] == '/';
}

/* Whether a call has to fail; `is_new`: 0 for one that takes no room, which only a disk that cannot be written refuses. */
static int fails(int call, const char *path, int is_new) {
    const char *where = below(path);
    if (!where) return 0;
    int of_disk = control->error == EIO || control->error == EROFS;
    if (control->log[0] && is_new) {
        int file = syscall(SYS_openat, AT_FDCWD, control->log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        char line[1200];
        int length = snprintf(line, sizeof line, "%s %s\n", NAMES[call], where);
        syscall(SYS_write, file, line, length);
        syscall(SYS_close, file);
    }
    int failing = control->lasting && control->failed && (is_new || of_disk);
    if (!failing && call == control->call && is_new && fnmatch(control->pattern, where, 0) == 0)
        failing = __atomic_add_fetch(&control->seen, 1, __ATOMIC_SEQ_CST) == control->nth;
    if (!failing) return 0;
    if (__atomic_fetch_add(&control->failed, 1, __ATOMIC_SEQ_CST) == 0) {
        control->process = getpid();
        snprintf(control->first, sizeof control->first, "%s %s", NAMES[call], where);
    }
    errno = control->error;
    return 1;
}

static int fails_at(int call, int folder, const char *path, int is_new) {
    char whole[4096], parent[2048];
    if (!control || !control->armed || !path) return 0;
    if (path[0] == '/') return fails(call, path, is_new);
    if (folder == AT_FDCWD ? !getcwd(parent, sizeof parent) : !path_of(folder, parent, sizeof parent)) return 0;
    snprintf(whole, sizeof whole, "%s/%s", parent, path);
    return fails(call, whole, is_new);
}

static int file_fails(int call, int file, int is_new) {
    char path[4096];
    if (!control || !control->armed) return 0;
    int before = errno, found = path_of(file, path, sizeof path);
    errno = before;
    return found && fails(call, path, is_new);
}

static int open_fails(int folder, const char *path, int flags) {
    if (!control || !control->armed || !(flags & (O_CREAT | O_WRONLY | O_RDWR)) || flags & O_DIRECTORY) return 0;
    int before = errno, is_new = flags & O_CREAT && syscall(SYS_faccessat, folder, path, F_OK) != 0;
    errno = before;
    return fails_at(OPEN, folder, path, is_new);
}

static int grows(int file, off64_t size) {
    struct stat64 now;
    return fstat64(file, &now) == 0 && now.st_size < size;
}

#define OPENING() \
    va_list rest;                                                           \
    va_start(rest, flags);                                                  \
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest);

int open(const char *path, int flags, ...) {
    OPENING()
    return open_fails(AT_FDCWD, path, flags) ? -1 : ((int (*)(const char *, int, ...))next("open"))(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    OPENING()
    return open_fails(AT_FDCWD, path, flags) ? -1 : ((int (*)(const char *, int, ...))next("open64"))(path, flags, mode);
}
int openat(int at, const char *path, int flags, ...) {
    OPENING()
    return open_fails(at, path, flags) ? -1 : ((int (*)(int, const char *, int, ...))next("openat"))(at, path, flags, mode);
}
int openat64(int at, const char *path, int flags, ...) {
    OPENING()
    return open_fails(at, path, flags) ? -1
                                       : ((int (*)(int, const char *, int, ...))next("openat64"))(at, path, flags, mode);
}

#define CALL(TYPE, NAME, PARAMETERS, ARGUMENTS, CONDITION)      \
    TYPE NAME PARAMETERS {                                      \
        static TYPE(*real) PARAMETERS;                          \
        if (!real) real = (TYPE(*) PARAMETERS)next(#NAME);      \
        return CONDITION ? -1 : real ARGUMENTS;                 \
    }

CALL(ssize_t, write, (int file, const void *data, size_t size), (file, data, size), file_fails(WRITE, file, 1))
CALL(ssize_t, pwrite, (int file, const void *data, size_t size, off_t at), (file, data, size, at),
     file_fails(WRITE, file, 1))
CALL(ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at), (file, data, size, at),
     file_fails(WRITE, file, 1))
CALL(ssize_t, writev, (int file, const struct iovec *data, int count), (file, data, count), file_fails(WRITE, file, 1))
CALL(ssize_t, pwritev, (int file, const struct iovec *data, int count, off_t at), (file, data, count, at),
     file_fails(WRITE, file, 1))
CALL(ssize_t, sendfile, (int file, int from, off_t *at, size_t size), (file, from, at, size),
     file_fails(WRITE, file, 1))
CALL(ssize_t, sendfile64, (int file, int from, off64_t *at, size_t size), (file, from, at, size),
     file_fails(WRITE, file, 1))
CALL(ssize_t, copy_file_range, (int from, off64_t *at, int file, off64_t *to, size_t size, unsigned flags),
     (from, at, file, to, size, flags), file_fails(WRITE, file, 1))
CALL(int, fsync, (int file), (file), file_fails(SYNC, file, 1))
CALL(int, fdatasync, (int file), (file), file_fails(SYNC, file, 1))
CALL(int, ftruncate, (int file, off_t size), (file, size), file_fails(TRUNCATE, file, grows(file, size)))
CALL(int, ftruncate64, (int file, off64_t size), (file, size), file_fails(TRUNCATE, file, grows(file, size)))
CALL(int, rename, (const char *from, const char *to), (from, to), fails_at(RENAME, AT_FDCWD, to, 1))
CALL(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), fails_at(RENAME, b, to, 1))
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode), fails_at(MKDIR, AT_FDCWD, path, access(path, F_OK) != 0))
CALL(int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), fails_at(MKDIR, at, path, 1))
CALL(int, link, (const char *from, const char *to), (from, to), fails_at(LINK, AT_FDCWD, to, 1))
CALL(int, linkat, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags),
     fails_at(LINK, b, to, 1))
CALL(int, symlink, (const char *to, const char *path), (to, path), fails_at(LINK, AT_FDCWD, path, 1))
CALL(int, unlink, (const char *path), (path), fails_at(REMOVE, AT_FDCWD, path, 0))
CALL(int, unlinkat, (int at, const char *path, int flags), (at, path, flags), fails_at(REMOVE, at, path, 0))
CALL(int, rmdir, (const char *path), (path), fails_at(REMOVE, AT_FDCWD, path, 0))
